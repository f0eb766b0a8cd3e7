//! One answer, put together from its events: text goes on at once, calls when they are complete.
//! Does no input or output.

use super::super::failure;
use super::super::sse::Event;
use super::super::stream::{Answer, Emit, Flow, Peer};
use super::super::{ErrorClass, ProviderError, ProviderEvent};
use super::Reasoning;
use super::chunk::{CallDelta, Choice, Chunk, Delta, FunctionDelta, Text};
use serde_json::{Map, Value, json};
use std::mem;

/// Calls of one answer.
const CALLS: usize = 1000;
/// The largest arguments of one call.
const ARGUMENTS: usize = 16 * 1024 * 1024;

pub(super) struct Completion<'a> {
    peer: &'a Peer,
    reasoning: Reasoning,
    /// What has to go back, as far as it came.
    thought: String,
    details: Vec<Value>,
    calls: Vec<PendingCall>,
    usage: Option<Value>,
    /// Why the model stopped; its presence makes the answer whole.
    finish: Option<String>,
    said: bool,
}

/// A call whose pieces still come.
#[derive(Default)]
struct PendingCall {
    index: u32,
    id: Option<String>,
    name: String,
    arguments: String,
    extra: Value,
}

impl<'a> Completion<'a> {
    pub(super) fn new(peer: &'a Peer, reasoning: Reasoning) -> Self {
        Self {
            peer,
            reasoning,
            thought: String::new(),
            details: Vec::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
            said: false,
        }
    }
}

impl Answer for Completion<'_> {
    fn flow(&self) -> Flow {
        match self.finish {
            Some(_) => Flow::Tail,
            None => Flow::Open,
        }
    }

    fn event(&mut self, event: &Event<'_>, emit: &mut Emit<'_>) -> Result<Flow, ProviderError> {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            return Ok(Flow::Ended);
        }
        if event.name == "error" {
            let error = serde_json::from_slice(data);
            let error = error.unwrap_or_else(|_| String::from_utf8_lossy(data).into());
            return Err(failure::reported(self.peer, &error));
        }
        if !data.is_empty() {
            self.chunk(data, emit)?;
        }
        Ok(self.flow())
    }

    fn object(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        self.chunk(body, emit)?;
        match self.finish.is_some() || self.said || !self.calls.is_empty() {
            true => Ok(()),
            false => Err(self.peer.nonsense(body)),
        }
    }

    fn end(mut self: Box<Self>, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        self.calls.sort_by_key(|call| call.index);
        let calls: Vec<_> = self.calls.iter().map(PendingCall::event).collect();
        let verdict = self.verdict(&calls);
        if verdict.is_ok() && !calls.is_empty() {
            let signed = self.signed().map(ProviderEvent::Signed);
            calls.into_iter().chain(signed).for_each(&mut *emit);
        }
        emit_usage(self.usage.as_ref(), emit);
        verdict
    }
}

impl Completion<'_> {
    /// What the vendor wants back with the results of the calls.
    fn signed(&mut self) -> Option<Value> {
        match self.reasoning {
            Reasoning::Hidden => None,
            Reasoning::Content => Some(json!({"reasoning_content": self.thought})),
            Reasoning::Details if self.details.is_empty() => None,
            Reasoning::Details => Some(json!({"reasoning_details": mem::take(&mut self.details)})),
            Reasoning::ThoughtSignatures => {
                let extra = self.calls.iter_mut().map(|call| call.extra.take());
                let extra: Vec<_> = extra.collect();
                let some = extra.iter().any(|extra| !extra.is_null());
                some.then(|| json!({"extra_content": extra}))
            }
        }
    }

    fn verdict(&self, calls: &[ProviderEvent]) -> Result<(), ProviderError> {
        let is_cut = |call: &ProviderEvent| matches!(call, ProviderEvent::Doing { arguments, .. } if arguments.is_string());
        let message = match self.finish.as_deref() {
            Some("content_filter") => "the vendor's content filter stopped the answer",
            Some("length") if calls.iter().any(is_cut) => {
                "the model's limit of output tokens cut a tool call off"
            }
            Some("length") if calls.is_empty() && !self.said => {
                "the model used all its output tokens before it answered"
            }
            _ => return Ok(()),
        };
        Err(ProviderError {
            class: ErrorClass::Fatal,
            message: message.to_owned(),
        })
    }

    fn chunk(&mut self, data: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        // Checked once here, the text need not be checked again string by string.
        let text = std::str::from_utf8(data).map_err(|_| self.peer.nonsense(data))?;
        let chunk: Chunk<'_> = serde_json::from_str(text).map_err(|_| self.peer.nonsense(data))?;
        if let Some(error) = chunk.error {
            let error = serde_json::from_str(error.get()).unwrap_or_default();
            return Err(failure::reported(self.peer, &error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = serde_json::from_str(usage.get()).ok();
        }
        match chunk.choices {
            Some(choices) => choices
                .into_iter()
                .filter(|choice| choice.index.unwrap_or(0) == 0)
                .try_for_each(|choice| self.choice(choice, emit)),
            None => self.other(data),
        }
    }

    /// An event that is no piece of the answer: some servers write their errors bare.
    fn other(&self, data: &[u8]) -> Result<(), ProviderError> {
        let value: Value = serde_json::from_slice(data).unwrap_or_default();
        match value["object"] == "error" || value["type"] == "error" {
            true => Err(failure::reported(self.peer, &value)),
            false => Ok(()),
        }
    }

    fn choice(&mut self, choice: Choice, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        if let Some(delta) = choice.delta.or(choice.message.map(|whole| *whole)) {
            self.delta(delta, emit)?;
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish = Some(reason);
        }
        Ok(())
    }

    fn delta(&mut self, delta: Delta, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        if let Some(text) = text(delta.reasoning_content).or_else(|| text(delta.reasoning)) {
            if self.reasoning == Reasoning::Content {
                self.thought.push_str(&text);
            }
            emit(ProviderEvent::Thinking(text));
        }
        if self.reasoning == Reasoning::Details {
            self.details
                .extend(delta.reasoning_details.into_iter().flatten());
        }
        for text in [delta.content, delta.refusal].into_iter().flatten() {
            if !text.thought.is_empty() {
                emit(ProviderEvent::Thinking(text.thought));
            }
            if !text.said.is_empty() {
                self.said = true;
                emit(ProviderEvent::Saying(text.said));
            }
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call)?;
        }
        match delta.function_call {
            Some(function) => self.call(CallDelta {
                index: Some(0),
                id: None,
                function: Some(*function),
                extra_content: None,
            }),
            None => Ok(()),
        }
    }

    fn call(&mut self, delta: CallDelta) -> Result<(), ProviderError> {
        let function = delta.function.unwrap_or_default();
        let id = delta.id.filter(|id| !id.is_empty());
        let place = self.place(delta.index, id.as_deref(), &function);
        let call = &mut self.calls[place];
        call.id = call.id.take().or(id);
        if let Some(extra) = delta.extra_content {
            call.extra = extra;
        }
        call.take(function);
        if self.calls.len() > CALLS {
            return Err(ProviderError {
                class: ErrorClass::Fatal,
                message: format!("the model made more than {CALLS} calls at once"),
            });
        }
        let call = &self.calls[place];
        match call.arguments.len() + call.name.len() > ARGUMENTS {
            true => Err(ProviderError {
                class: ErrorClass::Fatal,
                message: format!("the arguments of {} are too large", call.name),
            }),
            false => Ok(()),
        }
    }

    /// Which call a piece belongs to; a new one when it begins one.
    fn place(&mut self, index: Option<u32>, id: Option<&str>, function: &FunctionDelta) -> usize {
        let named = function
            .name
            .as_deref()
            .is_some_and(|name| !name.is_empty());
        let found = match (index, id) {
            // Some servers number every call 0 and tell them apart by their ids.
            (Some(index), id) => self.last(|call| {
                let other = named && id.is_some() && call.id.is_some() && call.id.as_deref() != id;
                call.index == index && !other
            }),
            (None, Some(id)) => self.last(|call| call.id.as_deref() == Some(id)),
            (None, None) if named => self.last(|call| call.name.is_empty()),
            (None, None) => self.last(|_| true),
        };
        found.unwrap_or_else(|| {
            let next = self.calls.last().map_or(0, |call| call.index + 1);
            self.calls.push(PendingCall {
                index: index.unwrap_or(next),
                ..PendingCall::default()
            });
            self.calls.len() - 1
        })
    }

    fn last(&self, is_it: impl Fn(&PendingCall) -> bool) -> Option<usize> {
        self.calls.iter().rposition(is_it)
    }
}

impl PendingCall {
    fn take(&mut self, function: FunctionDelta) {
        // A name may come in pieces, and some servers repeat it whole with every piece of the arguments.
        match function.name {
            Some(name) if name != self.name => self.name.push_str(&name),
            _ => {}
        }
        match function.arguments {
            Some(Value::String(piece)) => self.arguments.push_str(&piece),
            Some(Value::Null) | None => {}
            Some(other) => self.arguments.push_str(&other.to_string()),
        }
    }

    fn event(&self) -> ProviderEvent {
        let text = self.arguments.trim();
        let arguments = match text.is_empty() {
            true => Value::Object(Map::new()),
            false => serde_json::from_str(text).unwrap_or_else(|_| self.arguments.clone().into()),
        };
        ProviderEvent::Doing {
            id: self.id.clone(),
            name: self.name.clone(),
            arguments,
        }
    }
}

fn text(text: Option<Text>) -> Option<String> {
    text.map(|text| text.said).filter(|text| !text.is_empty())
}

fn emit_usage(usage: Option<&Value>, emit: &mut Emit<'_>) {
    let Some(usage) = usage else { return };
    let count = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|n| n as u64));
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"]);
    let cached = cached.or_else(|| count(&usage["prompt_cache_hit_tokens"]));
    let (input, output) = (
        count(&usage["prompt_tokens"]),
        count(&usage["completion_tokens"]),
    );
    if input.is_some() || output.is_some() {
        emit(ProviderEvent::Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached: cached.unwrap_or(0),
        });
    }
}
