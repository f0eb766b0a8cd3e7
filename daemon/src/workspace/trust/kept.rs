//! Copies of the small texts that people decided on, so that a change can be shown to them. For the owner alone.
//! Must never be believed: only digests decide.

use crate::workspace::file;
use crate::workspace::scan::digest_of;
use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The longest that is kept, and how much of one decision.
const LONGEST: u64 = 256 * 1024;
const ALL: usize = 16 * 1024 * 1024;

/// Why a difference is not shown.
pub(super) const NOT_KEPT: &str =
    "what was agreed to is not kept: it is no text, or longer than 256 KiB";
pub(super) const NOT_READ: &str = "it cannot be shown: it is no text, or longer than 256 KiB";

#[derive(Debug)]
pub(super) struct Kept {
    folder: PathBuf,
}

impl Kept {
    pub(super) fn new(state_dir: &Path) -> Self {
        Self {
            folder: state_dir.join("trusted"),
        }
    }

    /// Keeps what can be kept of these files; a file that cannot be is shown as changed, without how.
    pub(super) fn put(&self, files: impl Iterator<Item = PathBuf>) {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder);
        if let Err(error) = made {
            return tracing::debug!(%error, "copies of trusted files are not kept");
        }
        let mut left = ALL;
        for path in files.filter(|path| !is_secret(path)) {
            let Some(text) = read(&path).filter(|text| text.len() <= left) else {
                continue;
            };
            left -= text.len();
            let place = self.folder.join(digest_of(text.as_bytes()));
            if !place.exists()
                && let Err(error) = file::replace(&place, text.as_bytes(), 0o600)
            {
                tracing::debug!(%error, "a copy of a trusted file is not kept");
            }
        }
    }

    /// Lets go of those that no decision rests on.
    pub(super) fn keep_only(&self, digests: &BTreeSet<String>) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            if !name.to_str().is_some_and(|name| digests.contains(name)) {
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }

    /// Where the copy of what has this digest is, if there is one.
    pub(super) fn place(&self, digest: &str) -> Option<PathBuf> {
        Some(self.folder.join(bare(digest)?))
    }

    pub(super) fn get(&self, digest: &str) -> Option<String> {
        let text = read(&self.place(digest)?)?;
        // Somebody may have written there.
        (digest_of(text.as_bytes()) == bare(digest)?).then_some(text)
    }
}

/// The digest of a file's content within what a scan says of the file.
pub(super) fn bare(digest: &str) -> Option<&str> {
    let tail = digest.get(digest.len().checked_sub(64)?..)?;
    tail.bytes()
        .all(|byte| byte.is_ascii_hexdigit())
        .then_some(tail)
}

/// A text that is not long.
pub(super) fn read(path: &Path) -> Option<String> {
    let bytes: io::Result<Option<Vec<u8>>> = file::read(path, LONGEST);
    String::from_utf8(bytes.ok()??).ok()
}

/// Variables of scripts are often passwords.
pub(super) fn is_secret(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(b".env"))
}
