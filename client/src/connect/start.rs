//! Starting `dwelld`, apart from this process and its terminal, and waiting until it listens. Of several clients one
//! starts it; must never leave a second one behind.

use crate::connect::reach;
use crate::error::{Exit, Failure};
use crate::place::{Place, SOCKET};
use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tokio::net::UnixStream;

/// How long a daemon may take until it listens: a large store may have to recover first.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a daemon that gave up is excused while another one is on its way out or in.
const CONTENDED: Duration = Duration::from_secs(3);

/// A log over this size is put aside before the next start.
const LOG_LIMIT: u64 = 4 << 20;

/// How many lines of the log an error shows.
const LOG_LINES: usize = 12;

/// Starts a daemon, unless somebody else does so first, and connects.
pub(super) async fn start(place: &Place) -> Result<UnixStream, Failure> {
    let deadline = Instant::now() + PATIENCE;
    prepare(&place.state)?;
    let lock = open_lock(place)?;
    let mut pause = Duration::from_millis(1);
    while Instant::now() < deadline {
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Whoever held the lock before has had success in the meantime, or has given up.
            return match reach(place).await? {
                Some(stream) => Ok(stream),
                None => launch(place, deadline).await,
            };
        }
        if let Some(stream) = reach(place).await? {
            return Ok(stream);
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(20));
    }
    Err(
        Failure::new("another client is starting the daemon, and it does not come up")
            .hint("`dwell daemon logs` may say why")
            .exit(Exit::Unreachable),
    )
}

/// Spawns until a daemon listens: a start may fail only because an older one is still on its way out.
async fn launch(place: &Place, deadline: Instant) -> Result<UnixStream, Failure> {
    let excused = Instant::now() + CONTENDED;
    loop {
        let attempt = Attempt::spawn(place)?;
        let mut pause = Duration::from_millis(1);
        let ended = loop {
            if let Some(stream) = reach(place).await? {
                return Ok(stream);
            }
            if let Ok(status) = attempt.exit.try_recv() {
                break status;
            }
            if Instant::now() >= deadline {
                return Err(attempt.failure(place, "it does not listen"));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_millis(10));
        };
        // It may have lost against a daemon that listens by now.
        if let Some(stream) = reach(place).await? {
            return Ok(stream);
        }
        if !held_by_another(place) || Instant::now() >= excused {
            return Err(attempt.failure(place, &format!("it ended with {ended}")));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Whether the record names a daemon that still lives.
fn held_by_another(place: &Place) -> bool {
    let pid = place
        .record()
        .and_then(|record| i32::try_from(record.pid).ok());
    pid.and_then(rustix::process::Pid::from_raw)
        .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok())
}

/// A daemon on its way up.
struct Attempt {
    program: PathBuf,
    /// Where in the log its own words begin.
    log_start: u64,
    /// How it ended, when it does before it listens.
    exit: mpsc::Receiver<String>,
}

impl Attempt {
    fn spawn(place: &Place) -> Result<Self, Failure> {
        let program = find_program();
        let log = open_log(&place.log())?;
        let log_start = log.metadata()?.len();
        #[expect(clippy::disallowed_methods, reason = "the daemon is nobody's child")]
        let mut command = Command::new(&program);
        command
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        if let Some(socket) = &place.given {
            command.env(SOCKET, socket);
        }
        keep_from_children();
        // SAFETY: between fork and exec only `setsid` is called, which is async-signal-safe and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                rustix::process::setsid()?;
                Ok(())
            });
        }
        let mut child = command.spawn().map_err(|error| {
            Failure::new(format!("cannot start {}: {error}", program.display()))
                .hint("dwelld belongs beside dwell, or on PATH")
                .exit(Exit::Unreachable)
        })?;
        let (sender, exit) = mpsc::sync_channel(1);
        // Reaps the daemon if this client outlives it, so that a dead one does not look alive. Ends with the process.
        std::thread::spawn(move || {
            let ended = child
                .wait()
                .as_ref()
                .map_or_else(ToString::to_string, describe);
            let _ = sender.try_send(ended);
        });
        Ok(Self {
            program,
            log_start,
            exit,
        })
    }

    fn failure(&self, place: &Place, why: &str) -> Failure {
        let log = place.log();
        let said = tail(&log, self.log_start);
        let message = format!("{} did not start: {why}", self.program.display());
        let message = match said.is_empty() {
            true => message,
            false => format!("{message}; it said:\n{said}"),
        };
        Failure::new(message)
            .hint(format!("its log is {}", log.display()))
            .exit(Exit::Unreachable)
    }
}

fn describe(status: &ExitStatus) -> String {
    status.to_string()
}

/// Beside this program, else on PATH.
pub(super) fn find_program() -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .map(|own| own.with_file_name("dwelld"))
        .filter(|path| path.is_file());
    beside.unwrap_or_else(|| "dwelld".into())
}

fn prepare(state: &Path) -> Result<(), Failure> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(state.join("log"))
        .map_err(|error| cannot("create", &state.join("log"), &error))
}

fn open_lock(place: &Place) -> Result<File, Failure> {
    let path = place.start_lock();
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(&path)
        .map_err(|error| cannot("open", &path, &error))
}

fn open_log(path: &Path) -> Result<File, Failure> {
    if std::fs::metadata(path).is_ok_and(|log| log.len() > LOG_LIMIT) {
        let _ = std::fs::rename(path, path.with_extension("log.1"));
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| cannot("open", path, &error))
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!(
        "cannot start the daemon: cannot {what} {}: {error}",
        path.display()
    ))
    .exit(Exit::Unreachable)
}

/// A daemon outlives whoever runs `dwell`: a pipe or a lock that was handed down must not live as long as it does.
fn keep_from_children() {
    let Ok(open) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    for number in numbers.filter(|number| *number > 2).collect::<Vec<_>>() {
        // SAFETY: the descriptor is only asked for a flag and given one; if it is closed by now, both fail.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        if let Ok(flags) = fcntl_getfd(fd) {
            let _ = fcntl_setfd(fd, flags | FdFlags::CLOEXEC);
        }
    }
}

/// The last lines of a log from a place on.
fn tail(path: &Path, from: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(64 << 10).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let text = read().unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let kept = &lines[lines.len().saturating_sub(LOG_LINES)..];
    kept.iter()
        .map(|line| format!("  {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
