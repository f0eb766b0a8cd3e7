//! The nursery: the one process from which the supervisors of all calls are forked, so that a call does not pay for
//! the start of an executable of this size. It must never load anything of the daemon's.
//!
//! It is this same executable, asked by its first argument, and ends with the daemon. What a supervisor leaves that was
//! killed itself comes to the nursery, which kills it.

use super::supervisor::{ended_children, supervise, wait};
use super::{descendants, supervisor};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// The first argument that makes this executable a nursery.
pub(super) const ARGUMENT: &str = "supervise";

/// How many descriptors make a call: the socket to its supervisor, and the target's standard input, output and error.
pub(super) const FDS: usize = 4;

/// The socket to the daemon is its standard input.
const SOCKET: libc::c_int = 0;

/// Becomes the nursery and never returns, if that is what this process was started for. Call it before anything else.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT)) {
        isolate();
        Nursery {
            supervisors: HashSet::new(),
            ended: ended_children(),
        }
        .serve();
        exit();
    }
}

fn exit() -> ! {
    // SAFETY: nothing here needs exit handlers, and they would only cost time.
    unsafe { libc::_exit(0) }
}

/// Leaves the daemon's session, is deaf to signals, takes in orphans, and shows nobody its memory.
fn isolate() {
    // SAFETY: plain system calls on this process, which has one thread and no other users of its descriptors.
    unsafe {
        // 1 and 2 stay what they are, so that no descriptor of a call is ever one of the first three.
        libc::close_range(3, libc::c_uint::MAX, 0);
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"dwell-supervise".as_ptr());
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        // Whoever started the daemon may have left it ignored, and then no child could be waited for.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
    }
}

struct Nursery {
    supervisors: HashSet<libc::pid_t>,
    ended: libc::c_int,
}

impl Nursery {
    /// Forks a supervisor for each request, until the daemon is gone.
    fn serve(&mut self) {
        loop {
            let asked = wait(SOCKET, self.ended, -1);
            if self.reap() == Ended::Killed {
                self.kill_orphans();
            }
            if asked {
                match receive() {
                    Some(fds) => self.fork(fds),
                    None => return self.close(),
                }
            }
        }
    }

    /// The daemon is gone or wants to go: its calls' sockets are closed, so their supervisors are at it.
    fn close(&mut self) {
        let deadline = Instant::now() + supervisor::STUBBORN + supervisor::GRACE;
        while !self.supervisors.is_empty() && Instant::now() < deadline {
            wait(-1, self.ended, 50);
            self.reap();
        }
        self.kill_orphans();
    }

    fn fork(&mut self, fds: Option<[OwnedFd; FDS]>) {
        let Some(fds) = fds else {
            return;
        };
        // SAFETY: this process has one thread, so the child may do all that it may.
        match unsafe { libc::fork() } {
            0 => {
                // SAFETY: the child has no use for its copy.
                unsafe { libc::close(self.ended) };
                supervise(fds);
                exit();
            }
            // At -1 the descriptors close unused, which tells the daemon.
            pid => drop(self.supervisors.insert(pid)),
        }
    }

    /// Takes the ends of supervisors and orphans off the system.
    fn reap(&mut self) -> Ended {
        let mut how = Ended::Well;
        loop {
            let mut status = 0;
            // SAFETY: the status is ours.
            let pid = unsafe { libc::waitpid(-1, &mut status, libc::WNOHANG) };
            if pid <= 0 {
                return how;
            }
            if self.supervisors.remove(&pid) && libc::WIFSIGNALED(status) {
                how = Ended::Killed;
            }
        }
    }

    /// All children but supervisors were left by one that was killed.
    fn kill_orphans(&mut self) {
        let own = std::process::id() as i32;
        let deadline = Instant::now() + supervisor::STUBBORN;
        while Instant::now() < deadline {
            let mut orphans = descendants::children(own);
            orphans.retain(|pid| !self.supervisors.contains(pid));
            if orphans.is_empty() {
                return;
            }
            for orphan in orphans {
                for pid in descendants::of(orphan).into_iter().chain([orphan]) {
                    // SAFETY: what is not reaped keeps its number, and the orphan is our own child.
                    unsafe { libc::kill(pid, libc::SIGKILL) };
                }
            }
            wait(
                -1,
                self.ended,
                Duration::from_millis(10).as_millis() as libc::c_int,
            );
            self.reap();
        }
    }
}

/// How supervisors ended.
#[derive(Clone, Copy, PartialEq)]
enum Ended {
    Well,
    Killed,
}

/// The descriptors of the next call; none when there will be no more. Fewer than four come when this process may not
/// have more of them: they close unused, which tells the daemon.
fn receive() -> Option<Option<[OwnedFd; FDS]>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let buffers = &mut [IoSliceMut::new(&mut byte)];
    // SAFETY: whoever starts a nursery gives it the socket as its standard input; nobody closes that.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET) };
    let received = recvmsg(socket, buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC).ok()?;
    if received.bytes == 0 {
        return None;
    }
    let fds = ancillary.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    Some(fds.collect::<Vec<_>>().try_into().ok())
}
