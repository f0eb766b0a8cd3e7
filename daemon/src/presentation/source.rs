//! One source's tools as a toolkit of their own, also those that another source's of the same name replaced.
//! They run in the toolbox that they come from: with its hooks, and with all its tools within reach of their own code.

use super::{Shown, Toolkit, real_name, unknown};
use crate::toolbox::gate::{Ran, Run};
use crate::toolbox::tool::Tool;
use crate::toolbox::{BoxFuture, Toolbox};
use protocol::tool::Definition;
use std::sync::Arc;

pub(super) struct Source {
    toolbox: Arc<Toolbox>,
    shown: Shown,
}

impl Source {
    /// None when there is no such source; one that has no tools now is one.
    pub(super) fn of(toolbox: &Arc<Toolbox>, name: &str) -> Option<Self> {
        if !toolbox.sources().iter().any(|known| known == name) {
            return None;
        }
        let tools = toolbox.of_source(name);
        let aliases = tools.iter().flat_map(|tool| {
            let real = tool.name().to_owned();
            let aliases = tool.aliases().iter();
            aliases.map(move |alias| (alias.clone(), real.clone()))
        });
        Some(Self {
            shown: Shown::new(tools.clone(), aliases.collect()),
            toolbox: Arc::clone(toolbox),
        })
    }
}

impl Toolkit for Source {
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
        let name = real_name(&*self, &run.name).unwrap_or_default();
        let tool = self.shown.tools.iter().find(|tool| tool.name() == name);
        match tool.cloned() {
            Some(tool) => self.toolbox.run_tool(tool, run),
            None => {
                let ran = unknown(&*self, &run.name);
                Box::pin(async { ran })
            }
        }
    }
}
