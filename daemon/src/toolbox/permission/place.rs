//! Where a call's paths lead: `..` and symbolic links followed, also those that lead to nothing yet.
//! Must never open a file; it reads links only, and so may block: not for the daemon's own thread.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many as Linux follows.
const LINKS: usize = 40;

/// The directories a call may read without being asked about.
#[derive(Clone, Debug)]
pub struct Ground {
    /// The session's directory: relative paths begin here.
    pub cwd: PathBuf,
    /// Where the session's long outputs are kept.
    pub spill_dir: PathBuf,
    /// What `~` stands for.
    pub home: Option<PathBuf>,
}

/// One path of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// As rules that allow see it: where it leads.
    pub real: Names,
    /// As rules that forbid see it too: without following links.
    pub written: Names,
    /// Whether it leads into the session's directory.
    pub inside: bool,
    /// Whether it may be read without asking.
    pub readable: bool,
}

/// The ways to write a path in a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Names {
    /// Relative to the session's directory, when inside.
    pub relative: Option<String>,
    pub absolute: String,
    /// With `~`, when below the home directory.
    pub home: Option<String>,
}

impl Place {
    /// Nobody knows where it leads, so no rule allows it.
    pub fn unknown() -> Self {
        let nowhere = Names {
            relative: None,
            absolute: "?".to_owned(),
            home: None,
        };
        Self {
            real: nowhere.clone(),
            written: nowhere,
            inside: false,
            readable: false,
        }
    }
}

impl Place {
    /// Where links lead it, for a person who sees it as it is written; none where it is what it looks like.
    pub fn led(&self) -> Option<String> {
        let (real, written) = (&self.real, &self.written);
        let same = real.absolute == written.absolute
            || real.relative.is_some() && real.relative == written.relative;
        let shown = written.shown();
        match real.absolute.as_str() {
            _ if same => None,
            "?" => Some(format!("where {shown} leads cannot be told")),
            target if self.inside => Some(format!(
                "{shown} leads to {}",
                real.relative.as_deref().unwrap_or(target)
            )),
            target => Some(format!("{shown} leads to {target}, outside the workspace")),
        }
    }
}

impl Names {
    fn new(path: &Path, cwd: &Path, home: Option<&Path>) -> Self {
        let below = |root: &Path| {
            path.strip_prefix(root)
                .ok()
                .map(|path| path.to_string_lossy().into_owned())
        };
        let dot = |path: String| {
            if path.is_empty() {
                ".".to_owned()
            } else {
                path
            }
        };
        Self {
            relative: below(cwd).map(dot),
            absolute: path.to_string_lossy().into_owned(),
            home: home.and_then(below).map(|path| format!("~/{path}")),
        }
    }

    pub fn all(&self) -> impl Iterator<Item = &str> {
        let absolute = Some(self.absolute.as_str());
        [self.relative.as_deref(), absolute, self.home.as_deref()]
            .into_iter()
            .flatten()
    }

    /// The shortest that says where it is.
    pub fn shown(&self) -> &str {
        self.relative.as_deref().unwrap_or(&self.absolute)
    }
}

impl Ground {
    /// The session's directory itself.
    pub fn here(&self) -> Place {
        let names = Names::new(&self.cwd, &self.cwd, self.home.as_deref());
        Place {
            real: names.clone(),
            written: names,
            inside: true,
            readable: true,
        }
    }

    /// Follows one path. Reads links.
    pub fn place(&self, path: &str) -> Place {
        let home = self.home.as_deref();
        let written = plain(&self.cwd.join(self.expand(path)));
        let cwd = follow(&self.cwd).unwrap_or_else(|| self.cwd.clone());
        let spill = follow(&self.spill_dir).unwrap_or_else(|| self.spill_dir.clone());
        let names = Names::new(&written, &self.cwd, home);
        // Components that a lexical `..` would skip are followed first, as the kernel does.
        let Some(real) = follow(&self.cwd.join(self.expand(path))) else {
            return Place {
                written: names,
                ..Place::unknown()
            };
        };
        let inside = real.starts_with(&cwd);
        Place {
            real: Names::new(&real, &cwd, home),
            written: names,
            inside,
            readable: inside || real.starts_with(&spill),
        }
    }

    fn expand(&self, path: &str) -> PathBuf {
        match (path.strip_prefix('~'), &self.home) {
            (Some(""), Some(home)) => home.clone(),
            (Some(rest), Some(home)) if rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            // Another user's home, or nobody's: surely not inside.
            (Some(_), _) => Path::new("/").join(path),
            (None, _) => PathBuf::from(path),
        }
    }
}

/// Without `.` and `..`, links left alone.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => out.push(component),
        }
    }
    out
}

/// Where a path leads, whether or not something is there; none for a ring of links.
fn follow(path: &Path) -> Option<PathBuf> {
    let mut left: VecDeque<OsString> = path
        .components()
        .map(|part| part.as_os_str().to_owned())
        .collect();
    let mut real = PathBuf::new();
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                real.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::Prefix(_) | Component::RootDir) => {
                real.push(&part);
                continue;
            }
            Some(Component::Normal(_)) => real.push(&part),
        }
        let Ok(target) = std::fs::read_link(&real) else {
            continue;
        };
        links += 1;
        if links > LINKS {
            return None;
        }
        real.pop();
        for part in target.components().rev() {
            left.push_front(part.as_os_str().to_owned());
        }
    }
    Some(real)
}

#[cfg(test)]
mod tests {
    use super::{Ground, Place};
    use std::os::unix::fs::symlink;
    use tempfile::TempDir;

    fn ground(root: &TempDir) -> Ground {
        let cwd = root.path().join("work");
        std::fs::create_dir_all(cwd.join("src")).unwrap();
        Ground {
            cwd,
            spill_dir: root.path().join("spill"),
            home: Some(root.path().join("home")),
        }
    }

    fn place(root: &TempDir, path: &str) -> Place {
        ground(root).place(path)
    }

    #[test]
    fn paths_inside_are_known_by_their_relative_names() {
        let root = TempDir::new().unwrap();
        for (path, name) in [
            ("", "."),
            (".", "."),
            ("src/a.rs", "src/a.rs"),
            ("src/../b", "b"),
            ("./src//x", "src/x"),
        ] {
            let place = place(&root, path);
            assert!(place.inside, "{path}");
            assert_eq!(place.real.shown(), name, "{path}");
        }
    }

    #[test]
    fn paths_that_leave_are_outside() {
        let root = TempDir::new().unwrap();
        for path in [
            "..",
            "../x",
            "src/../../x",
            "/etc/passwd",
            "~",
            "~/x",
            "~root/x",
            "/",
        ] {
            assert!(!place(&root, path).inside, "{path}");
        }
    }

    #[test]
    fn a_directory_whose_name_begins_the_same_is_outside() {
        let root = TempDir::new().unwrap();
        assert!(!place(&root, "../workshop/x").inside);
    }

    #[test]
    fn links_are_followed_also_to_what_is_not_there_yet() {
        let root = TempDir::new().unwrap();
        let cwd = ground(&root).cwd;
        symlink("/etc", cwd.join("etc")).unwrap();
        symlink(root.path().join("new"), cwd.join("dangling")).unwrap();
        symlink("dangling", cwd.join("twice")).unwrap();
        symlink("src", cwd.join("inner")).unwrap();
        symlink("ring", cwd.join("ring")).unwrap();
        for path in [
            "etc/passwd",
            "dangling",
            "twice",
            "twice/x",
            "ring",
            "ring/x",
            "etc/../x",
        ] {
            assert!(!place(&root, path).inside, "{path}");
        }
        let inner = place(&root, "inner/a");
        assert!(inner.inside);
        assert_eq!(
            (inner.real.shown(), inner.written.shown()),
            ("src/a", "inner/a")
        );
    }

    #[test]
    fn long_outputs_may_be_read_but_are_not_inside() {
        let root = TempDir::new().unwrap();
        let spilled = root.path().join("spill/c1.txt");
        let place = place(&root, &spilled.to_string_lossy());
        assert!(place.readable && !place.inside);
    }

    #[test]
    fn a_working_directory_behind_a_link_is_inside_itself() {
        let root = TempDir::new().unwrap();
        let mut ground = ground(&root);
        symlink(&ground.cwd, root.path().join("link")).unwrap();
        ground.cwd = root.path().join("link");
        assert!(ground.place("src/a").inside);
        assert!(!ground.place("../link2").inside);
    }
}
