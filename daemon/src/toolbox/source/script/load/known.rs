//! What files declared when they were last read, by content, so that a file is taken apart once.
//! A file that was good and no longer is keeps what it declared, and the content that it declared it with.

use super::super::{Declaration, Declared, Problem, content, declare};
use super::syntax::{Source, fault_of_edit};
use super::{Kind, Language};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Files that are kept in mind; a fresh start costs one more reading.
const FILES: usize = 10_000;
/// What their contents may weigh together.
const BYTES: usize = 64 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Known {
    readings: Mutex<Readings>,
}

#[derive(Default)]
struct Readings {
    by_path: HashMap<PathBuf, Arc<Reading>>,
    bytes: usize,
}

impl Readings {
    fn put(&mut self, path: &Path, reading: &Arc<Reading>) {
        if self.by_path.len() >= FILES || self.bytes + reading.source.len() > BYTES {
            *self = Self::default();
        }
        self.bytes += reading.source.len();
        let before = self.by_path.insert(path.to_owned(), Arc::clone(reading));
        self.bytes -= before.map_or(0, |before| before.source.len());
    }
}

/// What a file declares.
pub(super) struct Reading {
    /// Of the content that was read last.
    digest: [u8; 32],
    /// The content that declares this: what runs.
    pub(super) source: Arc<[u8]>,
    pub(super) declared: Declared,
    pub(super) shared: Vec<Arc<Declaration>>,
    pub(super) timeout: Option<Duration>,
    /// What is wrong with the content, where there is something to offer all the same.
    pub(super) problem: Option<String>,
    kind: Kind,
}

impl Known {
    /// Of a file as it is now, or as it was when it was last good. The error is for people, with the file's name.
    pub(super) fn read(&self, path: &Path, kind: Kind) -> Result<Arc<Reading>, String> {
        let bytes = content::read(path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let earlier = self.lock().by_path.get(path).cloned();
        let earlier = earlier.filter(|earlier| earlier.kind == kind);
        if let Some(same) = earlier.as_ref().filter(|earlier| earlier.digest == digest) {
            return Ok(Arc::clone(same));
        }
        let language =
            Language::of(path).ok_or_else(|| format!("{}: no script", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let (time, problem) = match timeout(&bytes) {
            Ok(time) => (time, None),
            Err(problem) => (None, Some(problem.told(path))),
        };
        let bytes: Arc<[u8]> = bytes.into();
        let declared = declare(language, kind, &stem, &bytes).map_err(|why| why.told(path));
        let declared = declared.and_then(|declared| {
            let edited = earlier.as_ref().filter(|good| good.source != bytes);
            let fault = edited.and_then(|good| {
                let edited = Source {
                    file: path.to_owned(),
                    language,
                    text: Arc::clone(&bytes),
                };
                fault_of_edit(edited, Arc::clone(&good.source))
            });
            fault.map_or(Ok(declared), Err)
        });
        let reading = match (declared, earlier) {
            (Ok(declared), _) => Reading {
                digest,
                shared: declared
                    .declarations
                    .iter()
                    .cloned()
                    .map(Arc::new)
                    .collect(),
                declared,
                timeout: time,
                source: bytes,
                problem,
                kind,
            },
            (Err(problem), Some(earlier)) => Reading {
                digest,
                shared: earlier.shared.clone(),
                declared: earlier.declared.clone(),
                timeout: earlier.timeout,
                source: Arc::clone(&earlier.source),
                problem: Some(format!(
                    "{problem}; until that is mended, the tool is and runs as it was before"
                )),
                kind,
            },
            (Err(problem), None) => return Err(problem),
        };
        let reading = Arc::new(reading);
        self.lock().put(path, &reading);
        Ok(reading)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `@meta timeout 10` in a comment of any language: seconds. None where the file names no time.
fn timeout(bytes: &[u8]) -> Result<Option<Duration>, Problem> {
    let text = String::from_utf8_lossy(bytes);
    let said = text.lines().enumerate().find_map(|(at, line)| {
        let line = line.trim_start();
        let comment = line.trim_start_matches(['#', '/', '*', ' ', '\t']);
        let said = (comment.len() < line.len() || line.starts_with('@'))
            .then(|| comment.strip_prefix("@meta timeout "))??;
        Some((at + 1, said.trim()))
    });
    let Some((line, said)) = said else {
        return Ok(None);
    };
    let seconds = said.parse().ok();
    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    match time.filter(|time| !time.is_zero()) {
        Some(time) => Ok(Some(time)),
        None => Err(Problem::new(
            line,
            format!(
                "@meta timeout {said:?} is no number of seconds above 0, so the usual time counts"
            ),
        )),
    }
}
