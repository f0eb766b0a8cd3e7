//! The log is the session: whatever prefix of a log a crash leaves, it loads, has a next step, and gives a conversation
//! that a strict vendor takes.

use super::conversation::History;
use super::restart::{self, Turn};
use super::state::{OpenCall, State, thought_of};
use super::{fork, restart::Plan};
use crate::provider::Message;
use crate::turn::step::{Step, next_step};
use proptest::prelude::*;
use protocol::approval::{Answer, Scope};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{CallId, SessionId, TurnId};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

const MAX_ROUNDS: u32 = 5;

/// What may happen next; each applies to the state it meets, or does nothing.
#[derive(Clone, Copy, Debug)]
enum Happening {
    Prompt,
    Queue,
    Steer,
    Say,
    Think,
    Call,
    CallWithOwnId,
    RoundEnds,
    HandOn,
    Ask,
    Answer,
    Start,
    Output,
    Succeed,
    Fail,
    Retry,
    Cancel,
    ProviderFails,
    Clear,
    Compact,
    Replace,
    Switch,
    NextRound,
    RunByHand,
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    prop::sample::select(vec![
        Prompt,
        Prompt,
        Queue,
        Steer,
        Say,
        Say,
        Say,
        Think,
        Call,
        Call,
        CallWithOwnId,
        RoundEnds,
        RoundEnds,
        HandOn,
        Ask,
        Ask,
        Answer,
        Start,
        Output,
        Succeed,
        Succeed,
        Fail,
        Fail,
        Retry,
        Cancel,
        ProviderFails,
        Clear,
        Compact,
        Replace,
        Switch,
        NextRound,
        NextRound,
        RunByHand,
    ])
}

impl Recorder {
    /// The open call that this one has handed on to.
    fn inner(&self, call: &CallId) -> Option<CallId> {
        let mut open = self.state.open_calls.iter();
        let inner = open.find(|open| open.parent.as_ref() == Some(call));
        inner.map(|open| open.call.clone())
    }
}

/// A log as the actor would write it.
struct Recorder {
    session: SessionId,
    state: State,
    log: Vec<Event>,
}

impl Recorder {
    fn new() -> Self {
        Self {
            session: "calm-otter-1".into(),
            state: State::default(),
            log: Vec::new(),
        }
    }

    fn add(&mut self, turn: Option<TurnId>, kind: EventKind) {
        let seq = self.log.len() as u64 + 1;
        let event = Event {
            session: self.session.clone(),
            seq,
            first_seq: None,
            at: seq,
            turn,
            kind,
        };
        self.state.apply(&event);
        self.log.push(event);
    }

    fn turn(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|t| t.id.clone())
    }

    fn end(&mut self, status: TurnStatus) {
        let Some(turn) = self.turn() else { return };
        for (of, kind) in restart::loose_ends(&self.state, &turn, &[], "cancelled") {
            self.add(of, kind);
        }
        self.add(
            Some(turn),
            EventKind::TurnEnded {
                status,
                reply: "why".into(),
            },
        );
    }

    fn round(&mut self) {
        let Step::CallModel(round) = next_step(&self.state, MAX_ROUNDS) else {
            return;
        };
        let message = self.state.next_message();
        self.add(self.turn(), EventKind::RoundStarted { round, message });
    }

    fn happen(&mut self, what: Happening) {
        let open_round = self
            .state
            .turn
            .as_ref()
            .and_then(|t| t.round.clone())
            .filter(|r| !r.whole);
        let call = self
            .state
            .pending_calls()
            .next()
            .map(|c| (c.call.clone(), c.started));
        let turn = self.turn();
        match (what, turn.is_some()) {
            (Happening::Prompt, false) => {
                let id = self.state.next_turn(&self.session);
                let text = "do it".to_owned();
                self.add(
                    Some(id),
                    EventKind::TurnStarted {
                        text,
                        images: vec![],
                        token: None,
                        client: None,
                    },
                );
                self.round();
            }
            (Happening::Queue, true) => {
                let (queued, text) = (self.state.next_queued(), "later".to_owned());
                self.add(
                    None,
                    EventKind::Queued {
                        queued,
                        text,
                        images: vec![],
                        token: None,
                        client: None,
                    },
                );
            }
            (Happening::Steer, true) => self.add(
                turn,
                EventKind::Steered {
                    text: "rather so".into(),
                },
            ),
            (Happening::Say | Happening::Think, true) => {
                let Some(round) = open_round else { return };
                let text = "a, b 😀".to_owned();
                let said = self.state.round_text().chars().count() as u64;
                let kind = match what {
                    Happening::Say => EventKind::Saying {
                        message: round.message,
                        offset: said,
                        text,
                    },
                    _ => EventKind::Thinking {
                        message: thought_of(&round.message),
                        offset: 0,
                        text,
                    },
                };
                self.add(turn, kind);
            }
            (Happening::Call | Happening::CallWithOwnId, true) => {
                let Some(round) = open_round else { return };
                let id = matches!(what, Happening::CallWithOwnId).then(|| "call_0".to_owned());
                let call = format!("c{}", self.state.counters.calls + 1).into();
                let arguments = if id.is_some() {
                    json!("not an object")
                } else {
                    json!({"path": "x"})
                };
                let name = "read".to_owned();
                let message = Some(round.message);
                self.add(
                    turn,
                    EventKind::Doing {
                        call,
                        message,
                        name,
                        arguments,
                        id,
                        parent: None,
                        via: None,
                        tell: false,
                    },
                );
            }
            (Happening::RoundEnds, true) => {
                let Some(round) = open_round else { return };
                let text = self.state.round_text().to_owned();
                if !text.is_empty() || round.calls == 0 {
                    self.add(
                        turn.clone(),
                        EventKind::Said {
                            message: round.message,
                            text,
                        },
                    );
                }
                if let Step::Finish(status, _) = next_step(&self.state, MAX_ROUNDS) {
                    self.end(status);
                }
            }
            (Happening::NextRound, true) => match next_step(&self.state, MAX_ROUNDS) {
                Step::CallModel(_) if open_round.is_none_or(|r| r.calls > 0) => self.round(),
                Step::Finish(status, _) => self.end(status),
                _ => {}
            },
            (Happening::HandOn, true) => {
                let Some((parent, false)) = call else { return };
                if self.inner(&parent).is_none() && self.state.approval_of(&parent).is_none() {
                    let call = format!("{parent}/1").into();
                    self.add(
                        turn,
                        EventKind::Doing {
                            call,
                            message: None,
                            name: "write".to_owned(),
                            arguments: json!({}),
                            id: None,
                            parent: Some(parent),
                            via: Some("search".to_owned()),
                            tell: false,
                        },
                    );
                }
            }
            (Happening::Ask, true) => {
                let Some((call, false)) = call else { return };
                let call = self.inner(&call).unwrap_or(call);
                if self.state.approval_of(&call).is_none() {
                    let approval = self.state.next_approval(&self.session);
                    let (tool, arguments, why) =
                        ("read".to_owned(), json!({}), "a rule".to_owned());
                    self.add(
                        turn,
                        EventKind::ApprovalAsked {
                            approval,
                            call,
                            tool,
                            arguments,
                            why,
                            patterns: Vec::new(),
                        },
                    );
                }
            }
            (Happening::Answer, true) => {
                let Some(approval) = self.state.approvals.keys().next().cloned() else {
                    return;
                };
                let (answer, scope, by) = (Answer::Allow, Scope::Call, "me".to_owned());
                self.add(
                    turn,
                    EventKind::ApprovalAnswered {
                        approval,
                        answer,
                        scope,
                        by,
                        reason: None,
                        pattern: None,
                    },
                );
            }
            (Happening::Start, true) => {
                if let Some((call, false)) = call {
                    let call = self.inner(&call).unwrap_or(call);
                    self.add(turn, EventKind::CallStarted { call });
                }
            }
            (Happening::Output, true) => {
                if let Some((call, true)) = call {
                    self.add(
                        turn,
                        EventKind::ToolOutput {
                            call,
                            offset: 0,
                            text: "x".into(),
                        },
                    );
                }
            }
            (Happening::Succeed | Happening::Fail, true) => {
                let Some((call, _)) = call else { return };
                let ok = matches!(what, Happening::Succeed);
                let result = Map::from_iter([("ok".to_owned(), Value::Bool(ok))]);
                if let Some(call) = self.inner(&call) {
                    let result = result.clone();
                    self.add(
                        turn.clone(),
                        EventKind::Done {
                            call,
                            result,
                            ms: 1,
                        },
                    );
                }
                self.add(
                    turn,
                    EventKind::Done {
                        call,
                        result,
                        ms: 1,
                    },
                );
            }
            (Happening::Retry, true) => {
                let Some(round) = open_round.filter(|r| r.calls == 0) else {
                    return;
                };
                let number = self.state.turn.as_ref().map_or(1, |t| t.rounds);
                self.add(
                    turn.clone(),
                    EventKind::Unsaid {
                        message: round.message,
                    },
                );
                self.add(
                    turn.clone(),
                    EventKind::Retrying {
                        attempt: 2,
                        after_ms: 1,
                        why: "cut".into(),
                    },
                );
                let message = self.state.next_message();
                self.add(
                    turn,
                    EventKind::RoundStarted {
                        round: number,
                        message,
                    },
                );
            }
            (Happening::Cancel, true) => self.end(TurnStatus::Cancelled),
            (Happening::ProviderFails, true) => self.end(TurnStatus::Failed),
            (Happening::Clear, false) => self.add(None, EventKind::Cleared),
            (Happening::Compact, false) => self.add(
                None,
                EventKind::Compacted {
                    summary: "so far".into(),
                },
            ),
            (Happening::Compact, true) if self.state.pending_calls().next().is_none() => {
                let turn = self.turn();
                let summary = "so far".into();
                self.add(turn, EventKind::Compacted { summary });
            }
            (Happening::Replace, false) => {
                let messages = vec![
                    json!({"role": "user", "content": "hello"}),
                    json!({"role": "assistant", "content": "", "tool_calls": [
                        {"id": "x", "name": "read", "arguments": {}}, {"id": "x", "name": "read", "arguments": {}}]}),
                    json!({"role": "tool", "tool_call_id": "x", "content": "plain"}),
                ];
                self.add(None, EventKind::Replaced { messages });
            }
            (Happening::Switch, _) => {
                self.add(
                    turn,
                    EventKind::ProviderSwitched {
                        name: "stub".into(),
                        model: None,
                    },
                );
            }
            (Happening::RunByHand, _) => {
                let call = format!("c{}", self.state.counters.calls + 1).into();
                let (name, arguments, via) =
                    ("execute".to_owned(), json!({}), Some("run".to_owned()));
                self.add(
                    None,
                    EventKind::Doing {
                        call,
                        message: None,
                        name,
                        arguments,
                        id: None,
                        parent: None,
                        via,
                        tell: true,
                    },
                );
            }
            _ => {}
        }
    }
}

fn log(happenings: &[Happening]) -> Vec<Event> {
    let mut recorder = Recorder::new();
    recorder.happen(Happening::Prompt);
    for what in happenings {
        recorder.happen(*what);
    }
    recorder.log
}

/// What the strictest vendors demand.
fn check(messages: &[Message]) -> Result<(), String> {
    let mut ids = HashSet::new();
    let mut owed: Vec<String> = Vec::new();
    for message in messages {
        match message {
            Message::Tool {
                tool_call_id,
                content,
            } => {
                if owed.is_empty() || owed.remove(0) != *tool_call_id {
                    return Err(format!(
                        "a result that no call before it asked for: {tool_call_id}"
                    ));
                }
                let value: Value = serde_json::from_str(content).map_err(|e| e.to_string())?;
                value.as_object().ok_or("a result that is no object")?;
            }
            _ if !owed.is_empty() => return Err(format!("calls without results: {owed:?}")),
            Message::Assistant {
                content,
                tool_calls,
                ..
            } => {
                if content.trim().is_empty() && tool_calls.is_empty() {
                    return Err("an empty assistant message".into());
                }
                for call in tool_calls {
                    if call.id.is_empty() || !ids.insert(call.id.clone()) {
                        return Err(format!("a call id twice: {}", call.id));
                    }
                    owed.push(call.id.clone());
                }
            }
            Message::User { content, .. } if content.is_empty() => {
                return Err("an empty user message".into());
            }
            Message::User { .. } | Message::System { .. } => {}
        }
    }
    let first_is_user = messages
        .first()
        .is_none_or(|m| matches!(m, Message::User { .. }));
    match (owed.is_empty(), first_is_user) {
        (true, true) => Ok(()),
        (false, _) => Err(format!("calls without results at the end: {owed:?}")),
        (_, false) => Err("the first message is not a user's".into()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_prefix_loads_has_a_next_step_and_a_conversation_for_every_vendor(
        happenings in prop::collection::vec(happening(), 1..60)
    ) {
        let log = log(&happenings);
        for end in 0..=log.len() {
            let mut state = State::fold(&log[..end]);
            let step = next_step(&state, MAX_ROUNDS);
            prop_assert_eq!(step == Step::Idle, state.turn.is_none());
            for history in [History::Session, History::Turn] {
                check(&state.conversation.messages(history)).map_err(TestCaseError::fail)?;
            }
            let Plan { turn, drafts } = restart::plan(&state, MAX_ROUNDS, restart::Waits::ForPeople);
            for (n, (turn, kind)) in drafts.into_iter().enumerate() {
                let seq = (end + n + 1) as u64;
                state.apply(&Event { session: "s".into(), seq, first_seq: None, at: seq, turn, kind });
            }
            match turn {
                Turn::Over => prop_assert!(state.turn.is_none() && state.open_calls.is_empty()),
                Turn::GoesOn => {
                    let Step::AwaitApproval(call, _) = next_step(&state, MAX_ROUNDS) else {
                        return Err(TestCaseError::fail("it waits for nobody"));
                    };
                    // What it handed on to waits with it; nothing else that is not the model's is left.
                    let of_it = |open: &OpenCall| open.by_model || open.parent.as_ref() == Some(&call);
                    prop_assert!(state.open_calls.iter().all(of_it));
                    prop_assert!(state.waiting_for(&call).is_some());
                }
            }
            check(&state.conversation.messages(History::Session)).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn a_fork_at_every_event_is_a_whole_session_of_its_own(happenings in prop::collection::vec(happening(), 1..40)) {
        let log = log(&happenings);
        let to = SessionId::from("warm-lark-2");
        for at in 0..=log.len() as u64 {
            let copy = fork::copy(&log, at, &to);
            let state = State::fold(&copy);
            prop_assert!(state.turn.is_none() && state.queue.is_empty());
            prop_assert!(copy.iter().zip(1..).all(|(e, n)| e.seq == n && e.session == to));
            prop_assert!(copy.iter().filter_map(|e| e.turn.as_ref()).all(|t| t.as_str().starts_with("warm-lark-2.")));
            check(&state.conversation.messages(History::Session)).map_err(TestCaseError::fail)?;
        }
    }

    #[test]
    fn folding_pieces_changes_nothing_of_the_state(happenings in prop::collection::vec(happening(), 1..60)) {
        let log = log(&happenings);
        let folded = folded(&log);
        let (plain, folded) = (State::fold(&log), State::fold(&folded));
        prop_assert_eq!(plain.conversation.messages(History::Session), folded.conversation.messages(History::Session));
        prop_assert_eq!(next_step(&plain, MAX_ROUNDS), next_step(&folded, MAX_ROUNDS));
        prop_assert_eq!(plain.seq, folded.seq);
    }
}

/// The log with the pieces of each whole message joined at the place of the last one.
fn folded(log: &[Event]) -> Vec<Event> {
    let whole = |m: &protocol::id::MessageId| {
        log.iter()
            .any(|e| matches!(&e.kind, EventKind::Said { message, .. } if message == m))
    };
    let mut out: Vec<Event> = Vec::new();
    for event in log {
        let EventKind::Saying { message, text, .. } = &event.kind else {
            out.push(event.clone());
            continue;
        };
        let before = out
            .iter()
            .position(|e| matches!(&e.kind, EventKind::Saying { message: m, .. } if m == message));
        let Some(at) = before.filter(|_| whole(message)) else {
            out.push(event.clone());
            continue;
        };
        let first = out.remove(at);
        let EventKind::Saying { text: head, .. } = &first.kind else {
            continue;
        };
        let text = format!("{head}{text}");
        let kind = EventKind::Saying {
            message: message.clone(),
            offset: 0,
            text,
        };
        out.push(Event {
            first_seq: Some(first.first()),
            kind,
            ..event.clone()
        });
    }
    out
}

#[test]
fn a_steer_during_a_reply_comes_after_it_also_when_its_pieces_are_folded() {
    use Happening::{RoundEnds, Say, Steer};
    let log = log(&[Say, Steer, Say, RoundEnds, Happening::NextRound, Say]);
    let roles = |log: &[Event]| {
        let messages = State::fold(log).conversation.messages(History::Session);
        messages
            .iter()
            .map(|m| matches!(m, Message::User { .. }))
            .collect::<Vec<_>>()
    };
    assert_eq!(roles(&log), [true, false, true, false]);
    assert_eq!(roles(&folded(&log)), [true, false, true, false]);
}
