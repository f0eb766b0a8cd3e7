//! What the writer does when nothing is urgent. A chore that fails is left as it is: nothing depends on it.

use super::{Head, Writer};
use crate::store::mailbox::Chore;
use crate::store::rows::Key;
use crate::store::search::{self, Found};
use crate::store::{fold, lease};
use protocol::id::SessionId;

/// Whether a chore found something to do.
enum Chored {
    Written,
    Nothing,
}

impl Writer {
    pub(super) fn chore(&mut self, chore: Chore) {
        let done = match &chore {
            Chore::Fold { session, piece } => self.fold(session, piece),
            Chore::Index { key } => self.index(*key),
            Chore::Survey => self.survey(),
            Chore::Purge => self.purge(),
        };
        match done {
            Ok(Chored::Written) => self.checkpointer.committed(),
            Ok(Chored::Nothing) => {}
            // Left as it is: unfolded pieces read the same, what is doomed stays so, and words are looked for at the
            // session's next lease.
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

    fn index(&mut self, key: Key) -> rusqlite::Result<Chored> {
        self.within(|writer| {
            writer.unindexed.remove(&key);
            if let Found::More = writer.index_some(key)? {
                writer.pending.chores.push(Chore::Index { key });
            }
            Ok(Chored::Written)
        })
    }

    /// Within a transaction: whatever waits to be indexed.
    pub(super) fn index_waiting(&mut self) -> rusqlite::Result<()> {
        let waiting: Vec<Key> = self.unindexed.iter().copied().collect();
        waiting.into_iter().try_for_each(|key| self.index_all(key))
    }

    /// Within a transaction: all words of a session.
    pub(super) fn index_all(&mut self, key: Key) -> rusqlite::Result<()> {
        while let Found::More = self.index_some(key)? {}
        Ok(())
    }

    fn index_some(&mut self, key: Key) -> rusqlite::Result<Found> {
        let known = self.pending.indexed.get(&key).or(self.indexed.get(&key));
        let after = match known {
            Some(after) => *after,
            None => search::newest(&self.conn, key)?,
        };
        let step = search::index_after(&self.conn, key, after)?;
        self.pending.indexed.insert(key, step.last);
        Ok(step.found)
    }

    fn survey(&mut self) -> rusqlite::Result<Chored> {
        for key in lease::abandoned(&self.conn)? {
            self.pass_on(Chore::Index { key });
        }
        Ok(Chored::Nothing)
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
}
