//! Which connection sees which session, as what, and how far its events have been queued.
//! Must never outlive a subscription: each entry goes with the task that forwards its events.

use jsonrpsee::ConnectionId;
use jsonrpsee::types::{ErrorObjectOwned, SubscriptionId};
use protocol::error::{ErrorKind, RpcError};
use protocol::id::SessionId;
use protocol::session::Role;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// All attachments; a cheap handle. The lock is held for look-ups only.
#[derive(Clone, Default)]
pub(super) struct Attachments(Arc<Mutex<Table>>);

type Table = HashMap<ConnectionId, Vec<Entry>>;

struct Entry {
    session: SessionId,
    subscription: SubscriptionId<'static>,
    role: Role,
    delivered: watch::Receiver<u64>,
}

/// One attachment, while it lasts.
pub(super) struct Attachment {
    table: Attachments,
    connection: ConnectionId,
    subscription: SubscriptionId<'static>,
    delivered: watch::Sender<u64>,
}

impl Attachments {
    /// A connection sees a session from now on; events up to `cursor` are not sent to it.
    pub(super) fn add(
        &self,
        connection: ConnectionId,
        session: SessionId,
        subscription: SubscriptionId<'static>,
        role: Role,
        cursor: u64,
    ) -> Attachment {
        let (delivered, receiver) = watch::channel(cursor);
        self.table().entry(connection).or_default().push(Entry {
            session,
            subscription: subscription.clone(),
            role,
            delivered: receiver,
        });
        Attachment {
            table: self.clone(),
            connection,
            subscription,
            delivered,
        }
    }

    /// Refuses a connection that only observes what `concerns` it. One that is not attached at all may do everything.
    pub(super) fn check_controls(
        &self,
        connection: ConnectionId,
        concerns: Concerns<'_>,
        attempt: &str,
    ) -> Result<(), ErrorObjectOwned> {
        let table = self.table();
        let mut roles = entries(&table, connection, concerns).map(|entry| entry.role);
        let observes = roles.next().is_some_and(|first| {
            first == Role::Observer && roles.all(|role| role == Role::Observer)
        });
        if observes {
            let why = format!("cannot {attempt}: this client is attached as an observer");
            return Err(RpcError::new(ErrorKind::NotAllowed, why).into());
        }
        Ok(())
    }

    /// Whether the connection has a subscription to what it `concerns`.
    pub(super) fn follows(&self, connection: ConnectionId, concerns: Concerns<'_>) -> bool {
        entries(&self.table(), connection, concerns)
            .next()
            .is_some()
    }

    /// Resolves when the event `seq` and all before it are queued for every subscription of the connection to what it
    /// `concerns`.
    pub(super) async fn delivered(
        &self,
        connection: ConnectionId,
        concerns: Concerns<'_>,
        seq: u64,
    ) {
        let receivers: Vec<_> = entries(&self.table(), connection, concerns)
            .map(|entry| entry.delivered.clone())
            .collect();
        for mut receiver in receivers {
            // An error means that the subscription ended: nothing more of it can be overtaken.
            let _ = receiver.wait_for(|delivered| *delivered >= seq).await;
        }
    }

    /// The connection's subscriptions to a session.
    pub(super) fn subscriptions(
        &self,
        connection: ConnectionId,
        session: &SessionId,
    ) -> Vec<SubscriptionId<'static>> {
        entries(&self.table(), connection, Concerns::Session(session))
            .map(|entry| entry.subscription.clone())
            .collect()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a call is about.
#[derive(Clone, Copy)]
pub(super) enum Concerns<'a> {
    /// A session.
    Session(&'a SessionId),
    /// A turn or an approval: their ids are the session's, a dot and more.
    PartOfSession(&'a str),
}

impl Concerns<'_> {
    fn includes(self, session: &SessionId) -> bool {
        match self {
            Self::Session(wanted) => wanted == session,
            Self::PartOfSession(id) => id
                .strip_prefix(session.as_str())
                .is_some_and(|rest| rest.starts_with('.')),
        }
    }
}

fn entries<'a>(
    table: &'a Table,
    connection: ConnectionId,
    concerns: Concerns<'a>,
) -> impl Iterator<Item = &'a Entry> {
    table
        .get(&connection)
        .into_iter()
        .flatten()
        .filter(move |entry| concerns.includes(&entry.session))
}

impl Attachment {
    /// The event `seq` stands in the connection's queue.
    pub(super) fn queued(&self, seq: u64) {
        self.delivered.send_replace(seq);
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut table = self.table.table();
        let Some(entries) = table.get_mut(&self.connection) else {
            return;
        };
        entries.retain(|entry| entry.subscription != self.subscription);
        if entries.is_empty() {
            table.remove(&self.connection);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const CONNECTION: ConnectionId = ConnectionId(1);

    fn attach(table: &Attachments, name: &'static str, role: Role) -> Attachment {
        let subscription = SubscriptionId::Str(name.into());
        table.add(CONNECTION, "owl".into(), subscription, role, 3)
    }

    fn may(table: &Attachments, concerns: Concerns<'_>) -> bool {
        table.check_controls(CONNECTION, concerns, "try").is_ok()
    }

    #[test]
    fn only_one_who_merely_observes_is_refused() {
        let table = Attachments::default();
        let (owl, other) = ("owl".into(), "owl2".into());
        assert!(may(&table, Concerns::Session(&owl)));
        let observer = attach(&table, "s1", Role::Observer);
        assert!(!may(&table, Concerns::Session(&owl)));
        assert!(!may(&table, Concerns::PartOfSession("owl.t1")));
        assert!(may(&table, Concerns::PartOfSession("owl2.t1")));
        assert!(may(&table, Concerns::Session(&other)));
        let controller = attach(&table, "s2", Role::Controller);
        assert!(may(&table, Concerns::Session(&owl)));
        assert_eq!(table.subscriptions(CONNECTION, &owl).len(), 2);
        drop(controller);
        assert!(!may(&table, Concerns::Session(&owl)));
        drop(observer);
        assert!(may(&table, Concerns::Session(&owl)));
        assert!(table.table().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn delivery_is_waited_for_until_the_subscription_ends() {
        let table = Attachments::default();
        let attachment = attach(&table, "s1", Role::Controller);
        let turn = Concerns::PartOfSession("owl.t1");
        table.delivered(CONNECTION, turn, 3).await;
        let waiting = table.delivered(CONNECTION, turn, 5);
        tokio::pin!(waiting);
        attachment.queued(4);
        let pause = Duration::from_millis(1);
        assert!(tokio::time::timeout(pause, &mut waiting).await.is_err());
        attachment.queued(5);
        waiting.await;
        let waiting = table.delivered(CONNECTION, turn, 9);
        drop(attachment);
        waiting.await;
    }
}
