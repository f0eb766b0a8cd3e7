//! An agent of the Agent Client Protocol, version 1, on this process's standard streams: the daemon's sessions as editors
//! that speak it see them. Must never hold what the daemon holds: its end costs no session anything.

mod bridge;
mod convert;
mod incoming;
mod lane;
mod peer;
mod stdio;

use crate::agent;
use crate::error::Failure;
use crate::link::Link;
use crate::open::Model;
use bridge::Bridge;
use convert::error;
use incoming::{Inbox, Incoming};
use peer::{Peer, Responder};
use std::io::IsTerminal as _;
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
    let served = |peer| {
        let bridge = Bridge::new(link, peer, wishes);
        bridge.watch_link();
        Seen::Served(bridge)
    };
    local.run_until(talk(served)).await
}

/// Tells whoever started this process why there is no daemon: each request is answered with it, until standard input ends.
pub(crate) async fn refuse(failure: Failure) -> Result<(), Failure> {
    // A person who tries it out is told at once.
    if std::io::stdin().is_terminal() {
        return Err(failure);
    }
    let local = LocalSet::new();
    let why = failure.clone();
    local.run_until(talk(|_| Seen::Refused(why))).await?;
    Err(failure)
}

/// What becomes of what the editor asks.
enum Seen {
    Served(Rc<Bridge>),
    Refused(Failure),
}

async fn talk(seen: impl FnOnce(Rc<Peer>) -> Seen) -> Result<(), Failure> {
    let mut input = stdio::input();
    let output = stdio::output();
    let peer = Rc::new(Peer::new(output.frames.clone()));
    let mut desk = Desk {
        seen: seen(Rc::clone(&peer)),
        peer,
        work: JoinSet::new(),
    };
    let mut inbox = Inbox::new();
    loop {
        tokio::select! {
            chunk = input.recv() => match chunk {
                Some(chunk) => inbox.push(&chunk),
                None => break,
            },
            () = output.frames.closed() => return Ok(()),
        }
        while let Some(message) = inbox.next()? {
            desk.take(message);
        }
        while desk.work.try_join_next().is_some() {}
    }
    if let Some(message) = inbox.finish() {
        desk.take(message);
    }
    // What was asked before the end is still answered, but for turns: they go on without this process.
    let rest = async { while desk.work.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(LAST, rest).await;
    output.drain().await;
    Ok(())
}

/// Where messages are taken.
struct Desk {
    seen: Seen,
    peer: Rc<Peer>,
    /// Requests and notifications that are being seen to.
    work: JoinSet<()>,
}

impl Desk {
    /// What one message asks for begins here, in the order of their coming; it ends when it ends.
    fn take(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                let reply = Responder::new(Rc::clone(&self.peer), id);
                self.request(method, params, reply);
            }
            Incoming::Notification { method, params } => {
                if let Seen::Served(bridge) = &self.seen {
                    let bridge = Rc::clone(bridge);
                    let ticket = bridge.line_up(&method, &params);
                    let work = async move { bridge.notification(&method, params, ticket).await };
                    self.work.spawn_local(work);
                }
            }
            Incoming::Answer { id, message } => self.peer.answered(&id, message),
            Incoming::Refused { id, error } => {
                let reply = Responder::new(Rc::clone(&self.peer), id);
                self.refuse(reply, error);
            }
        }
    }

    fn request(&mut self, method: String, params: serde_json::Value, reply: Responder) {
        match &self.seen {
            Seen::Served(bridge) => {
                let bridge = Rc::clone(bridge);
                let ticket = bridge.line_up(&method, &params);
                let work = async move { bridge.request(&method, params, reply, ticket).await };
                self.work.spawn_local(work);
            }
            Seen::Refused(failure) => {
                let error = error::from(failure.clone());
                self.refuse(reply, error);
            }
        }
    }

    fn refuse(&mut self, reply: Responder, error: error::Error) {
        self.work
            .spawn_local(async move { reply.send(Err::<(), _>(error)).await });
    }
}
