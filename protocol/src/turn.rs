//! Turns: starting, steering, cancelling and waiting for them.

use crate::event::{Image, TurnStatus};
use crate::id::{CallId, QueuedId, SessionId, TurnId};
use crate::session::Recorded;
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};

/// `turn/start`'s result: the turn, or the place in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Started {
    /// The turn that began (or, for a repeated token, that had begun).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Set when it waits behind a running turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<QueuedId>,
    /// The event that records it.
    pub seq: u64,
}

/// `turn/wait`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ended {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub status: TurnStatus,
    /// The reply, or why there is none.
    pub reply: String,
    /// The event that records it.
    pub seq: u64,
}

/// `turn/cancel`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cancelled {
    /// The turn that is being stopped; none when nothing ran, which is no error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Where no turn ran: the calls that were made by hand and are being stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<CallId>,
}

resource! {
    /// Turns.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "turn", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "turn", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "turn", namespace_separator = "/")
    )]
    pub trait TurnRpc {
        /// Begins a turn and answers after its first event is stored. While another runs: queued with `queue: true`,
        /// else -32003. A repeated `token` returns the same turn. `@SERVER:URI` in the text puts a resource's text beneath it,
        /// except with `mentions: false`, which is for text that no person wrote.
        #[method(name = "start", param_kind = map, with_extensions)]
        async fn start(
            &self,
            session: SessionId,
            text: String,
            images: Option<Vec<Image>>,
            token: Option<String>,
            queue: Option<bool>,
            mentions: Option<bool>,
        ) -> Result<Started, ErrorObjectOwned>;

        /// A person's word into the running turn.
        #[method(name = "steer", param_kind = map, with_extensions)]
        async fn steer(&self, session: SessionId, text: String) -> Result<Recorded, ErrorObjectOwned>;

        /// Stops the running turn; also one that waits for an approval. Answers before it has ended. A turn that is asked for
        /// meanwhile begins when it has; prompts that waited before the cancel are held until the next turn has ended. With `turn`
        /// nothing else is stopped: the one that is meant may have ended, and the next one have begun.
        #[method(name = "cancel", param_kind = map, with_extensions)]
        async fn cancel(&self, session: SessionId, turn: Option<TurnId>) -> Result<Cancelled, ErrorObjectOwned>;

        /// Answers when the turn has ended, after all its notifications to this connection.
        #[method(name = "wait", param_kind = map, with_extensions)]
        async fn wait(&self, turn: TurnId) -> Result<Ended, ErrorObjectOwned>;
    }
}
