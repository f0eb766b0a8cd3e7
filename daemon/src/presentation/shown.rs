//! The face of a toolkit: its tools, their aliases, and what models read of them, made once.
//! Must never run anything.

use crate::toolbox::tool::Tool;
use protocol::tool::Definition;
use std::sync::{Arc, OnceLock};

/// What the kinds of toolkit share.
#[derive(Default)]
pub struct Shown {
    pub tools: Vec<Arc<Tool>>,
    pub aliases: Vec<(String, String)>,
    definitions: OnceLock<Arc<[Definition]>>,
}

impl Shown {
    pub fn new(tools: Vec<Arc<Tool>>, aliases: Vec<(String, String)>) -> Self {
        Self {
            tools,
            aliases,
            definitions: OnceLock::new(),
        }
    }

    /// Every round trip shows them.
    pub fn definitions(&self) -> Arc<[Definition]> {
        let make = || self.tools.iter().map(|tool| tool.presented()).collect();
        Arc::clone(self.definitions.get_or_init(make))
    }
}
