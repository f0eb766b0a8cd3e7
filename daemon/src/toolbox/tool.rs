//! A tool: what models read of it, and the handler that only the gate may call.

use super::{BoxFuture, CallPort};
use protocol::id::{CallId, SessionId};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A handler's object, or the message of what it raised. An object with `error` is a failure too.
pub type Outcome = Result<Map<String, Value>, String>;

/// Runs a tool. Dropping the future stops it; `Call::cancel` asks first.
pub trait Handler: Send + Sync {
    fn run<'a>(&'a self, call: Call, arguments: Map<String, Value>) -> BoxFuture<'a, Outcome>;
}

/// What a handler gets beside its arguments.
#[derive(Clone)]
pub struct Call {
    pub session: SessionId,
    pub call: CallId,
    /// The session's directory.
    pub cwd: PathBuf,
    /// The session's environment (the client's, through the allow-list): all that a child may see.
    pub env: Arc<BTreeMap<String, String>>,
    pub cancel: CancellationToken,
    /// Where output beyond the cap is kept whole, for the model to `read`.
    pub spill_dir: PathBuf,
    pub port: Arc<dyn CallPort>,
}
