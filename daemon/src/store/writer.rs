//! The one thread that writes: it takes what is in the mailbox and commits it together. Must never answer before the
//! commit, nor let one session's failure touch another's append.

use super::checkpoint::{Checkpointer, checkpoint};
use super::lease::Proof;
use super::mailbox::{Append, Chore, Job, Mailbox, Next, Work};
use super::pace::Pacer;
use super::rows::{Key, Piece};
use super::sync::Syncer;
use super::{Durability, SessionRow, StoreError, fault, fold, kind, lease, rows, schema, search};
use protocol::id::SessionId;
use rusqlite::{Connection, OptionalExtension};
use std::collections::HashMap;
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

/// Why a job is not done.
pub(super) enum Stop {
    /// It may not be; nothing was written for it.
    Refused(StoreError),
    /// The engine failed, perhaps with half of it written.
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

type Done = Result<(), Stop>;

/// Whether a chore found something to do.
enum Chored {
    Written,
    Nothing,
}

/// What a transaction would change in the heads.
#[derive(Default)]
struct Pending {
    /// A session that is here was found to be ours, or to be nobody's.
    heads: HashMap<SessionId, Option<Head>>,
    chores: Vec<Chore>,
    /// The next row of the tail, once it was looked up: until the commit nobody else adds one.
    next_tail: Option<i64>,
}

pub(super) struct Writer {
    pub(super) path: PathBuf,
    pub(super) conn: Connection,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) heads: Arc<Heads>,
    pub(super) proof: Option<Proof>,
    pub(super) token: String,
    pub(super) syncer: Option<Syncer>,
    pub(super) checkpointer: Checkpointer,
    pub(super) pacer: Pacer,
    /// The next row of the tail, at least; other daemons write to it too.
    pub(super) next_tail: i64,
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
    #[allow(clippy::too_many_arguments)]
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
        pending
            .chores
            .into_iter()
            .for_each(|chore| self.mailbox.chore(chore));
        done
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

    fn apply(&mut self, work: &Work) -> Done {
        match work {
            Work::Append(append) => self.append(append),
            Work::Create(row) => self.create(row),
            Work::UpdateRow(row) => self.update_row(row),
            Work::Delete(session) => self.delete(session),
            Work::Lease(session) => self.lease(session),
            Work::Release(session) => self.release(session),
            Work::Close => Ok(()),
            #[cfg(test)]
            Work::Panic => panic!("a test asked for it"),
        }
    }

    fn append(&mut self, append: &Append) -> Done {
        let Some(head) = self.head(&append.session) else {
            return Err(Stop::Refused(self.not_leased(&append.session)?));
        };
        if let Err(detail) = follows(head.seq, append) {
            let detail = format!("cannot append to session {}: {detail}", append.session);
            return Err(Stop::Refused(fault::io(&self.path, detail)));
        }
        if !self.pending.heads.contains_key(&append.session) && !self.owns(head.key)? {
            self.set_head(&append.session, None);
            return Err(Stop::Refused(self.not_leased(&append.session)?));
        }
        let newest = append.entries.last().map_or(head.seq, |e| e.event.seq);
        let mut keyed_at = None;
        for entry in &append.entries {
            let (event, json) = (&entry.event, &entry.json);
            match kind::piece_of(event) {
                Some(of) => {
                    let id = self.tail_id()?;
                    let piece = Piece {
                        id,
                        seq: event.seq,
                        of,
                        json,
                    };
                    rows::insert_piece(&self.conn, head.key, &piece)?;
                }
                None => {
                    rows::insert_event(&self.conn, head.key, event.seq, json)?;
                    search::index_event(&self.conn, head.key, event)?;
                    keyed_at = Some(event.at);
                }
            }
        }
        match (&append.row, keyed_at) {
            (Some(row), _) => rows::update_session(&self.conn, head.key, row, newest)?,
            (None, Some(at)) => self.touch(head.key, newest, at)?,
            // Pieces alone leave the row as it is: it would cost more than they do, and their numbers stand in the tail.
            (None, None) => {}
        }
        self.set_head(
            &append.session,
            Some(Head {
                seq: newest,
                ..head
            }),
        );
        Ok(())
    }

    fn touch(&self, key: Key, seq: u64, at: u64) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("UPDATE sessions SET seq = ?2, updated_at = ?3 WHERE key = ?1")?
            .execute((key, rows::int(seq), rows::int(at)))
            .map(drop)
    }

    fn create(&mut self, row: &SessionRow) -> Done {
        if self.find(&row.id)?.is_some() {
            let detail = format!("cannot create session {}: it exists", row.id);
            return Err(Stop::Refused(fault::io(&self.path, detail)));
        }
        let key = rows::insert_session(&self.conn, row, &self.token)?;
        let tail_from = self.tail_bound()?;
        self.set_head(
            &row.id,
            Some(Head {
                key,
                seq: 0,
                tail_from,
            }),
        );
        Ok(())
    }

    fn update_row(&mut self, row: &SessionRow) -> Done {
        let (key, owner) = self.known(&row.id)?;
        self.not_held(&row.id, owner.as_deref())?;
        let head = self.head(&row.id);
        let seq = match head {
            Some(head) => head.seq,
            None => rows::newest(&self.conn, key, 0)?,
        };
        Ok(rows::update_session(&self.conn, key, row, seq)?)
    }

    /// The session is gone at once; its events go bit by bit, so that a long one holds nobody up.
    fn delete(&mut self, session: &SessionId) -> Done {
        let Some((key, owner)) = self.find(session)? else {
            return Ok(());
        };
        self.not_held(session, owner.as_deref())?;
        for sql in [
            "DELETE FROM sessions WHERE key = ?1",
            "DELETE FROM settings WHERE session = ?1",
            "INSERT OR IGNORE INTO doomed (session) VALUES (?1)",
        ] {
            self.conn.prepare_cached(sql)?.execute([key])?;
        }
        self.set_head(session, None);
        self.pending.chores.push(Chore::Purge);
        Ok(())
    }

    fn lease(&mut self, session: &SessionId) -> Done {
        let (key, owner) = self.known(session)?;
        self.not_held(session, owner.as_deref())?;
        if owner.as_deref() == Some(&self.token) && self.head(session).is_some() {
            return Ok(());
        }
        self.conn
            .prepare_cached("UPDATE sessions SET owner = ?2 WHERE key = ?1")?
            .execute((key, &self.token))?;
        let left = fold::left(&self.conn, key)?;
        let tail_from = match left.first_row {
            Some(row) => row,
            None => self.tail_bound()?,
        };
        // Nobody streams into a session that has just been taken: all its messages are finished.
        for piece in left.pieces {
            self.pending.chores.push(Chore::Fold {
                session: session.clone(),
                piece,
            });
        }
        let seq = rows::newest(&self.conn, key, tail_from)?;
        self.set_head(
            session,
            Some(Head {
                key,
                seq,
                tail_from,
            }),
        );
        Ok(())
    }

    fn release(&mut self, session: &SessionId) -> Done {
        if let Some(head) = self.head(session) {
            self.disown(head.key)?;
            self.set_head(session, None);
        }
        Ok(())
    }

    fn disown(&self, key: Key) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("UPDATE sessions SET owner = NULL WHERE key = ?1 AND owner = ?2")?
            .execute((key, &self.token))
            .map(drop)
    }

    fn chore(&mut self, chore: Chore) {
        let done = match &chore {
            Chore::Fold { session, piece } => self.fold(session, piece),
            Chore::Purge => self.purge(),
        };
        match done {
            Ok(Chored::Written) => self.checkpointer.committed(),
            Ok(Chored::Nothing) => {}
            // Left as it is: unfolded pieces read the same, and what is doomed stays so.
            Err(error) => tracing::warn!(?chore, %error, "left for later"),
        }
    }

    fn fold(&mut self, session: &SessionId, piece: &str) -> rusqlite::Result<Chored> {
        let Some(head) = self.heads.get(session) else {
            return Ok(Chored::Nothing);
        };
        let Some(plan) = fold::plan(&self.conn, &head, piece)? else {
            return Ok(Chored::Nothing);
        };
        self.within(|writer| {
            if !writer.owns(head.key)? {
                return Ok(Chored::Nothing);
            }
            fold::write(&writer.conn, &head, piece, &plan)?;
            let tail_from = match fold::first_row(&writer.conn, head.key, head.tail_from)? {
                Some(row) => row,
                None => writer.tail_bound()?,
            };
            writer.set_head(session, Some(Head { tail_from, ..head }));
            Ok(Chored::Written)
        })
    }

    fn purge(&mut self) -> rusqlite::Result<Chored> {
        let Some(key) = fold::doomed(&self.conn)? else {
            return Ok(Chored::Nothing);
        };
        self.within(|writer| {
            fold::purge_some(&writer.conn, key)?;
            writer.pending.chores.push(Chore::Purge);
            Ok(Chored::Written)
        })
    }

    /// The session as of this transaction, if it is leased.
    fn head(&self, session: &SessionId) -> Option<Head> {
        match self.pending.heads.get(session) {
            Some(pending) => *pending,
            None => self.heads.get(session),
        }
    }

    fn set_head(&mut self, session: &SessionId, head: Option<Head>) {
        self.pending.heads.insert(session.clone(), head);
    }

    fn find(&self, session: &SessionId) -> rusqlite::Result<Option<(Key, Option<String>)>> {
        self.conn
            .prepare_cached("SELECT key, owner FROM sessions WHERE id = ?1")?
            .query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
    }

    fn known(&self, session: &SessionId) -> Result<(Key, Option<String>), Stop> {
        self.find(session)?
            .ok_or_else(|| Stop::Refused(StoreError::NotFound(session.clone())))
    }

    /// Another daemon may have taken a session whose owner looked dead to it.
    fn owns(&self, key: Key) -> rusqlite::Result<bool> {
        let owner = self
            .conn
            .prepare_cached("SELECT owner FROM sessions WHERE key = ?1")?
            .query_row([key], |row| row.get::<_, Option<String>>(0))
            .optional()?;
        Ok(owner.flatten().as_deref() == Some(&self.token))
    }

    fn not_held(&self, session: &SessionId, owner: Option<&str>) -> Done {
        match lease::Living::new(&self.conn, &self.token).other(owner)? {
            None => Ok(()),
            Some(holder) => Err(Stop::Refused(StoreError::Held {
                session: session.clone(),
                pid: holder.pid,
                socket: holder.socket,
            })),
        }
    }

    fn not_leased(&self, session: &SessionId) -> Result<StoreError, rusqlite::Error> {
        let refused = self.known(session).and_then(|(_, owner)| {
            self.not_held(session, owner.as_deref())?;
            let detail = format!("cannot append to session {session}: it is not leased");
            Err(Stop::Refused(fault::io(&self.path, detail)))
        });
        match refused {
            Ok(()) => Ok(StoreError::NotFound(session.clone())),
            Err(Stop::Refused(error)) => Ok(error),
            Err(Stop::Failed(error)) => Err(error),
        }
    }

    fn tail_id(&mut self) -> rusqlite::Result<i64> {
        let id = self.tail_bound()?;
        self.next_tail = id + 1;
        self.pending.next_tail = Some(self.next_tail);
        Ok(id)
    }

    /// No row of the tail, now or later, that this daemon writes has a smaller id.
    fn tail_bound(&mut self) -> rusqlite::Result<i64> {
        if let Some(next) = self.pending.next_tail {
            return Ok(next);
        }
        let next: i64 = self
            .conn
            .prepare_cached("SELECT coalesce(max(id), 0) + 1 FROM tail")?
            .query_row([], |row| row.get(0))?;
        self.next_tail = self.next_tail.max(next);
        self.pending.next_tail = Some(self.next_tail);
        Ok(self.next_tail)
    }

    fn fault(&self, work: &Work, error: &rusqlite::Error) -> StoreError {
        let doing = match work {
            Work::Append(append) => format!("write session {}", append.session),
            Work::Create(row) => format!("create session {}", row.id),
            Work::UpdateRow(row) => format!("change session {}", row.id),
            Work::Delete(session) => format!("delete session {session}"),
            Work::Lease(session) | Work::Release(session) => format!("lease session {session}"),
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
        Work::Lease(_) | Work::Release(_) | Work::Close => Durability::Committed,
        #[cfg(test)]
        Work::Panic => Durability::Committed,
    }
}

/// Whether the entries follow the newest: no number is missing, but for those that a later folded entry stands for.
fn follows(newest: u64, append: &Append) -> Result<(), String> {
    let mut covered_from = u64::MAX;
    for (index, entry) in append.entries.iter().enumerate().rev() {
        let seq = entry.event.seq;
        let before = match index {
            0 => newest,
            _ => append.entries[index - 1].event.seq,
        };
        covered_from = covered_from.min(entry.event.first());
        let gapless = seq == before + 1 || (seq > before && covered_from <= before + 1);
        if !gapless || entry.event.first() <= newest || seq > u64::from(u32::MAX) {
            return Err(format!("event {seq} does not follow {before}"));
        }
        if entry.event.session != append.session {
            return Err(format!("event {seq} is of session {}", entry.event.session));
        }
    }
    Ok(())
}
