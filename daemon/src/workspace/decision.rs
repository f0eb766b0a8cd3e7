//! Decisions about directories, kept in one file of the state directory.
//! Must never lose a decision: a file that cannot be read is an error, not an empty list.

use super::file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Thousands of directories with all their files.
const LONGEST: u64 = 64 * 1024 * 1024;

/// What a person said of a directory's files as they were then.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Decision {
    pub(super) allow: bool,
    /// In milliseconds since the Unix epoch.
    pub(super) decided_at: u64,
    /// Digests by path relative to the directory.
    pub(super) files: BTreeMap<String, String>,
}

/// By directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Decisions {
    pub(super) directories: BTreeMap<String, Decision>,
}

/// Where they are kept.
#[derive(Clone, Debug)]
pub(super) struct Book {
    path: PathBuf,
}

impl Book {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join("trust.json"),
        }
    }

    pub(super) fn read(&self) -> Result<Decisions, String> {
        let bytes = file::read(&self.path, LONGEST).map_err(|why| self.unreadable(&why))?;
        match bytes {
            None => Ok(Decisions::default()),
            Some(bytes) => serde_json::from_slice(&bytes).map_err(|why| self.unreadable(&why)),
        }
    }

    /// Reads, changes and replaces; other writers, of this daemon or another, wait.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Decisions) -> T) -> Result<T, String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let cannot = |why: &dyn std::fmt::Display| {
            format!("cannot keep the decision in {}: {why}", self.path.display())
        };
        std::fs::create_dir_all(folder).map_err(|why| cannot(&why))?;
        let _lock = self.lock().map_err(|why| cannot(&why))?;
        let mut decisions = self.read()?;
        let before = decisions.clone();
        let value = change(&mut decisions);
        if decisions != before {
            let text = serde_json::to_vec_pretty(&decisions).map_err(|why| cannot(&why))?;
            file::replace(&self.path, &text, 0o600).map_err(|why| cannot(&why))?;
        }
        Ok(value)
    }

    fn lock(&self) -> std::io::Result<File> {
        lock(&self.path.with_extension("lock"))
    }

    /// For files in directories; not the lock of the book, which is taken while this one is held.
    pub(super) fn lock_files(&self) -> std::io::Result<File> {
        let path = self.path.with_file_name("permissions.lock");
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        lock(&path)
    }

    fn unreadable(&self, why: &dyn std::fmt::Display) -> String {
        let path = self.path.display();
        format!(
            "cannot read the decisions about directories in {path}: {why}; no directory is trusted until it is mended or moved away"
        )
    }
}

/// Held until it is dropped, or its holder dies.
fn lock(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive)?;
    Ok(file)
}
