//! What a handler may know of the connection that called it; it finds it in the call's extensions.
//! Must never hold what belongs to a session.

use super::peer::Peer;
use jsonrpsee::ConnectionId;
use jsonrpsee::core::traits::IdProvider;
use jsonrpsee::types::SubscriptionId;
use protocol::daemon::ClientInfo;
use protocol::notification::{Message, Notification};
use serde_json::value::{RawValue, to_raw_value};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// One connection, as handlers see it: shared as `Arc<Context>`.
#[derive(Debug)]
pub struct Context {
    id: ConnectionId,
    peer: Peer,
    /// What `initialize` said, the last time.
    client: Mutex<Option<ClientInfo>>,
    outgoing: mpsc::Sender<Box<RawValue>>,
    gone: CancellationToken,
    names: Names,
}

impl Context {
    /// A connection whose messages leave through `outgoing`, until `gone`.
    pub fn new(
        id: ConnectionId,
        peer: Peer,
        outgoing: mpsc::Sender<Box<RawValue>>,
        gone: CancellationToken,
    ) -> Self {
        Self {
            id,
            peer,
            client: Mutex::new(None),
            outgoing,
            gone,
            names: Names::default(),
        }
    }

    /// Its number, unique in this daemon's life.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// The process at the other end.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// What the client said of itself in `initialize`, if it did.
    pub fn client(&self) -> Option<ClientInfo> {
        self.client
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Remembers what the client says of itself.
    pub fn introduce(&self, client: ClientInfo) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }

    /// A name for people: what the client calls itself, else its process.
    pub fn name(&self) -> String {
        match self.client() {
            Some(client) if !client.name.is_empty() => client.name,
            _ => format!("pid {}", self.peer.pid),
        }
    }

    /// How many messages wait for the client to read.
    pub fn waiting(&self) -> usize {
        self.outgoing.max_capacity() - self.outgoing.capacity()
    }

    /// Resolves when no more than `most` wait, or the connection is gone. Who sends meanwhile comes behind.
    pub async fn waiting_at_most(&self, most: usize) {
        let room = self.outgoing.max_capacity().saturating_sub(most);
        // The room is left to others again.
        let _ = self.outgoing.reserve_many(room).await;
    }

    /// Queues a whole message behind those that wait; waits for room. False when the connection is gone.
    pub async fn send(&self, message: Box<RawValue>) -> bool {
        self.outgoing.send(message).await.is_ok()
    }

    /// Queues a notification. False when the connection is gone.
    pub async fn notify(&self, params: impl Notification) -> bool {
        match to_raw_value(&Message::new(params)) {
            Ok(json) => self.send(json).await,
            Err(error) => {
                tracing::error!(%error, "a notification cannot be written");
                false
            }
        }
    }

    /// Queues a notification where there is room, without waiting.
    pub fn try_notify(&self, params: impl Notification) {
        if let Ok(json) = to_raw_value(&Message::new(params)) {
            let _ = self.outgoing.try_send(json);
        }
    }

    /// Whether the connection is gone.
    pub fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Resolves when the connection is gone: for handlers that wait for something on the caller's behalf.
    pub async fn gone(&self) {
        self.gone.cancelled().await;
    }

    pub(super) fn outgoing(&self) -> &mpsc::Sender<Box<RawValue>> {
        &self.outgoing
    }

    pub(super) fn names(&self) -> &Names {
        &self.names
    }
}

/// Names subscriptions `s1`, `s2`, ...: unique in their connection, short in every notification.
#[derive(Debug, Default)]
pub(super) struct Names(AtomicU64);

impl IdProvider for Names {
    fn next_id(&self) -> SubscriptionId<'static> {
        let number = self.0.fetch_add(1, Ordering::Relaxed) + 1;
        SubscriptionId::Str(format!("s{number}").into())
    }
}
