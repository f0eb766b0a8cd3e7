//! The editor at the other end: answers to its requests, and requests and notifications to it, in the order in which they
//! are made. Must never know a method.

use super::convert::error::Error;
use super::incoming::Id;
use protocol::framing::{Style, encode};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};

/// The editor.
pub(super) struct Peer {
    frames: mpsc::Sender<Vec<u8>>,
    next: Cell<u64>,
    /// Who waits for its answers.
    waiting: RefCell<HashMap<u64, oneshot::Sender<Answer>>>,
}

/// What it answered: a result, or its error's message.
pub(super) type Answer = Result<Value, String>;

/// A question to it that is under way.
pub(super) struct Asked {
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Answer>,
}

impl Peer {
    pub(super) fn new(frames: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            frames,
            next: Cell::new(1),
            waiting: RefCell::default(),
        }
    }

    /// A notification.
    pub(super) async fn notify(&self, method: &str, params: &impl Serialize) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }

    /// A request; its answer comes when it comes.
    pub(super) async fn ask(&self, method: &str, params: &impl Serialize) -> Asked {
        let id = self.next.get();
        self.next.set(id + 1);
        let (sender, answer) = oneshot::channel();
        self.waiting.borrow_mut().insert(id, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        Asked { id, answer }
    }

    /// Nobody waits for an answer any more.
    pub(super) fn forget(&self, id: u64) -> bool {
        self.waiting.borrow_mut().remove(&id).is_some()
    }

    /// The answer to one of ours. One that nobody waits for is no fault: it crossed our taking the question back.
    pub(super) fn answered(&self, id: &Value, mut message: Map<String, Value>) {
        let number = id.as_u64().or_else(|| whole(id.as_f64()?));
        let waiting = number.and_then(|id| self.waiting.borrow_mut().remove(&id));
        let Some(waiting) = waiting else { return };
        let answer = match message.remove("error") {
            None | Some(Value::Null) => Ok(message.remove("result").unwrap_or(Value::Null)),
            Some(error) => Err(error["message"].as_str().unwrap_or("an error").to_owned()),
        };
        let _ = waiting.send(answer);
    }

    async fn send(&self, message: &impl Serialize) {
        // Maps with names that are texts, and nothing else: they can always be written.
        let text = serde_json::to_vec(message).unwrap_or_default();
        let mut frame = Vec::with_capacity(text.len() + 1);
        encode(Style::Lines, &text, &mut frame);
        // Nobody is left to tell when the editor has gone; the loop that reads sees it too.
        let _ = self.frames.send(frame).await;
    }
}

/// The number of one of our requests, where a library writes all its numbers with a point.
fn whole(number: f64) -> Option<u64> {
    let text = number.to_string();
    text.parse().ok()
}

/// The way back for one request.
pub(super) struct Responder {
    peer: Rc<Peer>,
    id: Id,
}

/// An answer.
#[derive(Serialize)]
struct Response<'a, T: Serialize> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    #[serde(flatten)]
    result: Outcome<T>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome<T: Serialize> {
    Result(T),
    Error(Error),
}

impl Responder {
    pub(super) fn new(peer: Rc<Peer>, id: Id) -> Self {
        Self { peer, id }
    }

    pub(super) fn id(&self) -> Id {
        self.id.clone()
    }

    /// Whether this is the request that the editor knows by `id`.
    pub(super) fn is(&self, id: &Value) -> bool {
        self.id.is(id)
    }

    /// Answers. Once: it takes itself.
    pub(super) async fn send(self, result: Result<impl Serialize, Error>) {
        let response = Response {
            jsonrpc: "2.0",
            id: self.id.as_json(),
            result: result.map_or_else(Outcome::Error, Outcome::Result),
        };
        self.peer.send(&response).await;
    }
}
