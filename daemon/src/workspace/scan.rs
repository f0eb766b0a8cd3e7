//! What of a directory's own `.agents/` could run or be believed, as digests of its files.
//! Must never hang or grow without bound, whatever somebody put there.

use super::file;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::Metadata;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

/// Folders and files of `.agents/` that count only in a trusted directory.
const ENTRIES: [&str; 9] = [
    ".env",
    "agents",
    "config.toml",
    "mcp.json",
    "permissions.json",
    "plugins",
    "tools",
    "tools.txt",
    "utils",
];
/// The same where `.agents/` is the user's own: all else in it counts without anybody's trust.
const OWN: [&str; 1] = ["config.toml"];
/// Of those, what runs nothing by itself.
const WORDS: [&str; 3] = [".env", "permissions.json", "tools.txt"];
/// Never counts: skills are words for the model without trust, and git's own files change with each of its commands.
const APART: [&str; 2] = [".git", "skills"];
/// What a package manager fills: one entry, with one digest of all that is in it, as nobody looks at its files one by one.
const INSTALLED: [&str; 4] = ["node_modules", "site-packages", ".venv", "venv"];
/// More than these cannot be trusted, as nobody can look at it, nor the daemon before each turn.
const FILES: usize = 10_000;
const BYTES: u64 = 256 * 1024 * 1024;
/// The same of what is installed, all of it together.
const INSTALLED_FILES: usize = 100_000;
const INSTALLED_BYTES: u64 = 2 * 1024 * 1024 * 1024;
const DEPTH: usize = 32;
/// A file that changed less than this ago may change again without its times showing it.
const SETTLED: Duration = Duration::from_secs(3);

/// Who looks after an `.agents/`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Whose {
    /// Whoever made the directory.
    Directory,
    User,
}

/// Digests by path relative to the directory.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Scan {
    pub(super) files: BTreeMap<String, String>,
    /// Why there may be more than `files`; then nothing of it can be trusted.
    pub(super) incomplete: Option<String>,
}

/// Digests of files that have not changed since, so that a large tree is read once.
#[derive(Debug, Default)]
pub(super) struct Digests {
    known: Mutex<HashMap<Stamp, String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// How much there may be.
#[derive(Clone, Copy, Debug, Default)]
struct Most {
    files: usize,
    bytes: u64,
}

struct Walk<'a> {
    digests: &'a Digests,
    out: Scan,
    bytes: u64,
    most: Most,
    /// What was counted of installed files already.
    installed: Most,
    /// Folders on the way here, so that a ring of links ends.
    entered: BTreeSet<(u64, u64)>,
}

impl Digests {
    /// Looks at everything that counts below `cwd/.agents`.
    pub(super) fn scan(&self, cwd: &Path, whose: Whose) -> Scan {
        // Most directories have none of it: one look tells, before each turn.
        let folder = std::fs::symlink_metadata(cwd.join(".agents"));
        if folder.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Scan::default();
        }
        let mut walk = Walk {
            digests: self,
            out: Scan::default(),
            bytes: 0,
            most: Most {
                files: FILES,
                bytes: BYTES,
            },
            installed: Most::default(),
            entered: BTreeSet::new(),
        };
        let entries = match whose {
            Whose::Directory => &ENTRIES[..],
            Whose::User => &OWN,
        };
        for entry in entries {
            let name = format!(".agents/{entry}");
            walk.entry(&cwd.join(&name), &name, 0);
        }
        if whose == Whose::Directory && walk.out.files.keys().any(|name| runs(name)) {
            walk.rest(&cwd.join(".agents"));
        }
        walk.out
    }

    /// Of a file that was just looked at; it is opened only where nothing is known of it.
    fn digest(&self, path: &Path, seen: &Metadata, left: u64) -> io::Result<(String, u64)> {
        if seen.len() > left {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        if let Some(known) = self.known(seen) {
            return Ok((known, seen.len()));
        }
        let (file, found) = file::open(path)?;
        if found.len() > left {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let (stamp, run) = (Stamp::of(&found), run(&found));
        let digest = read_digest(file, left)?;
        if settled(&stamp) {
            let mut known = self.known.lock().expect("no holder panics");
            // Old stamps never come back; a fresh start costs one more reading.
            if known.len() >= FILES + INSTALLED_FILES {
                known.clear();
            }
            known.insert(stamp, digest.clone());
        }
        Ok((format!("{run}{digest}"), found.len()))
    }

    fn known(&self, found: &Metadata) -> Option<String> {
        let known = self.known.lock().expect("no holder panics");
        let digest = known.get(&Stamp::of(found))?;
        Some(format!("{}{digest}", run(found)))
    }
}

impl Stamp {
    fn of(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}

fn run(found: &Metadata) -> &'static str {
    match found.permissions().mode() & 0o111 {
        0 => "",
        _ => "x:",
    }
}

fn settled(stamp: &Stamp) -> bool {
    let since = |seconds: i64| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    now.saturating_sub(since(stamp.changed.0)) > SETTLED
        && now.saturating_sub(since(stamp.modified.0)) > SETTLED
}

fn read_digest(file: impl Read, left: u64) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut bytes = vec![0; 64 * 1024];
    let mut file = file.take(left.saturating_add(1));
    let mut read = 0;
    loop {
        let count = file.read(&mut bytes)?;
        if count == 0 {
            return Ok(hex(&hash.finalize()));
        }
        read += count as u64;
        if read > left {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        hash.update(&bytes[..count]);
    }
}

/// The digest that a file of this content has in a scan.
pub(super) fn digest_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a file of a directory asks for trust there.
pub(super) fn counts(name: &str, whose: Whose) -> bool {
    let name = name.strip_prefix(".agents/").unwrap_or(name);
    whose == Whose::Directory || OWN.contains(&name)
}

/// Whether it is something that may take along whatever lies anywhere in `.agents/`.
fn runs(name: &str) -> bool {
    let name = name.strip_prefix(".agents/").unwrap_or(name);
    !WORDS.contains(&name)
}

impl Walk<'_> {
    /// What is no entry of ours, yet a script may source it.
    fn rest(&mut self, folder: &Path) {
        match names(folder, self.most.files) {
            Ok(None) => self.stop(format!(".agents holds more than {} files", self.most.files)),
            Ok(Some(entries)) => {
                for (shown, path) in entries {
                    let known = ENTRIES.iter().chain(&APART).any(|entry| *entry == shown);
                    if !known {
                        self.entry(&path, &format!(".agents/{shown}"), 0);
                    }
                }
            }
            Err(error) => self.add(".agents", None, &format!("unreadable: {}", error.kind())),
        }
    }

    /// A link counts as what it leads to, and as where it leads.
    fn entry(&mut self, path: &Path, name: &str, depth: usize) {
        if self.out.incomplete.is_some() {
            return;
        }
        let link = std::fs::read_link(path).ok();
        let found = match std::fs::metadata(path) {
            Ok(found) => found,
            Err(error) if file::missing(&error) && link.is_none() => return,
            Err(error) => return self.add(name, link, &format!("unreadable: {}", error.kind())),
        };
        let is_installed = path
            .file_name()
            .is_some_and(|name| INSTALLED.iter().any(|known| name == *known));
        if found.is_dir() && is_installed && !self.is_inside_installed() {
            self.installed(path, name, depth, &found, link);
        } else if found.is_dir() {
            self.folder(path, name, depth, (found.dev(), found.ino()), link);
        } else if found.is_file() {
            self.file(path, name, &found, link);
        } else {
            self.add(name, link, "neither file nor folder");
        }
    }

    fn folder(
        &mut self,
        path: &Path,
        name: &str,
        depth: usize,
        id: (u64, u64),
        link: Option<PathBuf>,
    ) {
        if depth >= DEPTH {
            return self.stop(format!("{name} lies more than {DEPTH} folders deep"));
        }
        if link.is_some() {
            self.add(name, link, "folder");
        }
        if !self.entered.insert(id) {
            return self.add(name, None, "a folder within itself");
        }
        match names(path, self.most.files) {
            Ok(None) => self.stop(format!("{name} holds more than {} files", self.most.files)),
            Ok(Some(entries)) => {
                for (shown, entry) in entries {
                    self.entry(&entry, &format!("{name}/{shown}"), depth + 1);
                }
            }
            Err(error) => self.add(name, None, &format!("unreadable: {}", error.kind())),
        }
        self.entered.remove(&id);
    }

    fn is_inside_installed(&self) -> bool {
        self.most.files == INSTALLED_FILES
    }

    /// One entry for a whole folder, which is another one as soon as anything in it is.
    fn installed(
        &mut self,
        path: &Path,
        name: &str,
        depth: usize,
        found: &Metadata,
        link: Option<PathBuf>,
    ) {
        let mut inner = Walk {
            digests: self.digests,
            out: Scan::default(),
            bytes: self.installed.bytes,
            most: Most {
                files: INSTALLED_FILES,
                bytes: INSTALLED_BYTES,
            },
            installed: Most::default(),
            entered: self.entered.clone(),
        };
        inner.folder(path, name, depth, (found.dev(), found.ino()), None);
        self.installed.bytes = inner.bytes;
        self.installed.files += inner.out.files.len();
        if self.installed.files > INSTALLED_FILES {
            inner.stop(format!("more than {INSTALLED_FILES} files are installed"));
        }
        if let Some(why) = inner.out.incomplete {
            return self.stop(why);
        }
        let mut hash = Sha256::new();
        for (name, digest) in &inner.out.files {
            // Neither holds a NUL, so that no two trees are written alike.
            hash.update(name);
            hash.update([0]);
            hash.update(digest);
            hash.update([0]);
        }
        let (count, digest) = (inner.out.files.len(), hex(&hash.finalize()));
        self.add(name, link, &format!("{count} files: {digest}"));
    }

    fn file(&mut self, path: &Path, name: &str, found: &Metadata, link: Option<PathBuf>) {
        let left = self.most.bytes - self.bytes;
        match self.digests.digest(path, found, left) {
            Ok((digest, length)) => {
                self.bytes += length;
                self.add(name, link, &digest);
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.stop(format!(
                    "{name} makes it more than {} MiB",
                    self.most.bytes / 1024 / 1024
                ));
            }
            Err(error) => self.add(name, link, &format!("unreadable: {}", error.kind())),
        }
    }

    fn add(&mut self, name: &str, link: Option<PathBuf>, digest: &str) {
        if self.out.files.len() >= self.most.files {
            return self.stop(format!("there are more than {} files", self.most.files));
        }
        let digest = match link {
            Some(target) => format!("link to {target:?}: {digest}"),
            None => digest.to_owned(),
        };
        self.out.files.insert(name.to_owned(), digest);
    }

    fn stop(&mut self, why: String) {
        self.out.incomplete.get_or_insert(why);
    }
}

/// A folder's entries in order; none when there are too many.
fn names(path: &Path, most: usize) -> io::Result<Option<Vec<(String, PathBuf)>>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        // Names that are not text are shown so that two of them never look the same.
        let shown = name
            .to_str()
            .map_or_else(|| format!("{name:?}"), str::to_owned);
        entries.push((shown, entry.path()));
        if entries.len() > most {
            return Ok(None);
        }
    }
    entries.sort();
    Ok(Some(entries))
}

#[cfg(test)]
mod tests;
