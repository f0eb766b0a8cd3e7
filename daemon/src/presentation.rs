//! Presentations: how a toolkit is shown to a model. Each takes one and gives another, whose tools reach the first.
//! Changes what a model sees, never what may run: whatever is called ends in the gate of the toolbox it comes from.

pub mod code_mode;
mod failure;
mod merge;
pub mod named;
mod restrict;
mod schema;
pub mod search;
mod shown;
mod source;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
pub mod usual;

pub use failure::{Failure, failure};
pub use merge::merge;
pub use named::{Means, Settings, reached, toolkit, toolkit_there_is};
pub use restrict::restrict;
pub use schema::input_schema_of;
pub use shown::Shown;

use crate::toolbox::gate::{self, Ran, Run};
use crate::toolbox::result;
use crate::toolbox::tool::Tool;
use crate::toolbox::{BoxFuture, Toolbox, Via};
use protocol::tool::{Definition, Shadowed};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The parameter that has an expression, where complaints about one begin.
pub const FIELD: &str = "toolbox";
/// The source of the tools that a presentation adds itself. They never ask: what they call does, by its own name.
pub const SOURCE: &str = "presentation";

/// Tools as a model has them: what it reads of them, and what a call of one does. A snapshot for a turn; cheap to make.
pub trait Toolkit: Send + Sync {
    /// The tools, in the order in which they are shown.
    fn tools(&self) -> &[Arc<Tool>];
    /// Alias and real name of those that have some; of two of one alias the first counts.
    fn aliases(&self) -> &[(String, String)];
    /// What models read of `tools`.
    fn definitions(&self) -> Arc<[Definition]>;
    /// Runs one of `tools` by `run.name`, an alias or the real name, as the call `run.call` that is recorded already. Never
    /// fails: a failure is a result.
    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Ran>;
    /// How a tool that is reached but not shown is called, for whoever tries it by its name; a sentence for the model.
    fn way_to(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
    /// How many tools are reached through these without being among them.
    fn reached(&self) -> usize {
        0
    }
    /// Tools that another of the same name hides.
    fn shadowed(&self) -> Vec<Shadowed> {
        Vec::new()
    }
    /// Names in the expression that are no tool's.
    fn unknown_names(&self) -> Vec<String> {
        Vec::new()
    }
}

impl std::fmt::Debug for dyn Toolkit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.tools().iter().map(|tool| tool.name());
        f.debug_list().entries(names).finish()
    }
}

/// The tool that a name calls; a real name wins over an alias.
pub fn real_name<'a>(presented: &'a dyn Toolkit, name: &str) -> Option<&'a str> {
    let named = |name: &str| presented.tools().iter().find(|tool| tool.name() == name);
    let by_alias = || {
        let mut aliases = presented.aliases().iter();
        named(&aliases.find(|(alias, _)| alias == name)?.1)
    };
    named(name).or_else(by_alias).map(|tool| tool.name())
}

/// Whether it has a tool of this name; an alias is none.
pub fn has_tool(presented: &dyn Toolkit, name: &str) -> bool {
    presented.tools().iter().any(|tool| tool.name() == name)
}

/// Runs a tool as `run` says, and gives its result object, or a failure that a model can read.
pub async fn call(presented: Arc<dyn Toolkit>, run: Run) -> Result<Map<String, Value>, Failure> {
    let ran = presented.run(run).await;
    match Failure::of(&ran) {
        None => Ok(ran.result),
        Some(failure) => Err(failure),
    }
}

/// Runs a tool of `inner` within the running call `parent`: recorded as its child, checked, asked for and run as if a model
/// had called it directly. `parent` has the cancel token, and the port that the inner call speaks to.
pub async fn within(
    inner: Arc<dyn Toolkit>,
    parent: &Run,
    via: Via,
    name: &str,
    arguments: Value,
) -> Ran {
    let call = match parent.port.child(&parent.call, via, name, &arguments).await {
        Ok(call) => call,
        Err(why) => return Failure::not_recorded(name, &why).ran(),
    };
    let run = Run {
        call: call.clone(),
        name: name.to_owned(),
        arguments,
        ..parent.clone()
    };
    let ran = inner.run(run).await;
    if let Err(why) = parent.port.child_done(&call, &ran.result, ran.ms).await {
        let why = format!("cannot record the end of {name}: {why}");
        parent.port.warn(&why);
    }
    ran
}

/// The end of a call of a presentation's own tool that a rule forbids by its name. Nothing else is asked of these.
fn forbidden(run: &Run, name: &str) -> Option<Ran> {
    let failure = || result::Failure::Forbidden {
        tool: name.to_owned(),
    };
    run.permissions.forbids(name).then(|| Ran {
        result: failure().result(),
        ms: 0,
        cause: Some(failure().cause()),
    })
}

/// The end of a call of a name that is no tool's here.
fn unknown(presented: &dyn Toolkit, name: &str) -> Ran {
    let aliases = presented
        .aliases()
        .iter()
        .map(|(alias, real)| (alias, real));
    let unknown = gate::unknown(name, presented.tools(), aliases);
    match presented.way_to(name) {
        Some(way) => Failure::hidden(unknown, way).ran(),
        None => Ran {
            result: unknown.result(),
            ms: 0,
            cause: Some(unknown.cause()),
        },
    }
}

/// What a workspace assembled is a toolkit as it is.
impl Toolkit for Toolbox {
    fn tools(&self) -> &[Arc<Tool>] {
        Self::tools(self)
    }

    fn aliases(&self) -> &[(String, String)] {
        Self::alias_list(self)
    }

    fn definitions(&self) -> Arc<[Definition]> {
        Self::definitions(self)
    }

    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Ran> {
        Self::run_boxed(&self, run)
    }

    fn shadowed(&self) -> Vec<Shadowed> {
        Self::shadowed(self).to_vec()
    }
}
