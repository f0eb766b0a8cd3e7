//! What the events of calls, and of the questions about them, do to the state. As the fold itself: pure, and never
//! refuses one.

use super::{Answered, Made, OpenCall, Repeat, State, number};
use crate::session::told::Told;
use crate::toolbox::Via;
use protocol::approval::{Approval, FileChange};
use protocol::event::{Event, EventKind};
use protocol::id::CallId;
use serde_json::{Map, Value};

impl State {
    pub(super) fn apply_call(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Doing {
                call,
                message,
                name,
                arguments,
                id,
                ..
            } => {
                self.doing(event);
                if let Some(message) = message {
                    self.conversation
                        .doing(message, call, id.as_deref(), name, arguments);
                }
            }
            EventKind::CallStarted { call } => {
                self.call_started(call);
            }
            EventKind::Done { call, result, ms } => self.done(call, result, *ms),
            EventKind::Changing {
                call,
                size,
                diff,
                places,
            } => self.changing(
                call,
                FileChange {
                    size: *size,
                    diff: diff.clone(),
                    places: *places,
                },
            ),
            EventKind::ApprovalAsked { .. } => self.asked(event),
            EventKind::ApprovalAnswered {
                approval,
                answer,
                by,
                reason,
                ..
            } => {
                if let Some(asked) = self.approvals.remove(approval) {
                    let (call, by, reason) = (asked.call, by.clone(), reason.clone());
                    self.answered.insert(
                        approval.clone(),
                        Answered {
                            call,
                            answer: *answer,
                            by,
                            reason,
                        },
                    );
                }
            }
            EventKind::ApprovalWithdrawn { approval, .. } => {
                self.approvals.remove(approval);
            }
            EventKind::Granted { tool, pattern } => {
                self.grants.push((tool.clone(), pattern.clone()))
            }
            _ => {}
        }
    }

    fn doing(&mut self, event: &Event) {
        let EventKind::Doing {
            call,
            message,
            name,
            arguments,
            parent,
            via,
            tell,
            ..
        } = &event.kind
        else {
            return;
        };
        self.counters.calls = self.counters.calls.max(number(call.as_str()));
        if let (Some(message), Some(round)) =
            (message, self.turn.as_mut().and_then(|t| t.round.as_mut()))
            && round.message == *message
        {
            round.calls += 1;
        }
        self.open_calls.push(OpenCall {
            call: call.clone(),
            turn: event.turn.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
            parent: parent.clone(),
            by_model: message.is_some(),
            handed_on: via.as_deref() == Some(Via::Search.as_str()),
            started: false,
            tell: *tell,
            by_program: via.as_deref() == Some(Via::Code.as_str()),
            change: None,
            made: Vec::new(),
        });
    }

    /// A call within a call is what both do: from then on neither is run again.
    fn call_started(&mut self, call: &CallId) {
        let mut next = Some(call.clone());
        while let Some(call) = next {
            let Some(open) = self.open_mut(&call) else {
                return;
            };
            next = match open.started {
                true => None,
                false => open.parent.clone(),
            };
            open.started = true;
        }
    }

    fn open_mut(&mut self, call: &CallId) -> Option<&mut OpenCall> {
        self.open_calls.iter_mut().find(|c| c.call == *call)
    }

    fn done(&mut self, call: &CallId, result: &Map<String, Value>, ms: u64) {
        let Some(at) = self.open_calls.iter().position(|c| c.call == *call) else {
            return;
        };
        let open = self.open_calls.remove(at);
        self.approvals.retain(|_, a| a.call != *call);
        if open.by_program
            && let Some(program) = open
                .parent
                .as_ref()
                .and_then(|parent| self.open_mut(parent))
        {
            program.made.push(Made {
                tool: open.name.clone(),
                ok: result.get("ok") == Some(&Value::Bool(true)),
                ms,
            });
        }
        if open.tell {
            let told = Told::new(&open.name, &open.arguments, result);
            self.told.push(told);
        }
        if !open.by_model {
            return;
        }
        let times = self.count_repeat(open.name, open.arguments, result);
        self.conversation.done(call, result, times);
    }

    fn count_repeat(&mut self, name: String, arguments: Value, result: &Map<String, Value>) -> u32 {
        let times = self.repeats(&name, &arguments, result);
        if let Some(turn) = &mut self.turn {
            turn.repeat = (times > 0).then(|| Repeat {
                name,
                arguments,
                result: result.clone(),
                times,
            });
        }
        times
    }

    /// How often, with this result, the same call will have failed in the same way, one after the other; 0 for a success.
    pub fn repeats(&self, name: &str, arguments: &Value, result: &Map<String, Value>) -> u32 {
        let Some(turn) = &self.turn else { return 0 };
        if result.get("ok") != Some(&Value::Bool(false)) {
            return 0;
        }
        let same = |r: &&Repeat| r.name == name && r.arguments == *arguments && r.result == *result;
        turn.repeat.as_ref().filter(same).map_or(0, |r| r.times) + 1
    }

    /// Before the call's question; or beside it, where that was put before a restart.
    fn changing(&mut self, call: &CallId, change: FileChange) {
        let Some(open) = self.open_mut(call) else {
            return;
        };
        open.change = Some(change.clone());
        let name = open.name.clone();
        let own = |asked: &&mut Approval| asked.call == *call && asked.tool == name;
        if let Some(asked) = self.approvals.values_mut().find(own) {
            asked.change = Some(change);
        }
    }

    fn asked(&mut self, event: &Event) {
        let EventKind::ApprovalAsked {
            approval,
            call,
            tool,
            arguments,
            why,
            patterns,
        } = &event.kind
        else {
            return;
        };
        self.counters.approvals = self.counters.approvals.max(number(approval.as_str()));
        let change = self.open_mut(call).and_then(|open| open.change.take());
        let asked = Approval {
            approval: approval.clone(),
            session: event.session.clone(),
            call: call.clone(),
            tool: tool.clone(),
            arguments: arguments.clone(),
            why: why.clone(),
            patterns: patterns.clone(),
            change,
            asked_at: event.at,
        };
        self.approvals.insert(approval.clone(), asked);
    }
}
