//! Which round trip an event of a child belongs to. Must never know what the event says.

use crate::stdio_rpc::{BoxFuture, Handler, Refusal};
use protocol::plugin::{ProviderEventParams, ProviderNotification};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Events that wait for their round trip, which takes them as they come. When it is full, the child is not read.
const QUEUE: usize = 256;

/// The open round trips of one child.
#[derive(Default)]
pub(super) struct Routes {
    /// By the number of the request. Held for a look only, never across a wait.
    open: Mutex<HashMap<u64, mpsc::Sender<ProviderNotification>>>,
}

/// The events of one round trip.
pub(super) struct Events {
    id: u64,
    routes: Arc<Routes>,
    queue: mpsc::Receiver<ProviderNotification>,
}

impl Routes {
    pub(super) fn open(self: &Arc<Self>, id: u64) -> Events {
        let (sender, queue) = mpsc::channel(QUEUE);
        self.lock().insert(id, sender);
        Events {
            id,
            routes: self.clone(),
            queue,
        }
    }

    /// The one that is named, or the only one there is.
    fn find(&self, id: Option<u64>) -> Option<mpsc::Sender<ProviderNotification>> {
        let open = self.lock();
        match id {
            Some(id) => open.get(&id).cloned(),
            None if open.len() == 1 => open.values().next().cloned(),
            None => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<ProviderNotification>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Handler for Routes {
    fn notified<'a>(&'a self, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if method != "provider/event" {
                return;
            }
            // What cannot be read is as unknown as a type that is not known.
            let Ok(params) = serde_json::from_str::<ProviderEventParams>(params.get()) else {
                return;
            };
            if let Some(sender) = self.find(params.fetch) {
                // A round trip that was dropped meanwhile wants no events.
                let _ = sender.send(params.event).await;
            }
        })
    }

    /// A provider's executable has nothing to ask.
    fn asked(
        &self,
        method: String,
        _: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        Box::pin(std::future::ready(Err(Refusal::no_method(&method))))
    }
}

impl Events {
    /// The next event. Waits for ever when no more come: the answer is what ends a round trip.
    pub(super) async fn next(&mut self) -> ProviderNotification {
        match self.queue.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// What is there already.
    pub(super) fn rest(&mut self) -> Option<ProviderNotification> {
        self.queue.try_recv().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.routes.lock().remove(&self.id);
    }
}
