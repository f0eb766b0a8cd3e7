//! The daemon's half of a call: starts the supervisor, passes its output on, asks it to stop, learns the end.
//! Must never block the runtime, and never trust that the supervisor still lives.

use super::wire::{Report, Request};
use super::{Exit, Pipes, Sink, Spawn, hold};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

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
    /// Known once it is there.
    supervisor: Option<Pid>,
}

/// Why nothing is heard of it.
#[derive(Clone, Copy, PartialEq)]
enum Supervisor {
    Gone,
    Hangs,
}

impl Child {
    /// With stdout and stderr merged, and its standard input from memory.
    pub(super) fn start(spawn: &Spawn) -> io::Result<Self> {
        let (output, input) = pipe_with(PipeFlags::CLOEXEC)?;
        let stdin = stdin(spawn.stdin.as_deref())?;
        let mut child = Self::with(spawn, [stdin.as_fd(), input.as_fd(), input.as_fd()])?;
        child.output = Some(pipe::Receiver::from_owned_fd(output)?);
        Ok(child)
    }

    /// With a pipe for each of its descriptors.
    pub(super) fn open(spawn: &Spawn) -> io::Result<(Self, Pipes)> {
        let (stdin, to) = pipe_with(PipeFlags::CLOEXEC)?;
        let (from, output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (complaints, errors) = pipe_with(PipeFlags::CLOEXEC)?;
        let pipes = Pipes {
            stdin: pipe::Sender::from_owned_fd(to)?,
            stdout: pipe::Receiver::from_owned_fd(from)?,
            stderr: pipe::Receiver::from_owned_fd(complaints)?,
        };
        let child = Self::with(spawn, [stdin.as_fd(), output.as_fd(), errors.as_fd()])?;
        Ok((child, pipes))
    }

    fn with(spawn: &Spawn, [stdin, output, errors]: [BorrowedFd<'_>; 3]) -> io::Result<Self> {
        let mut unsent = Request::of(spawn)?.encode();
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        let mut ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        // Most requests fit into the socket; the rest is sent as it is read.
        unsent.drain(..ours.write(&unsent)?);
        let control = UnixStream::from_std(ours)?;
        hold::hand_over([theirs.as_fd(), stdin, output, errors])?;
        Ok(Self {
            control,
            unsent,
            received: Vec::new(),
            output: None,
            supervisor: None,
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
        let mut piece = vec![0; self.output.as_ref().map_or(0, |_| PIECE)];
        let end = loop {
            tokio::select! {
                biased;
                report = report(&mut self.control, &mut self.received, &mut self.unsent) => match report {
                    Some(Report::Ready(pid)) => self.supervisor = Pid::from_raw(pid),
                    Some(end) => break end,
                    None => break self.abandoned(Supervisor::Gone),
                },
                () = cancel.cancelled(), if stopped.is_none() => {
                    stopped = Some(Exit::Cancelled);
                    self.stop();
                    limit.as_mut().reset(tokio::time::Instant::now() + STUCK);
                }
                () = &mut limit => match stopped {
                    Some(_) => break self.abandoned(Supervisor::Hangs),
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
        stopped.unwrap_or(match end {
            Report::Code(code) => Exit::Code(code),
            Report::Signal(signal) => Exit::Signal(signal),
            Report::NotStarted(why) => Exit::NotStarted(why),
            Report::Ready(_) => Exit::Signal(libc::SIGKILL),
        })
    }

    fn stop(&self) {
        // A full socket means that the supervisor has not even read its request; `abandoned` then deals with it.
        let _ = self.control.try_write(b"x");
        // The command may have stopped its supervisor.
        self.signal_supervisor(Signal::CONT);
    }

    /// Its number is its own for as long as it holds its end of the socket.
    fn signal_supervisor(&self, signal: Signal) {
        if let Some(pid) = self.supervisor {
            let _ = kill_process(pid, signal);
        }
    }

    /// The supervisor was killed or hangs; the nursery then kills what it leaves.
    fn abandoned(&self, supervisor: Supervisor) -> Report {
        match (supervisor, self.supervisor) {
            (Supervisor::Gone, None) => {
                Report::NotStarted("cannot start another process".to_owned())
            }
            (Supervisor::Gone, Some(_)) => Report::Signal(libc::SIGKILL),
            (Supervisor::Hangs, _) => {
                self.signal_supervisor(Signal::KILL);
                Report::Signal(libc::SIGKILL)
            }
        }
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
fn stdin(bytes: Option<&[u8]>) -> io::Result<File> {
    let Some(bytes) = bytes else {
        return File::open("/dev/null");
    };
    let file = rustix::fs::memfd_create("stdin", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = File::from(file);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
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
