//! Sessions: loading, the actor that is each one's only writer, and the handles others hold.
//! Must never know RPC, transport or a provider's vendor.

use crate::store::{Entry, StoreError};
use protocol::approval::{Answer, Approval, Scope};
use protocol::daemon::Change;
use protocol::event::Image;
use protocol::id::{ApprovalId, QueuedId, SessionId, TurnId};
use protocol::provider::{ModelInfo, ProviderInfo, ProviderInstance};
use protocol::session::{Export, ExportFormat, History, Queued, SearchHit, Session, SessionList};
use protocol::tool::{ToolList, ToolboxInfo};
use protocol::turn::{Cancelled, Ended, Started};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why something about a session was not done. `rpc` maps each to a code.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SessionError {
    #[error("no {what} {id:?}")]
    NotFound { what: &'static str, id: String },
    #[error(
        "session {session} is busy: turn {turn} is running; queue the prompt, steer, or cancel it"
    )]
    Busy { session: SessionId, turn: TurnId },
    #[error("approval {approval} was answered {answer:?} by {by}")]
    AlreadyAnswered {
        approval: ApprovalId,
        answer: Answer,
        by: String,
    },
    #[error("cursor {after} lies beyond the newest event, {newest}")]
    CursorBeyond { after: u64, newest: u64 },
    #[error("{0}")]
    Provider(String),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Invalid(String),
    #[error("the daemon is stopping: try again when it runs")]
    Stopping,
    #[error(transparent)]
    Store(#[from] StoreError),
}

pub type SessionResult<T> = Result<T, SessionError>;

#[derive(Clone, Debug, Default)]
pub struct NewSession {
    pub cwd: String,
    pub env: Option<BTreeMap<String, String>>,
    pub title: Option<String>,
    pub provider: Option<String>,
    pub model: Option<String>,
    pub toolbox: Option<Value>,
    pub agent: Option<String>,
    pub vars: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Default)]
pub struct Prompt {
    pub text: String,
    pub images: Vec<Image>,
    pub token: Option<String>,
    /// Who sends it, as named in `initialize`.
    pub client: Option<String>,
    pub when_busy: WhenBusy,
}

/// What becomes of a prompt while a turn runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenBusy {
    #[default]
    Refuse,
    Queue,
}

/// All sessions of this daemon; a cheap handle. Methods load a session when they need it.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<()>,
}

/// One client's view of one session: every event after its cursor, once, in order.
pub struct Subscriber {
    inner: Arc<()>,
}

impl Subscriber {
    /// The next event; waits for it. `Err` when the session was deleted or the store failed.
    pub async fn next(&mut self) -> SessionResult<Entry> {
        unimplemented!()
    }
    /// The session's trouble with the store, none when there is none: watched beside `next`, which borrows `self`.
    pub fn troubles(&self) -> tokio::sync::watch::Receiver<Option<Arc<str>>> {
        unimplemented!()
    }
    /// The number of the last event that `next` gave; before the first, where it started.
    pub fn cursor(&self) -> u64 {
        unimplemented!()
    }
}

#[allow(clippy::unused_async, unused_variables)]
impl Sessions {
    pub async fn create(&self, new: NewSession) -> SessionResult<Session> {
        unimplemented!()
    }
    pub async fn list(&self, query: crate::store::ListQuery) -> SessionResult<SessionList> {
        unimplemented!()
    }
    pub async fn get(&self, session: &SessionId) -> SessionResult<Session> {
        unimplemented!()
    }
    pub async fn rename(&self, session: &SessionId, title: String) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn archive(&self, session: &SessionId, archived: bool) -> SessionResult<()> {
        unimplemented!()
    }
    pub async fn delete(&self, session: &SessionId) -> SessionResult<()> {
        unimplemented!()
    }
    pub async fn fork(&self, session: &SessionId, at: Option<u64>) -> SessionResult<Session> {
        unimplemented!()
    }
    pub async fn history(
        &self,
        session: &SessionId,
        after: Option<u64>,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> SessionResult<History> {
        unimplemented!()
    }
    pub async fn search(&self, query: &str, limit: Option<u32>) -> SessionResult<Vec<SearchHit>> {
        unimplemented!()
    }
    pub async fn export(&self, session: &SessionId, format: ExportFormat) -> SessionResult<Export> {
        unimplemented!()
    }
    pub async fn clear(&self, session: &SessionId) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn replace(&self, session: &SessionId, messages: Vec<Value>) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn say(&self, session: &SessionId, text: String) -> SessionResult<u64> {
        unimplemented!()
    }
    /// `after: None` starts at the newest event. The count of attached clients falls when the subscriber is dropped.
    pub async fn attach(
        &self,
        session: &SessionId,
        after: Option<u64>,
    ) -> SessionResult<Subscriber> {
        unimplemented!()
    }
    pub async fn queue(&self, session: &SessionId) -> SessionResult<Vec<Queued>> {
        unimplemented!()
    }
    pub async fn unqueue(&self, session: &SessionId, queued: &QueuedId) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn start(&self, session: &SessionId, prompt: Prompt) -> SessionResult<Started> {
        unimplemented!()
    }
    pub async fn steer(&self, session: &SessionId, text: String) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn cancel(&self, session: &SessionId) -> SessionResult<Cancelled> {
        unimplemented!()
    }
    pub async fn wait(&self, turn: &TurnId) -> SessionResult<Ended> {
        unimplemented!()
    }
    pub async fn approvals(&self, session: Option<&SessionId>) -> SessionResult<Vec<Approval>> {
        unimplemented!()
    }
    pub async fn answer(
        &self,
        approval: &ApprovalId,
        answer: Answer,
        scope: Scope,
        reason: Option<String>,
        by: &str,
    ) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn tools(&self, session: &SessionId) -> SessionResult<ToolList> {
        unimplemented!()
    }
    pub async fn run_tool(
        &self,
        session: &SessionId,
        name: &str,
        arguments: Value,
    ) -> SessionResult<Map<String, Value>> {
        unimplemented!()
    }
    pub async fn toolboxes(&self, cwd: Option<&str>) -> SessionResult<Vec<ToolboxInfo>> {
        unimplemented!()
    }
    pub fn providers(&self) -> Vec<ProviderInfo> {
        unimplemented!()
    }
    pub async fn switch_provider(
        &self,
        session: &SessionId,
        name: &str,
        model: Option<String>,
    ) -> SessionResult<u64> {
        unimplemented!()
    }
    pub async fn models(&self, provider: &str) -> SessionResult<Vec<ModelInfo>> {
        unimplemented!()
    }
    pub fn instances(&self) -> Vec<ProviderInstance> {
        unimplemented!()
    }
    /// The conversation as the next round trip would send it, system prompt first.
    pub async fn conversation(
        &self,
        session: &SessionId,
    ) -> SessionResult<Vec<crate::provider::Message>> {
        unimplemented!()
    }
    /// Changes of all sessions; a receiver that lags sees `Lagged` and should list anew.
    pub fn watch(&self) -> tokio::sync::broadcast::Receiver<Change> {
        unimplemented!()
    }
    /// Loaded and, of those, running.
    pub fn loaded(&self) -> (u32, u32) {
        unimplemented!()
    }
    pub async fn stored(&self) -> SessionResult<u64> {
        unimplemented!()
    }
}
