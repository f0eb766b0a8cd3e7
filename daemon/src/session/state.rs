//! A session's state: a pure, total fold of its events. Must never do IO, read a clock or refuse an event.

mod call;
mod turn;

use super::conversation::{Assistant, Conversation, History};
use super::told::{Told, prompt_with};
use crate::turn::compaction::estimate;
use protocol::approval::{Answer, Approval, FileChange};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, CallId, MessageId, QueuedId, SessionId, TurnId};
use protocol::session::{Queued, SessionState};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Everything the log says, in the form that decisions need.
#[derive(Clone, Debug, Default)]
pub struct State {
    pub seq: u64,
    pub updated_at: u64,
    pub title: String,
    pub provider: Option<(String, Option<String>)>,
    /// The turn that runs or waits.
    pub turn: Option<Turn>,
    /// How the last one ended.
    pub last: Option<(TurnStatus, String)>,
    /// Whether the running one was asked for a summary, and for nothing else.
    pub sums_up: bool,
    pub conversation: Conversation,
    pub queue: Vec<Queued>,
    pub approvals: BTreeMap<ApprovalId, Approval>,
    pub answered: HashMap<ApprovalId, Answered>,
    pub grants: Vec<(String, String)>,
    /// What people ran since the model was last spoken to, oldest first.
    pub told: Vec<Told>,
    /// Calls without an end, in the order they were made, whoever made them.
    pub open_calls: Vec<OpenCall>,
    /// Tokens of `turn/start` and what they led to.
    pub tokens: HashMap<String, Token>,
    /// Ended turns and the event that says how.
    pub ended: HashMap<TurnId, u64>,
    pub usage: Option<Usage>,
    /// Tokens that the last summary left, as the first round trip after it said, or an estimate until then.
    pub floor: Option<u64>,
    pub counters: Counters,
}

/// The running turn.
#[derive(Clone, Debug)]
pub struct Turn {
    pub id: TurnId,
    pub started_seq: u64,
    /// Round trips begun.
    pub rounds: u32,
    /// The round trip under way or last done.
    pub round: Option<Round>,
    /// The last call and its failing result, and how often they came one after the other.
    pub repeat: Option<Repeat>,
}

#[derive(Clone, Debug)]
pub struct Round {
    pub message: MessageId,
    pub started_seq: u64,
    /// The provider's stream ended well.
    pub whole: bool,
    pub calls: u32,
}

#[derive(Clone, Debug)]
pub struct Repeat {
    pub name: String,
    pub arguments: Value,
    pub result: Map<String, Value>,
    pub times: u32,
}

/// A call that has not ended.
#[derive(Clone, Debug)]
pub struct OpenCall {
    pub call: CallId,
    pub turn: Option<TurnId>,
    pub name: String,
    pub arguments: Value,
    pub parent: Option<CallId>,
    /// Whether a model made it: only those hold up the turn.
    pub by_model: bool,
    /// Whether its parent does nothing but hand on to it, so that it can be made again as the same call.
    pub handed_on: bool,
    pub started: bool,
    /// Whether a program made it.
    pub by_program: bool,
    /// Whether its result goes to the model with the next prompt.
    pub tell: bool,
    /// What it makes of a file, told before its question.
    pub change: Option<FileChange>,
    /// What its program made, as far as that has ended.
    pub made: Vec<Made>,
}

/// A call of a program that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Made {
    pub tool: String,
    pub ok: bool,
    pub ms: u64,
}

#[derive(Clone, Debug)]
pub struct Answered {
    pub call: CallId,
    pub answer: Answer,
    pub by: String,
    pub reason: Option<String>,
}

/// What a prompt's token led to.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    Turn(TurnId, u64),
    Queued(QueuedId, u64),
}

#[derive(Clone, Copy, Debug)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub window: Option<u64>,
}

/// The highest numbers given out, so that no id is used twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    pub turns: u64,
    pub messages: u64,
    pub calls: u64,
    pub approvals: u64,
    pub queued: u64,
}

impl State {
    /// The state after a log.
    pub fn fold<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut state = Self::default();
        for event in events {
            state.apply(event);
        }
        state
    }

    /// What the session does now.
    pub fn status(&self) -> (SessionState, Option<String>) {
        match (&self.turn, &self.last) {
            _ if !self.approvals.is_empty() => (SessionState::Waiting, None),
            (Some(_), _) => (SessionState::Running, None),
            (
                None,
                Some((TurnStatus::Failed | TurnStatus::Interrupted | TurnStatus::Refused, why)),
            ) => (SessionState::Failed, Some(why.clone())),
            (None, _) => (SessionState::Idle, None),
        }
    }

    /// The question that waits for a call.
    pub fn approval_of(&self, call: &CallId) -> Option<&Approval> {
        self.approvals.values().find(|a| a.call == *call)
    }

    /// The same, or the one that waits for the call that it only hands on to.
    pub fn waiting_for(&self, call: &CallId) -> Option<&Approval> {
        let handed_on = |open: &&OpenCall| open.handed_on && open.parent.as_ref() == Some(call);
        let inner = || self.open_calls.iter().find(handed_on);
        self.approval_of(call)
            .or_else(|| self.approval_of(&inner()?.call))
    }

    /// The answer that a call got.
    pub fn answer_of(&self, call: &CallId) -> Option<&Answered> {
        self.answered.values().find(|a| a.call == *call)
    }

    /// Calls of the model that hold up the running turn.
    pub fn pending_calls(&self) -> impl Iterator<Item = &OpenCall> {
        let turn = self.turn.as_ref().map(|t| &t.id);
        self.open_calls
            .iter()
            .filter(move |c| c.by_model && turn.is_some() && c.turn.as_ref() == turn)
    }

    /// What the model has said in the round trip under way.
    pub fn round_text(&self) -> &str {
        let message = self
            .turn
            .as_ref()
            .and_then(|t| t.round.as_ref())
            .map(|r| &r.message);
        message
            .and_then(|m| self.conversation.assistant(m))
            .map_or("", Assistant::text)
    }

    pub fn next_turn(&self, session: &SessionId) -> TurnId {
        format!("{session}.t{}", self.counters.turns + 1).into()
    }

    pub fn next_approval(&self, session: &SessionId) -> ApprovalId {
        format!("{session}.a{}", self.counters.approvals + 1).into()
    }

    pub fn next_message(&self) -> MessageId {
        format!("m{}", self.counters.messages + 1).into()
    }

    pub fn next_queued(&self) -> QueuedId {
        format!("q{}", self.counters.queued + 1).into()
    }

    /// Applies one event. Every event applies to every state.
    pub fn apply(&mut self, event: &Event) {
        self.seq = self.seq.max(event.seq);
        self.updated_at = event.at;
        match &event.kind {
            EventKind::TurnStarted { .. }
            | EventKind::RoundStarted { .. }
            | EventKind::TurnEnded { .. } => {
                self.apply_turn(event);
            }
            EventKind::Saying { .. }
            | EventKind::Said { .. }
            | EventKind::Thinking { .. }
            | EventKind::Unsaid { .. }
            | EventKind::Signed { .. } => self.apply_message(event),
            EventKind::Doing { .. }
            | EventKind::Changing { .. }
            | EventKind::CallStarted { .. }
            | EventKind::Done { .. }
            | EventKind::ApprovalAsked { .. }
            | EventKind::ApprovalAnswered { .. }
            | EventKind::ApprovalWithdrawn { .. }
            | EventKind::Granted { .. } => self.apply_call(event),
            EventKind::Queued { .. } => self.enqueue(event),
            EventKind::Dequeued { queued } => self.queue.retain(|q| q.queued != *queued),
            EventKind::Steered { text } => {
                let told = std::mem::take(&mut self.told);
                let text = prompt_with(told, text.clone());
                self.conversation.steer(event.seq, text);
            }
            EventKind::Usage {
                input,
                output,
                cached,
                window,
            } => {
                if self.usage.is_none() {
                    self.floor = self.floor.map(|_| input + output);
                }
                self.usage = Some(Usage {
                    input: *input,
                    output: *output,
                    cached: *cached,
                    window: *window,
                });
            }
            EventKind::Renamed { title } => self.title.clone_from(title),
            EventKind::ProviderSwitched { .. }
            | EventKind::Compacted { .. }
            | EventKind::Cleared
            | EventKind::Replaced { .. } => self.apply_context(event),
            EventKind::ToolOutput { .. }
            | EventKind::Notice { .. }
            | EventKind::Retrying { .. }
            | EventKind::CommandOutput { .. }
            | EventKind::Unknown => {}
        }
    }

    fn apply_context(&mut self, event: &Event) {
        match &event.kind {
            EventKind::ProviderSwitched { name, model } => {
                self.provider = Some((name.clone(), model.clone()))
            }
            EventKind::Compacted { summary } => {
                self.conversation.compact(summary.clone());
                let left = self.conversation.messages(History::Session);
                self.floor = Some(estimate(&left));
            }
            EventKind::Cleared => {
                self.told.clear();
                self.conversation.restart();
            }
            EventKind::Replaced { messages } => {
                self.told.clear();
                self.conversation.replace(messages);
            }
            _ => {}
        }
        self.usage = None;
        if !matches!(event.kind, EventKind::Compacted { .. }) {
            self.floor = None;
        }
    }

    fn enqueue(&mut self, event: &Event) {
        let EventKind::Queued {
            queued,
            text,
            images,
            token,
            client,
        } = &event.kind
        else {
            return;
        };
        self.counters.queued = self.counters.queued.max(number(queued.as_str()));
        if let Some(token) = token {
            self.tokens
                .insert(token.clone(), Token::Queued(queued.clone(), event.seq));
        }
        self.queue.push(Queued {
            queued: queued.clone(),
            text: text.clone(),
            images: images.clone(),
            token: token.clone(),
            client: client.clone(),
            at: event.at,
        });
    }
}

/// The thought that goes with a message: an id of its own, so that each has its own offsets.
pub fn thought_of(message: &MessageId) -> MessageId {
    format!("t{}", message.as_str().trim_start_matches('m')).into()
}

/// The number in an id that this module made: its last run of digits before any `/`.
fn number(id: &str) -> u64 {
    let head = id.split('/').next().unwrap_or(id);
    let digits = head.bytes().rev().take_while(u8::is_ascii_digit).count();
    head[head.len() - digits..].parse().unwrap_or(0)
}

/// A title from the first line of a prompt.
pub fn title_of(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|l| !l.is_empty())
        .unwrap_or("");
    let mut title: String = line.chars().take(80).collect();
    if title.len() < line.len() {
        title.push('…');
    }
    title
}
