//! An agent of the Agent Client Protocol, version 1, on this process's standard streams: the daemon's sessions as editors
//! that speak it see them. Must never hold what the daemon holds: its end costs no session anything.

mod bridge;
mod convert;
mod peer;
mod stdio;

use crate::agent;
use crate::error::Failure;
use crate::link::Link;
use crate::open::Model;
use bridge::Bridge;
use convert::error::{Error, invalid_request, parse_error};
use peer::{Peer, Responder};
use protocol::framing::{DEFAULT_LIMIT, Decoder, FrameError, Style};
use protocol::{head, surrogate};
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};

/// How long answers may take that are still due when standard input ends.
const LAST: Duration = Duration::from_secs(2);

/// What new sessions talk to, and are, where the editor says nothing else.
pub(crate) struct Wishes {
    /// Provider and model.
    pub(crate) model: Model,
    /// Which agent.
    pub(crate) agent: agent::Asked,
}

/// Serves whoever started this process, until standard input ends.
pub(crate) async fn serve(link: Rc<Link>, wishes: Wishes) -> Result<(), Failure> {
    let local = LocalSet::new();
    local.run_until(talk(link, wishes)).await
}

async fn talk(link: Rc<Link>, wishes: Wishes) -> Result<(), Failure> {
    let mut input = stdio::input();
    let output = stdio::output();
    let peer = Rc::new(Peer::new(output.frames.clone()));
    let bridge = Bridge::new(link, Rc::clone(&peer), wishes);
    let mut desk = Desk {
        bridge,
        peer,
        work: JoinSet::new(),
    };
    let mut decoder = Decoder::with_style(DEFAULT_LIMIT, Style::Lines);
    loop {
        tokio::select! {
            chunk = input.recv() => match chunk {
                Some(chunk) => decoder.push(&chunk),
                None => break,
            },
            () = output.frames.closed() => return Ok(()),
        }
        while desk.read_one(&mut decoder)? {}
        while desk.work.try_join_next().is_some() {}
    }
    if let Ok(Some(frame)) = decoder.finish() {
        desk.take(&frame);
    }
    // What was asked before the end is still answered, but for turns: they go on without this process.
    let rest = async { while desk.work.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST, rest).await;
    output.drain().await;
    Ok(())
}

/// Where messages are taken.
struct Desk {
    bridge: Rc<Bridge>,
    peer: Rc<Peer>,
    /// Requests and notifications that are being seen to.
    work: JoinSet<()>,
}

impl Desk {
    /// Takes one message out of the decoder; false when there is no whole one.
    fn read_one(&mut self, decoder: &mut Decoder) -> Result<bool, Failure> {
        match decoder.next_frame() {
            Ok(Some(frame)) => self.take(&frame),
            Ok(None) => return Ok(false),
            Err(FrameError::TooLong { limit, head }) => {
                let error = invalid_request(&format!("a message may have {limit} bytes"));
                let id = head::id(&head).and_then(|id| serde_json::from_str(id.get()).ok());
                self.refuse(id.unwrap_or(Value::Null), error);
            }
            Err(FrameError::Lost(why)) => {
                return Err(Failure::new(format!("cannot read standard input: {why}")));
            }
        }
        Ok(true)
    }

    /// What one message asks for begins here, in the order of their coming; it ends when it ends.
    fn take(&mut self, frame: &[u8]) {
        if frame.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let mut message = match serde_json::from_slice(&surrogate::mend(frame)) {
            Ok(Value::Object(message)) => message,
            Ok(_) => {
                let error = invalid_request("a message is one JSON object");
                return self.refuse(Value::Null, error);
            }
            Err(error) => {
                return self.refuse(Value::Null, parse_error(&error.to_string()));
            }
        };
        let params = message.remove("params").unwrap_or(Value::Null);
        let bridge = Rc::clone(&self.bridge);
        match (message.remove("method"), message.remove("id")) {
            (Some(Value::String(method)), Some(id)) => {
                let reply = Responder::new(Rc::clone(&self.peer), id);
                let work = async move { bridge.request(&method, params, reply).await };
                self.work.spawn_local(work);
            }
            (Some(Value::String(method)), None) => {
                let work = async move { bridge.notification(&method, params).await };
                self.work.spawn_local(work);
            }
            (None, Some(id)) => self.peer.answered(&id, message),
            (Some(_), id) => {
                let error = invalid_request("a method is a string");
                self.refuse(id.unwrap_or(Value::Null), error);
            }
            (None, None) => self.refuse(Value::Null, invalid_request("no method and no id")),
        }
    }

    fn refuse(&mut self, id: Value, error: Error) {
        let reply = Responder::new(Rc::clone(&self.peer), id);
        self.work
            .spawn_local(async move { reply.send(Err::<(), _>(error)).await });
    }
}
