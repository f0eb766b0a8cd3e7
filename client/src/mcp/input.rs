//! Lines of stdin, read by a thread of its own. Must never keep more of them than its bound.

use crate::error::Failure;
use std::io::{self, BufRead, Read};
use tokio::sync::mpsc;

/// Lines that were read and not taken yet; the client then waits.
const AHEAD: usize = 16;
/// The longest line.
const LONGEST: u64 = 32 * 1024 * 1024;

pub(super) struct Input(mpsc::Receiver<io::Result<String>>);

impl Input {
    pub(super) fn start() -> Self {
        let (send, lines) = mpsc::channel(AHEAD);
        // It ends with the process.
        std::thread::spawn(move || {
            let mut stdin = io::stdin().lock();
            loop {
                let mut line = String::new();
                let read = (&mut stdin).take(LONGEST).read_line(&mut line);
                let line = match read {
                    Ok(0) => return,
                    Ok(count) if count as u64 == LONGEST => {
                        Err(io::Error::other("a line on stdin is too long"))
                    }
                    Ok(_) if line.trim().is_empty() => continue,
                    Ok(_) => Ok(line),
                    Err(error) => Err(error),
                };
                let last = line.is_err();
                if send.blocking_send(line).is_err() || last {
                    return;
                }
            }
        });
        Self(lines)
    }

    /// The next line; none when stdin has ended. May be dropped without losing one.
    pub(super) async fn next(&mut self) -> Option<Result<String, Failure>> {
        let line = self.0.recv().await?;
        Some(line.map_err(Failure::from))
    }
}
