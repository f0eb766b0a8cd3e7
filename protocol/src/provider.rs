//! Providers and models: listing, switching, fetching.

use crate::id::SessionId;
use crate::session::{Empty, Recorded};
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A provider by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderInfo {
    /// The name for `-p`.
    pub name: String,
    /// Where it comes from: `builtin`, `config` (one's own), `plugin NAME`, `executable`.
    pub source: String,
    /// The model it uses when none is named, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_model: Option<String>,
}

/// A live instance: a session and the provider it talks to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderInstance {
    /// The session.
    pub session: SessionId,
    /// The provider.
    pub name: String,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Whether a round trip runs now.
    pub in_flight: bool,
    /// The vendor asked for a pause until then, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_off_until: Option<u64>,
}

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    /// Its name.
    pub name: String,
    /// Its context window in tokens, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// Its size on the disk in bytes, for local ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Providers.
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(
    all(feature = "server", feature = "client"),
    rpc(server, client, namespace = "provider", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "server", not(feature = "client")),
    rpc(server, namespace = "provider", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "client", not(feature = "server")),
    rpc(client, namespace = "provider", namespace_separator = "/")
)]
pub trait ProviderRpc {
    /// The names that `-p` takes.
    #[method(name = "list", param_kind = map)]
    async fn list(&self) -> Result<Vec<ProviderInfo>, ErrorObjectOwned>;

    /// Talks to another provider from the next round trip on; the conversation is kept.
    #[method(name = "switch", param_kind = map, with_extensions)]
    async fn switch(
        &self,
        session: SessionId,
        name: String,
        model: Option<String>,
    ) -> Result<Recorded, ErrorObjectOwned>;

    /// What the provider's server offers.
    #[method(name = "models", param_kind = map)]
    async fn models(&self, name: String) -> Result<Vec<ModelInfo>, ErrorObjectOwned>;

    /// Live instances.
    #[method(name = "instances", param_kind = map)]
    async fn instances(&self) -> Result<Vec<ProviderInstance>, ErrorObjectOwned>;
}

/// Local models.
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(
    all(feature = "server", feature = "client"),
    rpc(server, client, namespace = "model", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "server", not(feature = "client")),
    rpc(server, namespace = "model", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "client", not(feature = "server")),
    rpc(client, namespace = "model", namespace_separator = "/")
)]
pub trait ModelRpc {
    /// Models on this machine and in the catalogue.
    #[method(name = "list", param_kind = map)]
    async fn model_list(&self) -> Result<Vec<ModelInfo>, ErrorObjectOwned>;

    /// Fetches one; progress arrives as notifications.
    #[method(name = "pull", param_kind = map)]
    async fn model_pull(&self, name: String) -> Result<ModelInfo, ErrorObjectOwned>;

    /// Removes one from this machine.
    #[method(name = "remove", param_kind = map)]
    async fn model_remove(&self, name: String) -> Result<Empty, ErrorObjectOwned>;
}

/// Agents.
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(
    all(feature = "server", feature = "client"),
    rpc(server, client, namespace = "agent", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "server", not(feature = "client")),
    rpc(server, namespace = "agent", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "client", not(feature = "server")),
    rpc(client, namespace = "agent", namespace_separator = "/")
)]
pub trait AgentRpc {
    /// Agents of a directory.
    #[method(name = "list", param_kind = map)]
    async fn agent_list(&self, cwd: Option<String>) -> Result<Vec<Value>, ErrorObjectOwned>;
}
