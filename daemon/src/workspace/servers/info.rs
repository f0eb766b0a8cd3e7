//! A server as people see it. Must never hold a key.

use crate::toolbox::source::mcp::{Prompt, Resource};

/// How a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nobody has needed it yet.
    Idle,
    Starting,
    Ready,
    Failed,
}

impl Health {
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug)]
pub struct ServerInfo {
    pub name: String,
    pub health: Health,
    /// What it is and speaks, once it runs.
    pub about: String,
    /// As models call them.
    pub tools: Vec<String>,
    pub prompts: Vec<Prompt>,
    pub resources: Vec<Resource>,
    pub problems: Vec<String>,
}
