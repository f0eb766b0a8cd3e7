//! The toolbox: named tools, their aliases and hooks, and the one gate through which a call runs.
//! Must never know sessions, providers or the store: what it needs of them comes through `CallPort`.

pub mod builtin;
pub mod gate;
pub mod hook;
pub mod permission;
pub mod result;
pub mod schema;
pub mod source;
pub mod tool;
pub mod web;

use hook::{Hook, Hooks};
use permission::Permissions;
use protocol::approval::Answer;
use protocol::id::CallId;
use protocol::tool::{Definition, Shadowed, ToolInfo, ToolList};
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tool::{Access, Change, Outcome, Tool};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a call needs of the session it belongs to.
pub trait CallPort: Send + Sync {
    /// Puts the question to people and waits for the first answer, over detach and restart. A question that was already
    /// put for this call is not put again. `Err` when it was withdrawn or the turn was cancelled, with the reason.
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>>;
    /// Returns when the record of the call is stored, for whoever tells somebody outside of it before it begins.
    fn recorded(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    /// Records that the handler begins, which does what `access` says; returns when that is as safe as it must be.
    fn started<'a>(&'a self, call: &'a CallId, access: Access)
    -> BoxFuture<'a, Result<(), String>>;
    /// What the call makes of a file, for people: before its question, or before it runs. Never blocks.
    fn changing(&self, _: &CallId, _: Change) {}
    /// A piece of what the running tool prints. Never blocks; pieces that fall together are joined.
    fn output(&self, call: &CallId, text: &str);
    /// A call made by a running tool (`doing` with `parent` and `via`); returns its id.
    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        via: Via,
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
    /// Has a sub-session work on a prompt for this call; the result is its last reply. Dropping the future cancels it.
    fn task<'a>(
        &'a self,
        _call: &'a CallId,
        _prompt: String,
        _cancel: CancellationToken,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(async { Err("there are no sessions here".to_owned()) })
    }
    /// The place of the program that calls, where one does: programs within it run in it, one after the other.
    fn place(&self) -> Option<Arc<Semaphore>> {
        None
    }
    /// Something people should know (a hook that raised, say).
    fn warn(&self, text: &str);
}

/// How a call within a call was made; `via` of its `doing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By a tool's own code.
    Tool,
    /// By name, for a model that is not shown the tool.
    Search,
    /// By a program of a model's.
    Code,
}

impl Via {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Search => "search",
            Self::Code => "code",
        }
    }
}

/// A question about one call.
pub struct Question<'a> {
    pub call: &'a CallId,
    pub tool: &'a str,
    pub arguments: &'a Value,
    pub why: &'a str,
    /// What may be allowed for good instead of this call alone.
    pub patterns: Vec<String>,
}

/// What people said.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    pub answer: Answer,
    pub reason: Option<String>,
    /// What a yes covers beyond its call, as a pattern for the same tool.
    pub grant: Option<String>,
}

/// Tools by name, in the order added.
#[derive(Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<Tool>>,
    aliases: BTreeMap<String, String>,
    hooks: Hooks,
    shadowed: Vec<Shadowed>,
    /// Those that a later one of the same name replaced: their sources still have them.
    replaced: Vec<Arc<Tool>>,
    /// Sources that may have no tools now.
    noted: Vec<String>,
    problems: Vec<String>,
    /// Made when first asked for, dropped with the next `add`: every round trip shows them.
    definitions: OnceLock<Arc<[Definition]>>,
    alias_list: OnceLock<Vec<(String, String)>>,
    derived: Derived,
}

/// What others made of a toolbox. A copy of the toolbox begins without, as it may become another.
#[derive(Default)]
struct Derived(Mutex<BTreeMap<String, Arc<dyn Any + Send + Sync>>>);

impl Derived {
    fn known(&self) -> MutexGuard<'_, BTreeMap<String, Arc<dyn Any + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Toolbox {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool, in the place of one of the same name, whose aliases go. One that cannot work is left out and
    /// becomes a problem in `list`.
    pub fn add(&mut self, tool: Tool) {
        if let Err(problem) = self.try_add(tool) {
            self.problems.push(problem);
        }
    }

    /// As `add`, with the reason when the tool is left out.
    pub fn try_add(&mut self, tool: Tool) -> Result<(), String> {
        tool.check()?;
        self.forget();
        let name = tool.name().to_owned();
        self.aliases.retain(|_, real| *real != name);
        for alias in tool.aliases() {
            self.aliases.insert(alias.clone(), name.clone());
        }
        let tool = Arc::new(tool);
        match self.tools.iter_mut().find(|known| known.name() == name) {
            Some(known) => {
                self.shadowed.push(Shadowed {
                    name,
                    kept: tool.origin().to_owned(),
                    dropped: known.origin().to_owned(),
                });
                self.replaced.push(std::mem::replace(known, tool));
            }
            None => self.tools.push(tool),
        }
        Ok(())
    }

    /// Takes out those that do not fit, with their aliases.
    pub fn retain(&mut self, fits: impl Fn(&Tool) -> bool) {
        self.forget();
        self.tools.retain(|tool| fits(tool));
        self.replaced.retain(|tool| fits(tool));
        let tools = &self.tools;
        self.aliases
            .retain(|_, real| tools.iter().any(|tool| tool.name() == real));
    }

    /// A hook before the handler of `tool` (its real name), or of every tool. An error stops the call.
    pub fn before(&mut self, tool: Option<&str>, hook: impl Into<Hook>) {
        self.hooks.before.add(tool, hook.into());
    }

    /// A hook after the handler of `tool` (its real name), or of every tool. An error fails the call.
    pub fn after(&mut self, tool: Option<&str>, hook: impl Into<Hook>) {
        self.hooks.after.add(tool, hook.into());
    }

    /// Something about a source that people should see in `list`.
    pub fn problem(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.problems.contains(&text) {
            self.problems.push(text);
        }
    }

    /// What models are shown, in order.
    pub fn definitions(&self) -> Arc<[Definition]> {
        let make = || self.tools.iter().map(|tool| tool.presented()).collect();
        Arc::clone(self.definitions.get_or_init(make))
    }

    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// All tools of one source, those included that another's of the same name replaced.
    pub fn of_source(&self, source: &str) -> Vec<Arc<Tool>> {
        let all = self.tools.iter().chain(&self.replaced);
        let is_of = |tool: &&Arc<Tool>| {
            tool.origin() == source || tool.part().is_some_and(|part| part == source)
        };
        all.filter(is_of).cloned().collect()
    }

    /// What somebody made of this toolbox, by a name of theirs: made once, and gone with it.
    pub fn derived<T: Send + Sync + 'static>(&self, key: &str, make: impl FnOnce() -> T) -> Arc<T> {
        let known = self.derived.known().get(key).cloned();
        if let Some(known) = known.and_then(|known| known.downcast().ok()) {
            return known;
        }
        // Made beside the lock: who else asks meanwhile makes the same.
        let made = Arc::new(make());
        self.derived.known().insert(key.to_owned(), made.clone());
        made
    }

    fn forget(&mut self) {
        self.definitions = OnceLock::new();
        self.alias_list = OnceLock::new();
        self.derived = Derived::default();
    }

    /// Alias to real name.
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.aliases
    }

    /// As `aliases`.
    pub fn alias_list(&self) -> &[(String, String)] {
        let make = || {
            let pairs = self.aliases.iter();
            pairs.map(|(a, b)| (a.clone(), b.clone())).collect()
        };
        self.alias_list.get_or_init(make)
    }

    /// A source that is there, whether it has tools now or not.
    pub fn note_source(&mut self, source: &str) {
        self.noted.push(source.to_owned());
    }

    /// Where its tools come from, in the order of the first of each; then those that have none now.
    pub fn sources(&self) -> Vec<String> {
        let of_tools = self
            .tools
            .iter()
            .chain(&self.replaced)
            .flat_map(|tool| std::iter::once(tool.origin().to_owned()).chain(tool.part()));
        let mut sources: Vec<String> = Vec::new();
        for source in of_tools.chain(self.noted.iter().cloned()) {
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources
    }

    /// Hooks' names by point (`before`, `after`) and tool (`*` is every tool), in order.
    pub fn hooks(&self) -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
        self.hooks.names()
    }

    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The tool of that name, following aliases; a real name wins over an alias.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        let by_name = |name: &str| self.tools.iter().find(|tool| tool.name() == name);
        by_name(name).or_else(|| by_name(self.aliases.get(name)?))
    }

    /// As `get`, but an unknown name gives a stand-in, named `NAME?`, that does nothing.
    pub fn tool_for(&self, name: &str) -> Arc<Tool> {
        self.get(name)
            .cloned()
            .unwrap_or_else(|| Arc::new(Tool::new(&format!("{name}?"), "unknown tool")))
    }

    /// Tools that another of the same name replaced.
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// All that people may see of it.
    pub fn list(&self, permissions: &Permissions) -> ToolList {
        let info = |tool: &Arc<Tool>| ToolInfo {
            definition: tool.definition(),
            aliases: self.aliases_of(tool.name()),
            source: tool.origin().to_owned(),
            approval: permissions.shown(tool),
        };
        let mut problems = self.problems.clone();
        problems.extend(permissions.problems().iter().cloned());
        problems.extend(self.unheard());
        let names = self.tools.iter().map(|tool| tool.name());
        let names: Vec<&str> = names
            .chain(self.aliases.keys().map(String::as_str))
            .collect();
        // Servers' tools may come later.
        let strays = permissions.guard_nothing(&names).into_iter();
        let strays = strays.filter(|key| !key.contains("__") || key.contains('*'));
        problems.extend(strays.map(|key| {
            format!(
                "the rule for {key:?} in permissions.json guards nothing: no tool here is called so"
            )
        }));
        ToolList {
            tools: self.tools.iter().map(info).collect(),
            shadowed: self.shadowed.clone(),
            problems,
            hooks: self.hooks(),
            ..ToolList::default()
        }
    }

    /// Hooks that no call reaches, as there is no tool of the name that they are for.
    fn unheard(&self) -> Vec<String> {
        let is_tool = |name: &str| name == "*" || self.tools.iter().any(|tool| tool.name() == name);
        let mut all = Vec::new();
        for (point, tools) in self.hooks() {
            for (tool, hooks) in tools.iter().filter(|(name, _)| !is_tool(name)) {
                let why = match self.aliases.get(tool) {
                    Some(real) => format!("another name of {real}: hooks go by the real one"),
                    None => "the name of no tool here".to_owned(),
                };
                let told =
                    |hook| format!("the {point}-hook {hook:?} never runs: {tool:?} is {why}");
                all.extend(hooks.iter().map(told));
            }
        }
        all
    }

    fn aliases_of(&self, name: &str) -> Vec<String> {
        let of = |(alias, real): (&String, &String)| (real == name).then(|| alias.clone());
        self.aliases.iter().filter_map(of).collect()
    }
}
