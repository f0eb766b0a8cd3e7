//! What the rest of the daemon says to a session's actor, and the handle that says it. Must never hold state.

use super::live::{Live, Piece};
use super::subscriber::Feed;
use super::{Prompt, SessionResult};
use crate::provider::{Message, Provider};
use crate::toolbox::Verdict;
use crate::toolbox::tool::{Access, Change};
use crate::turn::{Work, round::RoundEnd};
use protocol::approval::{Answer, Approval, Scope};
use protocol::event::{EventKind, Level, TurnStatus};
use protocol::id::{ApprovalId, CallId, MessageId, QueuedId, SessionId, TurnId};
use protocol::provider::ProviderInstance;
use protocol::session::{Queued, Session};
use protocol::turn::{Cancelled, Ended, Started};
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// How many messages wait for an actor; who sends one more waits.
pub const MAILBOX: usize = 64;

pub type Reply<T> = oneshot::Sender<SessionResult<T>>;

/// Whether something may be recorded while a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    Anytime,
    WhenIdle,
}

/// A retry of the round trip under way.
pub struct Again {
    pub attempt: u32,
    pub after_ms: u64,
    pub why: String,
}

/// A call that no model made.
pub struct ByHand {
    pub name: String,
    pub arguments: Value,
    pub parent: Option<CallId>,
    pub via: &'static str,
    /// Whether its result goes to the model with the next prompt.
    pub tell: bool,
    /// Fires when the session's work is cancelled.
    pub cancel: CancellationToken,
}

/// When a handler may begin whose beginning was told to the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begins {
    Now,
    /// When all that was stored is on the disk.
    OnceSynced,
}

/// An answer to a question.
pub struct Answering {
    pub approval: ApprovalId,
    pub answer: Answer,
    pub scope: Scope,
    pub reason: Option<String>,
    /// What a yes covers, where the person said it; checked before.
    pub pattern: Option<String>,
    pub by: String,
}

/// A question to people.
pub struct Asking {
    pub call: CallId,
    pub tool: String,
    pub arguments: Value,
    pub why: String,
    /// See `approval_asked`.
    pub patterns: Vec<String>,
}

pub enum Msg {
    // From clients, through `Sessions`.
    Start(Prompt, Reply<Started>),
    Steer(String, Reply<u64>),
    Cancel(Option<TurnId>, Reply<Cancelled>),
    CancelCall(CallId, Reply<()>),
    Wait(TurnId, Reply<Ended>),
    Record(EventKind, Guard, Reply<u64>),
    Answer(Answering, Reply<u64>),
    Unqueue(QueuedId, Reply<u64>),
    Switch {
        name: String,
        model: Option<String>,
        provider: Arc<dyn Provider>,
        reply: Reply<u64>,
    },
    View(Reply<Session>),
    Queue(Reply<Vec<Queued>>),
    Approvals(Reply<Vec<Approval>>),
    Conversation(Reply<Vec<Message>>),
    Grants(Reply<Vec<(String, String)>>),
    Instance(Reply<Option<ProviderInstance>>),
    // From the running turn and its calls.
    Next(Reply<Work>),
    Built(Arc<dyn Provider>),
    RoundDone(RoundEnd, Reply<Work>),
    Again(Again, Reply<MessageId>),
    Compacted {
        summary: String,
        usage: Option<(u64, u64, u64)>,
        reply: Reply<Vec<Message>>,
    },
    CallDone {
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
        reply: Reply<Work>,
    },
    End(TurnStatus, String, Reply<()>),
    ByHand(ByHand, Reply<CallId>),
    ByHandDone {
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
        reply: Reply<()>,
    },
    Ask(Asking, oneshot::Sender<Result<Verdict, String>>),
    Started(CallId, Access, Reply<Begins>),
    /// Answers when all that was said before is stored.
    Recorded(Reply<()>),
    /// Something of a call's sub-session that is this session's too.
    Relay(CallId, EventKind, Reply<()>),
    // From the manager.
    Archive(bool, Reply<()>),
    /// What the session is made of from now on, as the store keeps it.
    Settings(String, Reply<()>),
    /// Answers when no turn runs but such as wait for a person.
    Quiet(oneshot::Sender<()>),
    /// Ends at once; a turn that waits for a person is left as it is, any other is interrupted.
    Halt(oneshot::Sender<()>),
    /// Ends at once and writes nothing more: the session is being deleted.
    Vanish(oneshot::Sender<()>),
}

/// A cheap way to speak to one session's actor.
#[derive(Clone)]
pub struct Handle {
    pub id: SessionId,
    /// Boxed: a channel keeps room for many messages, and a session that rests should cost little.
    pub mailbox: mpsc::Sender<Box<Msg>>,
    pub feed: Arc<Feed>,
    pub live: Arc<Live>,
    pub shared: Arc<super::actor::Shared>,
}

impl Handle {
    /// Sends a message and waits for its answer.
    pub async fn ask<T>(&self, message: impl FnOnce(Reply<T>) -> Msg) -> SessionResult<T> {
        let (reply, answer) = oneshot::channel();
        self.mailbox
            .send(Box::new(message(reply)))
            .await
            .map_err(|_| self.feed.over(&self.id))?;
        answer.await.map_err(|_| self.feed.over(&self.id))?
    }

    /// A piece of what a running call prints. Never waits.
    pub fn output(&self, call: &CallId, text: &str) {
        self.live.push(Piece::ToolOutput {
            call: call.clone(),
            text: text.to_owned(),
        });
    }

    /// What a call makes of a file. Never waits.
    pub fn changing(&self, call: &CallId, change: Change) {
        self.live.push(Piece::Changing {
            call: call.clone(),
            change,
        });
    }

    /// Something people should know. Never waits.
    pub fn notice(&self, level: Level, text: &str) {
        self.live.push(Piece::Notice {
            level,
            text: text.to_owned(),
        });
    }

    pub async fn tell(&self, message: impl FnOnce(oneshot::Sender<()>) -> Msg) {
        let (reply, answer) = oneshot::channel();
        if self.mailbox.send(Box::new(message(reply))).await.is_ok() {
            let _ = answer.await;
        }
    }
}
