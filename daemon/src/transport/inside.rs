//! A connection without a socket: for what runs under the daemon and calls its methods as a client does.
//! Must never offer more than a client gets.

use super::context::Context;
use super::dispatch::Dispatcher;
use super::peer::Peer;
use super::{Limits, Service};
use jsonrpsee::ConnectionId;
use protocol::daemon::ClientInfo;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

/// Numbers from here on are never those of sockets.
static NUMBERS: AtomicUsize = AtomicUsize::new(usize::MAX / 2);

/// Takes what subscriptions bring: the method and its parameters.
pub type Tell = Box<dyn Fn(&str, &RawValue) + Send + Sync>;

/// The calling end. When it is dropped the connection is gone.
pub struct Inside {
    dispatcher: Dispatcher,
    waiting: Arc<Waiting>,
    next: AtomicU64,
    _gone: DropGuard,
}

/// Held for a look only.
type Waiting = Mutex<Callers>;

/// By the number of their call.
type Callers = HashMap<u64, oneshot::Sender<Result<Box<RawValue>, Box<RawValue>>>>;

#[derive(Serialize)]
struct Request<'a> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<&'a str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Inside {
    /// `name` is what people know the caller by.
    pub fn open(service: Service, name: &str, tell: Tell) -> Self {
        let gone = CancellationToken::new();
        let (outgoing, queue) = mpsc::channel(Limits::default().queue);
        let id = ConnectionId(NUMBERS.fetch_add(1, Ordering::Relaxed));
        let own = Peer {
            pid: std::process::id(),
            uid: rustix::process::geteuid().as_raw(),
        };
        let context = Context::new(id, own, outgoing, gone.clone());
        context.introduce(ClientInfo {
            name: name.to_owned(),
            version: String::new(),
        });
        let waiting: Arc<Waiting> = Arc::default();
        tokio::spawn(deliver(queue, Arc::clone(&waiting), tell, gone.clone()));
        Self {
            dispatcher: Dispatcher::new(service, Arc::new(context), TaskTracker::new()),
            waiting,
            next: AtomicU64::new(1),
            _gone: gone.drop_guard(),
        }
    }

    /// Calls a method; an `Err` is the error object as a client would get it, or none when the daemon is ending.
    pub async fn call(
        &self,
        method: &str,
        params: &RawValue,
    ) -> Result<Box<RawValue>, Option<Box<RawValue>>> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let request = Request {
            jsonrpc: "2.0",
            id,
            method,
            params: Some(params).filter(|params| params.get() != "null"),
        };
        let (reply, answer) = oneshot::channel();
        let frame = serde_json::to_vec(&request).map_err(|_| None)?;
        held(&self.waiting).insert(id, reply);
        let _forget = Forget(&self.waiting, id);
        self.dispatcher.handle(&frame).await;
        answer.await.map_err(|_| None)?.map_err(Some)
    }
}

/// Nobody waits any more.
struct Forget<'a>(&'a Waiting, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        held(self.0).remove(&self.1);
    }
}

async fn deliver(
    mut queue: mpsc::Receiver<Box<RawValue>>,
    waiting: Arc<Waiting>,
    tell: Tell,
    gone: CancellationToken,
) {
    loop {
        let message = tokio::select! {
            message = queue.recv() => message,
            () = gone.cancelled() => return,
        };
        let Some(message) = message else { return };
        let Ok(message) = serde_json::from_str::<Message<'_>>(message.get()) else {
            continue;
        };
        if let Some(method) = message.method {
            tell(method, message.params.unwrap_or(RawValue::NULL));
            continue;
        }
        let caller = message.id.and_then(|id| held(&waiting).remove(&id));
        let answer = match message.error {
            Some(error) => Err(error.to_owned()),
            None => Ok(message.result.unwrap_or(RawValue::NULL).to_owned()),
        };
        // Who gave up meanwhile wants no answer.
        let _ = caller.map(|caller| caller.send(answer));
    }
}

fn held(waiting: &Waiting) -> MutexGuard<'_, Callers> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}
