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
        self.pieces(
            now,
            jobs.iter().filter_map(|job| match &job.work {
                Work::Append(append) if append.pace == Pace::Floor => Some(&append.session),
                _ => None,
            }),
        );
    }

    fn pieces<'a>(&mut self, now: Instant, sessions: impl Iterator<Item = &'a SessionId>) {
        for session in sessions {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_piece_after_quiet_does_not_wait() {
        assert!(Pacer::default().floor() <= Instant::now());
    }

    #[test]
    fn the_floor_rises_with_the_sessions_that_stream_and_falls_when_they_stop() {
        let mut pacer = Pacer::default();
        let began = Instant::now();
        let ids: Vec<_> = (0..20).map(|n| SessionId::from(format!("s{n}"))).collect();
        for (sessions, millis) in [(1, 1), (4, 1), (5, 2), (12, 2), (20, 4)] {
            pacer.pieces(began, ids[..sessions].iter());
            assert_eq!(pacer.floor(), began + Duration::from_millis(millis));
        }
        let later = began + STREAMING;
        pacer.pieces(later, ids[..1].iter());
        assert_eq!(pacer.floor(), later + Duration::from_millis(1));
    }
}
