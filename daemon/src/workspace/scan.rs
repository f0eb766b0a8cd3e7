//! What of a directory's own `.agents/` could run or be believed, as digests of its files.
//! Must never hang or grow without bound, whatever somebody put there.

use super::file;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
/// Of those, what runs nothing by itself.
const WORDS: [&str; 3] = [".env", "permissions.json", "tools.txt"];
/// Never counts: skills are words for the model without trust, and git's own files change with each of its commands.
const APART: [&str; 2] = [".git", "skills"];
/// More than these cannot be trusted, as nobody can look at it, nor the daemon before each turn.
const FILES: usize = 10_000;
const BYTES: u64 = 256 * 1024 * 1024;
const DEPTH: usize = 32;
/// A file that changed less than this ago may change again without its times showing it.
const SETTLED: Duration = Duration::from_secs(3);

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

struct Walk<'a> {
    digests: &'a Digests,
    out: Scan,
    bytes: u64,
    /// Folders on the way here, so that a ring of links ends.
    entered: BTreeSet<(u64, u64)>,
}

impl Digests {
    /// Looks at everything that counts below `cwd/.agents`.
    pub(super) fn scan(&self, cwd: &Path) -> Scan {
        // Most directories have none of it: one look tells, before each turn.
        let folder = std::fs::symlink_metadata(cwd.join(".agents"));
        if folder.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Scan::default();
        }
        let mut walk = Walk {
            digests: self,
            out: Scan::default(),
            bytes: 0,
            entered: BTreeSet::new(),
        };
        for entry in ENTRIES {
            let name = format!(".agents/{entry}");
            walk.entry(&cwd.join(&name), &name, 0);
        }
        if walk.out.files.keys().any(|name| runs(name)) {
            walk.rest(&cwd.join(".agents"));
        }
        walk.out
    }

    fn digest(&self, path: &Path, left: u64) -> io::Result<(String, u64)> {
        let (file, found) = file::open(path)?;
        if found.len() > left {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let stamp = Stamp {
            device: found.dev(),
            inode: found.ino(),
            size: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        };
        let run = if found.permissions().mode() & 0o111 == 0 {
            ""
        } else {
            "x:"
        };
        if let Some(known) = self.known.lock().expect("no holder panics").get(&stamp) {
            return Ok((format!("{run}{known}"), found.len()));
        }
        let digest = read_digest(file, left)?;
        if settled(&stamp) {
            let mut known = self.known.lock().expect("no holder panics");
            // Old stamps never come back; a fresh start costs one more reading.
            if known.len() >= FILES {
                known.clear();
            }
            known.insert(stamp, digest.clone());
        }
        Ok((format!("{run}{digest}"), found.len()))
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

/// Whether it is something that may take along whatever lies anywhere in `.agents/`.
fn runs(name: &str) -> bool {
    let name = name.strip_prefix(".agents/").unwrap_or(name);
    !WORDS.contains(&name)
}

impl Walk<'_> {
    /// What is no entry of ours, yet a script may source it.
    fn rest(&mut self, folder: &Path) {
        match names(folder) {
            Ok(None) => self.stop(format!(".agents holds more than {FILES} files")),
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
        if found.is_dir() {
            self.folder(path, name, depth, (found.dev(), found.ino()), link);
        } else if found.is_file() {
            self.file(path, name, link);
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
        match names(path) {
            Ok(None) => self.stop(format!("{name} holds more than {FILES} files")),
            Ok(Some(entries)) => {
                for (shown, entry) in entries {
                    self.entry(&entry, &format!("{name}/{shown}"), depth + 1);
                }
            }
            Err(error) => self.add(name, None, &format!("unreadable: {}", error.kind())),
        }
        self.entered.remove(&id);
    }

    fn file(&mut self, path: &Path, name: &str, link: Option<PathBuf>) {
        match self.digests.digest(path, BYTES - self.bytes) {
            Ok((digest, length)) => {
                self.bytes += length;
                self.add(name, link, &digest);
            }
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.stop(format!(
                    "{name} makes it more than {} MiB",
                    BYTES / 1024 / 1024
                ));
            }
            Err(error) => self.add(name, link, &format!("unreadable: {}", error.kind())),
        }
    }

    fn add(&mut self, name: &str, link: Option<PathBuf>, digest: &str) {
        if self.out.files.len() >= FILES {
            return self.stop(format!("there are more than {FILES} files"));
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
fn names(path: &Path) -> io::Result<Option<Vec<(String, PathBuf)>>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        // Names that are not text are shown so that two of them never look the same.
        let shown = name
            .to_str()
            .map_or_else(|| format!("{name:?}"), str::to_owned);
        entries.push((shown, entry.path()));
        if entries.len() > FILES {
            return Ok(None);
        }
    }
    entries.sort();
    Ok(Some(entries))
}

#[cfg(test)]
mod tests {
    use super::{Digests, Scan};
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;
    use tempfile::TempDir;

    fn scan(cwd: &Path) -> Scan {
        Digests::default().scan(cwd)
    }

    fn put(cwd: &Path, name: &str, text: &str) {
        let path = cwd.join(".agents").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn only_what_could_run_or_be_believed_counts() {
        let root = TempDir::new().unwrap();
        assert_eq!(scan(root.path()), Scan::default());
        for name in [
            "plugins/a.py",
            "tools/t/x.sh",
            "agents/b",
            "mcp.json",
            "config.toml",
            "permissions.json",
            "skills/s/SKILL.md",
            ".git/index",
            "helper.inc",
            "lib/l.sh",
            ".env",
            "tools.txt",
            "utils/guard.sh",
        ] {
            put(root.path(), name, "x");
        }
        let names: Vec<String> = scan(root.path()).files.into_keys().collect();
        let expected = [
            ".env",
            "agents/b",
            "config.toml",
            "helper.inc",
            "lib/l.sh",
            "mcp.json",
            "permissions.json",
            "plugins/a.py",
            "tools.txt",
            "tools/t/x.sh",
            "utils/guard.sh",
        ];
        assert_eq!(names, expected.map(|name| format!(".agents/{name}")));
    }

    #[test]
    fn where_nothing_runs_other_files_do_not_count() {
        let root = TempDir::new().unwrap();
        put(root.path(), "notes/a.md", "x");
        assert_eq!(scan(root.path()), Scan::default());
        put(root.path(), "permissions.json", "{}");
        assert_eq!(scan(root.path()).files.len(), 1);
        put(root.path(), "tools/x.sh", "x");
        assert_eq!(scan(root.path()).files.len(), 3);
    }

    #[test]
    fn every_change_shows() {
        let root = TempDir::new().unwrap();
        put(root.path(), "tools/x", "one");
        let digests = Digests::default();
        let mut seen = vec![digests.scan(root.path())];
        let mut changed = || {
            let scan = digests.scan(root.path());
            assert!(!seen.contains(&scan), "{scan:?}");
            seen.push(scan);
        };
        put(root.path(), "tools/x", "two");
        changed();
        put(root.path(), "tools/y", "");
        changed();
        let path = root.path().join(".agents/tools/x");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        changed();
        fs::remove_file(&path).unwrap();
        changed();
        symlink("/bin/true", &path).unwrap();
        changed();
        fs::remove_file(&path).unwrap();
        symlink("/bin/false", &path).unwrap();
        changed();
    }

    #[test]
    fn a_linked_files_content_counts_too() {
        let root = TempDir::new().unwrap();
        put(root.path(), "tools/own", "x");
        fs::write(root.path().join("far"), "one").unwrap();
        symlink("../../far", root.path().join(".agents/tools/link")).unwrap();
        let before = scan(root.path());
        fs::write(root.path().join("far"), "two").unwrap();
        assert_ne!(scan(root.path()), before);
    }

    #[test]
    fn pipes_rings_and_what_cannot_be_read_do_not_hang() {
        let root = TempDir::new().unwrap();
        put(root.path(), "tools/x", "x");
        let tools = root.path().join(".agents/tools");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tools.join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        symlink("..", tools.join("up")).unwrap();
        symlink("ring", tools.join("ring")).unwrap();
        symlink("nowhere", tools.join("nothing")).unwrap();
        symlink("/dev/zero", tools.join("zero")).unwrap();
        put(root.path(), "tools/secret", "x");
        fs::set_permissions(tools.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
        let scan = scan(root.path());
        assert_eq!(scan.incomplete, None);
        for name in ["pipe", "ring", "nothing", "zero", "x", "secret"] {
            assert!(
                scan.files.contains_key(&format!(".agents/tools/{name}")),
                "{name}: {scan:?}"
            );
        }
    }

    #[test]
    fn a_tree_without_end_is_incomplete() {
        let root = TempDir::new().unwrap();
        put(
            root.path(),
            &format!("tools/{}x", "deep/".repeat(super::DEPTH)),
            "x",
        );
        assert!(scan(root.path()).incomplete.is_some());
    }

    #[test]
    fn a_large_file_is_incomplete_and_is_not_read() {
        let root = TempDir::new().unwrap();
        put(root.path(), "tools/large", "");
        let file = fs::File::create(root.path().join(".agents/tools/large")).unwrap();
        file.set_len(super::BYTES + 1).unwrap();
        assert!(scan(root.path()).incomplete.is_some());
    }
}
