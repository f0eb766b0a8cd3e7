//! What waits for the writer, and when it is taken. Must never hold an append back longer than the floor.

use super::rows::Key;
use super::{Durability, Entry, Pace, SessionRow, StoreError, fault};
use protocol::id::SessionId;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Jobs that wait at most; whoever brings one more waits for room. Each session has one append under way, so this is
/// only reached when the disk stands still.
const ROOM: usize = 1024;

/// Chores that wait at most; more folds are let go: unfolded pieces read the same, and the next lease folds them.
const CHORES: usize = 4096;

/// Chores wait until no commit came for this long: what follows a commit is mostly another one, and somebody waits for it.
const REST: Duration = Duration::from_millis(3);

/// Where commits never cease, chores wait no longer than this.
const LATEST: Duration = Duration::from_millis(200);

pub(super) type Reply = oneshot::Sender<Result<(), StoreError>>;

pub(super) struct Job {
    pub(super) work: Work,
    pub(super) reply: Reply,
    /// A place in the mailbox, free again when the job is done. A close needs none.
    pub(super) _room: Option<OwnedSemaphorePermit>,
}

pub(super) enum Work {
    Append(Append),
    Create(SessionRow),
    UpdateRow(SessionRow),
    Delete(SessionId),
    Lease(SessionId),
    Release(SessionId),
    /// What was appended before can be found by a search.
    Index,
    Close,
    /// Fails the writer as a fault in it would.
    #[cfg(test)]
    Panic,
}

pub(super) struct Append {
    pub(super) session: SessionId,
    pub(super) entries: Vec<Entry>,
    pub(super) row: Option<SessionRow>,
    pub(super) pace: Pace,
    pub(super) durability: Durability,
}

impl Work {
    fn pace(&self) -> Pace {
        match self {
            Self::Append(append) => append.pace,
            Self::Create(_)
            | Self::UpdateRow(_)
            | Self::Delete(_)
            | Self::Lease(_)
            | Self::Release(_)
            | Self::Index
            | Self::Close => Pace::Now,
            #[cfg(test)]
            Self::Panic => Pace::Now,
        }
    }
}

/// Work for when nothing is urgent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chore {
    /// Join a finished message's (call's) pieces.
    Fold { session: SessionId, piece: String },
    /// Make a session's newest words known to searches.
    Index { key: Key },
    /// Look for sessions whose owner died before their words were known.
    Survey,
    /// Remove some of what deleted sessions left.
    Purge,
}

/// What the writer does next.
pub(super) enum Next {
    Commit(Vec<Job>),
    Chore(Chore),
    /// Nothing came until the instant that the writer named.
    Quiet,
    /// Closed, and nothing is left.
    End,
}

/// Why nothing more is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    Open,
    Closed,
    /// The writer failed.
    Broken,
}

struct State {
    jobs: VecDeque<Job>,
    /// Of the jobs, those that don't wait for the floor.
    urgent: usize,
    chores: VecDeque<Chore>,
    door: Door,
    /// Since when the oldest chore waits.
    oldest: Instant,
    /// Chores wait until then, and the writer looks by itself.
    rest: Instant,
    /// Whether the writer sleeps until a job comes; else it looks by itself at the floor.
    asleep: bool,
}

impl State {
    /// When a chore may be done, if there is one.
    fn chores_at(&self) -> Option<Instant> {
        let waiting = !self.chores.is_empty();
        waiting.then(|| self.rest.min(self.oldest + LATEST))
    }

    /// When to look again if nobody wakes the writer.
    fn look_at(&self, now: Instant, floor: Instant, quiet: Option<Instant>) -> Option<Instant> {
        let jobs = match self.jobs.is_empty() {
            true => quiet,
            false => Some(floor),
        };
        let rest = Some(self.rest).filter(|rest| *rest > now);
        jobs.into_iter().chain(self.chores_at().or(rest)).min()
    }
}

/// Guards what waits between the sessions and the one writer thread.
pub(super) struct Mailbox {
    path: PathBuf,
    state: Mutex<State>,
    wake: Condvar,
    room: Arc<Semaphore>,
}

impl Mailbox {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                urgent: 0,
                chores: VecDeque::new(),
                door: Door::Open,
                oldest: Instant::now(),
                rest: Instant::now(),
                asleep: false,
            }),
            wake: Condvar::new(),
            room: Arc::new(Semaphore::new(ROOM)),
        }
    }

    /// Hands a job to the writer and waits until it is done.
    pub(super) async fn ask(&self, work: Work) -> Result<(), StoreError> {
        let room = match work {
            Work::Close => None,
            _ => Some(
                Arc::clone(&self.room)
                    .acquire_owned()
                    .await
                    .map_err(|_| self.refusal())?,
            ),
        };
        let (reply, done) = oneshot::channel();
        self.put(Job {
            work,
            reply,
            _room: room,
        })?;
        // Every job is answered, but by a writer that fails.
        done.await.unwrap_or_else(|_| Err(self.broken()))
    }

    /// Whether it was taken.
    pub(super) fn chore(&self, chore: Chore) -> bool {
        let mut state = self.lock();
        if state.door != Door::Open || state.chores.len() >= CHORES {
            return false;
        }
        let now = Instant::now();
        if state.chores.is_empty() {
            state.oldest = now;
        }
        state.chores.push_back(chore);
        if now >= state.rest {
            self.rouse(&mut state);
        }
        true
    }

    /// Nothing more is taken; the writer ends when it has done what is there.
    pub(super) fn close(&self) {
        self.shut(Door::Closed);
    }

    /// The writer failed: whoever waits is told.
    pub(super) fn break_down(&self) {
        self.shut(Door::Broken);
        let abandoned = std::mem::take(&mut self.lock().jobs);
        drop(abandoned);
    }

    /// What waits for the floor waits no longer.
    pub(super) fn hurry(&self) {
        let mut state = self.lock();
        if !state.jobs.is_empty() && state.urgent == 0 {
            state.urgent = 1;
            state.asleep = false;
            self.wake.notify_one();
        }
    }

    /// Waits for the next thing to do. `floor` is when waiting pieces may be committed, `quiet` when the writer wants to
    /// be told that nothing came.
    pub(super) fn next(&self, floor: Instant, quiet: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = state.urgent > 0 || now >= floor || state.door != Door::Open;
            if !state.jobs.is_empty() && due {
                state.urgent = 0;
                state.rest = now + REST;
                return Next::Commit(state.jobs.drain(..).collect());
            }
            if state.door != Door::Open && state.jobs.is_empty() {
                return Next::End;
            }
            if state.chores_at().is_some_and(|at| now >= at)
                && let Some(chore) = state.chores.pop_front()
            {
                return Next::Chore(chore);
            }
            if state.jobs.is_empty() && quiet.is_some_and(|at| now >= at) {
                return Next::Quiet;
            }
            let until = state.look_at(now, floor, quiet);
            state.asleep = state.jobs.is_empty();
            state = match until {
                Some(at) => {
                    self.wake
                        .wait_timeout(state, at.saturating_duration_since(now))
                        .unwrap_or_else(PoisonError::into_inner)
                        .0
                }
                None => self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
            };
            state.asleep = false;
        }
    }

    #[cfg(test)]
    pub(super) fn has_chores(&self) -> bool {
        !self.lock().chores.is_empty()
    }

    fn put(&self, job: Job) -> Result<(), StoreError> {
        let mut state = self.lock();
        if state.door != Door::Open {
            drop(state);
            return Err(self.refusal());
        }
        let urgent = job.work.pace() == Pace::Now;
        state.jobs.push_back(job);
        state.urgent += usize::from(urgent);
        if urgent {
            state.asleep = false;
            self.wake.notify_one();
        } else {
            self.rouse(&mut state);
        }
        Ok(())
    }

    /// Wakes the writer only when it would not look by itself: a wake-up costs more than a piece.
    fn rouse(&self, state: &mut State) {
        if std::mem::take(&mut state.asleep) {
            self.wake.notify_one();
        }
    }

    fn shut(&self, door: Door) {
        let mut state = self.lock();
        if state.door != Door::Broken {
            state.door = door;
        }
        self.room.close();
        self.wake.notify_one();
    }

    fn refusal(&self) -> StoreError {
        match self.lock().door {
            Door::Open | Door::Closed => StoreError::Closed,
            Door::Broken => self.broken(),
        }
    }

    fn broken(&self) -> StoreError {
        fault::io(&self.path, "its writer failed: restart the daemon")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn job(pace: Pace) -> Job {
        Job {
            work: Work::Append(Append {
                session: SessionId::from("a"),
                entries: Vec::new(),
                row: None,
                pace,
                durability: Durability::Committed,
            }),
            reply: oneshot::channel().0,
            _room: None,
        }
    }

    fn mailbox(paces: &[Pace]) -> Mailbox {
        let mailbox = Mailbox::new(Path::new("dwell.db"));
        for pace in paces {
            mailbox.put(job(*pace)).unwrap();
        }
        mailbox
    }

    fn taken(next: Next) -> usize {
        match next {
            Next::Commit(jobs) => jobs.len(),
            Next::Chore(_) | Next::Quiet | Next::End => 0,
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[test]
    fn pieces_are_taken_at_the_floor_and_not_before() {
        let mailbox = mailbox(&[Pace::Floor, Pace::Floor]);
        let floor = Instant::now() + Duration::from_millis(20);
        assert_eq!(taken(mailbox.next(floor, None)), 2);
        assert!(Instant::now() >= floor);
    }

    #[test]
    fn an_urgent_job_takes_waiting_pieces_along_at_once() {
        let mailbox = mailbox(&[Pace::Floor, Pace::Now, Pace::Floor]);
        assert_eq!(taken(mailbox.next(Instant::now() + LONG, None)), 3);
    }

    #[test]
    fn pieces_that_are_hurried_do_not_wait_for_the_floor() {
        let mailbox = mailbox(&[Pace::Floor]);
        mailbox.hurry();
        assert_eq!(taken(mailbox.next(Instant::now() + LONG, None)), 1);
        // With nothing there it hurries nothing that comes later.
        mailbox.hurry();
        mailbox.put(job(Pace::Floor)).unwrap();
        let floor = Instant::now() + Duration::from_millis(20);
        assert_eq!(taken(mailbox.next(floor, None)), 1);
        assert!(Instant::now() >= floor);
    }

    #[test]
    fn an_urgent_job_wakes_a_writer_that_waits_for_the_floor() {
        let mailbox = mailbox(&[Pace::Floor]);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| taken(mailbox.next(Instant::now() + LONG, None)));
            mailbox.put(job(Pace::Now)).unwrap();
            assert_eq!(writer.join().unwrap(), 2);
        });
    }

    #[test]
    fn chores_wait_for_urgent_jobs_but_not_for_the_floor() {
        let mailbox = mailbox(&[Pace::Now]);
        mailbox.chore(Chore::Purge);
        assert_eq!(taken(mailbox.next(Instant::now() + LONG, None)), 1);
        mailbox.put(job(Pace::Floor)).unwrap();
        let next = mailbox.next(Instant::now() + LONG, None);
        assert!(matches!(next, Next::Chore(Chore::Purge)));
    }

    #[test]
    fn chores_rest_after_a_commit_but_not_for_ever() {
        let mailbox = mailbox(&[]);
        mailbox.chore(Chore::Purge);
        let began = Instant::now();
        loop {
            mailbox.put(job(Pace::Now)).unwrap();
            match mailbox.next(began + LONG, None) {
                Next::Chore(_) => panic!("a chore came before an urgent job"),
                next => assert_eq!(taken(next), 1),
            }
            mailbox.put(job(Pace::Floor)).unwrap();
            // Long past the floor each time, as with a stream that never pauses.
            match mailbox.next(began, None) {
                Next::Chore(_) => panic!("a chore came before jobs that are due"),
                next => assert_eq!(taken(next), 1),
            }
            if began.elapsed() >= LATEST {
                break;
            }
        }
        let rested = mailbox.next(Instant::now() + LONG, None);
        assert!(matches!(rested, Next::Chore(Chore::Purge)));
    }

    #[test]
    fn quiet_is_told_once_its_instant_has_come() {
        let mailbox = mailbox(&[]);
        let quiet = Instant::now() + Duration::from_millis(10);
        assert!(matches!(
            mailbox.next(Instant::now(), Some(quiet)),
            Next::Quiet
        ));
        assert!(Instant::now() >= quiet);
    }

    #[test]
    fn a_closed_mailbox_gives_out_what_it_has_and_takes_no_more() {
        let mailbox = mailbox(&[Pace::Floor]);
        mailbox.close();
        assert!(matches!(
            mailbox.put(job(Pace::Now)),
            Err(StoreError::Closed)
        ));
        assert_eq!(taken(mailbox.next(Instant::now() + LONG, None)), 1);
        assert!(matches!(
            mailbox.next(Instant::now() + LONG, None),
            Next::End
        ));
    }
}
