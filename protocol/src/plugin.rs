//! The wire of plugin executables: what the daemon calls in them, in JSON-RPC 2.0, one message a line, over stdio.
//! Must never know how they are started.

use crate::id::{CallId, SessionId};
use crate::tool::ProvidedTool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// `plugin/setup`'s parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SetupParams {
    /// The session that first needed the plugin. All sessions of the directory share its process, and each later call
    /// names its own. While `plugin/setup` runs nothing that needs the directory's tools can be called.
    pub session: Option<SessionId>,
    /// The directory.
    pub cwd: String,
}

/// The result of `plugin/setup`, and the parameters of the notification `plugin/update`, with which a plugin later says
/// anew all that it adds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Tools that run in the plugin.
    #[serde(default)]
    pub tools: Vec<ProvidedTool>,
    /// Hooks.
    #[serde(default)]
    pub hooks: Vec<Hook>,
    /// Slash commands.
    #[serde(default)]
    pub commands: Vec<PluginCommand>,
    /// Providers.
    #[serde(default)]
    pub providers: Vec<PluginProvider>,
}

/// A hook of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    /// The plugin's own name for it.
    pub id: String,
    /// Before or after the handler.
    pub point: HookPoint,
    /// The tool's real name; none is every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
}

/// Where a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPoint {
    /// Before the handler; an error stops the call.
    Before,
    /// After the handler; an error fails the call.
    After,
}

/// A slash command of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginCommand {
    /// Without its slash.
    pub name: String,
    /// One line.
    #[serde(default)]
    pub description: String,
    /// Fixed completions of the argument; others are asked for by `plugin/complete`.
    #[serde(default)]
    pub completions: Option<Vec<String>>,
}

/// A provider of a plugin.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PluginProvider {
    /// The name for `-p`.
    pub name: String,
}

/// `plugin/tool`'s parameters; its result is the tool's result object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolParams {
    /// The session.
    pub session: SessionId,
    /// The call.
    pub call: CallId,
    /// The tool's real name.
    pub name: String,
    /// Its arguments, validated.
    pub arguments: Map<String, Value>,
}

/// `plugin/hook`'s parameters. An error blocks; what it returns is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HookParams {
    /// The session.
    pub session: SessionId,
    /// The call that is about to run, or has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The hook's own name.
    pub id: String,
    /// Where it runs.
    pub point: HookPoint,
    /// The tool's real name.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The handler's object, only after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Map<String, Value>>,
}

/// `plugin/command`'s parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandParams {
    /// The session.
    pub session: SessionId,
    /// Without its slash.
    pub name: String,
    /// Everything after the first space, or none.
    #[serde(default)]
    pub arguments: Option<String>,
}

/// `plugin/command`'s result; null is the same as nothing printed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandOutput {
    /// For the caller alone.
    #[serde(default)]
    pub output: Option<String>,
}

/// `plugin/complete`'s parameters. The result is a list of words; those that do not start with `partial` are left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompleteParams {
    /// The session.
    pub session: SessionId,
    /// The command, without its slash.
    pub name: String,
    /// The argument as far as it is typed.
    pub partial: String,
}

/// `provider/build`'s parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuildParams {
    /// The provider.
    pub name: String,
    /// The model from `--model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session's environment, and what the daemon's own says of local models where the session says nothing. It
    /// holds no key of a model vendor: a plugin that needs one finds it in its own environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// `provider/build`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BuildResult {
    /// Names the instance in `provider/fetch`.
    pub instance: String,
    /// The model that the instance talks to, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The model's context window in tokens, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
}

/// `provider/models`'s parameters, and those of the notification `provider/release`: the instance is not used any more.
/// A plugin need know neither. The result of `provider/models` is a list of `ModelInfo`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InstanceParams {
    /// From `provider/build`.
    pub instance: String,
}

/// `provider/fetch`'s parameters: one round trip. It is answered (with any result) when the model has finished, or with
/// an error whose message people read; `data.retryable` of the error says whether trying again may mend it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchParams {
    /// From `provider/build`.
    pub instance: String,
    /// The conversation; the first is the system prompt.
    pub messages: Vec<Value>,
    /// Tool definitions.
    pub tools: Vec<Value>,
}

/// The notifications `provider/cancel` and `plugin/cancel`: nobody waits for the answer to a request any more. The request
/// may be answered all the same; what it says is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CancelParams {
    /// The `id` of the request.
    pub id: u64,
}

/// The method of `ProviderEventParams`.
pub const EVENT: &str = "provider/event";

/// The notification `provider/event`: `{fetch, type, ...}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProviderEventParams {
    /// The `id` of the request `provider/fetch` that it belongs to. Needed only while more than one runs; an event that
    /// could belong to several is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetch: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub event: ProviderNotification,
}

/// What a provider tells while it fetches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ProviderNotification {
    /// A piece of the reply.
    Saying {
        /// The piece.
        text: String,
    },
    /// A piece of thinking.
    Thinking {
        /// The piece.
        text: String,
    },
    /// A complete tool call.
    Doing {
        /// The provider's id of it.
        #[serde(default)]
        id: Option<String>,
        /// The tool.
        name: String,
        /// Its arguments.
        #[serde(default)]
        arguments: Value,
    },
    /// Tokens of this round trip; the last one told counts.
    Usage {
        /// Read by the model, the cached ones included.
        #[serde(default)]
        input: u64,
        /// Written by the model.
        #[serde(default)]
        output: u64,
        /// Of the read ones, those that came out of a cache.
        #[serde(default)]
        cached: u64,
    },
    /// A block that this provider, and no other, gets back within the same turn, as a member of an assistant message's
    /// `signed`.
    Signed {
        /// The block.
        block: Value,
    },
    /// Any other type is ignored.
    #[serde(other)]
    Unknown,
}
