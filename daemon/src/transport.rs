//! The socket: who may connect, how bytes become calls of jsonrpsee's `Methods`, and how answers leave in order.
//! Must never know a session, a turn or the store; holds nothing that outlives a connection.

pub mod connection;
pub mod context;
pub mod dispatch;
pub mod inside;
pub mod listener;
pub mod peer;
pub mod request;
mod withdraw;

pub use context::Context;
pub use listener::{ListenError, Listener, Place};

use crate::memory::Activity;
use connection::Connection;
use jsonrpsee::ConnectionId;
use jsonrpsee::core::server::Methods;
use peer::{Doorkeeper, Peer};
use protocol::error::{ErrorKind, RpcError};
use protocol::framing::{Style, encode};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What one client, and all of them together, may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The largest frame in bytes.
    pub frame: usize,
    /// Calls in flight per connection, a batch being one; one more is refused as retryable, if none ends in a moment.
    pub calls: u32,
    /// Connections; one more is told so and closed.
    pub connections: u32,
    /// Messages that wait for one client to read. When they are so many, whoever has another for it waits.
    pub queue: usize,
    /// Subscriptions per connection.
    pub subscriptions: u32,
    /// Calls in one batch.
    pub batch: usize,
    /// How long a client may leave output unread before it is dropped.
    pub unread: Duration,
    /// How long connections may take to deliver what is queued when the daemon stops.
    pub drain: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: protocol::framing::DEFAULT_LIMIT,
            calls: 64,
            connections: 1024,
            queue: 256,
            subscriptions: 4096,
            batch: 1000,
            unread: Duration::from_secs(30),
            drain: Duration::from_secs(2),
        }
    }
}

/// What is served.
#[derive(Clone)]
pub struct Service {
    /// The methods.
    pub methods: Methods,
    /// Methods that are taken even when a connection has all its calls in flight: those that end something.
    pub urgent: &'static [&'static str],
    /// Methods that only wait or read: a call may be taken back, and ends with nothing done but what it had waited for.
    pub waits: &'static [&'static str],
    /// Who may take how much.
    pub limits: Limits,
    /// How many are connected.
    pub connections: Connections,
    /// Stirred whenever a client said something.
    pub activity: Activity,
}

/// The number of open connections; a cheap handle.
#[derive(Clone, Debug, Default)]
pub struct Connections(Arc<AtomicU32>);

impl Connections {
    /// How many there are now.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes one of `limit` places; it is free again when the guard is dropped.
    fn enter(&self, limit: u32) -> Option<Seat> {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let guard = Seat(Arc::clone(&self.0));
        (before < limit).then_some(guard)
    }
}

/// One connection's place among all.
struct Seat(Arc<AtomicU32>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves everybody who connects until `stop`; then stops listening, delivers what is queued, and returns.
pub async fn serve(listener: &Listener, service: Service, stop: CancellationToken) {
    allow_descriptors(service.limits.connections);
    let server = Server {
        service,
        door: Doorkeeper::for_ourselves(),
        numbers: AtomicUsize::new(1),
        tasks: TaskTracker::new(),
        stop,
    };
    let until = server.stop.clone();
    tokio::select! {
        () = server.accept(listener) => {}
        () = listener.keep() => {}
        () = until.cancelled() => {}
    }
    listener.close();
    server.tasks.close();
    let drain = server.service.limits.drain;
    if tokio::time::timeout(drain, server.tasks.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            open = server.tasks.len(),
            "gave up on clients that do not read"
        );
    }
}

/// Lets the process have a descriptor for each client and as many again for everything else, as far as it may.
fn allow_descriptors(clients: u32) {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(clients) * 2;
    let wanted = limit.maximum.map_or(wanted, |most| wanted.min(most));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        if let Err(error) = setrlimit(Resource::Nofile, limit) {
            tracing::debug!(%error, wanted, "cannot raise the limit of open files");
        }
    }
}

struct Server {
    service: Service,
    door: Doorkeeper,
    /// The next connection's number.
    numbers: AtomicUsize,
    /// Connections and their calls.
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Server {
    async fn accept(&self, listener: &Listener) {
        loop {
            match listener.accept().await {
                Ok(stream) => self.welcome(stream),
                Err(error) => {
                    // Out of descriptors, say. The client waits in the backlog meanwhile.
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    fn welcome(&self, stream: UnixStream) {
        let peer = match Peer::of(&stream) {
            Ok(peer) => peer,
            Err(error) => {
                tracing::warn!(%error, "cannot tell who a client is");
                return;
            }
        };
        if let Err(why) = self.door.admit(peer) {
            self.turn_away(stream, RpcError::new(ErrorKind::NotAllowed, why));
            return;
        }
        let limit = self.service.limits.connections;
        match self.service.connections.enter(limit) {
            Some(seat) => self.seat(stream, peer, seat),
            None => {
                let why = format!("the daemon has its {limit} clients: close some and try again");
                tracing::warn!(pid = peer.pid, limit, "turned a client away: too many");
                self.turn_away(stream, RpcError::new(ErrorKind::Overloaded, why));
            }
        }
    }

    fn seat(&self, stream: UnixStream, peer: Peer, seat: Seat) {
        let (outgoing, queue) = mpsc::channel(self.service.limits.queue);
        let id = ConnectionId(self.numbers.fetch_add(1, Ordering::Relaxed));
        let gone = CancellationToken::new();
        let connection = Connection {
            stream,
            context: Arc::new(Context::new(id, peer, outgoing, gone.clone())),
            queue,
            service: self.service.clone(),
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
        };
        self.tasks.spawn(async move {
            let _gone = gone.drop_guard();
            let _seat = seat;
            connection.run().await;
        });
    }

    /// Says why not, in one line, and closes.
    fn turn_away(&self, stream: UnixStream, error: RpcError) {
        let mut line = Vec::new();
        let answer = request::error_response(&request::WireId::null(), error);
        encode(Style::Lines, answer.get().as_bytes(), &mut line);
        // A fresh socket's buffer is empty, so this is never cut short.
        let _ = stream.try_write(&line);
        self.tasks
            .spawn(async move { connection::linger(&stream).await });
    }
}

#[cfg(test)]
mod tests;
