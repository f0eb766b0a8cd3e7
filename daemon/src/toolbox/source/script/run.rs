//! Running a script's tool: its arguments checked, its environment made, its end turned into a result.
//! Must never build a line for a shell, nor let a script see a name that it did not declare.

mod asking;
mod before;
mod child;
pub(super) mod dotenv;
mod environment;
pub(super) mod folder;
pub(super) mod guard;
mod kept;
mod numbers;
mod outcome;
pub(super) mod words;

use super::{Declaration, Language};
use crate::process::{Exit, Spawn};
use crate::toolbox::BoxFuture;
use crate::toolbox::builtin::capture::Capture;
use crate::toolbox::tool::{Call, Handler, Outcome, Tool};
use asking::Asking;
use child::{Complaints, Ended};
use folder::Folder;
use guard::Guard;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// For a script that names no time of its own.
pub const TIMEOUT: Duration = Duration::from_secs(120);

/// What a function may take that is no tool: somebody waits for its word.
const SAYING: Duration = Duration::from_secs(20);

const NODE: &str = include_str!("run/runner.js");
const PYTHON: &str = include_str!("run/runner.py");
/// Read only by who has something to write that is no text.
const PYTHON_RESULT: &str = include_str!("run/result.py");
/// Where bash reads a script from that is run from elsewhere than its file.
const SOURCE: &str = "DWELL_TOOL_SOURCE";

/// A folder that holds tools, and what is kept for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Root {
    /// `LLM_ROOT_DIR`; its `.env` is read for every call.
    pub dir: PathBuf,
    /// Where tools may keep things; made when the first of them runs.
    pub cache: PathBuf,
    /// A folder of the daemon's where `argc` is.
    pub bin: PathBuf,
}

/// A script that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub file: PathBuf,
    pub language: Language,
    /// The file's name without its end; for an agent's script the agent's name.
    pub name: String,
    pub root: Arc<Root>,
    pub agent: Option<Arc<Agent>>,
    pub timeout: Duration,
    /// What it was when it was taken apart, and a person agreed to it where that is needed: what runs.
    pub source: Arc<[u8]>,
}

/// Whose script it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agent {
    pub name: String,
    pub dir: PathBuf,
    pub variables: Vec<(String, String)>,
}

/// A script that only has to be started.
struct Prepared {
    folder: Folder,
    spawn: Spawn,
    /// Where it may start guards so that nobody sees it.
    unseen: Option<String>,
}

/// What surrounds a script while it runs.
#[derive(Clone, Debug)]
pub struct Around {
    pub cwd: PathBuf,
    /// The session's.
    pub env: Arc<BTreeMap<String, String>>,
    pub spill_dir: PathBuf,
    /// No two that run at once have the same.
    pub id: String,
}

impl Around {
    fn of(call: &Call) -> Self {
        Self {
            cwd: call.cwd.clone(),
            env: Arc::clone(&call.env),
            spill_dir: call.spill_dir.clone(),
            id: format!("{}-{}", call.session, call.call).replace('/', "_"),
        }
    }
}

/// The tool that one of a script's declarations is.
pub fn tool(script: &Arc<Script>, declaration: &Arc<Declaration>) -> Tool {
    let name = plain(&declaration.name);
    let mut tool = Tool::new(&name, &declaration.description)
        .params(declaration.properties.clone())
        .null_is_nothing()
        .source("script")
        .root(&script.root.dir);
    if name != declaration.name {
        tool = tool.alias(&declaration.name);
    }
    let shown = declaration.properties.keys();
    let runner = Runner {
        script: Arc::clone(script),
        declaration: Arc::clone(declaration),
        shown: shown.map(|own| tool.shown(own).to_owned()).collect(),
    };
    // Whether a variable says one of them is known when it runs: then the script itself asks for it.
    let is_asked = |name: &&String| !declaration.bound.contains(*name);
    let required = declaration.required.iter().filter(is_asked);
    required
        .fold(tool, |tool, name| tool.required(name))
        .handler(runner)
}

/// How long a name is that every vendor takes.
pub(super) const LONGEST: usize = 64;

/// A name that every vendor takes.
pub(super) fn plain(name: &str) -> String {
    let fits = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    name.chars().map(fits).take(LONGEST).collect()
}

struct Runner {
    script: Arc<Script>,
    declaration: Arc<Declaration>,
    /// Its parameters, as models know them.
    shown: Vec<String>,
}

impl Handler for Runner {
    fn run<'a>(&'a self, call: Call, arguments: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            self.declaration.check(&arguments, &self.shown)?;
            numbers::check(self.script.language, &arguments)?;
            Ok(self.script.run(&self.declaration, &call, arguments).await)
        })
    }
}

impl Declaration {
    /// What the gate lets through and a script must not be given.
    fn check(&self, arguments: &Map<String, Value>, shown: &[String]) -> Result<(), String> {
        for (name, value) in arguments {
            if !self.properties.contains_key(name) {
                let known = match shown {
                    [] => "none".to_owned(),
                    known => known.join(", "),
                };
                return Err(format!(
                    "{} has no argument {name:?}; it has: {known}",
                    self.name
                ));
            }
            if has_nul(value) {
                return Err(format!(
                    "the argument {name:?} of {} holds a NUL character, which no program can be given",
                    self.name
                ));
            }
        }
        Ok(())
    }
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(members) => members
            .iter()
            .any(|(name, value)| name.contains('\0') || has_nul(value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

impl Script {
    async fn run(
        self: &Arc<Self>,
        declaration: &Arc<Declaration>,
        call: &Call,
        arguments: Map<String, Value>,
    ) -> Map<String, Value> {
        let around = Around::of(call);
        let failed = |why: String| Map::from_iter([("error".to_owned(), why.into())]);
        let prepared = match self.prepared(declaration, around, arguments).await {
            Ok(prepared) => prepared,
            Err(why) => return failed(why),
        };
        if let Some(place) = &prepared.unseen
            && let Err(why) = guard::allows(call, self, place).await
        {
            return failed(why);
        }
        let Prepared { folder, spawn, .. } = prepared;
        // Without one there is no yes either: a guard that cannot ask refuses.
        let guard = spawn
            .env
            .contains_key(super::standin::GUARD)
            .then(|| Guard::open(&folder).ok())
            .flatten();
        let mut printed = Capture::new(call);
        let mut complaints = Complaints::new(Some(call));
        let asking = AtomicBool::new(false);
        let running = child::run(
            &spawn,
            child::Limit {
                time: self.timeout,
                cancel: &call.cancel,
                asking: &asking,
            },
            &mut printed,
            &mut complaints,
        );
        let guarding = async {
            if let Some(guard) = guard {
                guard.serve(call, &asking).await;
            }
            std::future::pending().await
        };
        let exit = tokio::select! {
            exit = running => exit,
            never = guarding => never,
        };
        let ended = Ended {
            exit,
            began: !self.asks_argc() || folder.asked().exists(),
            stdout: printed.finish().await,
            stderr: complaints.text(),
        };
        outcome::result(call, ended, &folder, self.timeout).await
    }

    /// Whether it begins with what argc answers.
    fn asks_argc(&self) -> bool {
        let asks = |line: &[u8]| {
            let text = String::from_utf8_lossy(line);
            text.contains("--argc-eval") && !text.trim_start().starts_with('#')
        };
        self.language == Language::Bash && self.source.split(|byte| *byte == b'\n').any(asks)
    }

    /// What a function says that is no tool: its output as text. The error is for people.
    pub(super) async fn say(
        self: &Arc<Self>,
        function: &str,
        around: Around,
    ) -> Result<String, String> {
        let declaration = Declaration {
            name: function.to_owned(),
            function: function.to_owned(),
            ..Declaration::default()
        };
        let prepared = self
            .prepared(&Arc::new(declaration), around, Map::new())
            .await?;
        let Prepared {
            folder,
            spawn,
            unseen,
        } = prepared;
        if let Some(place) = unseen {
            let file = self.file.display();
            return Err(format!(
                "{function} of {file} is not run: a guard could be passed unasked ({place})"
            ));
        }
        let (mut printed, mut complaints) = (Complaints::new(None), Complaints::new(None));
        let never = CancellationToken::new();
        let limit = child::Limit {
            time: SAYING.min(self.timeout),
            cancel: &never,
            asking: &AtomicBool::new(false),
        };
        let exit = child::run(&spawn, limit, &mut printed, &mut complaints).await;
        let said = outcome::written(folder.output()).await;
        match exit {
            Exit::Code(0) if said.is_empty() => Ok(printed.text()),
            Exit::Code(0) => Ok(said),
            exit => Err(format!(
                "{function} of {} failed: {exit:?} {}",
                self.file.display(),
                complaints.text().trim()
            )),
        }
    }

    async fn prepared(
        self: &Arc<Self>,
        declaration: &Arc<Declaration>,
        around: Around,
        arguments: Map<String, Value>,
    ) -> Result<Prepared, String> {
        let (script, declaration) = (Arc::clone(self), Arc::clone(declaration));
        let work = move || script.prepare(&declaration, &around, arguments);
        let prepared = tokio::task::spawn_blocking(work).await;
        prepared
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| format!("cannot make ready what {} needs: {error}", self.name))
    }

    /// All that touches the disk before the start.
    fn prepare(
        &self,
        declaration: &Declaration,
        around: &Around,
        arguments: Map<String, Value>,
    ) -> std::io::Result<Prepared> {
        let folder = Folder::make(around)?;
        let kept = self.kept(&folder)?;
        let mut env = environment::of(self, declaration, around, &folder)?;
        let (guards, unseen) = match guard::has_guards(&self.root.dir) {
            true => (
                guard::prepare(&self.root.dir, &self.root.bin, &folder, &mut env)?,
                guard::unseen(self),
            ),
            false => (String::new(), None),
        };
        let (program, args, stdin) = match self.language {
            Language::Bash => {
                let words = self.words(declaration, &arguments);
                let asking = Asking {
                    script: self,
                    declaration,
                    arguments: &arguments,
                    words: &words,
                };
                asking.stand_in(&folder, kept.as_deref(), &guards, &mut env)?;
                let args = self.bash(words, kept.as_deref(), &mut env)?;
                ("bash", args, None)
            }
            Language::JavaScript => {
                before::prepare(&folder, None, &guards, &mut env)?;
                let before = ["-e", NODE, "--"];
                let args = self.run_by(&before, declaration, kept, &[]);
                ("node", args, Some(numbers::for_node(arguments)))
            }
            Language::Python => {
                before::prepare(&folder, None, &guards, &mut env)?;
                let before = ["-X", "utf8", "-c", PYTHON];
                let args = self.run_by(&before, declaration, kept, &[PYTHON_RESULT]);
                ("python3", args, Some(Value::Object(arguments)))
            }
        };
        let spawn = Spawn {
            program: program.into(),
            args,
            cwd: around.cwd.clone(),
            env,
            stdin: stdin.map(|given| given.to_string().into_bytes()),
            timeout: None,
        };
        Ok(Prepared {
            folder,
            spawn,
            unseen,
        })
    }

    /// The script's own arguments, as its author would type them.
    fn words(&self, declaration: &Declaration, arguments: &Map<String, Value>) -> Vec<String> {
        let function = Some(&declaration.function).filter(|function| !function.is_empty());
        let mut words: Vec<_> = function.into_iter().cloned().collect();
        words.extend(words::of(declaration, arguments));
        words
    }

    fn bash(
        &self,
        words: Vec<String>,
        kept: Option<&Path>,
        env: &mut BTreeMap<String, String>,
    ) -> std::io::Result<Vec<OsString>> {
        let mut args = Vec::new();
        if let Some(kept) = kept {
            // So it finds its own name, and what lies beside it, where they were.
            env.insert(SOURCE.to_owned(), text(kept)?);
            args.extend(["-c".into(), format!("builtin . \"${SOURCE}\"").into()]);
        }
        args.push(self.file.clone().into_os_string());
        args.extend(words.into_iter().map(OsString::from));
        Ok(args)
    }

    /// For one of our runners: the file, its function, and what to read instead of the file, if anything.
    fn run_by(
        &self,
        before: &[&str],
        declaration: &Declaration,
        kept: Option<PathBuf>,
        after: &[&str],
    ) -> Vec<OsString> {
        let function = match declaration.function.as_str() {
            "" => "run",
            function => function,
        };
        let mut args: Vec<_> = before.iter().map(OsString::from).collect();
        args.extend([self.file.clone().into_os_string(), function.into()]);
        args.push(kept.unwrap_or_default().into_os_string());
        args.extend(after.iter().map(OsString::from));
        args
    }
}

/// A path that goes into an environment, which here is text.
fn text(path: &Path) -> std::io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| std::io::Error::other(format!("{} is not UTF-8", path.display())))
}

#[cfg(test)]
mod tests;
