//! The daemon's hold on the nursery: starts it when it is first needed, and anew when it is gone.
//! The only place that makes a process.

use super::nursery::{ARGUMENT, FDS};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Works also when the file was replaced or deleted by an upgrade.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The nursery, if one was needed. Held for one send, or one start.
static NURSERY: Mutex<Option<Hold>> = Mutex::new(None);

/// How long `close` waits: longer than the nursery does.
const PATIENCE: Timespec = Timespec {
    tv_sec: 4,
    tv_nsec: 0,
};

struct Hold {
    process: Child,
    socket: OwnedFd,
}

/// Has a supervisor made with these descriptors: its socket, and the target's standard input, output and error.
pub(super) fn hand_over(fds: [BorrowedFd<'_>; FDS]) -> io::Result<()> {
    let mut nursery = NURSERY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &mut *nursery {
        match known.send(&fds) {
            Err(Errno::PIPE | Errno::CONNRESET) => known.bury(),
            sent => return Ok(sent?),
        }
    }
    let made = nursery.insert(Hold::start()?);
    Ok(made.send(&fds)?)
}

/// Ends the nursery and waits until all that it and its supervisors watch over is gone. For the end of the daemon, when
/// no call's future is left; blocks, but not for ever.
pub(super) fn close() {
    let nursery = NURSERY
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(Hold {
        mut process,
        socket,
    }) = nursery
    {
        drop(socket);
        let pid = Pid::from_child(&process);
        if let Ok(ended) = pidfd_open(pid, PidfdFlags::empty()) {
            let mut fds = [PollFd::new(&ended, PollFlags::IN)];
            let _ = poll(&mut fds, Some(&PATIENCE));
        }
        let _ = process.kill();
        let _ = process.wait();
    }
}

impl Hold {
    /// Its environment is empty, and it is handed nothing but its end of the socket.
    #[allow(
        clippy::disallowed_methods,
        reason = "this is where children are spawned"
    )]
    fn start() -> io::Result<Self> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (socket, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        // Nothing here needs a step between fork and exec, so std takes its fast path.
        let process = Command::new(OWN_PROGRAM)
            .arg0("dwell-supervise")
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { process, socket })
    }

    fn send(&self, fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        ancillary.push(SendAncillaryMessage::ScmRights(fds));
        // It takes microseconds to take one, so a full socket is a machine that cannot start processes any more.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(&self.socket, &[IoSlice::new(b"c")], &mut ancillary, flags).map(drop)
    }

    /// Takes what is left of it off the system.
    fn bury(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
