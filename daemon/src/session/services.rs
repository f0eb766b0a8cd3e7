//! What every session of the daemon uses, handed in once by `daemon.rs`.

use super::conversation::History;
use crate::memory::Activity;
use crate::presentation;
use crate::provider::Provider;
use crate::provider::registry::{BuildError, BuildOptions, Providers};
use crate::store::Store;
use crate::toolbox::source::client::Provided;
use crate::workspace::{Workspace, Workspaces};
use protocol::daemon::Change;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::{Notify, broadcast};

pub struct Services {
    pub store: Store,
    pub providers: Providers,
    pub workspaces: Workspaces,
    pub limits: Live<Limits>,
    /// How tools are shown to models.
    pub shown: Arc<presentation::Settings>,
    /// Tools that clients offer.
    pub provided: Provided,
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
        let error = match built {
            Ok(provider) => return Ok(provider),
            Err(error) => error,
        };
        let error = match error {
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
        };
        Err(match (&error, workspace.ignores_plugins().await) {
            (BuildError::Unknown { .. }, true) => BuildError::Failed(format!(
                "{error} This directory's own plugins do not count before it is trusted: `dwell trust` shows them, `dwell trust yes` trusts them."
            )),
            _ => error,
        })
    }
}

/// A value that may be set anew while the daemon runs; a cheap handle.
#[derive(Debug, Default)]
pub struct Live<T>(Arc<RwLock<T>>);

impl<T: Copy> Live<T> {
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(value)))
    }

    pub fn now(&self) -> T {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Settings that sessions read.
#[derive(Clone, Copy, Debug)]
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
