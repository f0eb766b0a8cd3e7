//! What a child complains of: to the log under its name, as much as a log can take, and the last of it for the message
//! of its end. Must never show what is to be hidden.

use super::pour::{self, Line, Pour};
use super::tail::Tail;
use super::talk::read_line;
use crate::process::mask::Mask;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// The longest line of stderr.
const COMPLAINT: u64 = 64 * 1024;

pub(super) struct Voice {
    /// What people know the child by.
    pub(super) name: String,
    /// What is shown nowhere of what it says.
    pub(super) mask: Mask,
    /// Held for a look only.
    tail: Mutex<Tail>,
}

impl Voice {
    pub(super) fn new(name: &str, mask: Mask) -> Self {
        Self {
            name: name.to_owned(),
            mask,
            tail: Mutex::default(),
        }
    }

    /// The message of its end: how that came about, and what it had complained of.
    pub(super) fn end(&self, how: &str) -> String {
        format!("{} {how}{}", self.name, self.tail().text())
    }

    pub(super) async fn complain(&self, stderr: pipe::Receiver) {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        let mut pour = Pour::new(Instant::now());
        while read_line(&mut reader, &mut line, COMPLAINT).await {
            let text = String::from_utf8_lossy(&line);
            let text = self.mask.hide(text.trim_end());
            self.tail().push(&text);
            match pour.line(Instant::now()) {
                Line::LeftOut => continue,
                Line::Shown { before: 0 } => {}
                Line::Shown { before } => self.left_out(before),
            }
            tracing::info!(child = self.name, "{}", pour::shown(&text));
        }
        match pour.left() {
            0 => {}
            lines => self.left_out(lines),
        }
    }

    fn left_out(&self, lines: u64) {
        tracing::info!(child = self.name, "{lines} lines left out");
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
