//! Providers: what connects a session to a model, and the table of those built in.
//! Vendor types stay inside each provider's file; retrying is the turn's business.

pub mod registry;
pub mod settings;

mod anthropic;
#[cfg(test)]
mod conformance;
mod failure;
mod fit;
mod http;
pub(crate) mod key;
mod local;
mod ollama;
mod openai;
mod pace;
mod place;
mod plugin;
mod preset;
mod responses;
mod script;
mod sse;
mod stream;
mod stub;
#[cfg(test)]
mod testing;
mod vendor;
mod vertex;

use protocol::tool::Definition;
use registry::Builtin;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One message of the conversation, in the interface's form on the wire too (`role`, `content`, ...).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System {
        content: String,
    },
    User {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<protocol::event::Image>,
    },
    Assistant {
        content: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Signed blocks of the provider named in each, for that provider only, in tool rounds of the same turn.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        signed: Vec<Signed>,
    },
    Tool {
        tool_call_id: String,
        /// The result as a JSON string.
        content: String,
    },
}

/// A call that the model made earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Signed {
    pub provider: String,
    pub block: Value,
}

/// What a provider tells while it fetches.
#[derive(Clone, Debug, PartialEq)]
pub enum ProviderEvent {
    Saying(String),
    Thinking(String),
    /// A complete call. Arguments are as the vendor sent them, parsed when they are JSON, else a string.
    Doing {
        id: Option<String>,
        name: String,
        arguments: Value,
    },
    Usage {
        input: u64,
        output: u64,
        cached: u64,
    },
    Signed(Value),
}

/// Why a round trip failed. The message is shown to people as it is.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ProviderError {
    pub class: ErrorClass,
    pub message: String,
}

impl ProviderError {
    /// Whether the conversation was too long for the model, as far as the server's words tell.
    pub fn is_too_long(&self) -> bool {
        failure::is_too_long(self)
    }
}

/// What the retry policy branches on.
#[derive(Clone, Debug, PartialEq)]
pub enum ErrorClass {
    /// An HTTP status, with `retry-after` in milliseconds where it was sensible.
    Status {
        code: u16,
        retry_after_ms: Option<u64>,
    },
    /// The connection could not be made, or broke off, or ended without an end mark.
    Dropped,
    /// No data for longer than the idle limit.
    Stalled,
    /// An error event inside the stream; `retryable` by what the vendor says of it.
    Reported { retryable: bool },
    /// Anything that trying again would not mend.
    Fatal,
}

/// One round trip: the conversation (system prompt first) and the tools as presented.
pub struct Request<'a> {
    pub messages: &'a [Message],
    pub tools: &'a [Definition],
}

/// A model's connection. Dropping the future of `fetch` cancels it.
pub trait Provider: Send + Sync {
    /// The name that it was built by; what it signs is marked with that.
    fn name(&self) -> &str {
        ""
    }
    fn model(&self) -> Option<&str> {
        None
    }
    /// The context window in tokens, where it is known.
    fn window(&self) -> Option<u64> {
        None
    }
    /// Streams one round trip into `emit`, in order, and ends with exactly one of Ok and Err.
    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>>;
    /// What the provider's server offers.
    fn models(&self) -> BoxFuture<'_, Result<Vec<protocol::provider::ModelInfo>, ProviderError>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// Those built in besides the vendors of `preset.rs`. Another one: its file, its `mod`, and a line here.
const BUILTIN: &[Builtin] = &[
    stub::BUILTIN,
    script::BUILTIN,
    vertex::BUILTIN,
    local::builtin("candle"),
    local::builtin("llama"),
    local::builtin("ggml"),
    local::builtin("llama2"),
];
