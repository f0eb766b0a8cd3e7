//! Hooks that are shell commands, from `config.toml` and a trusted directory's `.agents/config.toml`.
//! Must never let a call pass because a file of hooks cannot be read, or a command does not end.

mod run;

use super::plugins::OnFailure;
use super::trust::Standing;
use super::{Shared, file};
use crate::toolbox::Toolbox;
use crate::toolbox::hook::{Hook, HookCall};
use protocol::approval::TrustState;
use protocol::plugin::HookPoint;
use serde::Deserialize;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const NAME: &str = ".agents/config.toml";
/// More than this is no settings.
const LONGEST: u64 = 256 * 1024;

/// A command that runs around tools.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShellHook {
    pub point: HookPoint,
    /// The tool's real name; none is every tool.
    #[serde(default)]
    pub tool: Option<String>,
    /// For `sh -c`, in the session's directory, with the call as JSON on its stdin.
    pub command: String,
    /// How long it may take before the call is refused, in milliseconds.
    #[serde(default = "half_a_minute")]
    pub timeout_ms: u64,
}

fn half_a_minute() -> u64 {
    30_000
}

/// The hooks of `config.toml`, and how they are read anew; a cheap handle.
#[derive(Clone)]
pub struct Users {
    /// Held for a look only.
    now: Arc<Mutex<Vec<ShellHook>>>,
    read: Arc<Read>,
}

/// The hooks, and what people should know of the rest of the file.
type Read = dyn Fn() -> Result<(Vec<ShellHook>, Vec<String>), String> + Send + Sync;

impl Users {
    pub fn new<F>(now: Vec<ShellHook>, read: F) -> Self
    where
        F: Fn() -> Result<(Vec<ShellHook>, Vec<String>), String> + Send + Sync + 'static,
    {
        Self {
            now: Arc::new(Mutex::new(now)),
            read: Arc::new(read),
        }
    }

    /// Reads them anew; blocks on the disk. With a file that cannot be used they stay as they were.
    pub(super) fn reread(&self) -> Result<Vec<String>, String> {
        let (new, notes) = (self.read)()?;
        *self.now.lock().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(notes)
    }

    fn now(&self) -> Vec<ShellHook> {
        let now = self.now.lock();
        now.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Users").field(&self.now()).finish()
    }
}

/// What a directory may set.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Own {
    hooks: Vec<ShellHook>,
}

/// The hooks that count in a directory, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ShellHooks {
    hooks: Vec<ShellHook>,
    /// Why some are not known; then nothing may run.
    problem: Option<String>,
}

/// The user's, then those of a trusted directory. Where it was trusted and is not any more, what it would have refused
/// nobody knows.
pub(super) fn of(shared: &Shared, cwd: &Path, standing: &Standing) -> ShellHooks {
    let mut all = ShellHooks {
        hooks: shared.places.hooks.now(),
        problem: None,
    };
    if standing.trust.state != TrustState::Trusted {
        all.problem = match shared.places.plugins.on_failure() {
            OnFailure::Refuse => standing.lost_guards.clone(),
            OnFailure::Ignore => None,
        };
        return all;
    }
    match own(&cwd.join(NAME)) {
        Ok(own) => all.hooks.extend(own.hooks),
        Err(why) => all.problem = Some(format!("cannot use {NAME}: {why}")),
    }
    all
}

fn own(path: &Path) -> Result<Own, String> {
    let Some(bytes) = file::read(path, LONGEST).map_err(|error| error.to_string())? else {
        return Ok(Own::default());
    };
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    toml::from_str(&text).map_err(|error| error.to_string().trim_end().to_owned())
}

impl ShellHooks {
    pub(super) fn add_to(&self, toolbox: &mut Toolbox, cwd: &Path) {
        if let Some(problem) = self.problem.clone() {
            toolbox.problem(problem.clone());
            let refuse = move |_: &HookCall| Err(problem.clone());
            toolbox.before(None, Hook::sync(NAME, refuse));
        }
        for hook in &self.hooks {
            let tool = hook.tool.as_deref();
            match hook.point {
                HookPoint::Before => toolbox.before(tool, shell(hook, cwd)),
                HookPoint::After => toolbox.after(tool, shell(hook, cwd)),
            }
        }
    }
}

fn shell(hook: &ShellHook, cwd: &Path) -> Hook {
    let (hook, cwd): (ShellHook, PathBuf) = (hook.clone(), cwd.to_owned());
    let name = hook.command.clone();
    Hook::new(&name, move |call: HookCall| {
        let (hook, cwd) = (hook.clone(), cwd.clone());
        async move {
            let limit = Duration::from_millis(hook.timeout_ms);
            match tokio::time::timeout(limit, run::command(&hook, cwd, &call)).await {
                Ok(outcome) => outcome,
                Err(_) => {
                    let (command, seconds) = (&hook.command, limit.as_secs_f64());
                    Err(format!(
                        "the hook {command:?} did not end within {seconds} s"
                    ))
                }
            }
        }
    })
}
