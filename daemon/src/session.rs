//! Sessions: loading, the actor that is each one's only writer, and the handles others hold.
//! Must never know RPC, transport or a provider's vendor.

mod actor;
mod agent;
pub mod conversation;
mod export;
mod fork;
mod live;
mod manager;
mod message;
mod name;
mod port;
#[cfg(test)]
mod prefix_tests;
mod restart;
pub mod services;
mod shown;
pub mod state;
mod subscriber;
mod task;
mod told;

pub use manager::Sessions;
pub use message::Answering;
pub use subscriber::Subscriber;

use crate::store::{SessionRow, StoreError};
use protocol::approval::Answer;
use protocol::event::Image;
use protocol::expression::{BadExpression, Expression};
use protocol::id::{ApprovalId, SessionId, TurnId};
use protocol::session::Session;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

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
    #[error(transparent)]
    Toolbox(#[from] BadExpression),
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
    pub toolbox: Option<Expression>,
    pub agent: Option<String>,
    pub vars: Option<BTreeMap<String, String>>,
    /// MCP servers of its own, by name.
    pub mcp_servers: Map<String, Value>,
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

/// Who reads what a call by hand gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    Caller,
    /// The model too, with the next prompt.
    Model,
}

/// A row as clients see it; what only a loaded session knows is empty.
fn session_of(row: SessionRow) -> Session {
    Session {
        id: row.id,
        title: row.title,
        cwd: row.cwd,
        state: row.state,
        reason: row.reason,
        provider: row.provider,
        model: row.model,
        created_at: row.created_at,
        updated_at: row.updated_at,
        seq: row.seq,
        archived: row.archived,
        parent: row.parent,
        task: row.task,
        turn: None,
        approvals: Vec::new(),
        queue: Vec::new(),
        untold: Vec::new(),
        env: BTreeMap::new(),
        clients: 0,
        toolbox: None,
        context_percent: None,
    }
}
