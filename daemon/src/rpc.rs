//! The methods: each validates, makes one call on a handle, and maps what comes back.
//! The only place that turns errors of the daemon into JSON-RPC errors; must never decide anything else.

mod approval;
mod attach;
mod attachments;
mod command;
mod daemon;
mod detach;
mod discover;
mod error;
mod model;
mod provide;
mod provider;
mod session;
mod tool;
mod turn;
mod validation;

use crate::command::Commands;
use crate::model::Models;
use crate::session::Sessions;
use crate::shutdown::Shutdown;
use crate::transport::{Connections, Context};
use crate::workspace::trust::Trusts;
use attachments::Attachments;
use jsonrpsee::Extensions;
use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::Methods;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::approval::{ApprovalRpcServer, TrustRpcServer};
use protocol::command::CommandRpcServer;
use protocol::daemon::HandshakeRpcServer;
use protocol::error::{ErrorKind, RpcError};
use protocol::provider::{AgentRpcServer, ModelRpcServer, ProviderRpcServer};
use protocol::session::QueueRpcServer;
use protocol::tool::{ToolRpcServer, ToolboxRpcServer};
use protocol::turn::TurnRpcServer;
use protocol::validation::ValidationRpcServer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Methods that end something: taken even from a client that has all its calls in flight.
pub const URGENT: &[&str] = &[
    "turn/cancel",
    "approval/answer",
    "session/detach",
    "daemon/unwatch",
    "daemon/shutdown",
];

/// What the methods work on.
#[derive(Clone)]
pub struct Parts {
    /// All sessions.
    pub sessions: Sessions,
    /// Slash commands.
    pub commands: Commands,
    /// Local models.
    pub models: Models,
    /// Decisions about directories.
    pub trusts: Trusts,
    /// How many clients there are.
    pub connections: Connections,
    /// The daemon's end.
    pub shutdown: Shutdown,
    /// What the daemon says of itself.
    pub about: About,
}

/// What the daemon says of itself.
#[derive(Clone, Debug)]
pub struct About {
    /// In milliseconds since the Unix epoch.
    pub started_at: u64,
    /// The live socket.
    pub socket: PathBuf,
    /// The store.
    pub store: PathBuf,
    /// Variables of its own that name a server, and which.
    pub servers: BTreeMap<String, String>,
}

/// All methods of the protocol.
pub fn methods(parts: Parts) -> Result<Methods, RegisterMethodError> {
    let rpc = Rpc(Arc::new(Shared {
        parts,
        attachments: Attachments::default(),
    }));
    let mut methods = Methods::new();
    methods.merge(HandshakeRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(daemon::module(&rpc)?)?;
    methods.merge(session::module(&rpc)?)?;
    methods.merge(QueueRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(TurnRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ToolRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ToolboxRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(CommandRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ProviderRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ModelRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(AgentRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ApprovalRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(TrustRpcServer::into_rpc(rpc.clone()))?;
    methods.merge(ValidationRpcServer::into_rpc(rpc))?;
    methods.merge(discover::module()?)?;
    Ok(methods)
}

/// The one implementation of all traits; a cheap handle.
#[derive(Clone)]
struct Rpc(Arc<Shared>);

struct Shared {
    parts: Parts,
    attachments: Attachments,
}

impl Rpc {
    fn sessions(&self) -> &Sessions {
        &self.0.parts.sessions
    }
}

/// The connection that a call came over.
fn caller(extensions: &Extensions) -> Result<&Arc<Context>, ErrorObjectOwned> {
    extensions
        .get::<Arc<Context>>()
        .ok_or_else(|| RpcError::new(ErrorKind::Internal, "a call came over no connection").into())
}
