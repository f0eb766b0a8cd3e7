//! Hooks: what runs around every handler, by point and tool, in the order added.
//! Must never run for an alias, an unknown tool or invalid arguments; that order is the gate's.

use super::tool::Call;
use super::{BoxFuture, CallPort};
use protocol::id::{CallId, SessionId};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

/// What a hook sees of a call. What it returns is ignored, unless it is an error.
#[derive(Clone)]
pub struct HookCall {
    pub session: SessionId,
    pub call: CallId,
    /// The tool's real name.
    pub tool: String,
    pub arguments: Arc<Map<String, Value>>,
    /// The session's environment.
    pub env: Arc<BTreeMap<String, String>>,
    /// The handler's object before `ok` is added; only after it.
    pub result: Option<Arc<Map<String, Value>>>,
    pub port: Arc<dyn CallPort>,
    /// For calls that the hook itself makes.
    pub from: Call,
}

type Body = dyn Fn(HookCall) -> BoxFuture<'static, Result<(), String>> + Send + Sync;

/// A hook with a name for people.
#[derive(Clone)]
pub struct Hook {
    name: String,
    body: Arc<Body>,
}

impl Hook {
    pub fn new<F, Fut>(name: &str, body: F) -> Self
    where
        F: Fn(HookCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<(), String>> + Send + 'static,
    {
        Self {
            name: name.to_owned(),
            body: Arc::new(move |call| Box::pin(body(call))),
        }
    }

    /// A hook that does not wait for anything.
    pub fn sync<F>(name: &str, body: F) -> Self
    where
        F: Fn(&HookCall) -> Result<(), String> + Send + Sync + 'static,
    {
        let body = Arc::new(body);
        Self::new(name, move |call| {
            let body = Arc::clone(&body);
            async move { body(&call) }
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn run(&self, call: HookCall) -> BoxFuture<'static, Result<(), String>> {
        let body = Arc::clone(&self.body);
        Box::pin(async move { body(call).await })
    }
}

impl<F, Fut> From<F> for Hook
where
    F: Fn(HookCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), String>> + Send + 'static,
{
    fn from(body: F) -> Self {
        Self::new("hook", body)
    }
}

/// Both points.
#[derive(Clone, Default)]
pub(super) struct Hooks {
    pub(super) before: Point,
    pub(super) after: Point,
}

impl Hooks {
    pub(super) fn names(&self) -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
        [("before", &self.before), ("after", &self.after)]
            .map(|(name, point)| (name.to_owned(), point.names()))
            .into()
    }
}

/// The hooks of one point.
#[derive(Clone, Default)]
pub(super) struct Point {
    every: Vec<Hook>,
    of: BTreeMap<String, Vec<Hook>>,
}

impl Point {
    pub(super) fn add(&mut self, tool: Option<&str>, hook: Hook) {
        match tool {
            None | Some("*") => self.every.push(hook),
            Some(tool) => self.of.entry(tool.to_owned()).or_default().push(hook),
        }
    }

    /// Those of every tool first, then those of this one.
    pub(super) fn of(&self, tool: &str) -> impl Iterator<Item = &Hook> {
        self.every
            .iter()
            .chain(self.of.get(tool).into_iter().flatten())
    }

    fn names(&self) -> BTreeMap<String, Vec<String>> {
        let names = |hooks: &[Hook]| hooks.iter().map(|hook| hook.name.clone()).collect();
        let mut all: BTreeMap<String, Vec<String>> = self
            .of
            .iter()
            .map(|(tool, hooks)| (tool.clone(), names(hooks)))
            .collect();
        if !self.every.is_empty() {
            all.insert("*".to_owned(), names(&self.every));
        }
        all
    }
}
