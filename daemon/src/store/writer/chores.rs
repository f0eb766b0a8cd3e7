//! What the writer does when nothing is urgent. A chore that fails is left as it is: nothing depends on it.

use super::{Head, Writer};
use crate::store::fold;
use crate::store::mailbox::Chore;
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
}
