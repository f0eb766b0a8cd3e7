//! Slash commands: listing, running and completing them.

use crate::id::SessionId;
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};

/// A slash command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandInfo {
    /// With its slash: `/help`.
    pub name: String,
    /// One line.
    pub description: String,
}

/// Splits a line into a command's name, without its slash, and everything after the first space (none when there is
/// nothing). `None` when the line is text: it does not start with `/`, or its first word has a second one, as a pasted
/// absolute path has. Clients ask this before they send a line to `command/run` or to `turn/start`.
pub fn split(line: &str) -> Option<(&str, Option<&str>)> {
    let line = line.trim_end_matches(['\r', '\n']).strip_prefix('/')?;
    let (name, rest) = match line.split_once(char::is_whitespace) {
        Some((name, rest)) => (name, Some(rest).filter(|rest| !rest.is_empty())),
        None => (line, None),
    };
    (!name.contains('/')).then_some((name, rest))
}

/// The last word of a line, as completion sees it: a mention whose quote is open (`@"my fi`) goes on over spaces.
pub fn last_word(line: &str) -> &str {
    let open = line.rfind("@\"").filter(|at| {
        let begins = line[..*at]
            .chars()
            .next_back()
            .is_none_or(char::is_whitespace);
        begins && !line[*at + 2..].contains('"')
    });
    match open {
        Some(at) => &line[at..],
        None => line.rsplit(char::is_whitespace).next().unwrap_or_default(),
    }
}

/// Whether a name holds the letters that were typed, in their order.
pub fn holds_letters(name: &str, typed: &str) -> bool {
    let mut left = name.chars();
    typed.chars().all(|letter| left.any(|c| c == letter))
}

/// `command/run`'s result.
///
/// Nothing is told twice: what a command tells its caller (`/help`, `/tools`, `/context`, ...) stands in `output` and in
/// no event; what it changes (`/clear`, `/provider NAME`, `/rename`, ...) every client, the caller too, sees by the
/// event that records it (`cleared`, `provider_switched`, `renamed`), and `output` is empty; text that a command says
/// to everybody is a `command_output`, and not in `output`. So a client prints `output` and `error` as they are, and
/// events as always.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandResult {
    /// Whether the command exists and ran.
    pub ran: bool,
    /// What it printed for this caller alone. No newline at its end.
    #[serde(default)]
    pub output: String,
    /// The message of a command that failed, or the names of all for an unknown one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `command/complete`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Completions {
    /// Where in the line, in bytes, the completed word begins.
    pub start: usize,
    /// What may stand there.
    pub candidates: Vec<Candidate>,
    /// Why there may be more than that, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more: Option<String>,
}

/// One completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The whole word.
    pub text: String,
    /// One line about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

resource! {
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
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn name_ends_at_the_first_space_and_the_rest_is_one_string() {
        assert_eq!(split("/context 3"), Some(("context", Some("3"))));
        let rest = Some("fetch  example.com ");
        assert_eq!(
            split("/skills fetch  example.com \n"),
            Some(("skills", rest))
        );
        assert_eq!(split("/help"), Some(("help", None)));
        assert_eq!(split("/help \n"), Some(("help", None)));
        assert_eq!(split("/"), Some(("", None)));
    }

    #[test]
    fn pasted_path_and_text_are_no_commands() {
        for line in ["/usr/bin/env is missing", "//", "help", " /help", ""] {
            assert_eq!(split(line), None, "{line:?}");
        }
        assert_eq!(split("/rename a/b"), Some(("rename", Some("a/b"))));
    }
}
