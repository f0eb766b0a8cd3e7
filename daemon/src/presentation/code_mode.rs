//! Code mode: one tool, `run_code`, in the place of all: it runs a model's program, which calls them.
//! Must never run a program in the daemon's own process, nor a call past the toolkit that it holds.

mod child;
mod clock;
mod confine;
mod declare;
mod engine;
mod limits;
mod line;
mod outcome;
mod port;
mod program;
pub mod runner;
mod slots;
mod source;
#[cfg(test)]
mod tests;
mod wire;

use super::search::FIND;
use super::{Failure, SOURCE, Shown, Toolkit, forbidden, real_name, unknown, within};
use crate::toolbox::gate::{Ran, Run, coerce};
use crate::toolbox::result::{Cause, Origin};
use crate::toolbox::tool::{Access, Tool};
use crate::toolbox::{BoxFuture, Via};
use clock::Clock;
use declare::Declarations;
use limits::Limits;
use outcome::Outcome;
use port::{Grants, ProgramPort};
use program::Program;
use protocol::expression::{BadExpression, CodeApproval, CodeLimits};
use protocol::tool::Definition;
use serde::Deserialize;
use serde_json::{Value, json};
use slots::Slots;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use wire::Failed;

/// The tool that runs programs.
pub const RUN_CODE: &str = "run_code";

/// `[code]` of `config.toml`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Run programs also where no filter of system calls can be had.
    pub unfiltered: bool,
}

/// Programs of this daemon at once, and how many wait for a place.
static SLOTS: Slots = Slots::new(4, 8);

/// What programs may do.
#[derive(Clone, Debug)]
pub struct Rules {
    limits: Limits,
    approval: CodeApproval,
    settings: Settings,
}

impl Rules {
    /// As an expression in the field `path` has them. Refused where programs could not be confined as they must be.
    pub fn of(
        limits: &CodeLimits,
        approval: CodeApproval,
        settings: Settings,
        path: &str,
    ) -> Result<Self, BadExpression> {
        let bad = |path: String, why: String| BadExpression { path, why };
        allowed(confine::available(), settings).map_err(|why| bad(path.to_owned(), why))?;
        let limits = Limits::of(limits)
            .map_err(|limit| bad(format!("{path}.limits.{}", limit.name), limit.why))?;
        Ok(Self {
            limits,
            approval,
            settings,
        })
    }
}

/// Whether programs may run where a filter is available so.
fn allowed(available: Result<(), String>, settings: Settings) -> Result<(), String> {
    available.or_else(|why| match settings.unfiltered {
        true => Ok(()),
        false => Err(format!(
            "code mode is off here: {why}; set unfiltered = true in [code] of config.toml to run programs without one"
        )),
    })
}

/// What a model reads of `run_code`, kept with the toolbox so that it is made once.
pub type Cell = Arc<OnceLock<Face>>;

pub struct Face {
    run_code: Arc<Tool>,
    /// Whether every tool is declared.
    complete: bool,
}

pub struct CodeMode {
    inner: Arc<dyn Toolkit>,
    /// Finds tools that are not declared; none when all are.
    search: Option<Arc<dyn Toolkit>>,
    rules: Rules,
    shown: Shown,
    slots: &'static Slots,
}

impl CodeMode {
    /// `search` makes what has `search_tools` over the same tools; it is used when not all declarations fit.
    pub fn new(
        inner: Arc<dyn Toolkit>,
        rules: Rules,
        cell: &Cell,
        search: impl FnOnce(Arc<dyn Toolkit>) -> Arc<dyn Toolkit>,
    ) -> Self {
        let face = cell.get_or_init(|| {
            let declarations = Declarations::of(inner.tools());
            Face {
                run_code: Arc::new(run_code(&declarations, &rules.limits)),
                complete: declarations.complete,
            }
        });
        let search = (!face.complete).then(|| search(Arc::clone(&inner)));
        let mut tools = vec![Arc::clone(&face.run_code)];
        let finder = search.iter().flat_map(|search| search.tools());
        tools.extend(finder.filter(|tool| tool.name() == FIND).cloned());
        Self {
            inner,
            search,
            rules,
            shown: Shown::new(tools, Vec::new()),
            slots: &SLOTS,
        }
    }

    async fn program(self: Arc<Self>, run: Run) -> Ran {
        if let Some(forbidden) = forbidden(&run, RUN_CODE) {
            return forbidden;
        }
        let code = match code(&self.shown.tools[0], &run.arguments) {
            Ok(code) => code,
            Err(errors) => return Failure::parameters(errors).ran(),
        };
        let begun = Instant::now();
        let outcome = self.run_program(&code, &run).await;
        let ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let cause = outcome.code().map(|code| Cause {
            code: code.to_owned().into(),
            origin: Origin::Presentation,
        });
        let result = outcome.result();
        Ran { result, ms, cause }
    }

    async fn run_program(&self, code: &str, run: &Run) -> Outcome {
        let grants = Arc::new(Grants::new(
            Arc::clone(&self.inner),
            Arc::clone(&run.permissions),
            run.cwd.clone(),
            run.spill_dir.clone(),
        ));
        let place = Arc::new(Semaphore::new(1));
        let caller = |tool: String, input: Value, clock: Arc<Clock>, cancel: CancellationToken| {
            let toolkit = self.that_has(&tool);
            let port = ProgramPort {
                outer: Arc::clone(&run.port),
                clock,
                approval: self.rules.approval,
                grants: Arc::clone(&grants),
                place: Arc::clone(&place),
            };
            let parent = Run {
                permissions: grants.permissions(),
                port: Arc::new(port),
                cancel,
                ..run.clone()
            };
            let call: BoxFuture<'static, Result<Value, Box<Failed>>> = Box::pin(async move {
                let ran = within(toolkit, &parent, Via::Code, &tool, input).await;
                match Failure::of(&ran) {
                    None => Ok(Value::Object(ran.result)),
                    Some(failure) => Err(Box::new(failed(failure, tool))),
                }
            });
            call
        };
        Program {
            code,
            tools: self.names(),
            limits: &self.rules.limits,
            unfiltered: self.rules.settings.unfiltered,
            slots: self.slots,
            within: run.port.place(),
            cancel: &run.cancel,
        }
        .run(&caller)
        .await
    }

    fn that_has(&self, name: &str) -> Arc<dyn Toolkit> {
        match &self.search {
            Some(search) if name == FIND => Arc::clone(search),
            Some(_) | None => Arc::clone(&self.inner),
        }
    }

    /// What a program finds in `tools`.
    fn names(&self) -> Vec<String> {
        let all = self.inner.tools().iter().map(|tool| tool.name().to_owned());
        let finder = self.search.as_ref().map(|_| FIND.to_owned());
        let mut names: Vec<String> = all.filter(|name| Some(name) != finder.as_ref()).collect();
        names.extend(finder);
        names
    }
}

impl Toolkit for CodeMode {
    fn tools(&self) -> &[Arc<Tool>] {
        &self.shown.tools
    }

    fn aliases(&self) -> &[(String, String)] {
        &self.shown.aliases
    }

    fn definitions(&self) -> Arc<[Definition]> {
        self.shown.definitions()
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Ran> {
        match (real_name(&*self, &run.name), &self.search) {
            (Some(RUN_CODE), _) => Box::pin(self.program(run)),
            (Some(FIND), Some(search)) => Arc::clone(search).run(run),
            _ => {
                let ran = unknown(&*self, &run.name);
                Box::pin(async { ran })
            }
        }
    }

    fn reached(&self) -> usize {
        self.inner.tools().len() + self.inner.reached()
    }

    fn way_to(&self, name: &str) -> Option<String> {
        let name = real_name(&*self.inner, name)?;
        let code = json!({"code": format!("return await tools[{}]({{...}})", json!(name))});
        Some(format!("{name:?} is reached by {RUN_CODE} with {code}."))
    }
}

fn run_code(declarations: &Declarations, limits: &Limits) -> Tool {
    Tool::new(RUN_CODE, &declarations.description(limits))
        .param(
            "code",
            json!({"type": "string", "description": "The program"}),
        )
        .required("code")
        .access(Access::Nothing)
        .source(SOURCE)
}

/// The program among the arguments.
fn code(tool: &Tool, arguments: &Value) -> Result<String, String> {
    let arguments = coerce(arguments);
    tool.validate(&arguments)?;
    match arguments.get("code") {
        Some(Value::String(code)) => Ok(code.clone()),
        Some(_) | None => Err("\"code\" is a required property".to_owned()),
    }
}

fn failed(failure: Failure, tool: String) -> Failed {
    Failed {
        tool: Some(tool),
        retryable: failure.retryable,
        details: failure.details.map(|details| *details),
        ..Failed::new(&failure.code, &failure.message)
    }
}
