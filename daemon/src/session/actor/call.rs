//! Calls as the actor sees them: those that no model made, and the record that a handler begins.

use super::{Actor, Draft};
use crate::session::message::{Begins, ByHand, MAILBOX, Msg, Reply};
use crate::session::state::OpenCall;
use crate::session::{SessionResult, restart};
use crate::store::Durability;
use crate::toolbox::Via;
use crate::toolbox::result::{DEEPEST, flatten};
use crate::toolbox::tool::Access;
use protocol::event::EventKind;
use protocol::id::CallId;
use serde_json::{Map, Value};

impl Actor {
    pub(super) async fn begin_by_hand(&mut self, by_hand: ByHand) -> SessionResult<CallId> {
        let ByHand {
            name,
            mut arguments,
            parent,
            via,
            tell,
            cancel,
        } = by_hand;
        if let Some(known) = self.left_open(parent.as_ref(), &name, &arguments, via) {
            self.by_hand.insert(known.clone(), cancel);
            return Ok(known);
        }
        flatten(&mut arguments, DEEPEST);
        let call = self.call_id(parent.as_ref());
        let of_program = via == Via::Code.as_str();
        let turn = parent.as_ref().and_then(|p| self.turn_of(p));
        let doing = EventKind::Doing {
            call: call.clone(),
            message: None,
            name,
            arguments,
            id: None,
            parent,
            via: Some(via.to_owned()),
            tell,
        };
        match of_program {
            // Nobody but the daemon knows it before its hooks, its question or its start are stored after it.
            true => self.held.push((turn, doing)),
            false => {
                self.record(vec![(turn, doing)], Durability::Committed)
                    .await?;
            }
        }
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
        let of_program = self.is_of_program(&call);
        let drafts = restart::ending(&self.state, call, turn, result, ms);
        // The program alone is told, and whatever it does next is stored after this. What it printed comes before.
        if of_program && drafts.len() == 1 && self.live.is_empty() {
            drafts.into_iter().for_each(|draft| self.held.push(draft));
            return Ok(());
        }
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

    /// Those that start together share a commit. Whoever runs the handler then waits for the disk, so that also after a loss of
    /// power no call is run again that may have changed something; the session goes on meanwhile.
    pub(super) async fn call_started(
        &mut self,
        call: CallId,
        access: Access,
        reply: Reply<Begins>,
    ) {
        let mut starting = Vec::new();
        self.begin_call(call, access, reply, &mut starting);
        while (1..MAILBOX).contains(&starting.len())
            && let Ok(message) = self.mailbox.try_recv()
        {
            match *message {
                Msg::Started(call, access, reply) => {
                    self.begin_call(call, access, reply, &mut starting);
                }
                Msg::ByHand(by_hand, reply) if by_hand.via == Via::Code.as_str() => {
                    super::send(reply, self.begin_by_hand(by_hand).await);
                }
                other => {
                    self.next = Some(Box::new(other));
                    break;
                }
            }
        }
        if starting.is_empty() {
            return;
        }
        let (drafts, replies): (Vec<Draft>, Vec<_>) = starting.into_iter().unzip();
        let recorded = self.record(drafts, Durability::SyncSoon).await;
        for reply in replies {
            let answer = recorded.as_ref().map(|_| Begins::OnceSynced);
            super::send(reply, answer.map_err(|error| error.clone().into()));
        }
    }

    /// What a program's call that changes nothing leaves is only its record: nobody else has seen its result before that is
    /// stored, and the program is never run again.
    fn begin_call(
        &mut self,
        call: CallId,
        access: Access,
        reply: Reply<Begins>,
        starting: &mut Vec<(Draft, Reply<Begins>)>,
    ) {
        let harmless =
            matches!(access, Access::Nothing | Access::Read) && self.is_of_program(&call);
        let draft = (self.turn_of(&call), EventKind::CallStarted { call });
        if harmless {
            self.held.push(draft);
            super::send(reply, Ok(Begins::Now));
        } else {
            starting.push((draft, reply));
        }
    }

    pub(super) async fn recorded(&mut self) -> SessionResult<()> {
        if !self.held.is_empty() {
            self.record(Vec::new(), Durability::Committed).await?;
        }
        Ok(())
    }

    fn is_of_program(&self, call: &CallId) -> bool {
        let open = self.state.open_calls.iter().find(|c| c.call == *call);
        open.map_or_else(|| self.held.turn_of(call).is_some(), |open| open.by_program)
    }
}
