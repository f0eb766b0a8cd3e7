//! A client's view of a session: newest events from a small ring, older ones from the store, each once and in order.
//! Must never make the actor wait: who is slow reads the log from its cursor.

use super::{SessionError, SessionResult};
use crate::store::{Entry, Store};
use protocol::id::SessionId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use tokio::sync::{Notify, watch};

/// Events kept while a turn runs: enough that a client which reads at all never goes to the store.
const RING: usize = 512;
/// Bytes of the ring while a turn runs.
const RING_BYTES: usize = 1 << 20;
/// Events and bytes kept of a session that rests.
const REST: (usize, usize) = (8, 4 << 10);
/// Events read from the store at once.
const PAGE: u32 = 256;

/// Where the actor publishes and subscribers look.
pub struct Feed {
    ring: Mutex<Ring>,
    /// The number of the newest event, and whether the session is gone; each change wakes every subscriber.
    newest: watch::Sender<Tip>,
    trouble: watch::Sender<Option<Arc<str>>>,
    clients: watch::Sender<u32>,
    left: Arc<Notify>,
}

/// How far the log has come, and whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Tip {
    at: u64,
    goes_on: GoesOn,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum GoesOn {
    Yes,
    /// The daemon stops: what is there is still delivered.
    Stops,
    /// The session is deleted.
    Gone,
}

#[derive(Default)]
struct Ring {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// How far each subscriber has read: what one of them still needs stays, within the bounds of a running turn. So who
    /// reads at all gets each piece as it was, and never one that was joined with pieces it has.
    readers: Vec<Weak<AtomicU64>>,
    /// Whether the session rests.
    rests: bool,
}

impl Feed {
    pub fn new(newest: u64, left: Arc<Notify>) -> Self {
        Self {
            ring: Mutex::default(),
            newest: watch::Sender::new(Tip {
                at: newest,
                goes_on: GoesOn::Yes,
            }),
            trouble: watch::Sender::new(None),
            clients: watch::Sender::new(0),
            left,
        }
    }

    /// Shows committed events to everybody. Never waits.
    pub fn publish(&self, entries: &[Entry]) {
        let Some(last) = entries.last() else { return };
        let mut ring = self.ring();
        ring.rests = false;
        if self.newest.receiver_count() > 0 {
            for entry in entries {
                ring.push(entry.clone());
            }
            ring.trim(RING, RING_BYTES);
        } else {
            // A ring with a hole would give wrong answers; an empty one sends readers to the store.
            ring.trim(0, 0);
        }
        drop(ring);
        self.newest.send_modify(|tip| tip.at = last.event.seq);
    }

    /// The session rests: what is not needed for a client that is up to date goes.
    pub fn rest(&self) {
        let mut ring = self.ring();
        ring.rests = true;
        ring.rest();
    }

    /// Ends every subscription: the session is deleted.
    pub fn gone(&self) {
        self.newest.send_modify(|tip| tip.goes_on = GoesOn::Gone);
    }

    /// Ends every subscription once it has delivered what is there: the daemon stops.
    pub fn stop(&self) {
        self.newest.send_modify(|tip| tip.goes_on = GoesOn::Stops);
    }

    /// Why there is no more of the session.
    pub fn over(&self, session: &SessionId) -> SessionError {
        match self.newest.borrow().goes_on {
            GoesOn::Gone => gone(session),
            GoesOn::Yes | GoesOn::Stops => SessionError::Stopping,
        }
    }

    /// The store fails (or works again): told beside the log, since it cannot be an event.
    pub fn trouble(&self, message: Option<&str>) {
        let message = message.map(Arc::from);
        self.trouble.send_if_modified(|now| {
            let changed = *now != message;
            *now = message;
            changed
        });
    }

    pub fn clients(&self) -> u32 {
        *self.clients.borrow()
    }

    /// A view that starts after the cursor.
    pub fn subscribe(
        self: &Arc<Self>,
        session: &SessionId,
        store: &Store,
        after: Option<u64>,
    ) -> SessionResult<Subscriber> {
        let newest = self.newest.subscribe();
        let Tip { at: tip, goes_on } = *newest.borrow();
        match goes_on {
            GoesOn::Yes => {}
            GoesOn::Stops => return Err(SessionError::Stopping),
            GoesOn::Gone => return Err(gone(session)),
        }
        let cursor = after.unwrap_or(tip);
        if cursor > tip {
            return Err(SessionError::CursorBeyond {
                after: cursor,
                newest: tip,
            });
        }
        self.clients.send_modify(|clients| *clients += 1);
        let read = Arc::new(AtomicU64::new(cursor));
        let mut ring = self.ring();
        ring.readers.retain(|reader| reader.strong_count() > 0);
        ring.readers.push(Arc::downgrade(&read));
        drop(ring);
        let (session, store) = (session.clone(), store.clone());
        Ok(Subscriber {
            feed: Arc::clone(self),
            session,
            store,
            cursor,
            read,
            newest,
            batch: VecDeque::new(),
        })
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    fn push(&mut self, entry: Entry) {
        self.bytes += entry.json.len();
        self.entries.push_back(entry);
    }

    fn trim(&mut self, entries: usize, bytes: usize) {
        while self.entries.len() > entries || self.bytes > bytes {
            let Some(old) = self.entries.pop_front() else {
                return;
            };
            self.bytes -= old.json.len();
        }
    }

    /// Lets go of what every reader has, but for a few.
    fn rest(&mut self) {
        self.readers.retain(|reader| reader.strong_count() > 0);
        let read = self.readers.iter().filter_map(Weak::upgrade);
        let behind = read.map(|reader| reader.load(Ordering::Relaxed)).min();
        let behind = behind.unwrap_or(u64::MAX);
        let over = |ring: &Self| ring.entries.len() > REST.0 || ring.bytes > REST.1;
        while over(self)
            && self
                .entries
                .front()
                .is_some_and(|old| old.event.seq <= behind)
        {
            if let Some(old) = self.entries.pop_front() {
                self.bytes -= old.json.len();
            }
        }
        if self.entries.len() <= REST.0 {
            self.entries.shrink_to(REST.0);
        }
    }

    /// Everything after the cursor, or nothing when part of it has left the ring.
    fn after(&self, cursor: u64) -> Option<VecDeque<Entry>> {
        let first = self.entries.front()?.event.seq;
        if first > cursor + 1 {
            return None;
        }
        let skip = usize::try_from(cursor + 1 - first).ok()?;
        Some(self.entries.iter().skip(skip).cloned().collect())
    }
}

/// One client's view of one session.
pub struct Subscriber {
    feed: Arc<Feed>,
    session: SessionId,
    store: Store,
    cursor: u64,
    /// The same number, for the ring.
    read: Arc<AtomicU64>,
    newest: watch::Receiver<Tip>,
    batch: VecDeque<Entry>,
}

impl Subscriber {
    /// The next event; waits for it. `Err` when the session is gone or the store cannot be read. Cancel-safe.
    pub async fn next(&mut self) -> SessionResult<Entry> {
        loop {
            if let Some(entry) = self.batch.pop_front() {
                self.cursor = entry.event.seq;
                return Ok(entry);
            }
            let tip = *self.newest.borrow_and_update();
            match tip.goes_on {
                GoesOn::Gone => return Err(gone(&self.session)),
                _ if tip.at > self.cursor => self.fill().await?,
                GoesOn::Stops => return Err(SessionError::Stopping),
                GoesOn::Yes => self
                    .newest
                    .changed()
                    .await
                    .map_err(|_| SessionError::Stopping)?,
            }
        }
    }

    async fn fill(&mut self) -> SessionResult<()> {
        let ring = self.feed.ring().after(self.cursor);
        self.batch = match ring {
            Some(entries) => entries,
            None => self
                .store
                .read(&self.session, self.cursor, PAGE)
                .await?
                .into(),
        };
        self.took();
        if self.batch.is_empty() {
            // Published means stored, so this is a store that lost something: better an end than a loop.
            return Err(gone(&self.session));
        }
        Ok(())
    }

    /// The ring need not keep these for this subscriber any more.
    fn took(&self) {
        if let Some(last) = self.batch.back() {
            self.read.store(last.event.seq, Ordering::Relaxed);
        }
        let mut ring = self.feed.ring();
        if ring.rests {
            ring.rest();
        }
    }

    /// The session's trouble with the store, none when there is none: watched beside `next`, which borrows `self`.
    pub fn troubles(&self) -> watch::Receiver<Option<Arc<str>>> {
        self.feed.trouble.subscribe()
    }

    /// How many are attached, watched likewise.
    pub fn attached(&self) -> watch::Receiver<u32> {
        self.feed.clients.subscribe()
    }

    /// The number of the last event that `next` gave.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.feed.clients.send_modify(|clients| *clients -= 1);
        self.feed.left.notify_one();
    }
}

fn gone(session: &SessionId) -> SessionError {
    SessionError::NotFound {
        what: "session",
        id: session.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::event::{Event, EventKind};

    fn entry(seq: u64) -> Entry {
        let (session, kind) = ("s".into(), EventKind::Cleared);
        Entry::new(Event {
            session,
            seq,
            first_seq: None,
            at: 0,
            turn: None,
            kind,
        })
    }

    #[test]
    fn a_resting_ring_keeps_what_a_reader_has_not_read() {
        let mut ring = Ring::default();
        let slow = Arc::new(AtomicU64::new(3));
        ring.readers.push(Arc::downgrade(&slow));
        for seq in 1..=100 {
            ring.push(entry(seq));
        }
        ring.rest();
        assert_eq!(ring.after(3).map(|entries| entries.len()), Some(97));
        slow.store(100, Ordering::Relaxed);
        ring.rest();
        assert_eq!(ring.entries.len(), REST.0);
        assert_eq!(
            ring.bytes,
            ring.entries.iter().map(|e| e.json.len()).sum::<usize>()
        );
    }

    #[test]
    fn a_reader_that_is_gone_keeps_nothing() {
        let mut ring = Ring::default();
        ring.readers.push(Weak::new());
        (1..=100).for_each(|seq| ring.push(entry(seq)));
        ring.rest();
        assert_eq!(ring.entries.len(), REST.0);
    }
}
