//! Lines that were typed: where, and in which order; in a file that several clients share. Must never lose a line of
//! another client, nor keep more than fits in memory.

use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// How much of the file is read: its end.
const READ: u64 = 1 << 20;

/// From this size on the file is written anew with what was read.
const TOO_LONG: u64 = 4 << 20;

/// A longer text is not kept.
const LONGEST: usize = 32 << 10;

/// One line.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
struct Entry {
    cwd: String,
    line: String,
}

/// All lines, oldest first.
#[derive(Debug)]
pub(super) struct History {
    path: PathBuf,
    cwd: String,
    entries: Vec<Entry>,
}

impl History {
    /// What the file holds. `old` is one of an earlier release: a line each, whose directories nobody knows.
    pub(super) fn load(path: PathBuf, old: &Path, cwd: &str) -> Self {
        let mut entries: Vec<Entry> = tail(old)
            .lines()
            .map(|line| Entry {
                cwd: String::new(),
                line: line.replace("<\\n>", "\n"),
            })
            .collect();
        let kept = tail(&path);
        // What another release wrote, or a crash cut off, is passed over.
        let read = kept
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        entries.extend(read);
        let this = Self {
            path,
            cwd: cwd.to_string(),
            entries,
        };
        this.shorten();
        this
    }

    /// From here on lines belong to this directory.
    pub(super) fn set_cwd(&mut self, cwd: &str) {
        self.cwd = cwd.to_string();
    }

    /// One more, unless it repeats the last one or begins with a space.
    pub(super) fn add(&mut self, line: &str) {
        let entry = Entry {
            cwd: self.cwd.clone(),
            line: line.to_string(),
        };
        let private = line.starts_with(' ') || line.trim().is_empty() || line.len() > LONGEST;
        if private || self.entries.last() == Some(&entry) {
            return;
        }
        // A history that cannot be written is one that ends with this process.
        let _ = append(&self.path, &entry);
        self.entries.push(entry);
    }

    /// The newest line of this directory before `before` that begins with a text, and where it stands.
    pub(super) fn previous(&self, before: Option<usize>, prefix: &str) -> Option<(usize, &str)> {
        let end = before.unwrap_or(self.entries.len());
        let fits = |entry: &Entry| self.is_here(entry) && entry.line.starts_with(prefix);
        let at = (0..end).rev().find(|at| fits(&self.entries[*at]))?;
        Some((at, &self.entries[at].line))
    }

    /// The oldest one after `after`.
    pub(super) fn next(&self, after: usize, prefix: &str) -> Option<(usize, &str)> {
        let fits = |entry: &Entry| self.is_here(entry) && entry.line.starts_with(prefix);
        let at = (after + 1..self.entries.len()).find(|at| fits(&self.entries[*at]))?;
        Some((at, &self.entries[at].line))
    }

    /// The newest line of any directory before `before` that holds a text.
    pub(super) fn search(&self, before: Option<usize>, text: &str) -> Option<(usize, &str)> {
        let end = before.unwrap_or(self.entries.len());
        let text = text.to_lowercase();
        let at = (0..end)
            .rev()
            .find(|at| self.entries[*at].line.to_lowercase().contains(&text))?;
        Some((at, &self.entries[at].line))
    }

    /// Lines whose directory is not known count everywhere.
    fn is_here(&self, entry: &Entry) -> bool {
        entry.cwd == self.cwd || entry.cwd.is_empty()
    }

    fn shorten(&self) {
        let long = std::fs::metadata(&self.path).is_ok_and(|file| file.len() > TOO_LONG);
        if !long {
            return;
        }
        let lines = self.entries.iter().filter(|entry| !entry.cwd.is_empty());
        let text: String = lines
            .filter_map(|entry| serde_json::to_string(entry).ok())
            .map(|line| line + "\n")
            .collect();
        let new = self.path.with_extension("new");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()));
        if written.is_ok() {
            let _ = std::fs::rename(&new, &self.path);
        }
    }
}

/// One write for each line, so that those of two clients never mix.
fn append(path: &Path, entry: &Entry) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    let mut options = OpenOptions::new();
    let options = options.read(true).append(true).create(true).mode(0o600);
    let mut file = options.open(path)?;
    // A line that a crash cut off must not take this one with it.
    let mut last = [b'\n'];
    if file.seek(SeekFrom::End(-1)).is_ok() {
        file.read_exact(&mut last)?;
    }
    let start = if last == [b'\n'] { "" } else { "\n" };
    let line = format!("{start}{}\n", serde_json::to_string(entry)?);
    file.write_all(line.as_bytes())
}

/// The end of a file, from the beginning of a line.
fn tail(path: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = std::fs::File::open(path)?;
        let length = file.metadata()?.len();
        let skipped = length.saturating_sub(READ);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(READ).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok(match (skipped, text.find('\n')) {
            (0, _) | (_, None) => text,
            (_, Some(end)) => text[end + 1..].to_string(),
        })
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, gone with the test.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("dwell-{name}-{}", crate::open::token()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        fn load(&self, cwd: &str) -> History {
            History::load(self.0.join("history.jsonl"), &self.0.join("history"), cwd)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_directory_has_lines_of_its_own_and_a_search_finds_all() {
        let folder = Folder::new("history-own");
        let mut here = folder.load("/here");
        here.add("one here");
        folder.load("/there").add("one there");
        here.add("two\nlines here");
        let again = folder.load("/here");
        let (at, newest) = again.previous(None, "").unwrap();
        assert_eq!(newest, "two\nlines here");
        assert_eq!(again.previous(Some(at), "").unwrap().1, "one here");
        assert_eq!(again.search(None, "THERE").unwrap().1, "one there");
        assert_eq!(again.next(0, "").unwrap().1, "two\nlines here");
    }

    #[test]
    fn lines_of_an_earlier_release_and_broken_ones_do_no_harm() {
        let folder = Folder::new("history-old");
        std::fs::write(folder.0.join("history"), "old<\\n>line\n").unwrap();
        std::fs::write(folder.0.join("history.jsonl"), "{\"cwd\":\"/here\",\"li").unwrap();
        let mut history = folder.load("/here");
        assert_eq!(history.previous(None, "old").unwrap().1, "old\nline");
        history.add("after the crash");
        assert!(folder.load("/here").search(None, "after").is_some());
        history.add(" secret");
        assert!(history.search(None, "secret").is_none());
    }
}
