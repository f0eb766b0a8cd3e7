//! The daemon's half of a call: starts the supervisor, passes its output on, asks it to stop, learns the end.
//! Must never block the runtime, and never trust that the supervisor still lives.

use super::supervisor::ARGUMENT;
use super::wire::{Report, Request};
use super::{Exit, Sink, Spawn, descendants};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Works also when the file was replaced or deleted by an upgrade.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// How long a supervisor that was asked to stop may take before it is taken for stuck; it needs a tenth of that.
const STUCK: Duration = Duration::from_secs(3);

/// One read; also what a sink gets at most at a time.
const PIECE: usize = 64 * 1024;

/// What is read at most once all writers are dead: the most that a pipe holds.
const REST: usize = 1024 * 1024;

/// A running call. Dropping it closes the socket, at which the supervisor kills everything.
pub(super) struct Child {
    control: UnixStream,
    /// The part of the request that did not fit into the socket yet.
    unsent: Vec<u8>,
    received: Vec<u8>,
    output: Option<pipe::Receiver>,
    supervisor: Arc<AsyncFd<OwnedFd>>,
    reaper: JoinHandle<()>,
    /// The target, once it runs.
    target: Option<i32>,
}

impl Child {
    #[allow(
        clippy::disallowed_methods,
        reason = "this is where children are spawned"
    )]
    pub(super) fn start(spawn: &Spawn) -> io::Result<Self> {
        let unsent = Request::of(spawn)?.encode();
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let (output, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        let control = UnixStream::from_std(ours)?;
        let output = pipe::Receiver::from_owned_fd(output)?;
        // Nothing here needs a step between fork and exec, so std takes its fast path.
        let mut supervisor = Command::new(OWN_PROGRAM)
            .arg0("dwell-supervise")
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(stdin(spawn.stdin.as_deref())?)
            .stdout(input)
            .stderr(theirs)
            .spawn()?;
        let pid = Pid::from_child(&supervisor);
        let pidfd = pidfd_open(pid, PidfdFlags::empty())
            .map_err(io::Error::from)
            // SAFETY: an `OwnedFd` gives the same open descriptor until it is dropped, and nobody takes it out before.
            .and_then(|fd| unsafe { AsyncFd::register(fd) }.map_err(io::Error::from));
        let pidfd = match pidfd {
            Ok(pidfd) => Arc::new(pidfd),
            Err(error) => {
                // Without the descriptor its end could not be learned: it dies at once, having no request.
                let _ = supervisor.kill();
                let _ = supervisor.wait();
                return Err(error);
            }
        };
        let reaper = tokio::spawn(reap(supervisor, pidfd.clone()));
        Ok(Self {
            control,
            unsent,
            received: Vec::new(),
            output: Some(output),
            supervisor: pidfd,
            reaper,
            target: None,
        })
    }

    /// Passes the output on until everything of the child is gone.
    pub(super) async fn finish(
        mut self,
        timeout: Option<Duration>,
        cancel: &CancellationToken,
        output: &mut dyn Sink,
    ) -> Exit {
        let mut stopped = None;
        let limit = tokio::time::sleep(timeout.unwrap_or(Duration::MAX));
        tokio::pin!(limit);
        let mut piece = vec![0; PIECE];
        let end = loop {
            tokio::select! {
                biased;
                report = report(&mut self.control, &mut self.received, &mut self.unsent) => match report {
                    Some(Report::Started(pid)) => self.target = Some(pid),
                    Some(end) => break end,
                    None => break self.abandoned(),
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(Exit::Cancelled);
                    self.stop();
                    limit.as_mut().reset(tokio::time::Instant::now() + STUCK);
                }
                () = &mut limit => match stopped {
                    Some(_) => break self.abandoned(),
                    None => {
                        stopped = Some(Exit::TimedOut);
                        self.stop();
                        limit.as_mut().reset(tokio::time::Instant::now() + STUCK);
                    }
                },
                read = read(&self.output, &mut piece) => match read {
                    0 => self.output = None,
                    count => output.take(&piece[..count]).await,
                },
            }
        };
        self.drain(&mut piece, output).await;
        // Its end is near: the report is the last that a supervisor does.
        let _ = self.reaper.await;
        stopped.unwrap_or(match end {
            Report::Code(code) => Exit::Code(code),
            Report::Signal(signal) => Exit::Signal(signal),
            Report::NotStarted(why) => Exit::NotStarted(why),
            Report::Started(_) => Exit::Signal(libc::SIGKILL),
        })
    }

    fn stop(&self) {
        // A full socket means that the supervisor has not even read its request; `abandoned` then deals with it.
        let _ = self.control.try_write(b"x");
        // The command may have stopped its supervisor.
        let _ = pidfd_send_signal(self.supervisor.get_ref(), Signal::CONT);
    }

    /// The supervisor was killed or hangs: what can still be told to be the call's is killed from here.
    fn abandoned(&self) -> Report {
        let _ = pidfd_send_signal(self.supervisor.get_ref(), Signal::KILL);
        for pid in self.target.map(descendants::of_session).unwrap_or_default() {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
        Report::Signal(libc::SIGKILL)
    }

    /// All writers are dead, so what they wrote is in the pipe. Waits for nothing: a descriptor that travelled out of
    /// the tree may keep the pipe open for ever.
    async fn drain(&mut self, piece: &mut [u8], output: &mut dyn Sink) {
        let Some(pipe) = self.output.take() else {
            return;
        };
        let mut rest = REST;
        while let Ok(count @ 1..) = pipe.try_read(piece) {
            output.take(&piece[..count]).await;
            rest = rest.saturating_sub(count);
            if rest == 0 {
                return;
            }
        }
    }
}

/// Bytes go through memory that looks like a file, so nobody has to feed a pipe.
fn stdin(bytes: Option<&[u8]>) -> io::Result<Stdio> {
    let Some(bytes) = bytes else {
        return Ok(Stdio::null());
    };
    let file = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

/// The next report; none when the supervisor is gone. May be dropped at any await without losing a byte.
async fn report(
    control: &mut UnixStream,
    received: &mut Vec<u8>,
    unsent: &mut Vec<u8>,
) -> Option<Report> {
    loop {
        if let Some(report) = Report::take(received) {
            return Some(report);
        }
        let mut buffer = [0; 1024];
        if unsent.is_empty() {
            control.readable().await.ok()?;
        } else {
            control.writable().await.ok()?;
            match control.try_write(unsent) {
                Ok(count) => drop(unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => unsent.clear(),
            }
            continue;
        }
        match control.try_read(&mut buffer) {
            Ok(0) => return None,
            Ok(count) => received.extend(&buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

/// Reads a piece; 0 at the end. Waits for ever when there is nothing left to read from.
async fn read(output: &Option<pipe::Receiver>, piece: &mut [u8]) -> usize {
    let Some(output) = output else {
        return std::future::pending().await;
    };
    loop {
        if output.readable().await.is_err() {
            return 0;
        }
        match output.try_read(piece) {
            Ok(count) => return count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return 0,
        }
    }
}

/// Takes the supervisor's end off the system, also when nobody waits for the call any more.
async fn reap(mut supervisor: std::process::Child, pidfd: Arc<AsyncFd<OwnedFd>>) {
    let _ = pidfd.readable().await;
    let _ = supervisor.try_wait();
}
