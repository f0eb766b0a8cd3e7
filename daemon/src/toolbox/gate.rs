//! The gate: the only way to a handler, and the order of everything around it.
//! Must never run anything but what was validated and approved, to the letter.
//!
//! A handler is kept in a `Sealed`, whose content is private to this module, and takes a `Call`, which has a private
//! member that only this module can make. So no other module can call a handler, neither a tool's nor one it holds:
//! `tool.handler.0` and `Pass { .. }`, without which there is no `Call`, do not compile outside this file.

use super::hook::{Hook, HookCall};
use super::permission::Permissions;
use super::result::{Cause, DEEPEST, Failure, finish, is_deeper};
use super::tool::{Call, Change, Handler, Tool};
use super::{BoxFuture, CallPort, Question, Toolbox, Via};
use futures_util::FutureExt;
use protocol::approval::Answer;
use protocol::id::{CallId, SessionId};
use protocol::tool::Policy;
use serde_json::{Map, Value};
use std::any::Any;
use std::collections::BTreeMap;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a cancelled handler may take to end by itself before it is dropped.
const GRACE: Duration = Duration::from_millis(150);
/// How deep tools may call tools.
const DEPTH: usize = 8;

/// A handler that only the gate can reach.
#[derive(Clone)]
pub(super) struct Sealed(Arc<dyn Handler>);

impl Sealed {
    pub(super) fn new(handler: impl Handler + 'static) -> Self {
        Self(Arc::new(handler))
    }
}

/// A call to be made.
#[derive(Clone)]
pub struct Run {
    pub session: SessionId,
    pub call: CallId,
    /// The name as asked for; may be an alias.
    pub name: String,
    /// The arguments as asked for; see `coerce`.
    pub arguments: Value,
    pub cwd: PathBuf,
    pub env: Arc<BTreeMap<String, String>>,
    pub cancel: CancellationToken,
    pub spill_dir: PathBuf,
    pub port: Arc<dyn CallPort>,
    pub permissions: Arc<Permissions>,
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Ran {
    /// With `ok`, last.
    pub result: Map<String, Value>,
    /// How long the handler took; 0 when it never ran.
    pub ms: u64,
    /// Why there is no result of the handler's own.
    pub cause: Option<Cause>,
}

/// Proof of having come through the gate, and what it takes to go through it again.
#[derive(Clone)]
pub(super) struct Pass {
    toolbox: Arc<Toolbox>,
    permissions: Arc<Permissions>,
    depth: usize,
}

impl Toolbox {
    /// Runs one call: alias, validation, hooks, approval, the record of its start, handler, hooks, result. Never fails:
    /// a failure is a result.
    pub async fn run(self: &Arc<Self>, run: Run) -> Ran {
        self.run_at(run, 0).await
    }

    fn run_at(self: &Arc<Self>, run: Run, depth: usize) -> BoxFuture<'static, Ran> {
        let toolbox = Arc::clone(self);
        Box::pin(async move {
            match toolbox.get(&run.name).cloned() {
                Some(tool) => toolbox.through(tool, run, depth).await,
                None => {
                    let aliases = toolbox.aliases().iter();
                    let failure = unknown(&run.name, toolbox.tools(), aliases);
                    Ran::not(failure.result(), &failure)
                }
            }
        })
    }

    /// As `run`.
    pub fn run_boxed(self: &Arc<Self>, run: Run) -> BoxFuture<'static, Ran> {
        self.run_at(run, 0)
    }

    /// As `run`, for a tool that the toolbox need not have by its name (another's of that name may be in its place).
    pub fn run_tool(self: &Arc<Self>, tool: Arc<Tool>, run: Run) -> BoxFuture<'static, Ran> {
        let toolbox = Arc::clone(self);
        Box::pin(async move { toolbox.through(tool, run, 0).await })
    }

    async fn through(self: Arc<Self>, tool: Arc<Tool>, run: Run, depth: usize) -> Ran {
        let arguments = match checked(&tool, tool.own_names(coerce(&run.arguments))) {
            Ok(arguments) => Arc::new(arguments),
            Err(failure) => return Ran::not(failure.result(), &failure),
        };
        if depth > DEPTH {
            let tool = tool.name().to_owned();
            let failure = Failure::TooDeep { tool, limit: DEPTH };
            return Ran::not(failure.result(), &failure);
        }
        let gate = Gate {
            toolbox: self,
            tool,
            arguments,
            run,
            depth,
        };
        gate.pass().await
    }
}

/// What is said of a name that is none of these tools' and none of these aliases.
pub(crate) fn unknown<'a>(
    name: &str,
    tools: &[Arc<Tool>],
    aliases: impl Iterator<Item = (&'a String, &'a String)> + Clone,
) -> Failure {
    let available: Vec<String> = tools.iter().map(|tool| tool.name().to_owned()).collect();
    let near = nearest(
        name,
        available
            .iter()
            .chain(aliases.clone().map(|(alias, _)| alias)),
    );
    let real = |near: String| {
        let known = aliases.clone().find(|(alias, _)| **alias == near);
        known.map_or(near, |(_, real)| real.clone())
    };
    let near = near.map(real);
    Failure::Unknown {
        name: name.to_owned(),
        available,
        near,
        way: None,
    }
}

/// A valid call on its way.
struct Gate {
    toolbox: Arc<Toolbox>,
    tool: Arc<Tool>,
    arguments: Arc<Map<String, Value>>,
    run: Run,
    depth: usize,
}

impl Gate {
    async fn pass(self) -> Ran {
        match self.admit().await {
            Ok(()) => {}
            Err(failure) => return Ran::not(self.failed(&failure), &failure),
        }
        let begun = Instant::now();
        let outcome = self.handle().await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let ended = match outcome {
            Ok(raw) => self.leave(raw).await,
            Err(failure) => Err(failure),
        };
        match ended {
            Ok(result) => Ran {
                cause: self.cancelled_with(&result),
                result,
                ms,
            },
            Err(failure) => Ran {
                result: self.failed(&failure),
                ms,
                cause: Some(failure.cause()),
            },
        }
    }

    /// All that comes before the handler.
    async fn admit(&self) -> Result<(), Failure> {
        let hooks = self.toolbox.hooks.before.of(self.tool.name());
        let mut hooks = hooks.peekable();
        if hooks.peek().is_some() {
            self.noted(self.run.port.recorded()).await?;
        }
        self.hooks(hooks, None).await?;
        self.approve().await?;
        let access = self.tool.access_of(&self.arguments);
        self.noted(self.run.port.started(&self.run.call, access))
            .await
    }

    async fn noted(&self, noting: impl Future<Output = Result<(), String>>) -> Result<(), Failure> {
        let noted = self.unless_cancelled(noting).await?;
        noted.map_err(|why| Failure::NotRecorded {
            tool: self.tool.name().to_owned(),
            why,
        })
    }

    async fn approve(&self) -> Result<(), Failure> {
        let judgement = self
            .run
            .permissions
            .judge(
                &self.tool,
                &self.arguments,
                &self.run.cwd,
                &self.run.spill_dir,
            )
            .await;
        let tool = self.tool.name().to_owned();
        // What is forbidden is not even looked at.
        if judgement.policy == Policy::Deny {
            return Err(Failure::Forbidden { tool });
        }
        let change = self.change().await?;
        if let Some(change) = &change {
            self.run.port.changing(&self.run.call, change.clone());
        }
        if judgement.policy == Policy::Ask {
            self.ask(&judgement.why).await?;
            self.still(change.as_ref()).await?;
        }
        Ok(())
    }

    /// What it makes of a file that is there, by how that is now.
    async fn change(&self) -> Result<Option<Change>, Failure> {
        match self.tool.preview {
            Some(preview) => {
                let preview = preview(self.call(), Map::clone(&self.arguments));
                self.unless_cancelled(preview).await
            }
            None => Ok(None),
        }
    }

    /// A yes is for what was told: a file that became another meanwhile is not written over unseen.
    async fn still(&self, told: Option<&Change>) -> Result<(), Failure> {
        let now = self.change().await?;
        if now.as_ref().map(|now| now.stamp) == told.map(|told| told.stamp) {
            return Ok(());
        }
        let path = self.arguments.get("path").and_then(Value::as_str);
        Err(Failure::Changed {
            tool: self.tool.name().to_owned(),
            path: path.unwrap_or("the file").to_owned(),
        })
    }

    async fn ask(&self, why: &str) -> Result<(), Failure> {
        let tool = self.tool.name().to_owned();
        let arguments = Value::Object(Map::clone(&self.arguments));
        let patterns = self
            .run
            .permissions
            .suggestions(
                &self.tool,
                &self.arguments,
                &self.run.cwd,
                &self.run.spill_dir,
            )
            .await;
        let question = Question {
            call: &self.run.call,
            tool: &tool,
            arguments: &arguments,
            why,
            patterns,
        };
        let verdict = match self.unless_cancelled(self.run.port.ask(question)).await? {
            Ok(verdict) => verdict,
            Err(_) if self.run.cancel.is_cancelled() => return Err(Failure::Cancelled),
            Err(why) => return Err(Failure::Withdrawn { tool, why }),
        };
        match verdict.answer {
            Answer::Allow => Ok(()),
            Answer::Deny => {
                let reason = verdict.reason.filter(|reason| !reason.trim().is_empty());
                Err(Failure::Refused { tool, reason })
            }
        }
    }

    async fn handle(&self) -> Result<Map<String, Value>, Failure> {
        let Some(Sealed(handler)) = &self.tool.handler else {
            return Err(Failure::Raised(format!(
                "{} has no handler",
                self.tool.name()
            )));
        };
        let call = self.call();
        // The handler is called inside the future, so that a panic before its first await is caught as well.
        let running = async { handler.run(call, Map::clone(&self.arguments)).await };
        let mut running = std::pin::pin!(AssertUnwindSafe(running).catch_unwind());
        let ended = tokio::select! {
            biased;
            ended = &mut running => Some(ended),
            // The handler's own token is cancelled with this one.
            () = self.run.cancel.cancelled() => tokio::time::timeout(GRACE, running).await.ok(),
        };
        // It may have ended because it saw the cancel first.
        match (ended, self.run.cancel.is_cancelled()) {
            (Some(Ok(Ok(raw))), true) => Ok(cancelled(raw)),
            (Some(_), true) | (None, _) => Err(Failure::Cancelled),
            (Some(Ok(outcome)), false) => outcome.map_err(Failure::Raised),
            (Some(Err(panic)), false) => Err(Failure::Panicked {
                what: self.tool.name().to_owned(),
                detail: panic_text(&*panic),
            }),
        }
    }

    fn call(&self) -> Call {
        Call {
            session: self.run.session.clone(),
            call: self.run.call.clone(),
            cwd: self.run.cwd.clone(),
            env: Arc::clone(&self.run.env),
            cancel: self.run.cancel.child_token(),
            spill_dir: self.run.spill_dir.clone(),
            port: Arc::clone(&self.run.port),
            pass: Pass {
                toolbox: Arc::clone(&self.toolbox),
                permissions: Arc::clone(&self.run.permissions),
                depth: self.depth,
            },
        }
    }

    /// All that comes after the handler.
    async fn leave(&self, raw: Map<String, Value>) -> Result<Map<String, Value>, Failure> {
        if self.run.cancel.is_cancelled() {
            return Ok(finish(raw));
        }
        let raw = Arc::new(raw);
        let hooks = self.toolbox.hooks.after.of(self.tool.name());
        self.hooks(hooks, Some(&raw)).await?;
        Ok(finish(Arc::unwrap_or_clone(raw)))
    }

    /// The cause of a failure that the handler reported because it was cancelled.
    fn cancelled_with(&self, result: &Map<String, Value>) -> Option<Cause> {
        let failed = result.get("ok") == Some(&Value::Bool(false));
        (failed && self.run.cancel.is_cancelled()).then(|| Failure::Cancelled.cause())
    }

    async fn hooks<'a>(
        &self,
        hooks: impl Iterator<Item = &'a Hook>,
        result: Option<&Arc<Map<String, Value>>>,
    ) -> Result<(), Failure> {
        for hook in hooks {
            let call = HookCall {
                session: self.run.session.clone(),
                call: self.run.call.clone(),
                tool: self.tool.name().to_owned(),
                arguments: Arc::clone(&self.arguments),
                env: Arc::clone(&self.run.env),
                result: result.cloned(),
                port: Arc::clone(&self.run.port),
                from: self.call(),
            };
            let running = AssertUnwindSafe(hook.run(call)).catch_unwind();
            let failure = match self.unless_cancelled(running).await? {
                Ok(Ok(())) => continue,
                Ok(Err(message)) => Failure::Raised(message),
                Err(panic) => Failure::Panicked {
                    what: format!("the hook {:?}", hook.name()),
                    detail: panic_text(&*panic),
                },
            };
            let point = if result.is_none() { "before" } else { "after" };
            self.run.port.warn(&format!(
                "the hook {:?} {point} {} raised: {}",
                hook.name(),
                self.tool.name(),
                failure.text()
            ));
            return Err(failure);
        }
        Ok(())
    }

    async fn unless_cancelled<T>(&self, future: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.run.cancel.cancelled() => Err(Failure::Cancelled),
            value = future => Ok(value),
        }
    }

    fn failed(&self, failure: &Failure) -> Map<String, Value> {
        match failure {
            Failure::Raised(_)
            | Failure::Panicked { .. }
            | Failure::Forbidden { .. }
            | Failure::Refused { .. } => failure.result_of(self.tool.name(), &self.arguments),
            Failure::Unknown { .. }
            | Failure::Invalid(_)
            | Failure::Withdrawn { .. }
            | Failure::Changed { .. }
            | Failure::Cancelled
            | Failure::NotRecorded { .. }
            | Failure::TooDeep { .. } => failure.result(),
        }
    }
}

impl Call {
    /// Calls another tool, through the gate like everybody; the call is recorded as this one's child.
    pub async fn run(&self, name: &str, arguments: Value) -> Map<String, Value> {
        let call = match self
            .port
            .child(&self.call, Via::Tool, name, &arguments)
            .await
        {
            Ok(call) => call,
            Err(why) => {
                let tool = name.to_owned();
                return Failure::NotRecorded { tool, why }.result();
            }
        };
        let run = Run {
            session: self.session.clone(),
            call: call.clone(),
            name: name.to_owned(),
            arguments,
            cwd: self.cwd.clone(),
            env: Arc::clone(&self.env),
            cancel: self.cancel.clone(),
            spill_dir: self.spill_dir.clone(),
            port: Arc::clone(&self.port),
            permissions: Arc::clone(&self.pass.permissions),
        };
        let ran = self.pass.toolbox.run_at(run, self.pass.depth + 1).await;
        if let Err(why) = self.port.child_done(&call, &ran.result, ran.ms).await {
            self.port
                .warn(&format!("cannot record the end of {name}: {why}"));
        }
        ran.result
    }

    /// A call for tests of a handler alone.
    #[cfg(test)]
    pub(crate) fn detached(
        cwd: PathBuf,
        env: BTreeMap<String, String>,
        spill_dir: PathBuf,
        port: Arc<dyn CallPort>,
    ) -> Self {
        Self {
            session: "test".into(),
            call: "c1".into(),
            cwd,
            env: Arc::new(env),
            cancel: CancellationToken::new(),
            spill_dir,
            port,
            pass: Pass {
                toolbox: Arc::default(),
                permissions: Arc::default(),
                depth: 0,
            },
        }
    }
}

impl Ran {
    fn not(result: Map<String, Value>, failure: &Failure) -> Self {
        Self {
            result,
            ms: 0,
            cause: Some(failure.cause()),
        }
    }
}

/// A string that holds a JSON object is that object; an empty one and null are `{}`; all else is itself.
pub(crate) fn coerce(arguments: &Value) -> Value {
    match arguments {
        Value::Null => Value::Object(Map::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => Value::Object(object),
            Ok(_) | Err(_) => arguments.clone(),
        },
        _ => arguments.clone(),
    }
}

fn checked(tool: &Tool, arguments: Value) -> Result<Map<String, Value>, Failure> {
    if is_deeper(&arguments, DEEPEST) {
        let why = format!(
            "the arguments of {} are more than {DEEPEST} deep",
            tool.name()
        );
        return Err(Failure::Invalid(why));
    }
    tool.validate(&arguments).map_err(Failure::Invalid)?;
    match arguments {
        Value::Object(arguments) => Ok(arguments),
        _ => Err(Failure::Invalid(
            "value at root is not an object".to_owned(),
        )),
    }
}

/// What a handler that was cancelled leaves behind: a success stays one, a failure is the cancellation.
fn cancelled(mut raw: Map<String, Value>) -> Map<String, Value> {
    if raw.get("error").is_some_and(|error| !error.is_null()) {
        raw.insert("error".to_owned(), Value::String(Failure::Cancelled.text()));
    }
    raw
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it panicked".to_owned())
}

/// The name that a slip of the fingers or another agent's habit may have meant.
fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a String>) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace(['-', '_', ' ', '.'], "");
    let wanted = plain(name);
    if wanted.is_empty() {
        return None;
    }
    let limit = (wanted.chars().count() / 3).clamp(1, 3);
    names
        .map(|known| (distance(&wanted, &plain(known)), known))
        .filter(|(distance, known)| *distance <= limit && *distance < known.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known.clone())
}

/// How many letters must change, be added or go.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, right) in b.iter().enumerate() {
            let changed = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
