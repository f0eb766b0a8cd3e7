//! The daemon's end of a program's child: starts it, sends it frames, takes those that it sends.
//! Must never wait for a child that does not read, and never keep more of one than a frame.

use super::runner;
use super::wire::{Frame, Garbled, Inbox, Kind};
use crate::process::{Pipes, Running, Spawn, open};
use std::io;
use tokio::net::unix::pipe;

/// One read.
const PIECE: usize = 64 * 1024;

/// Whether frames are taken in.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    On,
    Off,
}

pub(super) struct Child {
    input: pipe::Sender,
    output: pipe::Receiver,
    /// Kept, so that a word of the runtime's last breath has somewhere to go; nobody reads it.
    _complaints: pipe::Receiver,
    unsent: Vec<u8>,
    inbox: Inbox,
    piece: Vec<u8>,
    /// The longest text of a frame from it.
    most: usize,
}

impl Child {
    /// With an empty environment, at the root, from this executable, whatever became of its file.
    pub(super) fn start(most: usize) -> io::Result<(Running, Self)> {
        let spawn = Spawn {
            program: "/proc/self/exe".into(),
            args: vec![runner::ARGUMENT.into()],
            cwd: "/".into(),
            env: Default::default(),
            stdin: None,
            timeout: None,
        };
        let (
            running,
            Pipes {
                stdin,
                stdout,
                stderr,
            },
        ) = open(&spawn)?;
        let child = Self {
            input: stdin,
            output: stdout,
            _complaints: stderr,
            unsent: Vec::new(),
            inbox: Inbox::default(),
            piece: vec![0; PIECE],
            most,
        };
        Ok((running, child))
    }

    /// What fits goes now, the rest while `next` waits.
    pub(super) fn send(&mut self, kind: Kind, id: u32, text: impl Into<Vec<u8>>) {
        Frame::new(kind, id, text).encode_into(&mut self.unsent);
        self.write();
    }

    fn write(&mut self) {
        while !self.unsent.is_empty() {
            match self.input.try_write(&self.unsent) {
                Ok(count) => drop(self.unsent.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // It reads no more: its end will say why.
                Err(_) => self.unsent.clear(),
            }
        }
    }

    /// The next frame, if `reading` lets any in. Waits for ever when there will be none: the end of the process says so.
    pub(super) async fn next(&mut self, reading: Reading) -> Result<Frame, Garbled> {
        let mut reads = reading == Reading::On;
        loop {
            if reads && let Some(frame) = self.inbox.next(self.most)? {
                return Ok(frame);
            }
            tokio::select! {
                readable = self.output.readable(), if reads => reads = readable.is_ok() && self.read(),
                writable = self.input.writable(), if !self.unsent.is_empty() => match writable {
                    Ok(()) => self.write(),
                    Err(_) => self.unsent.clear(),
                },
                else => std::future::pending().await,
            }
        }
    }

    /// A frame that is there already.
    pub(super) fn rest(&mut self) -> Option<Frame> {
        loop {
            match self.inbox.next(self.most) {
                Ok(Some(frame)) => return Some(frame),
                Ok(None) => {}
                Err(Garbled) => return None,
            }
            match self.output.try_read(&mut self.piece) {
                Ok(count @ 1..) => self.inbox.push(&self.piece[..count]),
                Ok(_) | Err(_) => return None,
            }
        }
    }

    /// False at the end.
    fn read(&mut self) -> bool {
        match self.output.try_read(&mut self.piece) {
            Ok(0) => false,
            Ok(count) => {
                self.inbox.push(&self.piece[..count]);
                true
            }
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
