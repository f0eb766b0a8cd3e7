//! What every session of the daemon uses, handed in once by `daemon.rs`.

use super::conversation::History;
use crate::memory::Activity;
use crate::presentation;
use crate::provider::Provider;
use crate::provider::registry::{BuildError, BuildOptions, Providers};
use crate::store::Store;
use crate::workspace::{Workspace, Workspaces};
use protocol::daemon::Change;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Notify, broadcast};

pub struct Services {
    pub store: Store,
    pub providers: Providers,
    pub workspaces: Workspaces,
    pub limits: Limits,
    /// How tools are shown to models.
    pub shown: Arc<presentation::Settings>,
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

impl Services {
    /// A provider for a session of the workspace: a plugin's there, before any other of that name.
    pub async fn build(
        &self,
        workspace: &Workspace,
        name: &str,
        model: Option<String>,
        env: Arc<BTreeMap<String, String>>,
    ) -> Result<Arc<dyn Provider>, BuildError> {
        let options = BuildOptions {
            model,
            host: workspace.provider(name).await,
            env: Some(env),
        };
        let built = self.providers.build(name, options).await;
        built.map_err(|error| match error {
            BuildError::Unknown {
                name,
                mut available,
            } => {
                let more = workspace.providers().into_iter().map(|one| one.name);
                available.extend(
                    more.filter(|one| !available.contains(one))
                        .collect::<Vec<_>>(),
                );
                BuildError::Unknown { name, available }
            }
            BuildError::Failed(why) => BuildError::Failed(why),
        })
    }
}

/// Settings that sessions read.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Round trips in a turn.
    pub max_rounds: u32,
    /// Bytes of one reply of a model.
    pub max_reply_bytes: u64,
    pub history: History,
    /// How full a model's window gets before the conversation is summed up; 0 is never.
    pub compact_at_percent: u8,
    /// How long a session stays in memory with nobody attached, in milliseconds.
    pub unload_after_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_rounds: 100,
            max_reply_bytes: crate::config::REPLY,
            history: History::default(),
            compact_at_percent: crate::config::COMPACT_AT,
            unload_after_ms: 60_000,
        }
    }
}
