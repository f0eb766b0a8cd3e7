//! Tools as they are shown to models and people, and running one by hand.

use crate::expression::Expression;
use crate::id::{CallId, SessionId};
use crate::session::Empty;
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A tool in the function shape of the OpenAI API: `{type: "function", function: {...}}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Definition {
    /// Always `function`.
    #[serde(rename = "type")]
    pub kind: FunctionTag,
    /// The function.
    pub function: Function,
}

/// The one value of `Definition::kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FunctionTag {
    /// `function`.
    Function,
}

/// What a model reads of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Function {
    /// Its name; aliases are not sent.
    pub name: String,
    /// When to call it.
    pub description: String,
    /// JSON Schema: `{type: "object", properties, required}`.
    pub parameters: Value,
}

/// A tool as `tool/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolInfo {
    /// As models see it.
    #[serde(flatten)]
    pub definition: Definition,
    /// Names that resolve to it.
    pub aliases: Vec<String>,
    /// Where it comes from: `builtin`, `script`, `plugin NAME`, `mcp NAME`, `client`.
    pub source: String,
    /// What the permissions say of a call without looking at its arguments: `allow`, `ask` or `deny`.
    pub approval: Policy,
}

/// What a permission says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Runs at once.
    Allow,
    /// Waits for a person.
    Ask,
    /// Never runs.
    Deny,
}

/// `tool/list`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolList {
    /// What the model is shown, in order.
    pub tools: Vec<ToolInfo>,
    /// Tools that another of the same name hides.
    #[serde(default)]
    pub shadowed: Vec<Shadowed>,
    /// Names in the expression that are no tool's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_names: Vec<String>,
    /// How many tools are not among `tools`, and found and called through those.
    #[serde(default, skip_serializing_if = "is_none")]
    pub reached: usize,
    /// Sources that could not be read, with the reason.
    #[serde(default)]
    pub problems: Vec<String>,
    /// Hooks by point and tool (`*` is every tool), in the order they run.
    #[serde(default)]
    pub hooks: BTreeMap<String, BTreeMap<String, Vec<String>>>,
}

fn is_none(count: &usize) -> bool {
    *count == 0
}

/// A tool that another of the same name hides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shadowed {
    /// The name of both.
    pub name: String,
    /// The source of the one that is called.
    pub kept: String,
    /// The source of the one that is not.
    pub dropped: String,
}

/// A named toolbox of a workspace, as `toolbox/list` shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolboxInfo {
    /// Its name.
    pub name: String,
    /// The directory it belongs to.
    pub cwd: String,
    /// Its sources.
    pub sources: Vec<SourceInfo>,
    /// What it stands for, where `config.toml` names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<Expression>,
    /// Why it cannot be used now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Where tools come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SourceInfo {
    /// `builtin`, `script`, ...
    pub name: String,
    /// Its tools' names.
    pub tools: Vec<String>,
    /// `ready`, `starting` or `failed`.
    pub health: String,
    /// What failed and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A tool that a client offers; it runs in the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProvidedTool {
    /// The name the model calls.
    pub name: String,
    /// When to call it.
    #[serde(default)]
    pub description: String,
    /// JSON Schema properties: parameter name to schema. Null and `[]` are none.
    #[serde(default, deserialize_with = "members")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::members"))]
    pub params: Map<String, Value>,
    /// Names of required parameters.
    #[serde(default)]
    pub required: Vec<String>,
    /// Other names that resolve to it.
    #[serde(default)]
    pub aliases: Vec<String>,
}

/// An object; languages that cannot tell an empty one from an empty list, or from nothing, write those.
fn members<'de, D: Deserializer<'de>>(from: D) -> Result<Map<String, Value>, D::Error> {
    match Value::deserialize(from)? {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        Value::Array(none) if none.is_empty() => Ok(Map::new()),
        _ => Err(D::Error::custom("expected an object")),
    }
}

/// The notification `tool_asked`, to the client that offered the tool: it runs the call and answers with `tool/answer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolAsked {
    /// The session that the call belongs to.
    pub session: SessionId,
    /// Names the call in `tool/answer`: the session's id and the call's own, so that it is unique everywhere.
    pub call: CallId,
    /// The tool's real name.
    pub name: String,
    /// Exactly what was allowed, valid by the tool's schema.
    pub arguments: Map<String, Value>,
}

/// The notification `tool_cancelled`, to the client that was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCancelled {
    /// The session that the call belongs to.
    pub session: SessionId,
    /// The call, as `tool_asked` named it.
    pub call: CallId,
}

/// A tool's result as its client gives it: an object; null and `[]` are an empty one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult(
    #[serde(deserialize_with = "members")]
    #[cfg_attr(feature = "schema", schemars(schema_with = "crate::schema::members"))]
    pub Map<String, Value>,
);

/// How a client answered a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The tool's object. With `error`, or with `ok` that is false, the call has failed.
    Gave(Map<String, Value>),
    /// Why it could not be run.
    Failed(String),
}

/// What `tool/check` found about the scripts of a directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCheck {
    /// How many files were looked at.
    pub files: usize,
    /// Names of the tools that can be offered.
    pub tools: Vec<String>,
    /// Files that cannot be read, with the line, and what scripts need and is not there.
    pub problems: Vec<String>,
    /// What authors may want to know.
    #[serde(default)]
    pub warnings: Vec<String>,
}

resource! {
    /// Tools.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "tool", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "tool", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "tool", namespace_separator = "/")
    )]
    pub trait ToolRpc {
        /// What the model is shown, or with `toolbox` (an expression) would be, with source and approval. Malformed ones, and
        /// names of no toolbox, are -32602 with `data.path`, here and in all methods that take one.
        #[method(name = "list", param_kind = map)]
        async fn list(
            &self,
            session: SessionId,
            toolbox: Option<Value>,
        ) -> Result<ToolList, ErrorObjectOwned>;

        /// Runs a tool as a model's call would: same checks, hooks, approval and result. A failing tool is a result. Without
        /// `toolbox` any tool that the model has or reaches; with it exactly what the expression shows. It goes on when the caller
        /// goes away, unless `with_caller` is true: then the end of the caller's connection stops it. With `tell` the model reads
        /// what it gave with the session's next prompt or steering word, whoever sends that, and only then.
        #[method(name = "run", param_kind = map, with_extensions)]
        async fn run(
            &self,
            session: SessionId,
            name: String,
            arguments: Option<Value>,
            toolbox: Option<Value>,
            with_caller: Option<bool>,
            tell: Option<bool>,
        ) -> Result<Map<String, Value>, ErrorObjectOwned>;

        /// Stops a call that no turn made; its result then says `cancelled`. One that is over, or never was, is no error.
        #[method(name = "cancel", param_kind = map, with_extensions)]
        async fn cancel(&self, session: SessionId, call: CallId) -> Result<Empty, ErrorObjectOwned>;

        /// What is wrong with the scripts of a directory and with what they need. Its files are read whether it is trusted or
        /// not, and none is run. `env` is what scripts would see; the plainest of the daemon's own if not given.
        #[method(name = "check", param_kind = map)]
        async fn check(
            &self,
            cwd: String,
            env: Option<BTreeMap<String, String>>,
        ) -> Result<ToolCheck, ErrorObjectOwned>;

        /// Offers tools that run in the calling client, in the place of what it offered for the session before; they go with its
        /// connection. A call comes as the notification `tool_asked`, after all that any call needs to run.
        #[method(name = "provide", param_kind = map, with_extensions)]
        async fn provide(
            &self,
            session: SessionId,
            tools: Vec<ProvidedTool>,
        ) -> Result<Empty, ErrorObjectOwned>;

        /// Answers a `tool_asked` with the tool's object, or with `error`: why it failed, which the model reads. An object with
        /// `error`, or with `ok` that is false, has failed too. A call that nobody waits for any more is -32002.
        #[method(name = "answer", param_kind = map, with_extensions)]
        async fn answer_tool(
            &self,
            call: CallId,
            result: Option<ToolResult>,
            error: Option<String>,
        ) -> Result<Empty, ErrorObjectOwned>;
    }
}

resource! {
    /// The daemon's toolboxes.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "toolbox", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "toolbox", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "toolbox", namespace_separator = "/")
    )]
    pub trait ToolboxRpc {
        /// Named toolboxes with sources, tools and health: of each directory `default`, which is all, then those of the
        /// settings, then each source.
        #[method(name = "list", param_kind = map)]
        async fn toolbox_list(&self, cwd: Option<String>)
        -> Result<Vec<ToolboxInfo>, ErrorObjectOwned>;

        /// Reads the sources anew.
        #[method(name = "reload", param_kind = map)]
        async fn toolbox_reload(
            &self,
            cwd: Option<String>,
        ) -> Result<Vec<ToolboxInfo>, ErrorObjectOwned>;
    }
}
