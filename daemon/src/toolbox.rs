//! The toolbox: named tools, their aliases and hooks, and the one gate through which a call runs.
//! Must never know sessions, providers or the store: what it needs of them comes through `CallPort`.

pub mod builtin;
pub mod permission;
pub mod tool;

use protocol::approval::Answer;
use protocol::id::CallId;
use serde_json::{Map, Value};
use std::future::Future;
use std::pin::Pin;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a call needs of the session it belongs to.
pub trait CallPort: Send + Sync {
    /// Puts the question to people and waits for the first answer, over detach and restart. A question that was already
    /// put for this call is not put again. `Err` when it was withdrawn or the turn was cancelled, with the reason.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>>;
    /// Records that the handler begins; returns when that is on the disk.
    fn started<'a>(&'a self, call: &'a CallId) -> BoxFuture<'a, Result<(), String>>;
    /// A piece of what the running tool prints. Never blocks; pieces that fall together are joined.
    fn output(&self, call: &CallId, text: &str);
    /// A call made by a running tool (`doing` with `parent`); returns its id.
    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        name: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>>;
    /// The end of a call made by a running tool (`done`).
    fn child_done<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Map<String, Value>,
        ms: u64,
    ) -> BoxFuture<'a, Result<(), String>>;
    /// Something people should know (a hook that raised, say).
    fn warn(&self, text: &str);
}

/// A question about one call.
pub struct Question<'a> {
    pub call: &'a CallId,
    pub tool: &'a str,
    pub arguments: &'a Value,
    pub why: &'a str,
}

/// What people said.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub answer: Answer,
    pub reason: Option<String>,
}
