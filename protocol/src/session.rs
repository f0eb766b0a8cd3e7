//! Sessions: what they are, how they are listed, and the methods on them.

use crate::approval::Approval;
use crate::event::{Event, Image};
use crate::expression::Expression;
use crate::id::{CallId, QueuedId, SessionId, TurnId};
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A session as `session/create`, `session/get` and `session/list` show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// Its title: given, or the first line of the first turn; empty before that.
    pub title: String,
    /// The directory it works in, absolute.
    pub cwd: String,
    /// What it does now.
    pub state: SessionState,
    /// Why, when `state` is `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The provider it talks to.
    pub provider: String,
    /// The model, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// In milliseconds since the Unix epoch.
    pub created_at: u64,
    /// The last event's time, in milliseconds since the Unix epoch.
    pub updated_at: u64,
    /// The newest event's number; 0 when nothing happened yet.
    pub seq: u64,
    /// Whether it is put away.
    #[serde(default)]
    pub archived: bool,
    /// The session it was forked from, or works for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<SessionId>,
    /// The call of `parent` that it works for; none for any session but a task's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<CallId>,
    /// The turn that runs or waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Questions that wait. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<Approval>,
    /// Prompts that wait. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<Queued>,
    /// Commands of people's own (`tool/run` with `tell`) whose output goes to the model with the next prompt. Not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<String>,
    /// What tools see as their environment. Not in lists.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Clients attached now. Not in lists.
    #[serde(default)]
    pub clients: u32,
    /// How its tools are shown, where it was made with an expression. Not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toolbox: Option<Expression>,
    /// The context's fill in percent, where the model's window is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<u8>,
}

/// What a session does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Nothing.
    Idle,
    /// A turn runs.
    Running,
    /// A turn waits for an approval.
    Waiting,
    /// The last turn failed or was interrupted; `reason` says how.
    Failed,
}

impl SessionState {
    /// The state as it stands on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        }
    }
}

/// A prompt that waits behind the running turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Queued {
    /// Its id.
    pub queued: QueuedId,
    /// The prompt.
    pub text: String,
    /// Pictures that go with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The caller's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Who sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// When, in milliseconds since the Unix epoch.
    #[serde(default)]
    pub at: u64,
}

/// One page of `session/list`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionList {
    /// Newest first.
    pub sessions: Vec<Session>,
    /// Give it as `cursor` for the next page; none on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Events of `session/history`, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct History {
    /// The events.
    pub events: Vec<Event>,
    /// Whether more lie beyond the limit.
    pub more: bool,
}

/// A place where a search matched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchHit {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: String,
    /// The event that matched.
    pub seq: u64,
    /// When, in milliseconds since the Unix epoch.
    pub at: u64,
    /// The text around the match; what matched stands between `[` and `]`.
    pub snippet: String,
}

/// What an attached client may do. It is a matter of one connection and one session: a connection that is attached to a
/// session as an observer, and not as a controller besides, is refused (-32005) what changes that session. Other
/// sessions, and connections that are not attached, are not touched by it: a role keeps a view from acting by mistake, and
/// is no wall between people, who are all the socket's owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Everything.
    #[default]
    Controller,
    /// See, and neither start, steer, cancel nor approve, run commands or tools, nor rename, archive, delete, clear,
    /// replace, speak or change the queue. Looking and forking, which leaves the session as it is, stay allowed.
    Observer,
}

/// `session/export`'s forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ExportFormat {
    /// For people.
    Markdown,
    /// The whole log: `{session, events}`.
    Json,
}

/// An exported session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Export {
    /// The document.
    pub text: String,
}

/// A method that changes the log says which event records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Recorded {
    /// The event's number.
    pub seq: u64,
}

/// The empty result `{}`: done, nothing to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Empty {}

resource! {
    /// Sessions.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "session", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "session", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "session", namespace_separator = "/")
    )]
    pub trait SessionRpc {
        /// Makes a session for a directory. `env` is the client's environment through its allow-list; `toolbox` is an expression
        /// (see `expression`): a malformed one, or one that names no toolbox, is -32602 with its `path`, and nothing is made.
        #[method(name = "create", param_kind = map, with_extensions)]
        #[allow(clippy::too_many_arguments)]
        async fn create(
            &self,
            cwd: String,
            env: Option<BTreeMap<String, String>>,
            title: Option<String>,
            provider: Option<String>,
            model: Option<String>,
            toolbox: Option<Value>,
            agent: Option<String>,
            vars: Option<BTreeMap<String, String>>,
            mcp_servers: Option<Map<String, Value>>,
        ) -> Result<Session, ErrorObjectOwned>;

        /// Names MCP servers for a session, in the place of those that were named for it before: an object of entries as in
        /// `mcp.json`, by name, in which nothing stands for anything else. They are the session's alone (and its tasks'), start
        /// when tools are needed, end with the session's time in memory, and are kept with it. `session/create` takes the same.
        #[method(name = "join", param_kind = map, with_extensions)]
        async fn join(
            &self,
            session: SessionId,
            mcp_servers: Map<String, Value>,
        ) -> Result<Empty, ErrorObjectOwned>;

        /// Sessions, newest first, paged. `query` matches id and title.
        #[method(name = "list", param_kind = map)]
        async fn list(
            &self,
            cwd: Option<String>,
            query: Option<String>,
            archived: Option<bool>,
            limit: Option<u32>,
            cursor: Option<String>,
        ) -> Result<SessionList, ErrorObjectOwned>;

        /// One session with its approvals and queue.
        #[method(name = "get", param_kind = map)]
        async fn get(&self, session: SessionId) -> Result<Session, ErrorObjectOwned>;

        /// Gives it another title.
        #[method(name = "rename", param_kind = map, with_extensions)]
        async fn rename(&self, session: SessionId, title: String)
        -> Result<Recorded, ErrorObjectOwned>;

        /// Puts it away, or with `archived: false` takes it back.
        #[method(name = "archive", param_kind = map, with_extensions)]
        async fn archive(
            &self,
            session: SessionId,
            archived: Option<bool>,
        ) -> Result<Empty, ErrorObjectOwned>;

        /// Deletes it with all its events. Deleting an unknown one succeeds.
        #[method(name = "delete", param_kind = map, with_extensions)]
        async fn delete(&self, session: SessionId) -> Result<Empty, ErrorObjectOwned>;

        /// A new session with the events up to and including `at` (default: all).
        #[method(name = "fork", param_kind = map)]
        async fn fork(&self, session: SessionId, at: Option<u64>) -> Result<Session, ErrorObjectOwned>;

        /// Events after `after` and before `before`, at most `limit` (default 1,000); with `before` alone the newest of them.
        #[method(name = "history", param_kind = map)]
        async fn history(
            &self,
            session: SessionId,
            after: Option<u64>,
            before: Option<u64>,
            limit: Option<u32>,
        ) -> Result<History, ErrorObjectOwned>;

        /// Full-text search over all sessions: words, `"phrases"`, `prefix*`.
        #[method(name = "search", param_kind = map)]
        async fn search(
            &self,
            query: String,
            limit: Option<u32>,
        ) -> Result<Vec<SearchHit>, ErrorObjectOwned>;

        /// The whole session as a document.
        #[method(name = "export", param_kind = map)]
        async fn export(
            &self,
            session: SessionId,
            format: ExportFormat,
        ) -> Result<Export, ErrorObjectOwned>;

        /// The model forgets what came before; the log keeps it.
        #[method(name = "clear", param_kind = map, with_extensions)]
        async fn clear(&self, session: SessionId) -> Result<Recorded, ErrorObjectOwned>;

        /// The model sees these messages instead of what came before; the log keeps it.
        #[method(name = "replace", param_kind = map, with_extensions)]
        async fn replace(
            &self,
            session: SessionId,
            messages: Vec<Value>,
        ) -> Result<Recorded, ErrorObjectOwned>;

        /// Text for everybody attached.
        #[method(name = "say", param_kind = map, with_extensions)]
        async fn say(&self, session: SessionId, text: String) -> Result<Recorded, ErrorObjectOwned>;

        /// Every event after `after` (default: only new ones), then each as it happens. A cursor beyond the newest event
        /// is -32006. `session/detach` with the subscription's id ends it.
        #[subscription(name = "attach" => "event", unsubscribe = "detach", item = Event, param_kind = map, with_extensions)]
        async fn attach(
            &self,
            session: SessionId,
            after: Option<u64>,
            role: Option<Role>,
        ) -> jsonrpsee::core::SubscriptionResult;
    }
}

resource! {
    /// What waits behind the running turn.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "queue", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "queue", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "queue", namespace_separator = "/")
    )]
    pub trait QueueRpc {
        /// The waiting prompts in order.
        #[method(name = "list", param_kind = map)]
        async fn queue_list(&self, session: SessionId) -> Result<Vec<Queued>, ErrorObjectOwned>;

        /// Takes one out.
        #[method(name = "remove", param_kind = map, with_extensions)]
        async fn queue_remove(
            &self,
            session: SessionId,
            queued: QueuedId,
        ) -> Result<Recorded, ErrorObjectOwned>;
    }
}
