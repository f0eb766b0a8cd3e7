//! Providers and models: listing, switching, fetching.

use crate::id::SessionId;
use crate::session::{Empty, Recorded};
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};

/// A provider by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// A model of the catalogue, or one that lies among the pulled ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LocalModel {
    /// Its name, for `model/pull` and for `--model` of the provider `llama`.
    pub name: String,
    /// What it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// Its licence, as an SPDX expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<String>,
    /// Bytes: on the disk when it is there, else to be fetched.
    pub size: u64,
    /// The file, when it is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// A file lies there that is not what was pulled; pulling the model again fetches it anew.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
    /// A model that shows how things work, and not more: whoever shows its answers says so.
    #[serde(default)]
    pub demo: bool,
}

/// The notification `model/progress`, to whoever called `model/pull`. Each replaces the one before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelProgress {
    /// The model.
    pub name: String,
    /// What is being done.
    pub step: PullStep,
    /// Bytes done of this step.
    pub done: u64,
    /// Bytes of this step, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Where from: the address of a server, or `pip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// The steps of a pull, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PullStep {
    /// Bytes come.
    Fetching,
    /// They are compared with what the catalogue says.
    Checking,
    /// They are written in a form that is computed fast.
    Preparing,
    /// Any other.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// The file of a pulled model in the models' folder, which the daemon writes and `dwell-local` reads; none for what cannot
/// be a model's name, so that none leads out of the folder.
pub fn model_file(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    let good = !name.is_empty() && !name.starts_with('.') && name.chars().all(fits);
    good.then(|| format!("{}.gguf", name.replace(':', "-")))
}

resource! {
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
        /// The names that `-p` takes: with `cwd` in that directory, plugins' own included; without it, those that every
        /// directory has.
        #[method(name = "list", param_kind = map)]
        async fn list(&self, cwd: Option<String>) -> Result<Vec<ProviderInfo>, ErrorObjectOwned>;

        /// Talks to another provider from the next round trip on; the conversation is kept.
        #[method(name = "switch", param_kind = map, with_extensions)]
        async fn switch(
            &self,
            session: SessionId,
            name: String,
            model: Option<String>,
        ) -> Result<Recorded, ErrorObjectOwned>;

        /// What the provider's server offers; with `cwd` of a provider in that directory, which may be a plugin's there.
        #[method(name = "models", param_kind = map)]
        async fn models(
            &self,
            name: String,
            cwd: Option<String>,
        ) -> Result<Vec<ModelInfo>, ErrorObjectOwned>;

        /// Live instances.
        #[method(name = "instances", param_kind = map)]
        async fn instances(&self) -> Result<Vec<ProviderInstance>, ErrorObjectOwned>;
    }
}

resource! {
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
        async fn model_list(&self) -> Result<Vec<LocalModel>, ErrorObjectOwned>;

        /// Fetches one, or waits for a fetch that runs; `model/progress` comes meanwhile. It goes on when the caller goes
        /// away. A model that is there already is answered at once.
        #[method(name = "pull", param_kind = map, with_extensions)]
        async fn model_pull(&self, name: String) -> Result<LocalModel, ErrorObjectOwned>;

        /// Removes one from this machine, and what was fetched of it so far.
        #[method(name = "remove", param_kind = map)]
        async fn model_remove(&self, name: String) -> Result<Empty, ErrorObjectOwned>;
    }
}

/// `agent/list`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentList {
    /// By name.
    pub agents: Vec<AgentInfo>,
    /// Agents that cannot be read, with the reason.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// An agent that a session can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentInfo {
    /// By which `session/create` knows it.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Its release, as its author writes it.
    #[serde(default)]
    pub version: String,
    /// What it needs to know.
    #[serde(default)]
    pub variables: Vec<AgentVariable>,
    /// Prompts to begin with.
    #[serde(default)]
    pub conversation_starters: Vec<String>,
    /// Files whose text the model is given.
    #[serde(default)]
    pub documents: Vec<String>,
    /// Its folder.
    #[serde(default)]
    pub dir: String,
}

/// Something that an agent needs to know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AgentVariable {
    /// Its name in `vars`.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub description: String,
    /// What counts when nobody says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

resource! {
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
        /// Agents of a directory, those of the user alone if none is given.
        #[method(name = "list", param_kind = map)]
        async fn agent_list(&self, cwd: Option<String>) -> Result<AgentList, ErrorObjectOwned>;
    }
}

#[cfg(test)]
mod tests {
    use super::model_file;

    #[test]
    fn a_models_name_never_leads_out_of_the_folder() {
        assert_eq!(model_file("a.b:1"), Some("a.b-1.gguf".to_owned()));
        for name in ["", "../x", "a/b", ".hidden", "a\0"] {
            assert_eq!(model_file(name), None, "{name:?}");
        }
    }
}
