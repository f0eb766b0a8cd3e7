//! The wire of plugin executables: what the daemon calls in them. Must never know how they are started.

use crate::id::{CallId, SessionId};
use crate::tool::ProvidedTool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// `plugin/setup {session}` and `plugin/update`: what the plugin adds.
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

/// `provider/build`'s parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildParams {
    /// The provider.
    pub name: String,
    /// The model from `--model`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// `provider/build`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildResult {
    /// Names the instance in `provider/fetch`.
    pub instance: String,
}

/// `provider/fetch`'s parameters: one round trip.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchParams {
    /// From `provider/build`.
    pub instance: String,
    /// The conversation; the first is the system prompt.
    pub messages: Vec<Value>,
    /// Tool definitions.
    pub tools: Vec<Value>,
}

/// The notification `provider/event`.
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
        arguments: Value,
    },
    /// Any other type is ignored.
    #[serde(other)]
    Unknown,
}
