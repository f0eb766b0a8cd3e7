//! Which files are plugins, and how each is started. Must never open one.

use crate::workspace::{Shared, file};
use protocol::approval::TrustState;
use std::ffi::OsString;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Providers' executables lie in the same folder and are started when their provider is asked for.
const PROVIDER: &str = "dwell-provider-";

/// A file that is a plugin, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::workspace) struct Found {
    pub(super) path: PathBuf,
    pub(super) how: How,
    stamp: Stamp,
}

/// What starts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Itself,
    Python,
    JavaScript,
    Shell,
}

#[derive(Clone, Debug, PartialEq)]
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

    /// The program and its arguments. `sdk` is the folder of the SDKs.
    pub(super) fn command(&self, sdk: &Path) -> (OsString, Vec<OsString>) {
        let file = self.path.clone().into_os_string();
        match self.how {
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
        }
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
    match bytes.map(String::from_utf8) {
        Some(Ok(text)) => GUARDS.iter().any(|word| text.contains(word)),
        // Nobody can tell.
        Some(Err(_)) | None => true,
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
        Err(error) => {
            tracing::warn!(folder = %folder.display(), %error, "plugins cannot be listed");
            return Vec::new();
        }
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter().filter_map(found).collect()
}

/// A leading `_` or `.` says that a file is no plugin, but there for others.
fn found(path: PathBuf) -> Option<Found> {
    let name = path.file_name()?.to_str()?;
    if name.starts_with(['.', '_']) || name.ends_with('~') || name.starts_with(PROVIDER) {
        return None;
    }
    let meta = std::fs::metadata(&path)
        .ok()
        .filter(|meta| meta.is_file())?;
    let how = match path.extension().and_then(|extension| extension.to_str()) {
        _ if meta.permissions().mode() & 0o111 != 0 => How::Itself,
        Some("py") => How::Python,
        Some("mjs") => How::JavaScript,
        Some("sh") => How::Shell,
        _ => return None,
    };
    let stamp = Stamp {
        inode: (meta.dev(), meta.ino()),
        size: meta.len(),
        changed: (meta.ctime(), meta.ctime_nsec()),
    };
    Some(Found { path, how, stamp })
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
        let seen: Vec<_> = found.iter().map(|one| (one.name(), one.how)).collect();
        let expected = [
            ("a", How::Python),
            ("b", How::JavaScript),
            ("c", How::Shell),
            ("own", How::Itself),
        ];
        assert_eq!(seen, expected.map(|(name, how)| (name.to_owned(), how)));
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
