//! Servers of the Model Context Protocol: reaching one, what it offers, and its tools as a toolbox has them.
//! The one place that knows that protocol; must never start anything but when it is asked to, nor believe what a server
//! says of itself where somebody's permission is needed.

mod authorized;
pub mod config;
mod connection;
mod face;
mod http;
mod inventory;
pub mod name;
mod oauth;
mod outcome;
mod progress;
mod prompt;
mod schema;
mod shown;
mod stdio;
mod throttle;
mod tool;

pub use connection::{Connection, Failure};
pub use inventory::{Inventory, Prompt, Resource};
pub use oauth::{Login, Tokens};
pub use prompt::arguments;
pub use shown::Shown;
pub use tool::{Declared, Server};

use crate::process::mask::Mask;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The table `[mcp]` of `config.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long a turn waits for servers that are starting, in milliseconds.
    pub wait_ms: u64,
    /// How long a server may take to start and to say what it offers, in milliseconds.
    pub start_ms: u64,
    /// How long a call may take without a sign of progress, in milliseconds.
    pub call_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            wait_ms: 10_000,
            start_ms: 60_000,
            call_ms: 600_000,
        }
    }
}

impl Settings {
    /// For servers that somebody named for this very session, who expects their tools with the first turn: it waits as long
    /// as they may take to start.
    #[must_use]
    pub fn patient(self) -> Self {
        Self {
            wait_ms: self.wait_ms.max(self.start_ms),
            ..self
        }
    }

    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }

    pub fn start(&self) -> Duration {
        Duration::from_millis(self.start_ms)
    }

    fn call(&self) -> Duration {
        Duration::from_millis(self.call_ms)
    }
}

/// What every server of a directory is reached with.
#[derive(Clone)]
pub struct Around {
    pub settings: Settings,
    /// What a child sees besides what its entry names.
    pub env: Arc<BTreeMap<String, String>>,
    /// What is shown nowhere of what servers say.
    pub mask: Mask,
    /// Of servers that somebody logged in to.
    pub tokens: Tokens,
    /// The directory, which servers are told when they ask.
    pub cwd: PathBuf,
}
