//! JSON-RPC 2.0 with a child over its stdin and stdout, one message a line, in both directions.
//! Must never know what the messages mean, nor keep more of a child's words than its bounds.

pub mod lines;
mod live;
mod message;
mod pour;
mod stream;
mod tail;
mod talk;
#[cfg(test)]
mod tests;
mod voice;

use crate::process::mask::Mask;
use crate::process::{self, Spawn};
pub use live::{Host, Live, Use};
use message::Outgoing;
pub use message::{Refusal, raw};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
pub use stream::{Stream, Streams};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use voice::Voice;

/// Messages that wait to be written. A child that leaves so many unread is slow: who asks it waits, and a notification
/// to it fails.
const QUEUE: usize = 256;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What the child may say on its own.
pub trait Handler: Send + Sync {
    /// A notification. While it is being taken the child's next word is not read, so a slow taker slows the child.
    fn notified<'a>(&'a self, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()>;
    /// A request, answered when the future ends.
    fn asked(
        &self,
        method: String,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>>;
}

/// Why a call has no result.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CallError {
    /// The child's own error.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The child is gone; the message says how it ended and what it complained of.
    #[error("{0}")]
    Gone(String),
}

/// A child that speaks; a cheap handle. When the last is dropped, the child is killed.
#[derive(Clone)]
pub struct Peer {
    shared: Arc<Shared>,
    _alive: Arc<DropGuard>,
}

struct Shared {
    voice: Voice,
    outgoing: mpsc::Sender<Vec<u8>>,
    next: AtomicU64,
    said: AtomicU64,
    /// Held for a look only, never across a wait.
    waiting: Mutex<Waiting>,
    stop: CancellationToken,
    ended: CancellationToken,
}

#[derive(Default)]
struct Waiting {
    calls: HashMap<u64, Reply>,
    /// How it ended; nobody waits any more then.
    gone: Option<String>,
}

type Reply = oneshot::Sender<Result<Box<RawValue>, CallError>>;

/// A request of which the answer may be waited for. Dropping it only means that nobody waits.
pub struct Pending {
    id: u64,
    shared: Arc<Shared>,
    answer: oneshot::Receiver<Result<Box<RawValue>, CallError>>,
}

impl Peer {
    /// Starts the child. `name` is what people know it by.
    pub fn start(
        name: &str,
        spawn: &Spawn,
        mask: Mask,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Self> {
        let (running, pipes) = process::open(spawn)?;
        let (outgoing, queue) = mpsc::channel(QUEUE);
        let stop = CancellationToken::new();
        let shared = Arc::new(Shared {
            voice: Voice::new(name, mask),
            outgoing,
            next: AtomicU64::new(1),
            said: AtomicU64::new(0),
            waiting: Mutex::default(),
            stop: stop.clone(),
            ended: CancellationToken::new(),
        });
        tokio::spawn(talk::drive(running, pipes, queue, shared.clone(), handler));
        let _alive = Arc::new(stop.drop_guard());
        Ok(Self { shared, _alive })
    }

    /// A request that is yet to be sent: its number is known before the child can speak of it.
    pub fn prepare(&self) -> Result<Pending, CallError> {
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.shared.wait_for(id, reply)?;
        Ok(Pending {
            id,
            shared: self.shared.clone(),
            answer,
        })
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&self, method: &str, params: &RawValue) -> Result<Box<RawValue>, CallError> {
        let pending = self.prepare()?;
        pending.send(method, params).await;
        pending.answer().await
    }

    /// Tells the child something, without waiting. A child that has not read what it was told before is not worth
    /// keeping: it is killed.
    pub fn notify(&self, method: &str, params: &RawValue) {
        let line = Outgoing::notification(method, params);
        if let Err(mpsc::error::TrySendError::Full(_)) = self.shared.outgoing.try_send(line) {
            tracing::warn!(
                child = self.shared.voice.name,
                "it reads nothing and is killed"
            );
            self.shared.stop.cancel();
        }
    }

    pub fn has_ended(&self) -> bool {
        self.shared.waiting().gone.is_some()
    }

    /// How it ended, once it has.
    pub fn fate(&self) -> Option<String> {
        self.shared.waiting().gone.clone()
    }

    /// How many messages it has said so far: whether it says anything at all.
    pub fn said(&self) -> u64 {
        self.shared.said.load(Ordering::Relaxed)
    }

    /// Kills it. What waits for it is told that it is gone.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Waits until nothing of the child is left.
    pub async fn ended(&self) {
        self.shared.ended.cancelled().await;
    }
}

impl Pending {
    /// The number of the request on the wire.
    pub fn id(&self) -> u64 {
        self.id
    }

    pub async fn send(&self, method: &str, params: &RawValue) {
        let line = Outgoing::request(self.id, method, params);
        // A child that is gone is the answer's news.
        let _ = self.shared.outgoing.send(line).await;
    }

    pub async fn answer(mut self) -> Result<Box<RawValue>, CallError> {
        let answer = (&mut self.answer).await;
        answer.unwrap_or_else(|_| Err(closed()))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.shared.waiting().calls.remove(&self.id);
    }
}

impl Shared {
    fn wait_for(&self, id: u64, reply: Reply) -> Result<(), CallError> {
        let mut waiting = self.waiting();
        match &waiting.gone {
            Some(how) => Err(CallError::Gone(how.clone())),
            None => {
                waiting.calls.insert(id, reply);
                Ok(())
            }
        }
    }

    fn answered(&self, id: u64, answer: Result<Box<RawValue>, Refusal>) {
        let answer = answer.map_err(|mut refusal| {
            refusal.message = self.voice.mask.hide(&refusal.message);
            CallError::Refused(refusal)
        });
        // An answer that nobody waits for came too late.
        if let Some(reply) = self.waiting().calls.remove(&id) {
            let _ = reply.send(answer);
        }
    }

    fn gone(&self, how: String) {
        let mut waiting = self.waiting();
        for (_, reply) in waiting.calls.drain() {
            let _ = reply.send(Err(CallError::Gone(how.clone())));
        }
        waiting.gone = Some(how);
        drop(waiting);
        self.ended.cancel();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Only for the moment between the child's end and its report.
fn closed() -> CallError {
    CallError::Gone("it has ended".to_owned())
}
