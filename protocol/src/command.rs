//! Slash commands: listing, running and completing them.

use crate::id::SessionId;
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};

/// A slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CommandInfo {
    /// With its slash: `/help`.
    pub name: String,
    /// One line.
    pub description: String,
}

/// `command/run`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CommandResult {
    /// Whether the command exists and ran.
    pub ran: bool,
    /// What it printed, for this caller; what everybody should see arrives as `command_output`.
    #[serde(default)]
    pub output: String,
    /// The message of a command that failed, or the names of all for an unknown one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `command/complete`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Completions {
    /// Where in the line, in bytes, the completed word begins.
    pub start: usize,
    /// What may stand there.
    pub candidates: Vec<Candidate>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// The whole word.
    pub text: String,
    /// One line about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Slash commands.
#[cfg(any(feature = "server", feature = "client"))]
#[cfg_attr(
    all(feature = "server", feature = "client"),
    rpc(server, client, namespace = "command", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "server", not(feature = "client")),
    rpc(server, namespace = "command", namespace_separator = "/")
)]
#[cfg_attr(
    all(feature = "client", not(feature = "server")),
    rpc(client, namespace = "command", namespace_separator = "/")
)]
pub trait CommandRpc {
    /// All of a session's commands, by name.
    #[method(name = "list", param_kind = map)]
    async fn list(&self, session: SessionId) -> Result<Vec<CommandInfo>, ErrorObjectOwned>;

    /// Runs a line that starts with `/`.
    #[method(name = "run", param_kind = map, with_extensions)]
    async fn run(
        &self,
        session: SessionId,
        line: String,
    ) -> Result<CommandResult, ErrorObjectOwned>;

    /// What may stand at the end of the line: command names, their arguments, file names.
    #[method(name = "complete", param_kind = map)]
    async fn complete(
        &self,
        session: SessionId,
        line: String,
    ) -> Result<Completions, ErrorObjectOwned>;
}
