//! Where things are on this machine: the socket, the daemon's record, logs, the history of typed lines.
//! Must never create anything.

use crate::connect::Remote;
use crate::environment;
use crate::error::{Exit, Failure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The environment variable that names the socket.
pub(crate) const SOCKET: &str = "DWELL_SOCKET";

/// The directories and the socket of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// A socket that was named outright, and is not to be looked for.
    pub given: Option<PathBuf>,
    /// Where the socket belongs by default.
    pub socket: PathBuf,
    /// The state directory: the daemon's record, its log, the history.
    pub state: PathBuf,
    /// Another machine, whose daemon is meant.
    pub remote: Option<Remote>,
}

/// What the live daemon writes into the state directory, so that clients with another runtime directory find it.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Record {
    /// Its process.
    pub pid: u32,
    /// Its socket.
    pub socket: PathBuf,
}

impl Place {
    /// By the command line, the environment, and the platform's directories; as the daemon finds them.
    pub(crate) fn find(given: Option<PathBuf>, host: Option<&str>) -> Result<Self, Failure> {
        let host = host.map(Remote::parse).transpose()?;
        let given = given.or_else(|| named(SOCKET));
        let given = given.map(|socket| std::path::absolute(&socket).unwrap_or(socket));
        let directories = directories::ProjectDirs::from("", "", "dwell").ok_or_else(|| {
            Failure::new("no home directory: neither HOME nor the user database names one")
                .hint("set HOME, or name the socket with --socket")
                .exit(Exit::Unreachable)
        })?;
        let state = named("DWELL_STATE_DIR").unwrap_or_else(|| {
            let own = directories.state_dir();
            own.unwrap_or_else(|| directories.data_local_dir())
                .to_path_buf()
        });
        let runtime = named("DWELL_RUNTIME_DIR");
        let runtime = runtime.or_else(|| directories.runtime_dir().map(Path::to_path_buf));
        check_absolute("HOME", directories.data_local_dir())?;
        check_absolute("DWELL_STATE_DIR", &state)?;
        if let Some(runtime) = &runtime {
            check_absolute("DWELL_RUNTIME_DIR", runtime)?;
        }
        let usual = runtime.as_ref().unwrap_or(&state).join("dwell.sock");
        Ok(Self {
            socket: given.clone().unwrap_or(usual),
            given,
            state,
            remote: host,
        })
    }

    /// The daemon's record, if a daemon left one.
    pub(crate) fn record(&self) -> Option<Record> {
        let text = std::fs::read(self.state.join("dwelld.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// The process that holds the daemon's lock, as the kernel tells: it lives, whether or not it can be reached.
    pub(crate) fn holder(&self) -> Option<u32> {
        let lock = match &self.given {
            Some(socket) => {
                let mut lock = socket.clone().into_os_string();
                lock.push(".lock");
                lock.into()
            }
            None => self.state.join("dwelld.lock"),
        };
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        holder_of(&std::fs::metadata(lock).ok()?, &locks)
    }

    /// The sockets to try, in order: the one that was named, or the usual one and the one that the record names.
    pub(crate) fn candidates(&self) -> Vec<PathBuf> {
        let mut all = vec![self.socket.clone()];
        if self.given.is_none()
            && let Some(record) = self.record()
            && record.socket != self.socket
        {
            all.push(record.socket);
        }
        all
    }

    /// What the daemon says when a client has started it.
    pub(crate) fn log(&self) -> PathBuf {
        self.state.join("log").join("dwelld.log")
    }

    /// Held by the one client that starts the daemon.
    pub(crate) fn start_lock(&self) -> PathBuf {
        self.state.join("start.lock")
    }

    /// Lines typed into the REPL, each with its directory.
    pub(crate) fn history(&self) -> PathBuf {
        self.state.join("history.jsonl")
    }

    /// The same of earlier releases, which knew no directories.
    pub(crate) fn old_history(&self) -> PathBuf {
        self.state.join("history")
    }
}

/// The daemon works elsewhere: what is relative would be another place for it, and it would be started again and again.
fn check_absolute(name: &str, path: &Path) -> Result<(), Failure> {
    if path.is_absolute() {
        return Ok(());
    }
    Err(
        Failure::new(format!("{} is not an absolute path", path.display()))
            .hint(format!("set {name} to one"))
            .exit(Exit::Unreachable),
    )
}

/// A path that the environment names; an empty one names nothing.
fn named(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// Whether the environment says the same as the command line did.
fn names(variable: &str, value: &str) -> bool {
    let said = named(variable);
    let whole = said.map(|said| match variable {
        SOCKET => std::path::absolute(&said).unwrap_or(said),
        _ => said,
    });
    whole.is_some_and(|said| said.as_os_str() == value)
}

/// A word for a shell, in quotes where it has to be.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-:@~[]".contains(c);
    match word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Who holds a file's lock by a table such as `1: FLOCK  ADVISORY  WRITE 4711 08:01:1234 0 EOF`. Devices are left out:
/// those of some file systems differ between this table and `stat`.
fn holder_of(file: &std::fs::Metadata, table: &str) -> Option<u32> {
    let inode = file.ino().to_string();
    let mut pids = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        let kind = words.next()?;
        let pid = words.nth(2)?.parse().ok()?;
        let held = words.next()?.rsplit(':').next()?;
        (kind == "FLOCK" && held == inode).then_some(pid)
    });
    pids.next()
}

impl Place {
    /// The directory that is meant where none is named: this one, or on another machine the one named with it.
    pub(crate) fn here(&self) -> Result<String, Failure> {
        if let Some(dir) = self.remote.as_ref().and_then(|remote| remote.dir.clone()) {
            return Ok(dir);
        }
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::new(format!("cannot tell the current directory: {error}")))?;
        text_of(&cwd)
    }

    /// This program as a person has to call it again to reach the same daemon: what the command line alone said of it
    /// has to be said again.
    pub(crate) fn dwell(&self) -> String {
        let said = match (&self.remote, &self.given) {
            (Some(remote), _) => Some(("--host", "DWELL_HOST", remote.to_string())),
            (None, Some(socket)) => Some(("--socket", SOCKET, socket.display().to_string())),
            (None, None) => None,
        };
        match said {
            Some((option, variable, value)) if !names(variable, &value) => {
                format!("dwell {option} {}", quoted(&value))
            }
            _ => "dwell".to_owned(),
        }
    }

    /// A directory from the command line, absolute. Only its own machine knows one that lies on another.
    pub(crate) fn directory(&self, path: &Path) -> Result<String, Failure> {
        match self.remote {
            Some(_) => text_of(path),
            None => directory(path),
        }
    }

    /// What of this process's environment a session is given: nothing on another machine, which has its own.
    pub(crate) fn environment(&self) -> Option<BTreeMap<String, String>> {
        self.remote.is_none().then(environment::for_session)
    }
}

/// A directory of this machine, absolute.
pub(crate) fn directory(path: &Path) -> Result<String, Failure> {
    let whole = std::fs::canonicalize(path)
        .map_err(|error| {
            let failure = Failure::new(format!("cannot open {}: {error}", path.display()));
            match path.to_string_lossy().contains(' ') {
                true => failure.hint("a directory is wanted here; a prompt goes alone behind `dwell`, or behind `dwell ask`"),
                false => failure,
            }
        })?;
    if !whole.is_dir() {
        return Err(Failure::new(format!(
            "{} is not a directory",
            path.display()
        )));
    }
    text_of(&whole)
}

fn text_of(path: &Path) -> Result<String, Failure> {
    path.to_str().map(String::from).ok_or_else(|| {
        Failure::new(format!(
            "the path {} is not UTF-8, so it cannot be sent",
            path.display()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_socket_is_the_only_one_tried() {
        let place = Place {
            given: Some("/x/a.sock".into()),
            socket: "/x/a.sock".into(),
            state: "/nowhere".into(),
            remote: None,
        };
        assert_eq!(place.candidates(), [PathBuf::from("/x/a.sock")]);
    }

    #[test]
    fn what_the_command_line_said_is_said_again() {
        let place = |given: Option<&str>, host: Option<&str>| Place {
            given: given.map(PathBuf::from),
            socket: "/usual/dwell.sock".into(),
            state: "/nowhere".into(),
            remote: host.map(|host| Remote::parse(host).unwrap()),
        };
        assert_eq!(place(None, None).dwell(), "dwell");
        assert_eq!(
            place(Some("/a b/x.sock"), None).dwell(),
            "dwell --socket '/a b/x.sock'"
        );
        assert_eq!(
            place(None, Some("me@box:/srv/p")).dwell(),
            "dwell --host me@box:/srv/p"
        );
        assert_eq!(
            place(None, Some("ssh://box:22/srv")).dwell(),
            "dwell --host ssh://box:22/srv"
        );
    }

    #[test]
    fn a_held_lock_names_its_process() {
        let file = std::env::temp_dir().join(format!("dwell-lock-{}", std::process::id()));
        std::fs::write(&file, "").unwrap();
        let meta = std::fs::metadata(&file).unwrap();
        let table = format!(
            "1: POSIX  ADVISORY  WRITE 1 00:2e:{0} 0 EOF\n2: -> FLOCK ADVISORY WRITE 2 00:2e:{0} 0 EOF\n\
             3: FLOCK  ADVISORY  WRITE 3 00:2e:9{0} 0 EOF\n4: FLOCK  ADVISORY  WRITE 4711 00:2e:{0} 0 EOF\n",
            meta.ino()
        );
        assert_eq!(holder_of(&meta, &table), Some(4711));
        assert_eq!(holder_of(&meta, "\nnonsense\n"), None);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn what_is_relative_is_refused_with_its_name() {
        let failure = check_absolute("HOME", Path::new("a/b")).unwrap_err();
        assert!(failure.message.contains("a/b"), "{failure}");
        assert_eq!(failure.hint.as_deref(), Some("set HOME to one"));
        assert!(check_absolute("HOME", Path::new("/a")).is_ok());
    }

    #[test]
    fn a_record_of_another_runtime_directory_is_tried_second() {
        let dir = std::env::temp_dir().join(format!("dwell-place-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let record = r#"{"pid": 1, "socket": "/elsewhere/dwell.sock", "later": true}"#;
        std::fs::write(dir.join("dwelld.json"), record).unwrap();
        let place = Place {
            given: None,
            socket: "/usual/dwell.sock".into(),
            state: dir.clone(),
            remote: None,
        };
        let expected = ["/usual/dwell.sock", "/elsewhere/dwell.sock"].map(PathBuf::from);
        assert_eq!(place.candidates(), expected);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
