//! What a script is run from: its file, where that is as it was read, and else what was read of it.
//! Must never run a content that nobody took apart, nor one whose file is gone.

use super::Script;
use super::folder::Folder;
use crate::toolbox::source::script::content;
use std::io;
use std::path::PathBuf;

impl Script {
    /// A copy of what was read, where the file says something else by now: it is being edited, or the edit is broken.
    pub(super) fn kept(&self, folder: &Folder) -> io::Result<Option<PathBuf>> {
        match content::read(&self.file) {
            Ok(now) if *now == *self.source => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::other(
                format!("its file {} is gone", self.file.display()),
            )),
            Ok(_) | Err(_) => folder.keep(&self.source).map(Some),
        }
    }
}
