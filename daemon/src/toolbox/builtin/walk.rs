//! Walking a directory as its user means it: without what `.gitignore` leaves out, in the order of paths.
//! Never follows links, so it always ends.

use super::arguments::{self, Arguments};
use super::file;
use ignore::{DirEntry, WalkBuilder};
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// Which files count.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Which {
    /// All but those ignored.
    Wanted,
    /// Those ignored too.
    All,
}

impl Which {
    /// As the tools' parameter `all` says.
    pub(super) fn of(arguments: &Arguments) -> Self {
        match arguments::flag(arguments, "all") {
            true => Self::All,
            false => Self::Wanted,
        }
    }
}

/// A directory to walk, and how its paths are shown.
pub(super) struct Walk {
    pub(super) root: PathBuf,
    pub(super) cwd: PathBuf,
    pub(super) which: Which,
    pub(super) depth: Option<usize>,
}

impl Walk {
    /// Everything below the root; `shown` is the root as the model knows it. Ends early with the call.
    pub(super) fn entries(
        &self,
        shown: &str,
        cancel: &CancellationToken,
    ) -> Result<impl Iterator<Item = DirEntry>, String> {
        let data =
            std::fs::metadata(&self.root).map_err(|error| file::cannot("read", shown, &error))?;
        if data.is_dir() {
            // What cannot be read below is left out, but the root itself is what was asked for.
            std::fs::read_dir(&self.root).map_err(|error| file::cannot("read", shown, &error))?;
        }
        let is_ignoring = self.which == Which::Wanted;
        let mut builder = WalkBuilder::new(&self.root);
        builder
            .hidden(false)
            .parents(is_ignoring)
            .ignore(is_ignoring)
            .git_ignore(is_ignoring)
            .git_exclude(is_ignoring)
            // The daemon's own settings of git are not the session's.
            .git_global(false)
            .require_git(false)
            .max_depth(self.depth)
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_path(Path::cmp);
        let cancel = cancel.clone();
        let entries = builder.build().take_while(move |_| !cancel.is_cancelled());
        Ok(entries
            .flatten()
            .filter(|entry| entry.depth() > 0 || is_file(entry)))
    }

    /// As a model may give it back: relative to the session's directory where it lies in there.
    pub(super) fn shown(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.cwd).unwrap_or(path);
        path.to_string_lossy().into_owned()
    }
}

pub(super) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// Lines for the model, no more than a cap of them.
pub(super) struct Listing {
    lines: Vec<String>,
    bytes: usize,
    is_cut: bool,
}

impl Listing {
    pub(super) fn new() -> Self {
        Self {
            lines: Vec::new(),
            bytes: 0,
            is_cut: false,
        }
    }

    /// False when it does not fit any more.
    pub(super) fn add(&mut self, line: String) -> bool {
        self.bytes += line.len() + 1;
        self.is_cut = self.bytes > super::capture::CAP;
        if !self.is_cut {
            self.lines.push(line);
        }
        !self.is_cut
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
