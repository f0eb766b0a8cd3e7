//! What waits for the writer, and when it is taken. Must never hold an append back longer than the floor.

use super::{Durability, Entry, Pace, SessionRow, StoreError, fault};
use protocol::id::SessionId;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// Jobs that wait at most; whoever brings one more waits for room. Each session has one append under way, so this is
/// only reached when the disk stands still.
const ROOM: usize = 1024;

/// Chores that wait at most; more folds are let go: unfolded pieces read the same, and the next lease folds them.
const CHORES: usize = 4096;

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
    /// Whether the writer sleeps until a job comes; else it looks by itself at the floor.
    asleep: bool,
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
        done.await.unwrap_or_else(|_| Err(self.refusal()))
    }

    pub(super) fn chore(&self, chore: Chore) {
        let mut state = self.lock();
        if state.door != Door::Open || state.chores.len() >= CHORES {
            return;
        }
        state.chores.push_back(chore);
        self.rouse(&mut state);
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

    /// Waits for the next thing to do. `floor` is when waiting pieces may be committed, `quiet` when the writer wants to
    /// be told that nothing came.
    pub(super) fn next(&self, floor: Instant, quiet: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            let due = state.urgent > 0 || now >= floor || state.door != Door::Open;
            if !state.jobs.is_empty() && due {
                state.urgent = 0;
                return Next::Commit(state.jobs.drain(..).collect());
            }
            if state.door != Door::Open && state.jobs.is_empty() {
                return Next::End;
            }
            if let Some(chore) = state.chores.pop_front() {
                return Next::Chore(chore);
            }
            if state.jobs.is_empty() && quiet.is_some_and(|at| now >= at) {
                return Next::Quiet;
            }
            let until = if state.jobs.is_empty() {
                quiet
            } else {
                Some(floor)
            };
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
            Door::Broken => fault::io(&self.path, "its writer failed: restart the daemon"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
