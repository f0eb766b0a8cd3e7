//! Which files are plugins, and how each is started. Must never open one.

use crate::workspace::{Shared, file};
use protocol::approval::TrustState;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Providers' executables lie in the same folder and are started when their provider is asked for.
const PROVIDER: &str = "dwell-provider-";
/// Endings and names of what lies beside plugins and was never meant to run.
const PAPERS: [&str; 18] = [
    "adoc", "bak", "cfg", "conf", "csv", "ini", "json", "jsonc", "lock", "log", "map", "md",
    "orig", "pyc", "rst", "toml", "txt", "yaml",
];
const NAMES: [&str; 4] = ["LICENSE", "COPYING", "Makefile", "README"];

/// A file that is a plugin, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::workspace) struct Found {
    pub(super) path: PathBuf,
    pub(super) how: How,
    stamp: Stamp,
}

/// What starts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    Itself,
    Python,
    JavaScript,
    Shell,
    /// Nothing: it lies where plugins lie, and cannot be started for this reason. It may have been meant as a guard.
    Nothing(String),
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Stamp {
    inode: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Found {
    /// What people call it: the file's name without what comes after its last dot.
    pub(super) fn name(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// The program and its arguments, or why there is none. `sdk` is the folder of the SDKs.
    pub(super) fn command(&self, sdk: &Path) -> Result<(OsString, Vec<OsString>), String> {
        let file = self.path.clone().into_os_string();
        Ok(match &self.how {
            How::Itself => (file, Vec::new()),
            How::Python => (
                "python3".into(),
                vec![sdk.join("dwell.py").into_os_string(), file],
            ),
            How::JavaScript => (
                "node".into(),
                vec![sdk.join("dwell.mjs").into_os_string(), file],
            ),
            How::Shell => ("bash".into(), vec![file]),
            How::Nothing(why) => return Err(format!("{} {why}", self.path.display())),
        })
    }
}

/// Where hooks are spoken of, one of these words stands: in the SDKs' names and in the protocol's.
const GUARDS: [&str; 3] = ["before", "after", "hook"];
/// More than this is no script.
const LONGEST: u64 = 1 << 20;

impl Found {
    /// Whether it may add hooks, as far as its text and that of the files which it may read tell. Blocks on the disk.
    pub(super) fn may_guard(&self) -> bool {
        let folder = self
            .path
            .parent()
            .and_then(|folder| std::fs::read_dir(folder).ok());
        let helpers = folder
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path());
        let is_helper = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default();
            name.as_encoded_bytes().first() == Some(&b'_')
        };
        let helpers = helpers.filter(is_helper).filter(|path| path.is_file());
        speaks_of_hooks(&self.path) || helpers.into_iter().any(|path| speaks_of_hooks(&path))
    }
}

fn speaks_of_hooks(path: &Path) -> bool {
    let bytes = file::read(path, LONGEST).ok().flatten();
    may_speak_of_hooks(bytes.and_then(|bytes| String::from_utf8(bytes).ok()))
}

/// Of what nobody can read nobody can tell.
fn may_speak_of_hooks(text: Option<String>) -> bool {
    text.is_none_or(|text| GUARDS.iter().any(|word| text.contains(word)))
}

/// Whether a file among plugins could be a guard, or what one is made of. The text is asked for where it matters.
pub(in crate::workspace) fn may_guard(path: &Path, text: impl FnOnce() -> Option<String>) -> bool {
    !is_paper(path) && may_speak_of_hooks(text())
}

fn is_paper(path: &Path) -> bool {
    match path.extension() {
        Some(ending) => PAPERS.iter().any(|paper| ending == *paper),
        None => path
            .file_name()
            .is_some_and(|name| NAMES.iter().any(|paper| name == *paper)),
    }
}

/// The user's plugins, then those of a trusted directory; each folder in the order of file names.
pub(in crate::workspace) fn of(shared: &Shared, cwd: &Path, state: TrustState) -> Vec<Found> {
    let mut all = inside(&shared.places.home.join(".agents/plugins"));
    if state == TrustState::Trusted && shared.places.home != cwd {
        all.extend(inside(&cwd.join(".agents/plugins")));
    }
    if !all.is_empty() {
        shared.places.plugins.bring_sdk();
    }
    all
}

fn inside(folder: &Path) -> Vec<Found> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if file::missing(&error) => return Vec::new(),
        // There may be guards in it.
        Err(error) => {
            return vec![Found {
                path: folder.to_owned(),
                how: How::Nothing(format!("cannot be listed: {error}")),
                stamp: Stamp::default(),
            }];
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(found).collect()
}

/// A leading `_` or `.` says that a file is no plugin, but there for others.
fn found(path: PathBuf) -> Option<Found> {
    let name = path.file_name()?.to_string_lossy();
    if name.starts_with(['.', '_']) || name.ends_with('~') || name.starts_with(PROVIDER) {
        return None;
    }
    let meta = match std::fs::metadata(&path) {
        Ok(meta) if meta.is_dir() => return None,
        Ok(meta) => meta,
        Err(error) => return lost(path, &error),
    };
    let how = how(&path, &meta)?;
    let stamp = Stamp {
        inode: (meta.dev(), meta.ino()),
        size: meta.len(),
        changed: (meta.ctime(), meta.ctime_nsec()),
    };
    Some(Found { path, how, stamp })
}

/// One that was taken away just now is no plugin any more; a link that leads nowhere still says that there is to be one.
fn lost(path: PathBuf, error: &io::Error) -> Option<Found> {
    let link = std::fs::symlink_metadata(&path).ok()?;
    let why = match link.is_symlink() {
        true => format!("is a link that leads nowhere: {error}"),
        false => format!("cannot be looked at: {error}"),
    };
    Some(Found {
        path,
        how: How::Nothing(why),
        stamp: Stamp::default(),
    })
}

fn how(path: &Path, meta: &Metadata) -> Option<How> {
    if !meta.is_file() {
        return Some(How::Nothing("is no file".to_owned()));
    }
    let ending = path.extension().and_then(|extension| extension.to_str());
    Some(match ending {
        _ if meta.permissions().mode() & 0o111 != 0 => How::Itself,
        Some("py") => How::Python,
        Some("mjs") => How::JavaScript,
        Some("sh") => How::Shell,
        _ if is_paper(path) => return None,
        Some(_) | None => How::Nothing(
            "is not executable, and its name ends in none of .py, .mjs and .sh, so nothing can run it: chmod +x, or put \
             `_` before its name if it is no plugin"
                .to_owned(),
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::{How, inside};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn executables_and_known_endings_are_plugins_in_the_order_of_their_names() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "c.sh",
            "a.py",
            "_helper.py",
            ".hidden.py",
            "notes.md",
            "own",
            "b.mjs",
            "dwell-provider-x",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        for name in ["own", "dwell-provider-x"] {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(folder.path().join(name), mode).unwrap();
        }
        fs::create_dir(folder.path().join("lib.py")).unwrap();
        let found = inside(folder.path());
        let seen: Vec<_> = found
            .iter()
            .map(|one| (one.name(), one.how.clone()))
            .collect();
        let expected = [
            ("a", How::Python),
            ("b", How::JavaScript),
            ("c", How::Shell),
            ("own", How::Itself),
        ];
        assert_eq!(seen, expected.map(|(name, how)| (name.to_owned(), how)));
    }

    #[test]
    fn what_may_have_been_meant_as_a_plugin_and_cannot_run_is_named_with_why() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["guard", "guard.js", "guard.rb", "LICENSE", "data.json"] {
            fs::write(folder.path().join(name), "session.toolbox.before").unwrap();
        }
        std::os::unix::fs::symlink("/nonexistent", folder.path().join("link.sh")).unwrap();
        let found = inside(folder.path());
        let seen: Vec<_> = found
            .iter()
            .map(|one| {
                let why = one.command(folder.path()).unwrap_err();
                let name = one.path.file_name().unwrap().to_str().unwrap();
                (name, why.contains("leads nowhere"), one.may_guard())
            })
            .collect();
        let expected = [
            ("guard", false, true),
            ("guard.js", false, true),
            ("guard.rb", false, true),
            ("link.sh", true, true),
        ];
        assert_eq!(seen, expected);
        let file = inside(&folder.path().join("data.json"));
        assert!(file.is_empty(), "{file:?}");
    }

    #[test]
    fn file_that_may_add_hooks_is_known_by_its_words_and_those_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &[u8]| fs::write(folder.path().join(name), text).unwrap();
        put("a.py", b"session.toolbox.add('x')");
        put("b.py", b"session.toolbox.before()");
        put("c.sh", b"reply '{\"hooks\": []}'");
        put("d.sh", b"\xff\xfe");
        let guards = || -> Vec<bool> {
            inside(folder.path())
                .iter()
                .map(super::Found::may_guard)
                .collect()
        };
        assert_eq!(guards(), [false, true, true, true]);
        put("_shared.py", b"def guard(toolbox): toolbox.before()");
        assert_eq!(guards(), [true; 4]);
    }

    #[test]
    fn changed_file_is_another_plugin() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        fs::write(&path, "one").unwrap();
        let before = inside(folder.path());
        assert_eq!(inside(folder.path()), before);
        fs::write(&path, "other").unwrap();
        assert_ne!(inside(folder.path()), before);
    }
}
