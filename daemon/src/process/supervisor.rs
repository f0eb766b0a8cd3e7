//! The supervisor: a small process per call that starts the target, says how it ended and kills all it left behind.
//! It is this same executable, asked by its first argument; it must never load anything of the daemon's.
//!
//! Descriptors: 0 the target's standard input, 1 its output, 2 the socket to the daemon. An end of that socket or a
//! byte on it means stop, so the death of the daemon needs no other signal.

use super::descendants;
use super::launch::launch;
use super::wire::{Report, Request};
use std::ffi::OsStr;
use std::time::{Duration, Instant};

/// The first argument that makes this executable a supervisor.
pub(super) const ARGUMENT: &str = "supervise";

/// How long the target may take to follow a SIGTERM.
const GRACE: Duration = Duration::from_millis(80);

/// How long killing is tried when nothing gives way: what may not be signalled (another user's) or hangs in the kernel.
const STUBBORN: Duration = Duration::from_secs(2);

/// Becomes the supervisor and never returns, if that is what this process was started for. Call it before anything else.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT)) {
        supervise();
        // SAFETY: nothing here needs exit handlers, and they would only cost time.
        unsafe { libc::_exit(0) }
    }
}

fn supervise() {
    let (control, signals) = isolate();
    let Some(request) = read_request(control) else {
        return;
    };
    let launched = launch(&request);
    // The output must end when the target's side of it does.
    for fd in 0..=2 {
        // SAFETY: plain descriptors that nothing uses from here on.
        unsafe { libc::close(fd) };
    }
    let report = match launched {
        Ok(target) => {
            send(control, &Report::Started(target));
            Watch {
                target,
                status: None,
                control,
                signals,
            }
            .run()
        }
        Err(why) => Report::NotStarted(why),
    };
    send(control, &report);
}

/// Leaves the daemon's session, takes in orphans, is deaf to signals, and keeps no descriptor but its three.
fn isolate() -> (libc::c_int, libc::c_int) {
    // SAFETY: plain system calls on this process, which has one thread and no other users of its descriptors.
    unsafe {
        libc::close_range(3, libc::c_uint::MAX, 0);
        let control = libc::fcntl(2, libc::F_DUPFD_CLOEXEC, 3);
        libc::dup2(1, 2);
        libc::setsid();
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::prctl(libc::PR_SET_NAME, c"dwell-supervise".as_ptr());
        let mut all = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        // Whoever started the daemon may have left it ignored, and then no child could be waited for.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        let mut child = std::mem::zeroed();
        libc::sigemptyset(&mut child);
        libc::sigaddset(&mut child, libc::SIGCHLD);
        let signals = libc::signalfd(-1, &child, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        (control, signals)
    }
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
        let timeout = until.map_or(-1, |until| {
            until.saturating_duration_since(Instant::now()).as_millis() as libc::c_int + 1
        });
        let control = match heed {
            Heed::Control => self.control,
            Heed::Children => -1,
        };
        let mut fds = [control, self.signals].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        let mut info = [0_u8; std::mem::size_of::<libc::signalfd_siginfo>()];
        // SAFETY: both buffers are ours and as long as said; poll skips negative descriptors.
        unsafe {
            libc::poll(fds.as_mut_ptr(), 2, timeout);
            libc::read(self.signals, info.as_mut_ptr().cast(), info.len());
        }
        fds[0].revents != 0
    }
}

/// What to wake up for beside the ends of children.
#[derive(Clone, Copy)]
enum Heed {
    Control,
    Children,
}
