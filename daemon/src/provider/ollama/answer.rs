//! One answer of Ollama's chat, put together from its lines: text goes on at once, calls at the end.
//! Does no input or output.

use super::super::failure;
use super::super::sse::Event;
use super::super::stream::{Answer, Emit, Flow, Peer};
use super::super::{ErrorClass, ProviderError, ProviderEvent};
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) struct Reply<'a> {
    peer: &'a Peer,
    calls: Vec<Call>,
    said: bool,
    usage: Option<(u64, u64)>,
    /// Why the model stopped; its presence makes the answer whole.
    done: Option<String>,
}

#[derive(Deserialize)]
struct Line {
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    done_reason: Option<String>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    #[serde(default)]
    eval_count: Option<u64>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    #[serde(default)]
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl<'a> Reply<'a> {
    pub(super) fn new(peer: &'a Peer) -> Self {
        Self {
            peer,
            calls: Vec::new(),
            said: false,
            usage: None,
            done: None,
        }
    }
}

impl Answer for Reply<'_> {
    fn flow(&self) -> Flow {
        match self.done {
            Some(_) => Flow::Ended,
            None => Flow::Open,
        }
    }

    fn event(&mut self, event: &Event<'_>, emit: &mut Emit<'_>) -> Result<Flow, ProviderError> {
        let text = std::str::from_utf8(event.data.trim_ascii());
        let text = text.map_err(|_| self.peer.nonsense(event.data))?;
        if text.is_empty() {
            return Ok(self.flow());
        }
        let line: Line = serde_json::from_str(text).map_err(|_| self.peer.nonsense(event.data))?;
        if let Some(error) = line.error {
            return Err(failure::reported(self.peer, &error));
        }
        if let Some(message) = line.message {
            self.message(message, emit);
        }
        if line.done {
            self.done = Some(line.done_reason.unwrap_or_default());
            if line.prompt_eval_count.is_some() || line.eval_count.is_some() {
                let counts = (line.prompt_eval_count, line.eval_count);
                self.usage = Some((counts.0.unwrap_or(0), counts.1.unwrap_or(0)));
            }
        }
        Ok(self.flow())
    }

    fn object(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let event = Event {
            name: "",
            data: body,
        };
        self.event(&event, emit).map(drop)
    }

    fn end(self: Box<Self>, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let cut = self.done.as_deref() == Some("length");
        if let Some((input, output)) = self.usage {
            emit(ProviderEvent::Usage {
                input,
                output,
                cached: 0,
            });
        }
        if cut && !self.said && self.calls.is_empty() {
            let message = "the model used all its output tokens before it answered".to_owned();
            let class = ErrorClass::Fatal;
            return Err(ProviderError { class, message });
        }
        self.calls.into_iter().map(Call::event).for_each(emit);
        Ok(())
    }
}

impl Reply<'_> {
    fn message(&mut self, message: Message, emit: &mut Emit<'_>) {
        if let Some(text) = message.thinking.filter(|text| !text.is_empty()) {
            emit(ProviderEvent::Thinking(text));
        }
        if let Some(text) = message.content.filter(|text| !text.is_empty()) {
            self.said = true;
            emit(ProviderEvent::Saying(text));
        }
        self.calls.extend(message.tool_calls.into_iter().flatten());
    }
}

impl Call {
    fn event(self) -> ProviderEvent {
        let arguments = match self.function.arguments {
            Value::Null => Value::Object(Map::new()),
            Value::String(text) if text.trim().is_empty() => Value::Object(Map::new()),
            Value::String(text) => serde_json::from_str(&text).unwrap_or_else(|_| text.into()),
            other => other,
        };
        ProviderEvent::Doing {
            id: self.id.filter(|id| !id.is_empty()),
            name: self.function.name,
            arguments,
        }
    }
}
