//! The child's end of the wire: its standard input and output. Blocks, and takes in what comes while a program runs.
//! Must never be used in the daemon.

use super::wire::{Frame, Inbox, Kind};
use std::collections::VecDeque;

const IN: libc::c_int = 0;
const OUT: libc::c_int = 1;
/// One read.
const PIECE: usize = 64 * 1024;

pub(super) struct Line {
    inbox: Inbox,
    /// Results that came while nobody waited for one.
    early: VecDeque<Frame>,
    /// The longest text of a frame.
    most: usize,
    stopped: bool,
    /// Calls that have no result yet.
    pub(super) open: usize,
}

impl Line {
    pub(super) fn new(most: usize) -> Self {
        Self {
            inbox: Inbox::default(),
            early: VecDeque::new(),
            most,
            stopped: false,
            open: 0,
        }
    }

    pub(super) fn send(&mut self, frame: &Frame) {
        if frame.kind == Kind::Call {
            self.open += 1;
        }
        let mut bytes = Vec::new();
        frame.encode_into(&mut bytes);
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            // SAFETY: the buffer is ours and as long as said.
            let count = unsafe { libc::write(OUT, rest.as_ptr().cast(), rest.len()) };
            match usize::try_from(count) {
                Ok(count) => rest = &rest[count..],
                Err(_) if interrupted() => {}
                // Nobody listens any more.
                Err(_) => return self.stopped = true,
            }
        }
    }

    /// The next frame; none when there will be no more.
    pub(super) fn receive(&mut self) -> Option<Frame> {
        loop {
            if self.stopped {
                return None;
            }
            if let Some(frame) = self.early.pop_front() {
                return Some(frame);
            }
            self.take(-1);
        }
    }

    /// Whether the daemon wants an end, or is gone. Waits for nothing.
    pub(super) fn stop_asked(&mut self) -> bool {
        self.take(0);
        self.stopped
    }

    /// Takes in what there is, or waits for some.
    fn take(&mut self, milliseconds: libc::c_int) {
        let mut fd = libc::pollfd {
            fd: IN,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, ours.
        if unsafe { libc::poll(&mut fd, 1, milliseconds) } <= 0 {
            return;
        }
        let mut piece = [0_u8; PIECE];
        // SAFETY: the buffer is ours and as long as said.
        let count = unsafe { libc::read(IN, piece.as_mut_ptr().cast(), PIECE) };
        match usize::try_from(count) {
            Ok(0) => self.stopped = true,
            Ok(count) => {
                self.inbox.push(&piece[..count]);
                self.sort();
            }
            Err(_) => self.stopped |= !interrupted(),
        }
    }

    fn sort(&mut self) {
        loop {
            match self.inbox.next(self.most) {
                Ok(Some(frame)) if frame.kind == Kind::Stop => self.stopped = true,
                Ok(Some(frame)) => self.early.push_back(frame),
                Ok(None) => return,
                Err(_) => return self.stopped = true,
            }
        }
    }
}

fn interrupted() -> bool {
    std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted
}
