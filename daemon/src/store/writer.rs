//! The one thread that writes: it takes what is in the mailbox and commits it together. Must never answer before the
//! commit, nor let one session's failure touch another's append.

mod apply;
mod chores;

use self::apply::Stop;
use super::checkpoint::{Checkpointer, checkpoint};
use super::lease::Proof;
use super::mailbox::{Chore, Job, Mailbox, Next, Work};
use super::pace::Pacer;
use super::rows::Key;
use super::sync::Syncer;
use super::{Durability, StoreError, fault, schema};
use protocol::id::SessionId;
use rusqlite::Connection;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a commit is tried while other processes keep the store locked.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the writer knows of a session that is leased to this daemon.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) key: Key,
    pub(super) seq: u64,
    /// No unfolded piece of the session stands before this row of the tail.
    pub(super) tail_from: i64,
}

/// Heads of leased sessions, as of the last commit: the writer's knowledge, and a hint for readers.
#[derive(Default)]
pub(super) struct Heads(Mutex<HashMap<SessionId, Head>>);

impl Heads {
    pub(super) fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Head>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, session: &SessionId) -> Option<Head> {
        self.lock().get(session).copied()
    }
}

/// What a transaction would change in the heads.
#[derive(Default)]
struct Pending {
    /// A session that is here was found to be ours, or to be nobody's.
    heads: HashMap<SessionId, Option<Head>>,
    chores: Vec<Chore>,
    /// How far sessions' words are known to searches.
    indexed: HashMap<Key, u64>,
    /// The next row of the tail, once it was looked up: until the commit nobody else adds one.
    next_tail: Option<i64>,
}

pub(super) struct Writer {
    path: PathBuf,
    conn: Connection,
    mailbox: Arc<Mailbox>,
    heads: Arc<Heads>,
    proof: Option<Proof>,
    token: String,
    syncer: Option<Syncer>,
    checkpointer: Checkpointer,
    pacer: Pacer,
    /// The next row of the tail, at least; other daemons write to it too.
    next_tail: i64,
    /// Sessions whose newest words no search knows yet; a chore waits for each.
    unindexed: HashSet<Key>,
    /// Up to which event a leased session's words are known, where that was looked up. Forgotten with the lease.
    indexed: HashMap<Key, u64>,
    pending: Pending,
    closers: Vec<Job>,
}

/// Whoever waits is told when the writer ends by a fault.
struct Alarm(Arc<Mailbox>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.break_down();
        }
    }
}

impl Writer {
    pub(super) fn new(
        path: PathBuf,
        conn: Connection,
        mailbox: Arc<Mailbox>,
        heads: Arc<Heads>,
        proof: Proof,
        syncer: Syncer,
        checkpointer: Checkpointer,
    ) -> Self {
        Self {
            path,
            conn,
            mailbox,
            heads,
            token: proof.token.clone(),
            proof: Some(proof),
            syncer: Some(syncer),
            checkpointer,
            pacer: Pacer::default(),
            next_tail: 1,
            unindexed: HashSet::new(),
            indexed: HashMap::new(),
            pending: Pending::default(),
            closers: Vec::new(),
        }
    }

    /// Runs until the mailbox is closed and empty. When it fails, those who wait are told last: by then the lock is free.
    pub(super) fn run(self) {
        let _alarm = Alarm(Arc::clone(&self.mailbox));
        self.work();
    }

    fn work(mut self) {
        loop {
            match self
                .mailbox
                .next(self.pacer.floor(), self.checkpointer.due())
            {
                Next::Commit(jobs) => self.commit(jobs),
                Next::Chore(chore) => self.chore(chore),
                Next::Quiet => self.checkpointer.quiet(),
                Next::End => break,
            }
        }
        self.finish();
    }

    fn commit(&mut self, jobs: Vec<Job>) {
        let (closers, jobs): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .partition(|job| matches!(job.work, Work::Close));
        if !closers.is_empty() {
            self.mailbox.close();
            self.closers.extend(closers);
        }
        if jobs.is_empty() {
            return;
        }
        self.pacer.committing(&jobs);
        match self.transact(&jobs) {
            Ok(outcomes) => self.answer(jobs.into_iter().zip(outcomes)),
            Err(error) if jobs.len() == 1 => {
                let outcome = match self.fault(&jobs[0].work, &error) {
                    StoreError::Full { .. } => self.again_with_room(&jobs[0]),
                    error => Err(error),
                };
                self.answer(jobs.into_iter().map(|job| (job, outcome.clone())));
            }
            // What fails may be one job of the group: each gets its own chance and its own answer.
            Err(_) => jobs.into_iter().for_each(|job| self.commit(vec![job])),
        }
    }

    /// A full disk may still have room in the log, once what it holds went back into the file.
    fn again_with_room(&mut self, job: &Job) -> Result<(), StoreError> {
        let made = self
            .conn
            .busy_timeout(Duration::from_millis(100))
            .and_then(|()| checkpoint(&self.conn, "PRAGMA wal_checkpoint(TRUNCATE)"))
            .and(self.conn.busy_timeout(schema::BUSY));
        if let Err(error) = made {
            tracing::debug!(%error, "no room made in the log");
        }
        match self.transact(std::slice::from_ref(job)) {
            Ok(mut outcomes) => outcomes.pop().unwrap_or(Ok(())),
            Err(error) => Err(self.fault(&job.work, &error)),
        }
    }

    fn answer(&self, jobs: impl Iterator<Item = (Job, Result<(), StoreError>)>) {
        let Some(syncer) = &self.syncer else { return };
        for (job, outcome) in jobs {
            match (outcome, durability(&job.work)) {
                (Ok(()), Durability::Synced) => syncer.answer(job.reply),
                (outcome, durability) => {
                    let _ = job.reply.send(outcome);
                    if durability == Durability::SyncSoon {
                        syncer.kick();
                    }
                }
            }
        }
    }

    /// All jobs in one transaction. A refused one has written nothing; a failed one fails the transaction.
    fn transact(&mut self, jobs: &[Job]) -> Result<Vec<Result<(), StoreError>>, rusqlite::Error> {
        let result = self.within(|writer| {
            jobs.iter()
                .map(|job| match writer.apply(&job.work) {
                    Ok(()) => Ok(Ok(())),
                    Err(Stop::Refused(error)) => Ok(Err(error)),
                    Err(Stop::Failed(error)) => Err(error),
                })
                .collect()
        });
        if result.is_ok() {
            self.checkpointer.committed();
            self.checkpointer.catch_up(&self.conn);
        }
        result
    }

    /// Begins, does, commits; the heads move with the commit or not at all.
    fn within<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        self.begin()?;
        let done = work(self).and_then(|done| {
            self.conn.prepare_cached("COMMIT")?.execute([])?;
            Ok(done)
        });
        let pending = std::mem::take(&mut self.pending);
        if done.is_err() {
            if !self.conn.is_autocommit()
                && let Err(error) = self.conn.execute_batch("ROLLBACK")
            {
                tracing::error!(%error, "cannot roll back");
            }
            return done;
        }
        let mut heads = self.heads.lock();
        for (session, head) in pending.heads {
            match head {
                Some(head) => heads.insert(session, head),
                None => heads.remove(&session),
            };
        }
        drop(heads);
        self.indexed.extend(pending.indexed);
        for chore in pending.chores {
            self.pass_on(chore);
        }
        done
    }

    /// One that is not taken is made up for at the session's next lease.
    fn pass_on(&mut self, chore: Chore) {
        match chore {
            Chore::Index { key } => {
                if !self.unindexed.insert(key) {
                    return;
                }
                if !self.mailbox.chore(chore) {
                    self.unindexed.remove(&key);
                }
            }
            Chore::Fold { .. } | Chore::Survey | Chore::Purge => {
                self.mailbox.chore(chore);
            }
        }
    }

    fn begin(&self) -> rusqlite::Result<()> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let begun = self
                .conn
                .prepare_cached("BEGIN IMMEDIATE")
                .and_then(|mut begin| begin.execute([]));
            match begun {
                // The engine has mostly waited by itself.
                Err(error) if fault::is_busy(&error) && Instant::now() < deadline => {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                begun => return begun.map(drop),
            }
        }
    }

    fn fault(&self, work: &Work, error: &rusqlite::Error) -> StoreError {
        let doing = match work {
            Work::Append(append) => format!("write session {}", append.session),
            Work::Create(row) => format!("create session {}", row.id),
            Work::UpdateRow(row) => format!("change session {}", row.id),
            Work::Delete(session) => format!("delete session {session}"),
            Work::Lease(session) | Work::Release(session) => format!("lease session {session}"),
            Work::Index => "make words searchable".into(),
            Work::Close => "close".into(),
            #[cfg(test)]
            Work::Panic => "panic".into(),
        };
        fault::from_sqlite(&self.path, &doing, error)
    }

    /// An orderly end: sessions are free, the log is synced and goes back into the file.
    fn finish(mut self) {
        let keys: Vec<Key> = self
            .heads
            .lock()
            .drain()
            .map(|(_, head)| head.key)
            .collect();
        let freed = self.within(|writer| {
            writer.index_waiting()?;
            keys.iter().try_for_each(|key| writer.disown(*key))?;
            writer
                .conn
                .execute("DELETE FROM daemons WHERE token = ?1", [&writer.token])
        });
        if let Err(error) = freed {
            tracing::warn!(%error, "leases end with the process");
        }
        if let Some(syncer) = self.syncer.take() {
            syncer.kick();
        }
        self.checkpointer.finish();
        if let Err(error) = checkpoint(&self.conn, "PRAGMA wal_checkpoint(TRUNCATE)") {
            tracing::debug!(%error, "the log stays for the next start");
        }
        if let Some(proof) = self.proof.take() {
            proof.retire();
        }
        drop(self.conn);
        for job in self.closers {
            let _ = job.reply.send(Ok(()));
        }
    }
}

fn durability(work: &Work) -> Durability {
    match work {
        Work::Append(append) => append.durability,
        Work::Create(_) | Work::UpdateRow(_) | Work::Delete(_) => Durability::SyncSoon,
        Work::Lease(_) | Work::Release(_) | Work::Index | Work::Close => Durability::Committed,
        #[cfg(test)]
        Work::Panic => Durability::Committed,
    }
}
