//! Providers that live in another process, and speak `provider/fetch` over its stdio.
//! Must never know which models they have, and holds no process by itself: a child is its own owner.

mod child;
#[cfg(test)]
mod tests;

use super::registry::{Build, Env, is_executable, lookup};
use super::{BoxFuture, ErrorClass, Provider, ProviderError, ProviderEvent, Request};
use crate::stdio_rpc::{CallError, Host, Live, Refusal, raw};
pub(super) use child::{Children, Executable};
use protocol::plugin::{
    BuildParams, BuildResult, FetchParams, InstanceParams, ProviderEventParams,
    ProviderNotification,
};
use protocol::provider::ModelInfo;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

/// How long a build may take: it may load a model.
const BUILD: Duration = Duration::from_secs(120);
/// How long a list of models may take.
const LIST: Duration = Duration::from_secs(30);
/// What says which local models there are. They travel beside the session's environment.
const MODEL_VARIABLES: &[&str] = &[
    "CANDLE_MODEL",
    "GGML_MODEL",
    "LLAMA_MODEL",
    "LLAMA2_MODEL",
    "LLAMA2_TOKENIZER",
];

/// One provider of a child. It is built again in the child that follows one which ended.
struct Remote {
    child: Arc<dyn Host>,
    params: BuildParams,
    /// What the child said of itself at the first build.
    built: BuildResult,
    /// How long the child may say nothing in a round trip.
    silence: Duration,
    /// Held while it is being built.
    instance: Mutex<Instance>,
}

/// The name in the child that knows it.
struct Instance {
    live: Weak<Live>,
    name: String,
}

/// Builds the provider `name` of an executable. Also tells which other names the executable has.
pub(super) async fn build(
    children: &Children,
    executable: Executable,
    name: &str,
    build: Build,
) -> Result<(Arc<dyn Provider>, Vec<String>), String> {
    let label = executable.name.clone();
    if !is_executable(&executable.path) {
        let (path, hint) = (executable.path.display(), executable.hint);
        return Err(format!(
            "{name} needs {label}, which is not at {path}: {hint}"
        ));
    }
    let child = children.of(executable);
    let providers = child
        .providers()
        .await
        .map_err(|why| failed_to_start(&label, &why))?;
    if !providers.iter().any(|one| one == name) {
        return Err(format!(
            "{label} did not register a provider named {name:?}"
        ));
    }
    let provider = build_at(child, name, build).await?;
    Ok((provider, providers.to_vec()))
}

/// Builds the provider `name` of a child that somebody else owns, and that is known to have it.
pub(super) async fn build_at(
    child: Arc<dyn Host>,
    name: &str,
    build: Build,
) -> Result<Arc<dyn Provider>, String> {
    let live = child
        .live()
        .await
        .map_err(|why| failed_to_start(child.label(), &why))?;
    let _use = live.using();
    let params = BuildParams {
        name: name.to_owned(),
        model: build.model.clone(),
        env: environment(build.session.as_deref(), &build.env),
    };
    let built = build_in(&live, &params).await.map_err(|e| e.message)?;
    let instance = Instance {
        live: Arc::downgrade(&live),
        name: built.instance.clone(),
    };
    Ok(Arc::new(Remote {
        child,
        params,
        built,
        silence: build.settings.child_silence(),
        instance: Mutex::new(instance),
    }))
}

fn failed_to_start(label: &str, why: &str) -> String {
    format!("{label} failed to start: {why}")
}

/// The session's variables, and those of the daemon that say which models there are.
fn environment(session: Option<&BTreeMap<String, String>>, env: &Env) -> BTreeMap<String, String> {
    let mut all = session.cloned().unwrap_or_default();
    for name in MODEL_VARIABLES {
        if let Some(value) = lookup(env, name) {
            all.insert((*name).to_owned(), value);
        }
    }
    all
}

async fn build_in(live: &Live, params: &BuildParams) -> Result<BuildResult, ProviderError> {
    let label = &live.label;
    let built = timeout(BUILD, live.peer.call("provider/build", &raw(params))).await;
    let built = built.map_err(|_| dropped(format!("{label} took too long to build")))?;
    read(label, &built.map_err(failure)?)
}

impl Remote {
    /// The child and the instance's name in it.
    async fn ready(&self) -> Result<(Arc<Live>, String), ProviderError> {
        let label = self.child.label();
        let live = self.child.live().await;
        let live = live.map_err(|why| dropped(failed_to_start(label, &why)))?;
        let mut instance = self.instance.lock().await;
        if !std::ptr::eq(instance.live.as_ptr(), Arc::as_ptr(&live)) {
            let built = build_in(&live, &self.params).await?;
            *instance = Instance {
                live: Arc::downgrade(&live),
                name: built.instance,
            };
        }
        let name = instance.name.clone();
        Ok((live, name))
    }

    async fn round_trip(
        &self,
        request: Request<'_>,
        emit: &mut (dyn FnMut(ProviderEvent) + Send),
    ) -> Result<(), ProviderError> {
        let (live, instance) = self.ready().await?;
        let _use = live.using();
        let params = raw(&FetchParams {
            instance,
            messages: values(&own_signed(&self.params.name, request.messages)),
            tools: values(request.tools),
        });
        let pending = live.peer.prepare().map_err(failure)?;
        let mut events = live.streams.open(pending.id());
        let cancel = live.cancel_on_drop("provider/cancel", pending.id());
        pending.send("provider/fetch", &params).await;
        let answer = pending.answer();
        tokio::pin!(answer);
        let answer = loop {
            tokio::select! {
                biased;
                event = events.next() => tell(&event, emit),
                answer = &mut answer => break answer,
                () = tokio::time::sleep(self.silence) => return Err(self.silent()),
            }
        };
        cancel.answered();
        while let Some(event) = events.rest() {
            tell(&event, emit);
        }
        answer.map(drop).map_err(failure)
    }

    fn silent(&self) -> ProviderError {
        let (label, seconds) = (self.child.label(), self.silence.as_secs_f64());
        ProviderError {
            class: ErrorClass::Stalled,
            message: format!("{label} said nothing for {seconds} s"),
        }
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let (live, instance) = self.ready().await?;
        let _use = live.using();
        let label = self.child.label();
        let params = raw(&InstanceParams { instance });
        let listed = timeout(LIST, live.peer.call("provider/models", &params)).await;
        match listed.map_err(|_| dropped(format!("{label} took too long to list its models")))? {
            Ok(list) => read(label, &list),
            Err(CallError::Refused(refusal)) if refusal.code == Refusal::NO_METHOD => {
                Ok(Vec::new())
            }
            Err(error) => Err(failure(error)),
        }
    }
}

impl Provider for Remote {
    fn model(&self) -> Option<&str> {
        self.built.model.as_deref().or(self.params.model.as_deref())
    }

    fn window(&self) -> Option<u64> {
        self.built.window
    }

    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(self.round_trip(request, emit))
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(self.list())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let Instance { live, name } = self.instance.get_mut();
        if let Some(live) = live.upgrade() {
            let instance = std::mem::take(name);
            let params = raw(&InstanceParams { instance });
            live.peer.notify("provider/release", &params);
        }
    }
}

fn tell(params: &RawValue, emit: &mut (dyn FnMut(ProviderEvent) + Send)) {
    // What cannot be read is as unknown as a type that is not known.
    let Ok(params) = serde_json::from_str::<ProviderEventParams>(params.get()) else {
        return;
    };
    emit(match params.event {
        ProviderNotification::Saying { text } => ProviderEvent::Saying(text),
        ProviderNotification::Thinking { text } => ProviderEvent::Thinking(text),
        ProviderNotification::Doing {
            id,
            name,
            arguments,
        } => ProviderEvent::Doing {
            id,
            name,
            arguments,
        },
        ProviderNotification::Usage {
            input,
            output,
            cached,
        } => ProviderEvent::Usage {
            input,
            output,
            cached,
        },
        ProviderNotification::Signed { block } => ProviderEvent::Signed(block),
        ProviderNotification::Unknown => return,
    });
}

/// The messages without what other providers signed.
fn own_signed(name: &str, messages: &[super::Message]) -> Vec<super::Message> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let super::Message::Assistant { signed, .. } = message {
            signed.retain(|block| block.provider == name);
        }
    }
    messages
}

fn values<T: serde::Serialize>(all: &[T]) -> Vec<serde_json::Value> {
    let values = all.iter().map(serde_json::to_value);
    values.map(Result::unwrap_or_default).collect()
}

fn read<T: DeserializeOwned>(label: &str, result: &RawValue) -> Result<T, ProviderError> {
    serde_json::from_str(result.get()).map_err(|error| ProviderError {
        class: ErrorClass::Fatal,
        message: format!("{label} answered with what cannot be read: {error}"),
    })
}

fn failure(error: CallError) -> ProviderError {
    match error {
        CallError::Gone(message) => dropped(message),
        CallError::Refused(refusal) => ProviderError {
            class: ErrorClass::Reported {
                retryable: refusal.data["retryable"] == true,
            },
            message: refusal.message,
        },
    }
}

fn dropped(message: String) -> ProviderError {
    ProviderError {
        class: ErrorClass::Dropped,
        message,
    }
}
