//! From a frame's content to running calls: looks methods up, counts what is in flight, hands answers to the one queue.
//! Must never wait for a call before reading on, nor let a handler's panic reach anything but its own answer.

use super::Service;
use super::context::Context;
use super::request::{self, Call, Content, Message, WireId, error_response};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use jsonrpsee::Extensions;
use jsonrpsee::core::server::{
    BoundedSubscriptions, MethodCallback, MethodResponse, MethodSink, SubscriptionState,
};
use jsonrpsee::types::{Id, Params};
use protocol::error::{ErrorKind, RpcError};
use serde_json::value::RawValue;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// Runs one connection's calls.
pub struct Dispatcher {
    service: Service,
    context: Arc<Context>,
    /// One permit per call in flight. When none is left, a call is refused.
    calls: Arc<Semaphore>,
    /// As many again for urgent methods, so that a flood of them is bounded too.
    urgent: Arc<Semaphore>,
    subscriptions: BoundedSubscriptions,
    tasks: TaskTracker,
}

/// A call that may run: its answer, or none where it was sent already or nobody wants it.
struct Job {
    future: BoxFuture<'static, Option<Box<RawValue>>>,
    permit: OwnedSemaphorePermit,
}

/// How a call arrived.
#[derive(Clone, Copy, PartialEq)]
enum Arrival {
    Alone,
    InBatch,
}

impl Dispatcher {
    /// For one connection; its calls run on `tasks`.
    pub fn new(service: Service, context: Arc<Context>, tasks: TaskTracker) -> Self {
        let calls = service.limits.calls as usize;
        Self {
            calls: Arc::new(Semaphore::new(calls)),
            urgent: Arc::new(Semaphore::new(calls)),
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
            Content::Batch(messages) => self.batch(messages),
        }
    }

    /// Resolves when no call is in flight.
    pub async fn settled(&self) {
        for calls in [&self.calls, &self.urgent] {
            let _all = calls.acquire_many(self.service.limits.calls).await;
        }
    }

    async fn single(&self, message: Message<'_>) {
        match self.job(message, Arrival::Alone) {
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

    fn batch(&self, messages: Vec<Message<'_>>) {
        let jobs: Vec<_> = messages
            .into_iter()
            .map(|message| self.job(message, Arrival::InBatch))
            .collect();
        let context = Arc::clone(&self.context);
        self.tasks.spawn(async move {
            // The permits are kept until the whole answer is queued.
            let mut permits = Vec::new();
            let answers = join_all(jobs.into_iter().filter_map(|job| match job {
                Ok(Some(job)) => {
                    permits.push(job.permit);
                    Some(job.future)
                }
                Ok(None) => None,
                Err(answer) => Some(std::future::ready(Some(answer)).boxed()),
            }))
            .await;
            let answers: Vec<_> = answers.into_iter().flatten().collect();
            if !answers.is_empty()
                && let Ok(whole) = serde_json::value::to_raw_value(&answers)
            {
                context.send(whole).await;
            }
            drop(permits);
        });
    }

    /// The work that a message asks for; `Err` with the answer to what is refused.
    fn job(&self, message: Message<'_>, arrival: Arrival) -> Result<Option<Job>, Box<RawValue>> {
        match message {
            Message::Response => Ok(None),
            Message::Invalid(id, error) => Err(error_response(&id, error)),
            Message::Call(call) => {
                let id = call.id.clone();
                match (self.prepare(call, arrival), id) {
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

    fn prepare(&self, call: Call<'_>, arrival: Arrival) -> Result<Job, RpcError> {
        let found = self.service.methods.method_with_name(&call.method);
        let (name, callback) = found.ok_or_else(|| no_method(&call.method))?;
        let permit = self.permit(name)?;
        let params = Params::new(call.params.map(RawValue::get)).into_owned();
        let mut extensions = Extensions::new();
        extensions.insert(Arc::clone(&self.context));
        let future = match callback {
            MethodCallback::Subscription(_) => {
                self.subscription(name, callback, &call, arrival, params, extensions)?
            }
            plain => self.method(name, plain, call.id.clone(), params, extensions),
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

    fn permit(&self, name: &'static str) -> Result<OwnedSemaphorePermit, RpcError> {
        let pool = if self.service.urgent.contains(&name) {
            &self.urgent
        } else {
            &self.calls
        };
        Arc::clone(pool).try_acquire_owned().map_err(|_| {
            let limit = self.service.limits.calls;
            RpcError::new(
                ErrorKind::Overloaded,
                format!("{name} is refused: {limit} calls of this connection are in flight"),
            )
        })
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
        arrival: Arrival,
        params: Params<'static>,
        extensions: Extensions,
    ) -> Result<BoxFuture<'static, Option<Box<RawValue>>>, RpcError> {
        let refused = |kind, why: &str| RpcError::new(kind, format!("{name} {why}"));
        let MethodCallback::Subscription(callback) = callback.clone() else {
            return Err(refused(ErrorKind::Internal, "is no subscription"));
        };
        if arrival == Arrival::InBatch {
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
