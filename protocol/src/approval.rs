//! Approvals and trust: questions to people, their answers, and how far an answer reaches.

use crate::id::{ApprovalId, CallId, SessionId};
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question that waits, as `approval/list` and a session show it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Approval {
    /// The question.
    pub approval: ApprovalId,
    /// Whose.
    pub session: SessionId,
    /// The call that waits.
    pub call: CallId,
    /// The tool's real name.
    pub tool: String,
    /// Exactly what would run.
    pub arguments: Value,
    /// Which rule asks.
    pub why: String,
    /// Patterns that an answer for the session or for good may give, the likeliest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<String>,
    /// What it makes of a file that is there, as its `changing` told; none for one that is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<FileChange>,
    /// Since when, in milliseconds since the Unix epoch.
    pub asked_at: u64,
}

/// What a call makes of a file that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChange {
    /// Bytes of the file as it is.
    pub size: u64,
    /// The hunks of a unified diff, without a head; none where a side is no text or is large, or the diff is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// In how many places, of a call that replaces a piece of the file by another (`edit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u64>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// Run it.
    Allow,
    /// Don't.
    Deny,
}

/// How far an answer reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// This call.
    #[default]
    Call,
    /// Every call of the program that made this one; for a call of no program the same as `call`.
    Program,
    /// The rest of the session.
    Session,
    /// For good: written to the workspace's `permissions.json`.
    Always,
}

/// `approval/answer`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerResult {
    /// The number of the event that records the answer.
    pub seq: u64,
}

/// A directory's own files and whether they count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trust {
    /// The directory.
    pub cwd: String,
    /// `trusted`, `refused`, `undecided`, or `changed` since it was trusted.
    pub state: TrustState,
    /// The files that would count, relative to `cwd`, sorted.
    pub files: Vec<TrustFile>,
    /// Files that were decided on and are gone, relative to `cwd`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
    /// When it was decided, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<u64>,
    /// Stands for `files` with their content: give it to `trust/answer`, so that what was shown is what is decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// One file that counts only in a trusted directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrustFile {
    /// Relative to the directory.
    pub path: String,
    /// Whether it is new or differs from what was trusted.
    pub changed: bool,
    /// Whether it was not there when the directory was decided on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub added: bool,
    /// How a text differs from what was decided on: lines with `+`, `-` or a space in front. All of it where it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// What of that is not in `diff`, why, and where it can be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unshown: Option<String>,
    /// Why it could not be used, were it trusted: what is wrong in it, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// Where a directory stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrustState {
    /// There is nothing to trust.
    Nothing,
    /// Nobody has answered yet: the files do not count.
    Undecided,
    /// The files count.
    Trusted,
    /// The files do not count, and nobody is asked until they change.
    Refused,
    /// The files differ from those that were decided on: they do not count until somebody answers.
    Changed,
}

resource! {
    /// Questions to people.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "approval", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "approval", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "approval", namespace_separator = "/")
    )]
    pub trait ApprovalRpc {
        /// The questions that wait, of one session or of all.
        #[method(name = "list", param_kind = map)]
        async fn list(&self, session: Option<SessionId>) -> Result<Vec<Approval>, ErrorObjectOwned>;

        /// Answers one. The first answer wins; a later one is -32004 and says who answered. With `pattern` an `allow` for
        /// `session` or `always` covers all calls of the tool that it matches (`permissions.json` says how), else only calls
        /// just like this one; a pattern that would not allow this very call is -32602, and the question goes on waiting.
        #[method(name = "answer", param_kind = map, with_extensions)]
        async fn answer(
            &self,
            approval: ApprovalId,
            answer: Answer,
            scope: Option<Scope>,
            reason: Option<String>,
            pattern: Option<String>,
        ) -> Result<AnswerResult, ErrorObjectOwned>;
    }
}

resource! {
    /// Whether a directory's own `.agents/` counts.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "trust", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "trust", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "trust", namespace_separator = "/")
    )]
    pub trait TrustRpc {
        /// Directories that were decided on or that wait; with `cwd` only that one.
        #[method(name = "list", param_kind = map)]
        async fn trust_list(&self, cwd: Option<String>) -> Result<Vec<Trust>, ErrorObjectOwned>;

        /// Decides for the files as they are now; with the `digest` of what was shown only if they are still the same (else
        /// it is an error, and nothing is decided).
        #[method(name = "answer", param_kind = map)]
        async fn trust_answer(
            &self,
            cwd: String,
            allow: bool,
            digest: Option<String>,
        ) -> Result<Trust, ErrorObjectOwned>;

        /// A person's own command wrote this file: `path` is relative to the directory, `content` all of it. It joins what is
        /// trusted when that is all that differs from what was agreed to, or all there is; else nothing changes. The answer
        /// says where the directory stands now.
        #[method(name = "add", param_kind = map)]
        async fn trust_add(
            &self,
            cwd: String,
            path: String,
            content: String,
        ) -> Result<Trust, ErrorObjectOwned>;
    }
}
