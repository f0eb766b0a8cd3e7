//! What files declared when they were last read, by content, so that a file is taken apart once.
//! A file that was good and no longer is keeps what it declared.

use super::super::{Declaration, Declared, declare};
use super::{Kind, Language};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Files that are kept in mind; a fresh start costs one more reading.
const FILES: usize = 10_000;
/// Read at most; what is longer is refused for its length.
const LONGEST: u64 = 2 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Known {
    readings: Mutex<HashMap<PathBuf, Arc<Reading>>>,
}

/// What a file declares.
pub(super) struct Reading {
    /// Of the content.
    pub(super) digest: [u8; 32],
    pub(super) declared: Declared,
    pub(super) shared: Vec<Arc<Declaration>>,
    pub(super) timeout: Option<Duration>,
    /// What is wrong with the content, where an earlier one is told of.
    pub(super) problem: Option<String>,
    kind: Kind,
}

impl Known {
    /// Of a file as it is now, or as it was when it was last good. The error is for people, with the file's name.
    pub(super) fn read(&self, path: &Path, kind: Kind) -> Result<Arc<Reading>, String> {
        let bytes =
            bytes(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let digest: [u8; 32] = Sha256::digest(&bytes).into();
        let earlier = self.lock().get(path).cloned();
        let earlier = earlier.filter(|earlier| earlier.kind == kind);
        if let Some(same) = earlier.as_ref().filter(|earlier| earlier.digest == digest) {
            return Ok(Arc::clone(same));
        }
        let language =
            Language::of(path).ok_or_else(|| format!("{}: no script", path.display()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let reading = match (declare(language, kind, &stem, &bytes), earlier) {
            (Ok(declared), _) => Reading {
                digest,
                shared: declared
                    .declarations
                    .iter()
                    .cloned()
                    .map(Arc::new)
                    .collect(),
                declared,
                timeout: timeout(&bytes),
                problem: None,
                kind,
            },
            (Err(problem), Some(earlier)) => Reading {
                digest,
                shared: earlier.shared.clone(),
                declared: earlier.declared.clone(),
                timeout: earlier.timeout,
                problem: Some(format!(
                    "{}; what it declared before is kept",
                    problem.told(path)
                )),
                kind,
            },
            (Err(problem), None) => return Err(problem.told(path)),
        };
        let reading = Arc::new(reading);
        let mut readings = self.lock();
        if readings.len() >= FILES {
            readings.clear();
        }
        readings.insert(path.to_owned(), Arc::clone(&reading));
        Ok(reading)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<PathBuf, Arc<Reading>>> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bytes(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs::File::open(path)?
        .take(LONGEST)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// `@meta timeout 10` in a comment of any language: seconds.
fn timeout(bytes: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(bytes).ok()?;
    let said = text.lines().find_map(|line| {
        let line = line.trim_start();
        let comment = line.trim_start_matches(['#', '/', '*', ' ', '\t']);
        (comment.len() < line.len() || line.starts_with('@'))
            .then(|| comment.strip_prefix("@meta timeout "))?
    })?;
    let seconds: f64 = said.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|time| !time.is_zero())
}
