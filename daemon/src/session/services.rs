//! What every session of the daemon uses, handed in once by `daemon.rs`.

use super::conversation::History;
use crate::memory::Activity;
use crate::provider::registry::Providers;
use crate::store::Store;
use crate::workspace::Workspaces;
use protocol::daemon::Change;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Notify, broadcast};

pub struct Services {
    pub store: Store,
    pub providers: Providers,
    pub workspaces: Workspaces,
    pub limits: Limits,
    /// Where tools keep output that is too long for a model; a folder a session.
    pub spill_dir: PathBuf,
    /// What `daemon/watch` tells. A watcher that falls behind lists anew.
    pub changes: broadcast::Sender<Change>,
    /// A client left a session: it may be unloaded after a while.
    pub left: Arc<Notify>,
    /// Running turns are work.
    pub activity: Activity,
    /// No turn begins any more.
    pub stopping: AtomicBool,
}

/// Settings that sessions read.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Round trips in a turn.
    pub max_rounds: u32,
    pub history: History,
    /// How long a session stays in memory with nobody attached, in milliseconds.
    pub unload_after_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rounds: 100,
            history: History::default(),
            unload_after_ms: 60_000,
        }
    }
}
