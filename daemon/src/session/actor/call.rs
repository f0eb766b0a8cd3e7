//! Calls as the actor sees them: those that no model made, and the record that a handler begins.

use super::Actor;
use crate::session::message::ByHand;
use crate::session::state::OpenCall;
use crate::session::{SessionResult, restart};
use crate::store::Durability;
use crate::toolbox::Via;
use protocol::event::EventKind;
use protocol::id::CallId;
use serde_json::{Map, Value};

impl Actor {
    pub(super) async fn begin_by_hand(&mut self, by_hand: ByHand) -> SessionResult<CallId> {
        let ByHand {
            name,
            arguments,
            parent,
            via,
            cancel,
        } = by_hand;
        if let Some(known) = self.left_open(parent.as_ref(), &name, &arguments, via) {
            self.by_hand.insert(known.clone(), cancel);
            return Ok(known);
        }
        let call = self.call_id(parent.as_ref());
        let turn = parent.as_ref().and_then(|p| self.turn_of(p));
        let doing = EventKind::Doing {
            call: call.clone(),
            message: None,
            name,
            arguments,
            id: None,
            parent,
            via: Some(via.to_owned()),
        };
        self.record(vec![(turn, doing)], Durability::Committed)
            .await?;
        self.by_hand.insert(call.clone(), cancel);
        Ok(call)
    }

    /// The same call as an earlier daemon left it: it waits for a person, and nothing of it ran.
    fn left_open(
        &self,
        parent: Option<&CallId>,
        name: &str,
        arguments: &Value,
        via: &str,
    ) -> Option<CallId> {
        if via != Via::Search.as_str() {
            return None;
        }
        let is_it = |open: &&OpenCall| {
            let same = open.name == name && open.arguments == *arguments;
            let here = self.by_hand.contains_key(&open.call);
            open.handed_on && open.parent.as_ref() == parent && same && !open.started && !here
        };
        let open = self.state.open_calls.iter().find(is_it);
        open.map(|open| open.call.clone())
    }

    fn call_id(&mut self, parent: Option<&CallId>) -> CallId {
        match parent {
            None => {
                // Streamed calls get their numbers when they are stored, which happens in the same commit as this one.
                let streamed = self.live.count_calls() as u64;
                format!("c{}", self.state.counters.calls + streamed + 1).into()
            }
            Some(parent) => {
                let made = self.children.entry(parent.clone()).or_default();
                *made += 1;
                format!("{parent}/{made}").into()
            }
        }
    }

    /// With all calls that it made.
    pub(super) fn cancel_by_hand(&mut self, call: &CallId) {
        let within = format!("{call}/");
        for (running, cancel) in &self.by_hand {
            if running == call || running.as_str().starts_with(&within) {
                cancel.cancel();
            }
        }
    }

    pub(super) async fn end_by_hand(
        &mut self,
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
    ) -> SessionResult<()> {
        self.by_hand.remove(&call);
        let turn = self.turn_of(&call);
        let drafts = restart::ending(&self.state, call, turn, result, ms);
        self.record(drafts, Durability::SyncSoon).await?;
        Ok(())
    }

    /// What a call's sub-session asks, and how that ends.
    pub(super) async fn relay(&mut self, call: CallId, kind: EventKind) -> SessionResult<()> {
        let turn = self.turn_of(&call);
        self.record(vec![(turn, kind)], Durability::SyncSoon)
            .await?;
        Ok(())
    }

    /// Whoever runs the handler waits for the disk first, so that no call is ever run again; the session goes on meanwhile,
    /// and calls that start together share a sync.
    pub(super) async fn call_started(&mut self, call: CallId) -> SessionResult<()> {
        let turn = self.turn_of(&call);
        self.record(
            vec![(turn, EventKind::CallStarted { call })],
            Durability::Committed,
        )
        .await?;
        Ok(())
    }
}
