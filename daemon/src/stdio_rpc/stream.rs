//! Notifications that belong to a request which is not answered yet: which one, and a queue for each.
//! Must never know what they say beyond the number of their request.

use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Notifications that wait for their taker, who takes them as they come. When it is full, the child is not read.
const QUEUE: usize = 256;

/// The open requests of one child that have notifications.
#[derive(Default)]
pub struct Streams {
    /// By the number of the request. Held for a look only, never across a wait.
    open: Mutex<HashMap<u64, mpsc::Sender<Box<RawValue>>>>,
}

/// The notifications of one request.
pub struct Stream {
    id: u64,
    streams: Arc<Streams>,
    queue: mpsc::Receiver<Box<RawValue>>,
}

/// The request's number, under the one name that there is for it on the wire.
#[derive(Deserialize)]
struct Belongs {
    #[serde(default)]
    fetch: Option<u64>,
}

impl Streams {
    pub fn open(self: &Arc<Self>, id: u64) -> Stream {
        let (sender, queue) = mpsc::channel(QUEUE);
        self.lock().insert(id, sender);
        Stream {
            id,
            streams: self.clone(),
            queue,
        }
    }

    /// Gives a notification's parameters to the request that they name. Without a name it is the only one there is;
    /// what could belong to several is dropped.
    pub async fn take(&self, params: &RawValue) {
        let Ok(Belongs { fetch }) = serde_json::from_str(params.get()) else {
            return;
        };
        if let Some(sender) = self.find(fetch) {
            // A request that was dropped meanwhile wants none.
            let _ = sender.send(params.to_owned()).await;
        }
    }

    fn find(&self, id: Option<u64>) -> Option<mpsc::Sender<Box<RawValue>>> {
        let open = self.lock();
        match id {
            Some(id) => open.get(&id).cloned(),
            None if open.len() == 1 => open.values().next().cloned(),
            None => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, mpsc::Sender<Box<RawValue>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stream {
    /// The next one. Waits for ever when no more come: the answer is what ends a request.
    pub async fn next(&mut self) -> Box<RawValue> {
        match self.queue.recv().await {
            Some(params) => params,
            None => std::future::pending().await,
        }
    }

    /// What is there already.
    pub fn rest(&mut self) -> Option<Box<RawValue>> {
        self.queue.try_recv().ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.streams.lock().remove(&self.id);
    }
}
