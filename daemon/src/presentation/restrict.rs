//! Some of a toolkit's tools: those that are named. They run as they do there; the others are not there at all.

use super::{SOURCE, Shown, Toolkit, has_tool, real_name, unknown};
use crate::toolbox::BoxFuture;
use crate::toolbox::gate::{Ran, Run};
use crate::toolbox::tool::Tool;
use protocol::tool::{Definition, Shadowed};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The tools of `presented` that `names` names; a name that is no tool's is ignored.
pub fn restrict(presented: Arc<dyn Toolkit>, names: &BTreeSet<String>) -> Arc<dyn Toolkit> {
    Arc::new(Restrict::new(presented, names))
}

pub(super) struct Restrict {
    of: Arc<dyn Toolkit>,
    shown: Shown,
    unknown: Vec<String>,
}

impl Restrict {
    pub(super) fn new(of: Arc<dyn Toolkit>, names: &BTreeSet<String>) -> Self {
        let kept = of.tools().iter().filter(|tool| names.contains(tool.name()));
        let aliases = of.aliases().iter().filter(|(_, real)| names.contains(real));
        let unknown = names.iter().filter(|name| !has_tool(&*of, name));
        Self {
            shown: Shown::new(kept.cloned().collect(), aliases.cloned().collect()),
            unknown: unknown.cloned().collect(),
            of,
        }
    }
}

impl Restrict {
    /// Whether a tool of a presentation is left.
    fn leads(&self) -> bool {
        let mut tools = self.shown.tools.iter();
        tools.any(|tool| tool.origin() == SOURCE)
    }
}

impl Toolkit for Restrict {
    fn tools(&self) -> &[Arc<Tool>] {
        &self.shown.tools
    }

    fn aliases(&self) -> &[(String, String)] {
        &self.shown.aliases
    }

    fn definitions(&self) -> Arc<[Definition]> {
        self.shown.definitions()
    }

    fn run(self: Arc<Self>, mut run: Run) -> BoxFuture<'static, Ran> {
        match real_name(&*self, &run.name).map(str::to_owned) {
            Some(name) => {
                run.name = name;
                Arc::clone(&self.of).run(run)
            }
            None => {
                let ran = unknown(&*self, &run.name);
                Box::pin(async { ran })
            }
        }
    }

    /// A way leads through a tool that is shown, or nowhere: what is left out is left out.
    fn way_to(&self, name: &str) -> Option<String> {
        let left_out = has_tool(&*self.of, name) || !self.leads();
        (!left_out).then(|| self.of.way_to(name)).flatten()
    }

    fn reached(&self) -> usize {
        if self.leads() { self.of.reached() } else { 0 }
    }

    fn shadowed(&self) -> Vec<Shadowed> {
        let mut shadowed = self.of.shadowed();
        shadowed.retain(|shadow| has_tool(self, &shadow.name));
        shadowed
    }

    fn unknown_names(&self) -> Vec<String> {
        let mut unknown = self.of.unknown_names();
        unknown.extend(self.unknown.iter().cloned());
        unknown
    }
}
