//! The listening socket: one daemon per lock, a path that nobody else could have prepared, a record of where it is.
//! Must never unlink what it did not prove to be a dead socket, and never show a socket that others may open.

mod lost;
mod watch;

use listenfd::ListenFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

/// `sun_path` has 108 bytes, the last of which is 0.
const PATH_LIMIT: usize = 107;
/// Clients that may wait to be accepted; the system makes it less where it allows less.
const BACKLOG: i32 = 4096;
/// How long a daemon waits for another that holds the lock without listening: it starts, or stops, right now.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Where the socket is, and what guards and announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The socket.
    pub socket: PathBuf,
    /// Held by the one daemon that may bind it.
    pub lock: PathBuf,
    /// Written with [`Record`] while it listens, for clients that would guess another path.
    pub record: Option<PathBuf>,
}

impl Place {
    /// The usual place: the socket in the runtime directory (without one, in the state directory); lock and record in
    /// the state directory, which is the same with and without `XDG_RUNTIME_DIR`.
    pub fn usual(state: &Path, runtime: Option<&Path>) -> Self {
        Self {
            socket: runtime.unwrap_or(state).join("dwell.sock"),
            lock: state.join("dwelld.lock"),
            record: Some(state.join("dwelld.json")),
        }
    }

    /// A socket that somebody named: its lock lies beside it, and nothing announces it.
    pub fn named(socket: PathBuf) -> Self {
        let mut lock = socket.clone().into_os_string();
        lock.push(".lock");
        Self {
            socket,
            lock: lock.into(),
            record: None,
        }
    }

    /// Somebody else holds the lock.
    fn locked(&self) -> ListenError {
        let record = self.record.as_deref().and_then(read_record);
        ListenError::Locked {
            pid: record.map(|record| record.pid),
            lock: self.lock.clone(),
            socket: self.socket.clone(),
        }
    }
}

/// What the state directory says of the daemon that listens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its process.
    pub pid: u32,
    /// Its socket.
    pub socket: String,
    /// In milliseconds since the Unix epoch.
    pub started_at: u64,
    /// Its release.
    pub version: String,
}

/// Why there is no listening socket.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("dwelld is already running: {}, socket {}", show_pid(*.pid), .socket.display())]
    Running { pid: Option<u32>, socket: PathBuf },
    #[error(
        "another dwelld ({}) holds {} but does not listen on {}: wait for it to end, or end it",
        show_pid(*.pid),
        .lock.display(),
        .socket.display()
    )]
    Locked {
        pid: Option<u32>,
        lock: PathBuf,
        socket: PathBuf,
    },
    #[error(
        "the socket path {} has {length} bytes, and the system allows {PATH_LIMIT}: name a shorter one with --socket",
        .path.display()
    )]
    TooLong { path: PathBuf, length: usize },
    #[error("{} is in the way and is no socket: move it, or name another with --socket", .0.display())]
    InTheWay(PathBuf),
    #[error("{} belongs to user {owner}, not to us: name a socket in a directory of your own with --socket", .path.display())]
    Foreign { path: PathBuf, owner: u32 },
    #[error("others may write to {}: run chmod go-w on it, or name another place with --socket", .0.display())]
    Writable(PathBuf),
    #[error("cannot {attempt} {}: {error}", .path.display())]
    Io {
        attempt: &'static str,
        path: PathBuf,
        error: io::Error,
    },
}

impl ListenError {
    /// The exit code: 3 when a daemon runs already, so that whoever wanted one just connects.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Running { .. } => 3,
            _ => 1,
        }
    }
}

fn show_pid(pid: Option<u32>) -> String {
    pid.map_or_else(|| "pid unknown".into(), |pid| format!("pid {pid}"))
}

fn failed<'a>(attempt: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> ListenError + 'a {
    move |error| ListenError::Io {
        attempt,
        path: path.to_owned(),
        error,
    }
}

/// The listening socket with its lock. Dropped, it takes its traces away and frees the lock last.
pub struct Listener {
    place: Place,
    live: Mutex<Live>,
    /// The socket is another one than before: whoever waits for clients at the old one waits at the new one.
    renewed: Notify,
}

/// What may be exchanged while it listens. The lock of the mutex is held for a moment, or while a socket is made anew.
struct Live {
    /// None once closed.
    socket: Option<UnixListener>,
    /// The socket file's inode, when we made it: only that one is ours to unlink.
    made: Option<(u64, u64)>,
    lock: File,
}

/// Locks, then binds (or takes the socket that systemd hands over). Blocks while another daemon starts or stops, so
/// it belongs before anything runs; needs a tokio runtime's context.
pub fn listen(place: Place) -> Result<Listener, ListenError> {
    let handed = ListenFd::from_env().take_unix_listener(0).ok().flatten();
    if handed.is_none() {
        check_length(&place.socket)?;
        make_directory(&place.socket)?;
    }
    make_directory(&place.lock)?;
    let lock = take_lock(&place)?;
    match handed {
        Some(socket) => adopt(socket, place, lock),
        None => bind(place, lock),
    }
}

impl Listener {
    /// Where it listens.
    pub fn socket(&self) -> &Path {
        &self.place.socket
    }

    /// The next client.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let accepted = std::future::poll_fn(|context| match &self.live().socket {
                Some(socket) => socket.poll_accept(context),
                None => std::task::Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            });
            tokio::select! {
                accepted = accepted => return accepted.map(|(stream, _)| stream),
                () = self.renewed.notified() => {}
            }
        }
    }

    /// Stops listening: the socket and its record vanish, the lock stays with this process until the drop.
    pub fn close(&self) {
        let mut live = self.live();
        if live.socket.is_none() {
            return;
        }
        if let Some(record) = &self.place.record {
            let _ = fs::remove_file(record);
        }
        if live.made.is_some() && identity(&self.place.socket) == live.made {
            let _ = fs::remove_file(&self.place.socket);
        }
        live.socket = None;
    }

    fn live(&self) -> MutexGuard<'_, Live> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down where it listens, for clients that would look elsewhere.
    fn announce(&self) -> Result<(), ListenError> {
        match &self.place.record {
            Some(record) => {
                write_record(record, &self.place.socket).map_err(failed("write", record))
            }
            None => Ok(()),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.close();
    }
}

fn bind(place: Place, lock: File) -> Result<Listener, ListenError> {
    outlive(&place.socket);
    remove_dead(&place.socket)?;
    let (socket, made) = bind_at(&place.socket)?;
    finish(socket, place, lock, made)
}

/// The socket, and its file's inode.
type Bound = (UnixListener, Option<(u64, u64)>);

/// From its first moment the file is for us alone: the mode is the unbound socket's own, so there is no gap between bind
/// and chmod, and the process's umask, which other threads rely on, stays as it is.
fn bind_at(path: &Path) -> Result<Bound, ListenError> {
    let bind = || -> rustix::io::Result<OwnedFd> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::fs::fchmod(&socket, Mode::from_raw_mode(0o600))?;
        rustix::net::bind(&socket, &address)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(socket)
    };
    let bound = bind().map_err(|error| failed("listen on", path)(error.into()))?;
    let made = identity(path);
    let socket = UnixListener::from_std(StdListener::from(bound));
    Ok((socket.map_err(failed("listen on", path))?, made))
}

/// Takes a socket that systemd bound; its path is systemd's to make and to remove.
fn adopt(socket: StdListener, mut place: Place, lock: File) -> Result<Listener, ListenError> {
    if let Ok(address) = socket.local_addr()
        && let Some(path) = address.as_pathname()
    {
        place.socket = path.to_owned();
    }
    let path = &place.socket;
    socket
        .set_nonblocking(true)
        .map_err(failed("listen on", path))?;
    let socket = UnixListener::from_std(socket).map_err(failed("listen on", path))?;
    finish(socket, place, lock, None)
}

fn finish(
    socket: UnixListener,
    place: Place,
    lock: File,
    made: Option<(u64, u64)>,
) -> Result<Listener, ListenError> {
    let listener = Listener {
        place,
        live: Mutex::new(Live {
            socket: Some(socket),
            made,
            lock,
        }),
        renewed: Notify::new(),
    };
    listener.announce()?;
    Ok(listener)
}

fn check_length(path: &Path) -> Result<(), ListenError> {
    let length = path.as_os_str().len();
    if length <= PATH_LIMIT {
        return Ok(());
    }
    Err(ListenError::TooLong {
        path: path.to_owned(),
        length,
    })
}

/// The directory that a file of ours goes to: made with 0700, and if it was there, ours and closed to others' writing.
fn make_directory(file: &Path) -> Result<(), ListenError> {
    let directory = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(failed("make the directory", directory))?;
    let found = fs::metadata(directory).map_err(failed("look at", directory))?;
    let ours = rustix::process::geteuid().as_raw();
    if found.uid() != ours {
        return Err(ListenError::Foreign {
            path: directory.to_owned(),
            owner: found.uid(),
        });
    }
    let mode = found.mode();
    // With the sticky bit others may add files, but neither remove nor replace ours.
    if mode & 0o022 != 0 && mode & 0o1000 == 0 {
        return Err(ListenError::Writable(directory.to_owned()));
    }
    Ok(())
}

/// Takes the lock, or says who listens. Between them lies a daemon that starts or stops: that is waited for.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody is served yet, so nobody waits"
)]
fn take_lock(place: &Place) -> Result<File, ListenError> {
    let lock = open_lock(&place.lock)?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(failed("lock", &place.lock)(error.into())),
        }
        let recorded = place.record.as_deref().and_then(read_record);
        let recorded = recorded.map(|record| PathBuf::from(record.socket));
        for socket in recorded.into_iter().chain([place.socket.clone()]) {
            if let Listens::Yes(pid) = probe(&socket) {
                return Err(ListenError::Running { pid, socket });
            }
        }
        if Instant::now() > until {
            return Err(place.locked());
        }
        std::thread::sleep(LOCK_PAUSE);
    }
}

fn open_lock(path: &Path) -> Result<File, ListenError> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))
        .map_err(|error| failed("open the lock", path)(error.into()))?;
    let lock = File::from(lock);
    let found = lock.metadata().map_err(failed("look at", path))?;
    if found.uid() != rustix::process::geteuid().as_raw() {
        return Err(ListenError::Foreign {
            path: path.to_owned(),
            owner: found.uid(),
        });
    }
    Ok(lock)
}

/// Unlinks a socket that nobody listens on; anything else in its place is an error.
fn remove_dead(path: &Path) -> Result<(), ListenError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at", path)(error)),
    };
    if !found.file_type().is_socket() {
        return Err(ListenError::InTheWay(path.to_owned()));
    }
    match probe(path) {
        Listens::No => fs::remove_file(path).map_err(failed("remove the dead socket", path)),
        Listens::Yes(pid) | Listens::Dying(pid) => Err(ListenError::Running {
            pid,
            socket: path.to_owned(),
        }),
        Listens::Unknown(error) => Err(failed("find out who listens on", path)(error)),
    }
}

/// Waits for the last moment of a daemon that was killed.
#[expect(
    clippy::disallowed_methods,
    reason = "nobody is served yet, so nobody waits"
)]
fn outlive(path: &Path) {
    let until = Instant::now() + LOCK_PATIENCE;
    while matches!(probe(path), Listens::Dying(_)) && Instant::now() < until {
        std::thread::sleep(LOCK_PAUSE);
    }
}

/// Ended, whether or not whoever started it has been told.
fn is_gone(pid: u32) -> bool {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        // The name may hold anything, but the state stands behind its last parenthesis.
        Ok(stat) => stat
            .rsplit_once(')')
            .is_some_and(|(_, rest)| matches!(rest.trim_start().chars().next(), Some('Z' | 'X'))),
        Err(error) => error.kind() == io::ErrorKind::NotFound && Path::new("/proc/self").exists(),
    }
}

/// Whether somebody listens on a path.
enum Listens {
    /// The process that does, as the kernel names it.
    Yes(Option<u32>),
    /// That process is gone: one that it was starting has its descriptors until it becomes another program.
    Dying(Option<u32>),
    /// Provably nobody.
    No,
    Unknown(io::Error),
}

fn probe(path: &Path) -> Listens {
    use rustix::io::Errno;
    let Ok(address) = SocketAddrUnix::new(path) else {
        return Listens::Unknown(io::ErrorKind::InvalidInput.into());
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let family = AddressFamily::UNIX;
    let socket = match rustix::net::socket_with(family, SocketType::STREAM, flags, None) {
        Ok(socket) => socket,
        Err(error) => return Listens::Unknown(error.into()),
    };
    match rustix::net::connect(&socket, &address) {
        Ok(()) => match listener_of(&socket) {
            Some(pid) if is_gone(pid) => Listens::Dying(Some(pid)),
            pid => Listens::Yes(pid),
        },
        // Its backlog is full: it lives, and is busy.
        Err(Errno::AGAIN) => Listens::Yes(None),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Listens::No,
        Err(error) => Listens::Unknown(error.into()),
    }
}

fn listener_of(socket: &OwnedFd) -> Option<u32> {
    let credentials = rustix::net::sockopt::socket_peercred(socket).ok()?;
    credentials.pid.as_raw_nonzero().get().try_into().ok()
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// What the record says, if there is a readable one. It may be of a daemon that died.
pub fn read_record(path: &Path) -> Option<Record> {
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn write_record(path: &Path, socket: &Path) -> io::Result<()> {
    let record = Record {
        pid: std::process::id(),
        socket: socket.to_string_lossy().into_owned(),
        started_at: now(),
        version: protocol::version::RELEASE.into(),
    };
    let fresh = path.with_extension("json.new");
    fs::write(&fresh, serde_json::to_vec(&record)?)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
    fs::rename(&fresh, path)
}

fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_millis().try_into().unwrap_or(u64::MAX))
}
