//! What the daemon tells a client unasked, beside the events of its subscriptions: the method of each, and its parameters.
//! Must never hold what a subscription sends.

use crate::daemon::{Clients, Trouble};
use crate::provider::ModelProgress;
use crate::tool::{ToolAsked, ToolCancelled};
use serde::Serialize;

/// The parameters of a notification.
pub trait Notification: Serialize {
    /// Its method.
    const METHOD: &'static str;
}

macro_rules! notifications {
    ($($(#[doc = $doc:literal])* $method:literal => $params:ty,)*) => {
        $(impl Notification for $params {
            const METHOD: &'static str = $method;
        })*

        /// All of them, for the document.
        #[cfg(feature = "schema")]
        pub(crate) fn describe(to: &mut crate::schema::Builder) {
            $(to.notification::<$params>($method, &[$($doc),*]);)*
        }
    };
}

notifications! {
    /// The store failed, which cannot be an event. To whoever is attached to the session.
    "session/trouble" => Trouble,
    /// Somebody attached to the session or left it. To whoever is attached.
    "session/clients" => Clients,
    /// How far a pull is, to whoever called `model/pull`. Each replaces the one before.
    "model/progress" => ModelProgress,
    /// A call of a tool that this client offered with `tool/provide`. It runs it and answers with `tool/answer`.
    "tool_asked" => ToolAsked,
    /// Nobody waits any more for a call that this client was asked to run: it was cancelled, say. An answer is refused.
    "tool_cancelled" => ToolCancelled,
}

/// The whole message.
#[derive(Debug, Serialize)]
pub struct Message<P> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

impl<P: Notification> Message<P> {
    /// Around its parameters.
    pub const fn new(params: P) -> Self {
        Self {
            jsonrpc: "2.0",
            method: P::METHOD,
            params,
        }
    }
}
