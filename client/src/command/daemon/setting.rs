//! What a shell tells the daemon that its service manager would not: the directories, the socket, settings. Must never hold a
//! key, whatever it is called: only names that are listed here pass.

use crate::error::Failure;
use crate::place::Place;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The daemon's own settings. Directories and the socket are resolved, and not passed as they are.
const PASSED: &[&str] = &[
    "DWELL_IDLE_TIMEOUT_MS",
    "DWELL_LOCAL",
    "DWELL_LOCAL_THREADS",
    "DWELL_LOG",
    "DWELL_PROVIDER",
    "DWELL_SCRIPT",
];

/// A directory: what names it outright, what moves it, and where it is below the home directory.
const DIRECTORIES: &[(&str, &str, &str)] = &[
    ("DWELL_CONFIG_DIR", "XDG_CONFIG_HOME", ".config"),
    ("DWELL_DATA_DIR", "XDG_DATA_HOME", ".local/share"),
    ("DWELL_STATE_DIR", "XDG_STATE_HOME", ".local/state"),
];

/// What the service's files say beyond what they always do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// The socket, where it is not the usual one in the runtime directory.
    pub(super) socket: Option<PathBuf>,
    /// Variables of the daemon.
    pub(super) variables: Vec<(&'static str, String)>,
}

/// The variables of a process.
pub(super) trait Environment {
    /// One of them; an empty one is none.
    fn variable(&self, name: &str) -> Option<OsString>;

    fn path(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable(name).filter(|path| !path.is_empty());
        path.map(PathBuf::from)
    }
}

impl<F: Fn(&str) -> Option<OsString>> Environment for F {
    fn variable(&self, name: &str) -> Option<OsString> {
        self(name)
    }
}

impl Settings {
    /// What of this shell the service manager's own environment does not have.
    pub(super) fn find(
        place: &Place,
        shell: &impl Environment,
        manager: &impl Environment,
    ) -> Result<Self, Failure> {
        let mut named: Vec<(&'static str, PathBuf)> = Vec::new();
        if let (Some(ours), Some(theirs)) = (shell.path("HOME"), manager.path("HOME"))
            && ours != theirs
        {
            named.push(("HOME", ours));
        }
        for (name, base, below) in DIRECTORIES {
            let ours = directory(shell, name, base, below);
            if ours != directory(manager, name, base, below) {
                named.extend(ours.map(|path| (*name, path)));
            }
        }
        let runtime = shell.path("DWELL_RUNTIME_DIR");
        let moved = runtime != manager.path("DWELL_RUNTIME_DIR");
        named.extend(
            runtime
                .filter(|_| moved)
                .map(|path| ("DWELL_RUNTIME_DIR", path)),
        );
        let given = place.given.clone();
        named.extend(given.clone().map(|socket| ("DWELL_SOCKET", socket)));
        let mut variables = named
            .into_iter()
            .map(|(name, path)| Ok((name, text(&path)?)))
            .collect::<Result<Vec<_>, Failure>>()?;
        for name in PASSED {
            let value = shell.variable(name).filter(|value| !value.is_empty());
            if value.is_some() && value != manager.variable(name) {
                variables.extend(value.map(|value| (*name, value.to_string_lossy().into_owned())));
            }
        }
        Ok(Self {
            socket: given.or_else(|| moved.then(|| place.socket.clone())),
            variables,
        })
    }
}

/// As the daemon finds it. What is relative names nothing by the XDG rules.
fn directory(from: &impl Environment, name: &str, base: &str, below: &str) -> Option<PathBuf> {
    from.path(name).or_else(|| {
        let base = from.path(base).filter(|path| path.is_absolute());
        let base = base.or_else(|| Some(from.path("HOME")?.join(below)));
        Some(base?.join("dwell"))
    })
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::new(format!(
            "{} is not UTF-8, and cannot be written into a service",
            path.display()
        ))
    })
}

/// Names of variables that look like a vendor's key: they are not written, and a person is told.
pub(super) fn keys(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut keys: Vec<String> = names.filter(|name| name.ends_with("_API_KEY")).collect();
    keys.sort_unstable();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn of(pairs: &[(&str, &str)]) -> impl Environment + use<> {
        let pairs: BTreeMap<String, OsString> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).into()))
            .collect();
        move |name: &str| pairs.get(name).cloned()
    }

    fn place(given: Option<&str>, socket: &str) -> Place {
        Place {
            given: given.map(PathBuf::from),
            socket: socket.into(),
            state: "/s".into(),
            remote: None,
        }
    }

    #[test]
    fn only_what_differs_from_the_managers_is_said_and_no_key() {
        let shell = of(&[
            ("HOME", "/home/me"),
            ("XDG_DATA_HOME", "/data"),
            ("XDG_CONFIG_HOME", "relative"),
            ("DWELL_STATE_DIR", "/home/me/.local/state/dwell"),
            ("DWELL_LOG", "debug"),
            ("DWELL_HOUSE_KEY", "secret"),
            ("OPENAI_API_KEY", "secret"),
        ]);
        let manager = of(&[("HOME", "/home/me")]);
        let found = Settings::find(&place(None, "/run/me/dwell/dwell.sock"), &shell, &manager);
        let expected = Settings {
            socket: None,
            variables: vec![
                ("DWELL_DATA_DIR", "/data/dwell".into()),
                ("DWELL_LOG", "debug".into()),
            ],
        };
        assert_eq!(found, Ok(expected));
    }

    #[test]
    fn what_the_manager_has_of_its_own_is_said_again_where_the_shell_has_none() {
        let shell = of(&[("HOME", "/home/me")]);
        let manager = of(&[("HOME", "/home/me"), ("XDG_DATA_HOME", "/data")]);
        let found = Settings::find(&place(None, "/x"), &shell, &manager).unwrap();
        let expected = ("DWELL_DATA_DIR", "/home/me/.local/share/dwell".to_owned());
        assert_eq!(found.variables, [expected]);
    }

    #[test]
    fn a_socket_that_was_named_or_moved_is_the_one_to_listen_at() {
        let (shell, manager) = (of(&[("DWELL_RUNTIME_DIR", "/r")]), of(&[]));
        let moved = Settings::find(&place(None, "/r/dwell.sock"), &shell, &manager).unwrap();
        assert_eq!(moved.socket, Some("/r/dwell.sock".into()));
        assert_eq!(moved.variables, [("DWELL_RUNTIME_DIR", "/r".to_owned())]);
        let given = Settings::find(&place(Some("/a.sock"), "/a.sock"), &manager, &manager).unwrap();
        assert_eq!(given.socket, Some("/a.sock".into()));
        assert_eq!(given.variables, [("DWELL_SOCKET", "/a.sock".to_owned())]);
    }
}
