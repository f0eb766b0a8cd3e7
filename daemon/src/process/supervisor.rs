//! The supervisor: a small process per call that starts the target, says how it ended and kills all it left behind.
//! It must never load anything of the daemon's.
//!
//! It is given four descriptors: the socket to the daemon, the target's standard input, output and error. An end of the
//! socket or a byte on it means stop, so the death of the daemon needs no signal.

use super::descendants;
use super::launch::launch;
use super::nursery::FDS;
use super::wire::{Report, Request};
use rustix::io::fcntl_dupfd_cloexec;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How long the target may take to follow a SIGTERM.
pub(super) const GRACE: Duration = Duration::from_millis(80);

/// How long killing is tried when nothing gives way: what may not be signalled (another user's) or hangs in the kernel.
pub(super) const STUBBORN: Duration = Duration::from_secs(2);

/// Serves one call to its end.
pub(super) fn supervise(fds: [OwnedFd; FDS]) {
    let Some((control, signals)) = settle(fds) else {
        return;
    };
    let Some(request) = read_request(control) else {
        return;
    };
    // Before the target runs, which may stop this process and have to be told apart from one that never ran.
    send(control, &Report::Ready(std::process::id() as i32));
    let launched = launch(&request);
    // The output must end when the target's side of it does.
    for fd in 0..=2 {
        // SAFETY: plain descriptors that nothing uses from here on.
        unsafe { libc::close(fd) };
    }
    let report = match launched {
        Ok(target) => {
            let status = None;
            Watch {
                target,
                status,
                control,
                signals,
            }
            .run()
        }
        Err(why) => Report::NotStarted(why),
    };
    send(control, &report);
}

/// A session of its own, orphans taken in, the target's descriptors in their places. Gives the socket to the daemon,
/// and the descriptor that tells of ended children.
fn settle([control, stdin, output, errors]: [OwnedFd; FDS]) -> Option<(libc::c_int, libc::c_int)> {
    let control = fcntl_dupfd_cloexec(control, 10).ok()?.into_raw_fd();
    // SAFETY: plain system calls on this process, which has one thread and no other users of its descriptors.
    unsafe {
        libc::dup2(stdin.as_raw_fd(), 0);
        libc::dup2(output.as_raw_fd(), 1);
        libc::dup2(errors.as_raw_fd(), 2);
        drop((stdin, output, errors));
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    }
    Some((control, ended_children()))
}

/// A descriptor that is readable when a child has ended. SIGCHLD is blocked, as all signals are.
pub(super) fn ended_children() -> libc::c_int {
    // SAFETY: the set is ours and initialised before it is read.
    unsafe {
        let mut child = std::mem::zeroed();
        libc::sigemptyset(&mut child);
        libc::sigaddset(&mut child, libc::SIGCHLD);
        libc::signalfd(-1, &child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    }
}

/// Waits until one of two descriptors is readable, or for some milliseconds; -1 is for ever. Tells of the first, and
/// takes what it tells off the second.
pub(super) fn wait(first: libc::c_int, ended: libc::c_int, milliseconds: libc::c_int) -> bool {
    let mut fds = [first, ended].map(|fd| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    });
    let mut info = [0_u8; std::mem::size_of::<libc::signalfd_siginfo>()];
    // SAFETY: both buffers are ours and as long as said; poll skips negative descriptors.
    unsafe {
        libc::poll(fds.as_mut_ptr(), 2, milliseconds);
        libc::read(ended, info.as_mut_ptr().cast(), info.len());
    }
    fds[0].revents != 0
}

fn read_request(control: libc::c_int) -> Option<Request> {
    let mut length = [0; 4];
    read_exact(control, &mut length)?;
    let mut bytes = vec![0; u32::from_ne_bytes(length) as usize];
    read_exact(control, &mut bytes)?;
    Request::decode(&bytes)
}

fn read_exact(fd: libc::c_int, mut bytes: &mut [u8]) -> Option<()> {
    while !bytes.is_empty() {
        // SAFETY: the buffer is ours and as long as said.
        let count = unsafe { libc::read(fd, bytes.as_mut_ptr().cast(), bytes.len()) };
        let count = usize::try_from(count).ok().filter(|count| *count > 0)?;
        bytes = &mut bytes[count..];
    }
    Some(())
}

/// A daemon that is gone needs no report.
fn send(control: libc::c_int, report: &Report) {
    let bytes = report.encode();
    // SAFETY: the buffer is ours and as long as said.
    unsafe {
        libc::send(
            control,
            bytes.as_ptr().cast(),
            bytes.len(),
            libc::MSG_NOSIGNAL,
        )
    };
}

/// The target and whatever came of it, to its end.
struct Watch {
    target: libc::pid_t,
    /// Set once the target itself was reaped; its number means nothing from then on.
    status: Option<libc::c_int>,
    control: libc::c_int,
    signals: libc::c_int,
}

impl Watch {
    fn run(&mut self) -> Report {
        loop {
            let left = self.reap();
            if self.status.is_some() {
                if left {
                    self.kill_all();
                }
                break;
            }
            if !left || self.wait(None, Heed::Control) {
                self.stop();
                break;
            }
        }
        match self.status {
            Some(status) if libc::WIFEXITED(status) => Report::Code(libc::WEXITSTATUS(status)),
            Some(status) => Report::Signal(libc::WTERMSIG(status)),
            None => Report::Signal(libc::SIGKILL),
        }
    }

    /// Asks the target's group to end, gives it a moment, then kills all.
    fn stop(&mut self) {
        let deadline = Instant::now() + GRACE;
        self.signal_group(libc::SIGTERM);
        self.signal_group(libc::SIGCONT);
        while self.status.is_none() && self.reap() && Instant::now() < deadline {
            self.wait(Some(deadline), Heed::Children);
        }
        self.kill_all();
    }

    /// Kills until no child is left: orphans become children of this process, so then no descendant is left either.
    fn kill_all(&mut self) {
        let own = std::process::id() as i32;
        let deadline = Instant::now() + STUBBORN;
        while self.reap() && Instant::now() < deadline {
            self.signal_group(libc::SIGKILL);
            for pid in descendants::of(own) {
                // SAFETY: only descendants, and those not yet reaped by us keep their numbers.
                unsafe { libc::kill(pid, libc::SIGKILL) };
            }
            self.wait(
                Some(Instant::now() + Duration::from_millis(10)),
                Heed::Children,
            );
        }
    }

    fn signal_group(&self, signal: libc::c_int) {
        if self.status.is_none() {
            // SAFETY: the target is not reaped, so its group's number is still its own.
            unsafe { libc::kill(-self.target, signal) };
        }
    }

    /// Reaps whoever ended; false when no child is left.
    fn reap(&mut self) -> bool {
        loop {
            let mut status = 0;
            // SAFETY: the status is ours.
            match unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) } {
                0 => return true,
                -1 => return false,
                pid if pid == self.target => self.status = Some(status),
                _ => {}
            }
        }
    }

    /// Waits for a child's end; true when the daemon asks for a stop or is gone.
    fn wait(&self, until: Option<Instant>, heed: Heed) -> bool {
        let milliseconds = until.map_or(-1, |until| {
            until.saturating_duration_since(Instant::now()).as_millis() as libc::c_int + 1
        });
        let control = match heed {
            Heed::Control => self.control,
            Heed::Children => -1,
        };
        wait(control, self.signals, milliseconds)
    }
}

/// What to wake up for beside the ends of children.
#[derive(Clone, Copy)]
enum Heed {
    Control,
    Children,
}
