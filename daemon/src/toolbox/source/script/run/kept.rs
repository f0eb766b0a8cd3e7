//! What a script is run from: its file, where that is as it was read and bash can read it, and else a copy of what was read.
//! Must never run a content that nobody took apart, nor one whose file is gone.

use super::Script;
use super::folder::Folder;
use crate::toolbox::source::script::{Language, content};
use std::io;
use std::path::PathBuf;

impl Script {
    /// A copy of what was read, where the file says something else by now: it is being edited, or the edit is broken.
    pub(super) fn kept(&self, folder: &Folder) -> io::Result<Option<PathBuf>> {
        match content::read(&self.file) {
            Ok(now) if *now == *self.source && !self.has_foreign_ends() => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(io::Error::other(
                format!("its file {} is gone", self.file.display()),
            )),
            Ok(_) | Err(_) if self.has_foreign_ends() => {
                let text = String::from_utf8_lossy(&self.source).replace("\r\n", "\n");
                folder.keep(text.as_bytes()).map(Some)
            }
            Ok(_) | Err(_) => folder.keep(&self.source).map(Some),
        }
    }

    /// Lines that end as on another system, which bash takes for a part of each line's last word.
    fn has_foreign_ends(&self) -> bool {
        let has = |pair: &[u8]| pair == b"\r\n";
        self.language == Language::Bash && self.source.windows(2).any(has)
    }
}
