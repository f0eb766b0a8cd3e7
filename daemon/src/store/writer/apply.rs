//! What each job writes, within a transaction that the writer began. A job that is refused has written nothing.

use super::{Head, Writer};
use crate::store::mailbox::{Append, Chore, Work};
use crate::store::rows::{self, Key, Piece};
use crate::store::{SessionRow, StoreError, fault, fold, kind, lease};
use protocol::id::SessionId;
use rusqlite::OptionalExtension;

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

impl Writer {
    pub(super) fn apply(&mut self, work: &Work) -> Done {
        match work {
            Work::Append(append) => self.append(append),
            Work::Create(row) => self.create(row),
            Work::UpdateRow(row) => self.update_row(row),
            Work::Delete(session) => self.delete(session),
            Work::Lease(session) => self.lease(session),
            Work::Release(session) => self.release(session),
            Work::Index => Ok(self.index_waiting()?),
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
        let mut worded = false;
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
                    worded |= kind::has_words(&event.kind);
                    keyed_at = Some(event.at);
                }
            }
        }
        if worded {
            self.pending.chores.push(Chore::Index { key: head.key });
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
        self.pending.chores.push(Chore::Index { key });
        self.indexed.remove(&key);
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
            if self.unindexed.contains(&head.key) {
                self.index_all(head.key)?;
            }
            self.disown(head.key)?;
            self.indexed.remove(&head.key);
            self.set_head(session, None);
        }
        Ok(())
    }

    pub(super) fn disown(&self, key: Key) -> rusqlite::Result<()> {
        self.conn
            .prepare_cached("UPDATE sessions SET owner = NULL WHERE key = ?1 AND owner = ?2")?
            .execute((key, &self.token))
            .map(drop)
    }

    /// The session as of this transaction, if it is leased.
    fn head(&self, session: &SessionId) -> Option<Head> {
        match self.pending.heads.get(session) {
            Some(pending) => *pending,
            None => self.heads.get(session),
        }
    }

    pub(super) fn set_head(&mut self, session: &SessionId, head: Option<Head>) {
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
    pub(super) fn owns(&self, key: Key) -> rusqlite::Result<bool> {
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
    pub(super) fn tail_bound(&mut self) -> rusqlite::Result<i64> {
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
