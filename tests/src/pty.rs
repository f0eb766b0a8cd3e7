//! A terminal without anything that draws it, for what must be measured to the millisecond. Must never outlive its test.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A process in a terminal of 120 by 40.
#[derive(Debug)]
pub struct Pty {
    child: Child,
    terminal: File,
    /// What was read and nobody has looked for.
    seen: Vec<u8>,
}

impl Pty {
    /// Starts a command in a terminal of its own.
    pub fn spawn(mut command: Command) -> Self {
        let (ours, theirs) = open();
        let stream = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        command
            .stdin(stream(&theirs))
            .stdout(stream(&theirs))
            .stderr(stream(&theirs));
        // SAFETY: only calls that are allowed between fork and exec.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        Self {
            child,
            terminal: File::from(ours),
            seen: Vec::new(),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types.
    pub fn write(&mut self, text: &str) {
        self.terminal.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until a text has come, and says how long that took; none after the limit.
    pub fn until(&mut self, text: &str, limit: Duration) -> Option<Duration> {
        let begun = Instant::now();
        let wanted = text.as_bytes();
        loop {
            if let Some(at) = find(&self.seen, wanted) {
                self.seen.drain(..at + wanted.len());
                return Some(begun.elapsed());
            }
            // Enough for a text that came in two pieces.
            let kept = self.seen.len().saturating_sub(wanted.len());
            self.seen.drain(..kept);
            let left = limit.checked_sub(begun.elapsed())?;
            self.read(left);
        }
    }

    /// Reads until one of these texts has come, and says which stands first; none after the limit.
    pub fn which(&mut self, texts: &[&str], limit: Duration) -> Option<usize> {
        let begun = Instant::now();
        loop {
            let places = texts.iter().enumerate();
            let found =
                places.filter_map(|(n, text)| Some((find(&self.seen, text.as_bytes())?, n)));
            if let Some((at, n)) = found.min() {
                self.seen.drain(..at + texts[n].len());
                return Some(n);
            }
            let left = limit.checked_sub(begun.elapsed())?;
            self.read(left);
        }
    }

    /// Takes what is there, and waits for it so long at most.
    fn read(&mut self, limit: Duration) {
        let mut poll = libc::pollfd {
            fd: self.terminal.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let timeout = libc::c_int::try_from(limit.as_millis()).unwrap_or(libc::c_int::MAX);
        // SAFETY: the one entry that is named.
        if unsafe { libc::poll(&raw mut poll, 1, timeout) } <= 0 {
            return;
        }
        let mut buffer = [0; 64 * 1024];
        if let Ok(count) = self.terminal.read(&mut buffer) {
            self.seen.extend_from_slice(&buffer[..count]);
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

/// Both ends of a new terminal.
fn open() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let size = libc::winsize {
        ws_row: 40,
        ws_col: 120,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    // SAFETY: both places are written by the call, and the descriptors are nobody else's.
    unsafe {
        let done = libc::openpty(
            &raw mut ours,
            &raw mut theirs,
            std::ptr::null_mut(),
            std::ptr::null(),
            &raw const size,
        );
        assert_eq!(done, 0, "a terminal: {}", std::io::Error::last_os_error());
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    }
}
