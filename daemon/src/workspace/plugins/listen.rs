//! What a plugin says on its own: calls of the daemon's methods, and news of what it adds.
//! Must never know a method but those of plugins; the others are the desk's.

use super::calls::Asked;
use super::plugin::Plugin;
use super::{Means, said};
use crate::stdio_rpc::{BoxFuture, Handler, Live, Refusal, Streams};
use crate::toolbox::tool::Call;
use protocol::plugin::EVENT;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::{Arc, OnceLock, Weak};

/// Where plugins reach the daemon's methods.
pub trait Desk: Send + Sync {
    /// For one process of a plugin; `tell` takes what its subscriptions bring.
    fn open(&self, plugin: &str, tell: Tell) -> Arc<dyn Line>;
}

/// Takes a notification: its method and parameters.
pub type Tell = Box<dyn Fn(&str, &RawValue) + Send + Sync>;

/// One plugin's access to the daemon's methods, as a client's connection is.
pub trait Line: Send + Sync {
    fn call(
        &self,
        method: String,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>>;
}

/// Listens to one process.
pub(super) struct Ear {
    plugin: Weak<Plugin>,
    streams: Arc<Streams>,
    line: Option<Arc<dyn Line>>,
    /// Weak: who listens does not keep a process alive.
    live: Arc<OnceLock<Weak<Live>>>,
}

impl Ear {
    pub(super) fn new(
        plugin: Weak<Plugin>,
        means: &Means,
        name: &str,
        streams: &Arc<Streams>,
    ) -> Self {
        let live: Arc<OnceLock<Weak<Live>>> = Arc::default();
        let told = Arc::clone(&live);
        let tell = move |method: &str, params: &RawValue| {
            if let Some(live) = told.get().and_then(Weak::upgrade) {
                live.peer.notify(method, params);
            }
        };
        let desk = means.desk.get();
        Self {
            plugin,
            streams: Arc::clone(streams),
            line: desk.map(|desk| desk.open(&format!("plugin {name}"), Box::new(tell))),
            live,
        }
    }

    pub(super) fn speaks_to(&self, live: &Arc<Live>) {
        // It is said once, by the one who started the process.
        let _ = self.live.set(Arc::downgrade(live));
    }

    fn update(&self, params: &RawValue) {
        match (self.plugin.upgrade(), said::read(params.get())) {
            (Some(plugin), Ok(said)) => plugin.update(said),
            (Some(plugin), Err(error)) => {
                tracing::warn!(
                    plugin = plugin.name,
                    error,
                    "its plugin/update cannot be read"
                );
            }
            (None, _) => {}
        }
    }

    /// The call that a `tool/run` is made for, where it is made for one.
    fn parent_of(&self, method: &str, params: &RawValue) -> Option<(Call, Asked)> {
        if method != "tool/run" {
            return None;
        }
        let asked: Asked = serde_json::from_str(params.get()).ok()?;
        let parent = self.plugin.upgrade()?.calls.parent_of(&asked)?;
        Some((parent, asked))
    }
}

/// The process has ended: nobody listens to it any more.
impl Drop for Ear {
    fn drop(&mut self) {
        let live = self.live.get().and_then(Weak::upgrade);
        let how = live.and_then(|live| live.peer.fate());
        if let (Some(plugin), Some(how)) = (self.plugin.upgrade(), how) {
            plugin.ended(how);
        }
    }
}

impl Handler for Ear {
    fn notified<'a>(&'a self, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            match (method, &self.line) {
                (EVENT, _) => self.streams.take(params).await,
                ("plugin/update", _) => self.update(params),
                // It takes no longer than a commit, and who says too much waits for that.
                ("session/say", Some(line)) => {
                    let _ = line.call(method.to_owned(), params.to_owned()).await;
                }
                _ => {}
            }
        })
    }

    fn asked(
        &self,
        method: String,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        if let Some((parent, asked)) = self.parent_of(&method, &params) {
            return Box::pin(async move {
                Ok(Value::Object(
                    parent.run(&asked.name, asked.arguments()).await,
                ))
            });
        }
        match &self.line {
            Some(line) => line.call(method, params),
            None => Box::pin(std::future::ready(Err(Refusal::no_method(&method)))),
        }
    }
}
