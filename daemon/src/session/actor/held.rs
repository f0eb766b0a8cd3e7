//! What calls of programs leave to be stored with what follows: nobody is told of it before, and many small calls share a
//! commit. Must never hold anything for longer than a moment, nor let what came later be stored before it.

use super::{Actor, Draft};
use crate::store::Entry;
use protocol::event::EventKind;
use protocol::id::{CallId, TurnId};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// How long something is held when nothing follows.
const MOMENT: Duration = Duration::from_millis(1);

#[derive(Default)]
pub(super) struct Held {
    /// In order. As many as programs may make calls, and that only while the store takes nothing.
    drafts: Vec<Draft>,
    /// Since when the oldest is held; none also while the store takes nothing: the next commit tries again.
    since: Option<Instant>,
    /// How many of them the next commit begins with.
    handed_out: usize,
}

impl Held {
    pub(super) fn push(&mut self, draft: Draft) {
        if self.drafts.is_empty() {
            self.since = Some(Instant::now());
        }
        self.drafts.push(draft);
    }

    /// For the next commit, which must begin with them.
    pub(super) fn take(&mut self) -> Vec<Draft> {
        self.since = None;
        self.handed_out = self.drafts.len();
        std::mem::take(&mut self.drafts)
    }

    /// They are stored, as far as they were handed out.
    pub(super) fn stored(&mut self) {
        self.handed_out = 0;
    }

    /// The store did not take these.
    pub(super) fn refused(&mut self, entries: Vec<Entry>) {
        let handed_out = std::mem::take(&mut self.handed_out);
        let back = entries.into_iter().take(handed_out).map(|entry| {
            let event = Arc::unwrap_or_clone(entry.event);
            (event.turn, event.kind)
        });
        self.drafts.splice(0..0, back);
        self.since = None;
    }

    /// Lets go of what is this turn's.
    pub(super) fn forget(&mut self, turn: &TurnId) {
        self.drafts.retain(|(of, _)| of.as_ref() != Some(turn));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.drafts.is_empty()
    }

    /// As `begun`, of a call whose beginning is held.
    pub(super) fn turn_of(&self, call: &CallId) -> Option<Option<TurnId>> {
        begun(&self.drafts, call)
    }

    /// Returns when it has to be stored.
    pub(super) fn due(&self) -> impl Future<Output = ()> + Send + use<> {
        let since = self.since;
        async move {
            match since {
                // On the heap: a session that rests holds nothing, and should cost little.
                Some(since) => Box::pin(sleep_until(since + MOMENT)).await,
                None => std::future::pending().await,
            }
        }
    }
}

/// The turn of a call that begins among these; `Some(None)` is one of no turn.
pub(super) fn begun(drafts: &[Draft], call: &CallId) -> Option<Option<TurnId>> {
    let begins =
        |(_, kind): &&Draft| matches!(kind, EventKind::Doing { call: of, .. } if of == call);
    drafts.iter().find(begins).map(|(turn, _)| turn.clone())
}

impl Actor {
    /// Stores what is held where nothing follows.
    pub(super) async fn store_held(&mut self) {
        if !self.held.is_empty() {
            self.flush().await;
        }
    }
}
