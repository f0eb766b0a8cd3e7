//! From a frame's content to running calls: looks methods up, counts what is in flight, hands answers to the one queue.
//! Must never keep reading waiting for calls that take long, nor let a handler's panic reach anything but its own answer.

use super::Service;
use super::context::Context;
use super::request::{self, Call, Content, Message, WireId, error_response};
use super::withdraw::{self, Withdrawals};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use jsonrpsee::Extensions;
use jsonrpsee::core::server::{
    BoundedSubscriptions, MethodCallback, MethodResponse, MethodSink, SubscriptionState,
};
use jsonrpsee::types::{Id, Params};
use protocol::error::{ErrorKind, RpcError};
use protocol::table;
use serde_json::value::RawValue;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

/// How long reading waits for calls in flight to end when they are as many as may be. Those that are answered at once are
/// by then, so that a client may write any number of them; those that wait for something are not.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs one connection's calls.
pub struct Dispatcher {
    service: Service,
    context: Arc<Context>,
    /// One permit per call in flight, and per batch of any number. When none is left, a call is refused.
    calls: Arc<Semaphore>,
    /// Patience was in vain, and none has ended since: what comes is refused at once, for a cancel may be behind it.
    stuck: AtomicBool,
    /// As many again for urgent methods, so that a flood of them is bounded too.
    urgent: Arc<Semaphore>,
    /// Those in flight that the client may take back.
    withdrawals: Withdrawals,
    subscriptions: BoundedSubscriptions,
    tasks: TaskTracker,
}

/// A call that may run: its answer, or none where it was sent already or nobody wants it.
struct Job {
    future: BoxFuture<'static, Option<Box<RawValue>>>,
    permit: Permit,
}

/// Kept until the answer is queued.
type Permit = Arc<OwnedSemaphorePermit>;

/// How a call arrived.
#[derive(Clone)]
enum Arrival {
    Alone,
    /// With the batch's permit, if there was one.
    InBatch(Option<Permit>),
}

impl Dispatcher {
    /// For one connection; its calls run on `tasks`.
    pub fn new(service: Service, context: Arc<Context>, tasks: TaskTracker) -> Self {
        let calls = service.limits.calls as usize;
        Self {
            calls: Arc::new(Semaphore::new(calls)),
            stuck: AtomicBool::new(false),
            urgent: Arc::new(Semaphore::new(calls)),
            withdrawals: Withdrawals::default(),
            subscriptions: BoundedSubscriptions::new(service.limits.subscriptions),
            service,
            context,
            tasks,
        }
    }

    /// Starts what a frame asks; what is refused is answered at once.
    pub async fn handle(&self, frame: &[u8]) {
        match request::read(frame, self.service.limits.batch) {
            Content::Single(message) => self.single(message).await,
            Content::Batch(messages) => self.batch(messages).await,
        }
    }

    /// Resolves when no call is in flight.
    pub async fn settled(&self) {
        for calls in [&self.calls, &self.urgent] {
            let _all = calls.acquire_many(self.service.limits.calls).await;
        }
    }

    async fn single(&self, message: Message<'_>) {
        match self.job(message, Arrival::Alone).await {
            Ok(Some(job)) => {
                let context = Arc::clone(&self.context);
                self.tasks.spawn(async move {
                    if let Some(answer) = job.future.await {
                        context.send(answer).await;
                    }
                    drop(job.permit);
                });
            }
            Ok(None) => {}
            Err(answer) => {
                self.context.send(answer).await;
            }
        }
    }

    /// All of it is one answer, so it takes one permit; so many of its calls run at once as may alone.
    async fn batch(&self, messages: Vec<Message<'_>>) {
        let permit = self.room().await;
        let (mut futures, mut permits) = (Vec::with_capacity(messages.len()), Vec::new());
        for message in messages {
            match self.job(message, Arrival::InBatch(permit.clone())).await {
                Ok(Some(job)) => {
                    futures.push(job.future);
                    permits.push(job.permit);
                }
                Ok(None) => {}
                Err(answer) => futures.push(std::future::ready(Some(answer)).boxed()),
            }
        }
        let context = Arc::clone(&self.context);
        let at_once = self.service.limits.calls as usize;
        self.tasks.spawn(async move {
            let answers = stream::iter(futures).buffered(at_once);
            let answers: Vec<_> = answers.filter_map(std::future::ready).collect().await;
            if !answers.is_empty()
                && let Ok(whole) = serde_json::value::to_raw_value(&answers)
            {
                context.send(whole).await;
            }
            // Kept until the whole answer is queued.
            drop(permits);
        });
    }

    /// The work that a message asks for; `Err` with the answer to what is refused.
    async fn job(
        &self,
        message: Message<'_>,
        arrival: Arrival,
    ) -> Result<Option<Job>, Box<RawValue>> {
        match message {
            Message::Response => Ok(None),
            Message::Invalid(id, error) => Err(error_response(&id, error)),
            Message::Call(call) if self.withdrawals.hear(&call) => Ok(None),
            Message::Call(call) => {
                let id = call.id.clone();
                match (self.prepare(call, arrival).await, id) {
                    (Ok(job), _) => Ok(Some(job)),
                    (Err(error), Some(id)) => Err(error_response(&id, error)),
                    (Err(error), None) => {
                        tracing::debug!(%error, "dropped a notification");
                        Ok(None)
                    }
                }
            }
        }
    }

    async fn prepare(&self, call: Call<'_>, arrival: Arrival) -> Result<Job, RpcError> {
        let found = self.service.methods.method_with_name(&call.method);
        let (name, callback) = found.ok_or_else(|| no_method(&call.method))?;
        let permit = self.permit(name, &arrival).await?;
        let params = call.params.map(|params| table::mend(params.get()));
        let params = Params::new(params.as_deref()).into_owned();
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(&self.context));
        let future = match callback {
            MethodCallback::Subscription(_) => {
                self.subscription(name, callback, &call, &arrival, params, extensions)?
            }
            plain => {
                let future = self.method(name, plain, call.id.clone(), params, extensions);
                self.until_withdrawn(name, call.id.as_ref(), future)
            }
        };
        let wanted = call.id;
        let guarded = AssertUnwindSafe(future).catch_unwind().map(move |answer| {
            let id = wanted?;
            answer.unwrap_or_else(|_| Some(error_response(&id, panicked(name))))
        });
        Ok(Job {
            future: guarded.boxed(),
            permit,
        })
    }

    /// Ends a call when its client takes it back, if it is one that may be: then nothing of it goes on.
    fn until_withdrawn(
        &self,
        name: &'static str,
        id: Option<&WireId>,
        call: BoxFuture<'static, Option<Box<RawValue>>>,
    ) -> BoxFuture<'static, Option<Box<RawValue>>> {
        let Some(id) = id.filter(|_| self.service.waits.contains(&name)).cloned() else {
            return call;
        };
        let place = self.withdrawals.enter(&id);
        async move {
            tokio::select! {
                biased;
                answer = call => answer,
                () = place.withdrawn() => Some(error_response(&id, withdraw::error(name))),
            }
        }
        .boxed()
    }

    async fn permit(&self, name: &'static str, arrival: &Arrival) -> Result<Permit, RpcError> {
        let permit = match arrival {
            _ if self.service.urgent.contains(&name) => {
                let urgent = Arc::clone(&self.urgent).try_acquire_owned();
                urgent.ok().map(Arc::new)
            }
            Arrival::Alone => self.room().await,
            Arrival::InBatch(permit) => permit.clone(),
        };
        permit.ok_or_else(|| {
            let limit = self.service.limits.calls;
            RpcError::new(
                ErrorKind::Overloaded,
                format!("{name} is refused: {limit} calls of this connection are in flight"),
            )
        })
    }

    /// A permit, if there is one or will be in a moment.
    async fn room(&self) -> Option<Permit> {
        if let Ok(permit) = Arc::clone(&self.calls).try_acquire_owned() {
            self.stuck.store(false, Ordering::Relaxed);
            return Some(Arc::new(permit));
        }
        if self.stuck.load(Ordering::Relaxed) {
            return None;
        }
        let soon = timeout(PATIENCE, Arc::clone(&self.calls).acquire_owned()).await;
        self.stuck.store(soon.is_err(), Ordering::Relaxed);
        soon.ok()?.ok().map(Arc::new)
    }

    fn method(
        &self,
        name: &'static str,
        callback: &MethodCallback,
        id: Option<WireId>,
        params: Params<'static>,
        extensions: Extensions,
    ) -> BoxFuture<'static, Option<Box<RawValue>>> {
        let connection = self.context.id();
        let callback = callback.clone();
        let id = id.unwrap_or_else(WireId::null);
        async move {
            let plain = id.plain().unwrap_or(Id::Null);
            let response = match callback {
                MethodCallback::Sync(call) => call(plain, params, usize::MAX, extensions),
                MethodCallback::Async(call) => {
                    call(plain, params, connection, usize::MAX, extensions).await
                }
                MethodCallback::Unsubscription(call) => {
                    call(plain, params, connection, usize::MAX, extensions)
                }
                MethodCallback::Subscription(_) => return None,
            };
            Some(finish(name, &id, response))
        }
        .boxed()
    }

    fn subscription(
        &self,
        name: &'static str,
        callback: &MethodCallback,
        call: &Call<'_>,
        arrival: &Arrival,
        params: Params<'static>,
        extensions: Extensions,
    ) -> Result<BoxFuture<'static, Option<Box<RawValue>>>, RpcError> {
        let refused = |kind, why: &str| RpcError::new(kind, format!("{name} {why}"));
        let MethodCallback::Subscription(callback) = callback.clone() else {
            return Err(refused(ErrorKind::Internal, "is no subscription"));
        };
        if matches!(arrival, Arrival::InBatch(_)) {
            let why = "cannot be part of a batch: send it alone";
            return Err(refused(ErrorKind::InvalidRequest, why));
        }
        let id = call.id.as_ref().and_then(WireId::plain).ok_or_else(|| {
            let why = "needs an id that is a string or a number from 0";
            refused(ErrorKind::InvalidRequest, why)
        })?;
        let subscription_permit = self.subscriptions.acquire().ok_or_else(|| {
            let why = format!(
                "is refused: {} subscriptions of this connection are open",
                self.subscriptions.max()
            );
            refused(ErrorKind::Refused, &why)
        })?;
        let context = Arc::clone(&self.context);
        Ok(async move {
            let state = SubscriptionState {
                conn_id: context.id(),
                id_provider: context.names(),
                subscription_permit,
            };
            let sink = MethodSink::new(context.outgoing().clone());
            let response = callback(id, params, sink, state, extensions).await;
            unsent(&response).then(|| response.into_json())
        }
        .boxed())
    }
}

/// A subscription sends its own answer, but for a handler that died before it said yes or no: jsonrpsee then makes up
/// an error without `data`, which ours never are.
fn unsent(response: &MethodResponse) -> bool {
    response.as_error_code() == Some(ErrorKind::Internal.code())
        && !response.as_ref().contains("\"data\"")
}

/// Puts back what jsonrpsee cannot carry: its id type, and the words for parameters that do not fit.
fn finish(name: &'static str, id: &WireId, response: MethodResponse) -> Box<RawValue> {
    if response.as_error_code() == Some(ErrorKind::InvalidParams.code())
        && let Some(detail) = params_detail(response.as_ref())
    {
        return error_response(id, RpcError::invalid_params(name, &detail));
    }
    if id.plain().is_some() {
        return response.into_json();
    }
    let text = response.as_ref();
    let text = text.replacen("\"id\":null", &format!("\"id\":{}", id.as_json()), 1);
    RawValue::from_string(text).unwrap_or_else(|_| response.into_json())
}

/// jsonrpsee's own parameter errors have a text as `data`; ours have an object.
fn params_detail(response: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        error: Error,
    }
    #[derive(serde::Deserialize)]
    struct Error {
        data: String,
    }
    serde_json::from_str::<Answer>(response)
        .ok()
        .map(|answer| answer.error.data)
}

fn no_method(name: &str) -> RpcError {
    let shown: String = name.chars().take(100).collect();
    RpcError::new(ErrorKind::MethodNotFound, format!("no method {shown:?}")).with("method", shown)
}

fn panicked(name: &str) -> RpcError {
    let why = format!("{name} failed inside the daemon: its log says where");
    RpcError::new(ErrorKind::Internal, why)
}
