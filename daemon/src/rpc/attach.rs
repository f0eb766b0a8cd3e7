//! Forwarding a session's events to one subscription, in the bytes that are stored.
//! Must never hold more than one event: when the client is slow, the log is read later, from where it stands.

use super::attachments::{Attachment, Concerns};
use super::error::{fail, to_rpc};
use super::{Rpc, caller};
use crate::session::{SessionError, Subscriber};
use crate::transport::Context;
use jsonrpsee::core::server::{MethodCallback, MethodResponse, RpcModule, SubscriptionMessage};
use jsonrpsee::core::{RegisterMethodError, SubscriptionError, SubscriptionResult};
use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, PendingSubscriptionSink, SubscriptionSink};
use protocol::daemon::{Clients, Trouble};
use protocol::error::RpcError;
use protocol::id::SessionId;
use protocol::session::Role;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

const ATTACH: &str = "session/attach";
/// Bytes of one subscription's events in its connection's queue; one event more when it is that large.
const UNREAD: usize = 1 << 20;

/// What the store is in trouble with, if it is.
type Troubles = watch::Receiver<Option<Arc<str>>>;

impl Rpc {
    /// Answers, then forwards until the client detaches or is gone, or the session is.
    pub(super) async fn forward(
        &self,
        pending: PendingSubscriptionSink,
        extensions: &Extensions,
        session: SessionId,
        after: Option<u64>,
        role: Role,
    ) -> SubscriptionResult {
        let context = match caller(extensions) {
            Ok(context) => Arc::clone(context),
            Err(error) => {
                pending.reject(error).await;
                return Ok(());
            }
        };
        let subscriber = match self.sessions().attach(&session, after).await {
            Ok(subscriber) => subscriber,
            Err(error) => {
                pending.reject(fail(error)).await;
                return Ok(());
            }
        };
        let sink = pending.accept().await?;
        let attachment = self.0.attachments.add(
            context.id(),
            session.clone(),
            sink.subscription_id(),
            role,
            subscriber.cursor(),
        );
        let forwarding = Forwarding {
            context,
            session,
            attachment,
            sink,
        };
        // On the heap only while it runs: what led here is gone by then.
        Box::pin(forwarding.run(subscriber)).await.map_err(closing)
    }

    /// Refuses a controller's act by one who observes.
    pub(super) fn check_controls(
        &self,
        extensions: &Extensions,
        concerns: Concerns<'_>,
        attempt: &str,
    ) -> Result<Arc<Context>, ErrorObjectOwned> {
        let context = caller(extensions)?;
        self.0
            .attachments
            .check_controls(context.id(), concerns, attempt)?;
        Ok(Arc::clone(context))
    }
}

struct Forwarding {
    context: Arc<Context>,
    session: SessionId,
    attachment: Attachment,
    sink: SubscriptionSink,
}

impl Forwarding {
    async fn run(self, mut subscriber: Subscriber) -> Result<(), SessionError> {
        let mut troubles = subscriber.troubles();
        let mut attached = subscriber.attached();
        let mut unread = Unread::default();
        self.tell(&mut troubles).await;
        loop {
            let entry = tokio::select! {
                biased;
                () = self.sink.closed() => return Ok(()),
                true = changed(&mut troubles) => {
                    self.tell(&mut troubles).await;
                    continue;
                }
                true = changed(&mut attached) => {
                    self.tell_clients(&mut attached).await;
                    continue;
                }
                next = subscriber.next() => next?,
            };
            let Some(message) = self.message(&entry.json) else {
                tracing::error!(session = %self.session, "an event of the store is not JSON");
                continue;
            };
            unread.make_room(&self.context).await;
            unread.add(entry.json.len());
            if self.sink.send(message).await.is_err() {
                return Ok(());
            }
            self.attachment.queued(entry.event.seq);
        }
    }

    /// The notification, made with one copy of the event.
    fn message(&self, event: &str) -> Option<SubscriptionMessage> {
        let event: &RawValue = serde_json::from_str(event).ok()?;
        let id = self.sink.subscription_id();
        SubscriptionMessage::new(self.sink.method_name(), id, &event).ok()
    }

    /// Tells of the store's trouble, which cannot be an event.
    async fn tell(&self, troubles: &mut Troubles) {
        let Some(message) = troubles.borrow_and_update().clone() else {
            return;
        };
        let trouble = Trouble {
            session: self.session.clone(),
            message: message.to_string(),
        };
        self.context.notify(trouble).await;
    }

    /// Tells how many are attached, which is no part of the log.
    async fn tell_clients(&self, attached: &mut watch::Receiver<u32>) {
        let clients = *attached.borrow_and_update();
        let session = self.session.clone();
        self.context.notify(Clients { session, clients }).await;
    }
}

/// What stands in the connection's queue of this subscription, whose limit counts messages: an event may be large.
#[derive(Default)]
struct Unread {
    /// Oldest first; those that may have been written by now are forgotten when it is looked at.
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Unread {
    fn add(&mut self, size: usize) {
        self.sizes.push_back(size);
        self.bytes += size;
    }

    /// Waits until little enough of ours waits for the client, or it is gone.
    async fn make_room(&mut self, context: &Context) {
        loop {
            let waiting = context.waiting();
            self.forget_but(waiting);
            if self.bytes < UNREAD {
                return;
            }
            context.waiting_at_most(waiting / 2).await;
            if waiting == context.waiting() {
                // Nobody reads any more, as the connection is gone.
                return;
            }
        }
    }

    /// With so many messages in the queue, no more than so many of it can be ours.
    fn forget_but(&mut self, waiting: usize) {
        while self.sizes.len() > waiting {
            self.bytes -= self.sizes.pop_front().unwrap_or(0);
        }
        if self.sizes.is_empty() {
            // A subscription that rests holds next to no memory.
            self.sizes.shrink_to(4);
        }
    }
}

/// False once nothing can change any more, which turns that branch of a select off.
async fn changed<T>(watched: &mut watch::Receiver<T>) -> bool {
    watched.changed().await.is_ok()
}

/// The last notification of a subscription that the session's end (or the store's) ends: the error as an object.
fn closing(error: SessionError) -> SubscriptionError {
    let error = ErrorObjectOwned::from(to_rpc(&error));
    match to_raw_value(&error) {
        Ok(json) => SubscriptionError::from_json(json),
        Err(_) => SubscriptionError::from(error.message()),
    }
}

/// Puts a check before `session/attach`: jsonrpsee's own words for parameters that do not fit bypass the dispatch.
pub(super) fn check_params(module: &mut RpcModule<Rpc>) -> Result<(), RegisterMethodError> {
    let Some(MethodCallback::Subscription(inner)) = module.remove_method(ATTACH) else {
        return Err(RegisterMethodError::MethodNotFound(ATTACH.into()));
    };
    let checked =
        MethodCallback::Subscription(Arc::new(move |id, params, sink, state, extensions| {
            match read_params(&params) {
                Ok(()) => inner(id, params, sink, state, extensions),
                Err(error) => {
                    let detail = error.data().map_or(error.message(), RawValue::get);
                    let detail = detail.trim_matches('"').replace("\\\"", "\"");
                    let error = RpcError::invalid_params(ATTACH, &detail);
                    let response =
                        MethodResponse::subscription_error(id, ErrorObjectOwned::from(error));
                    Box::pin(async move {
                        let _ = sink.send(response.to_json()).await;
                        response
                    })
                }
            }
        }));
    module.verify_and_insert(ATTACH, checked).map(|_| ())
}

fn read_params(params: &Params<'_>) -> Result<(), ErrorObjectOwned> {
    #[derive(Deserialize)]
    #[allow(dead_code)]
    struct ByName {
        session: SessionId,
        after: Option<u64>,
        role: Option<Role>,
    }
    if params.is_object() {
        return params.parse::<ByName>().map(|_| ());
    }
    let mut sequence = params.sequence();
    sequence.next::<SessionId>()?;
    sequence.optional_next::<u64>()?;
    sequence.optional_next::<Role>()?;
    Ok(())
}
