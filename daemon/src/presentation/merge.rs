//! Several toolkits as one: all their tools, of two of one name the first. Each runs as it does where it comes from.

use super::{Shown, Toolkit, has_tool, real_name, unknown};
use crate::toolbox::BoxFuture;
use crate::toolbox::gate::{Ran, Run};
use crate::toolbox::tool::Tool;
use protocol::tool::{Definition, Shadowed};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The tools of both; a name that both have is `first`'s.
pub fn merge(first: Arc<dyn Toolkit>, second: Arc<dyn Toolkit>) -> Arc<dyn Toolkit> {
    Arc::new(Merge::new(vec![first, second]))
}

pub(super) struct Merge {
    parts: Vec<Arc<dyn Toolkit>>,
    shown: Shown,
    shadowed: Vec<Shadowed>,
}

impl Merge {
    pub(super) fn new(parts: Vec<Arc<dyn Toolkit>>) -> Self {
        let mut tools: Vec<Arc<Tool>> = Vec::new();
        let mut at = HashMap::new();
        let mut shadowed: Vec<Shadowed> = Vec::new();
        for tool in parts.iter().flat_map(|part| part.tools()) {
            match at.get(tool.name()) {
                None => {
                    at.insert(tool.name().to_owned(), tools.len());
                    tools.push(Arc::clone(tool));
                }
                Some(kept) => shadowed.extend(shadow(&tools[*kept], tool)),
            }
        }
        let mut aliases: Vec<(String, String)> = Vec::new();
        let mut given = HashSet::new();
        for alias in parts.iter().flat_map(|part| part.aliases()) {
            if given.insert(alias) {
                aliases.push(alias.clone());
            }
        }
        Self {
            shown: Shown::new(tools, aliases),
            parts,
            shadowed,
        }
    }
}

/// The same tool twice hides nothing.
fn shadow(kept: &Arc<Tool>, dropped: &Arc<Tool>) -> Option<Shadowed> {
    (!Arc::ptr_eq(kept, dropped)).then(|| Shadowed {
        name: kept.name().to_owned(),
        kept: kept.origin().to_owned(),
        dropped: dropped.origin().to_owned(),
    })
}

impl Toolkit for Merge {
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
        let name = real_name(&*self, &run.name).unwrap_or_default().to_owned();
        let part = self.parts.iter().find(|part| has_tool(&***part, &name));
        match part.cloned() {
            Some(part) => {
                run.name = name;
                part.run(run)
            }
            None => {
                let ran = unknown(&*self, &run.name);
                Box::pin(async { ran })
            }
        }
    }

    fn way_to(&self, name: &str) -> Option<String> {
        self.parts.iter().find_map(|part| part.way_to(name))
    }

    fn reached(&self) -> usize {
        self.parts.iter().map(|part| part.reached()).sum()
    }

    /// Each once, whichever parts tell it.
    fn shadowed(&self) -> Vec<Shadowed> {
        let inner = self.parts.iter().flat_map(|part| part.shadowed());
        let mut all: Vec<Shadowed> = Vec::new();
        for shadow in inner.chain(self.shadowed.iter().cloned()) {
            if !all.contains(&shadow) {
                all.push(shadow);
            }
        }
        all
    }

    fn unknown_names(&self) -> Vec<String> {
        let inner = self.parts.iter().flat_map(|part| part.unknown_names());
        let mut told = HashSet::new();
        inner.filter(|name| told.insert(name.clone())).collect()
    }
}
