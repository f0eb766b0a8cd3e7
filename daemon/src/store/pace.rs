//! The floor: how often streamed pieces are committed. Must never delay the first piece after quiet.

use super::Pace;
use super::mailbox::{Job, Work};
use protocol::id::SessionId;
use std::time::{Duration, Instant};

/// A session counts as streaming for this long after a piece.
const STREAMING: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct Pacer {
    /// Who brought pieces lately, and when; a handful.
    streaming: Vec<(SessionId, Instant)>,
    last: Option<Instant>,
}

impl Pacer {
    /// When waiting pieces may be committed; in the past when it was quiet.
    pub(super) fn floor(&self) -> Instant {
        let now = Instant::now();
        self.last
            .map_or(now, |last| last + floor(self.streaming.len()))
    }

    pub(super) fn committing(&mut self, jobs: &[Job]) {
        let now = Instant::now();
        let pieces = jobs.iter().filter_map(|job| match &job.work {
            Work::Append(append) if append.pace == Pace::Floor => Some(&append.session),
            _ => None,
        });
        for session in pieces {
            self.last = Some(now);
            match self.streaming.iter_mut().find(|(id, _)| id == session) {
                Some((_, at)) => *at = now,
                None => self.streaming.push((session.clone(), now)),
            }
        }
        self.streaming
            .retain(|(_, at)| now.duration_since(*at) < STREAMING);
    }
}

/// More sessions wait a little longer, and share a commit.
fn floor(sessions: usize) -> Duration {
    Duration::from_millis(match sessions {
        0..=4 => 1,
        5..=12 => 2,
        _ => 4,
    })
}
