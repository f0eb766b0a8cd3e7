//! How much of what a child complains of goes to the log: bursts and a steady rate. Must never wait.

use tokio::time::Instant;

/// Lines that may come at once.
const BURST: f64 = 200.0;
/// Lines a second.
const RATE: f64 = 20.0;
/// How much of a line is shown.
const LENGTH: usize = 4096;

/// What a child may still say.
pub(super) struct Pour {
    lines: f64,
    since: Instant,
    left: u64,
}

/// What becomes of a line.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Behind so many that were left out.
    Shown {
        before: u64,
    },
    LeftOut,
}

impl Pour {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            lines: BURST,
            since: now,
            left: 0,
        }
    }

    pub(super) fn line(&mut self, now: Instant) -> Line {
        let seconds = now.duration_since(self.since).as_secs_f64();
        self.since = now;
        self.lines = (self.lines + seconds * RATE).min(BURST);
        if self.lines < 1.0 {
            self.left += 1;
            return Line::LeftOut;
        }
        self.lines -= 1.0;
        Line::Shown {
            before: std::mem::take(&mut self.left),
        }
    }

    /// How many were left out since one was shown.
    pub(super) fn left(&self) -> u64 {
        self.left
    }
}

/// The beginning of a line that is too long.
pub(super) fn shown(text: &str) -> &str {
    let end = text.char_indices().nth(LENGTH).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn flood_is_left_out_and_counted() {
        let begun = Instant::now();
        let mut pour = Pour::new(begun);
        let shown = |line: &Line| *line == Line::Shown { before: 0 };
        let count = (0..100_000).filter(|_| shown(&pour.line(begun))).count();
        assert_eq!((count, pour.left()), (200, 99_800));
        let later = pour.line(begun + Duration::from_secs(1));
        assert_eq!(later, Line::Shown { before: 99_800 });
        assert_eq!(pour.left(), 0);
        let mut slow = Pour::new(begun);
        let at = |n: u64| begun + Duration::from_millis(60 * n);
        assert!((0..5_000).all(|n| shown(&slow.line(at(n)))));
    }
}
