//! A running child that several speak with, and whoever owns it and starts it anew. Must never start one itself.

use super::{BoxFuture, Peer, Streams, raw};
use protocol::plugin::CancelParams;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// The owner of a child.
pub trait Host: Send + Sync {
    /// What people know the child by.
    fn label(&self) -> &str;
    /// The process, started if there is none; the message says why there cannot be one.
    fn live(&self) -> BoxFuture<'_, Result<Arc<Live>, String>>;
}

/// A running child.
pub struct Live {
    pub label: String,
    pub peer: Peer,
    pub streams: Arc<Streams>,
    /// Held for a look only.
    uses: Mutex<Uses>,
}

struct Uses {
    count: usize,
    /// When the last one ended.
    last: Instant,
}

impl Live {
    pub fn new(label: &str, peer: Peer, streams: Arc<Streams>) -> Self {
        Self {
            label: label.to_owned(),
            peer,
            streams,
            uses: Mutex::new(Uses {
                count: 0,
                last: Instant::now(),
            }),
        }
    }

    /// It is not idle while this lives.
    pub fn using(self: &Arc<Self>) -> Use {
        self.uses(|uses| uses.count += 1);
        Use(self.clone())
    }

    /// Tells the child by `method {id}` when the request is given up before its answer has come.
    pub fn cancel_on_drop(&self, method: &'static str, id: u64) -> Cancel<'_> {
        Cancel {
            live: self,
            method,
            id: Some(id),
        }
    }

    /// Until when it may live if nobody uses it; none while somebody does.
    pub fn idle_until(&self, stop_after: Duration) -> Option<Instant> {
        self.uses(|uses| (uses.count == 0).then(|| uses.last + stop_after))
    }

    fn uses<T>(&self, look: impl FnOnce(&mut Uses) -> T) -> T {
        look(&mut self.uses.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A request that may be given up.
pub struct Cancel<'a> {
    live: &'a Live,
    method: &'static str,
    id: Option<u64>,
}

impl Cancel<'_> {
    /// Its answer has come.
    pub fn answered(mut self) {
        self.id = None;
    }
}

impl Drop for Cancel<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.live
                .peer
                .notify(self.method, &raw(&CancelParams { id }));
        }
    }
}

/// One use of a running child.
pub struct Use(Arc<Live>);

impl Drop for Use {
    fn drop(&mut self) {
        self.0.uses(|uses| {
            uses.count -= 1;
            uses.last = Instant::now();
        });
    }
}
