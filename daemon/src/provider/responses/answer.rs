//! One answer of Responses, put together from its events: text goes on at once, calls and reasoning items at the end.
//! Does no input or output.

use super::super::failure;
use super::super::place::{Place, placed};
use super::super::sse::Event;
use super::super::stream::{Answer, Emit, Flow, Peer};
use super::super::{ErrorClass, ProviderError, ProviderEvent};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

pub(super) struct Response<'a> {
    peer: &'a Peer,
    calls: Vec<Value>,
    signed: Vec<Value>,
    place: Place,
    thought: bool,
    usage: Value,
    ended: Option<End>,
}

/// How the vendor says that it ended.
#[derive(PartialEq)]
enum End {
    Complete,
    /// With the vendor's reason.
    Incomplete(String),
}

/// One event; only what is used of it, and lenient about the rest.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    delta: Option<String>,
    #[serde(default)]
    item: Option<Value>,
    #[serde(default)]
    response: Option<Value>,
}

impl<'a> Response<'a> {
    pub(super) fn new(peer: &'a Peer) -> Self {
        Self {
            peer,
            calls: Vec::new(),
            signed: Vec::new(),
            place: Place::default(),
            thought: false,
            usage: Value::Null,
            ended: None,
        }
    }
}

impl Answer for Response<'_> {
    fn flow(&self) -> Flow {
        match self.ended {
            Some(_) => Flow::Ended,
            None => Flow::Open,
        }
    }

    fn event(&mut self, event: &Event<'_>, emit: &mut Emit<'_>) -> Result<Flow, ProviderError> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(self.flow());
        }
        let text = std::str::from_utf8(data).map_err(|_| self.peer.nonsense(data))?;
        let chunk: Chunk<'_> = match serde_json::from_str(text) {
            Ok(chunk) => chunk,
            Err(_) if event.name == "error" => {
                return Err(failure::reported(self.peer, &text.into()));
            }
            Err(_) => return Err(self.peer.nonsense(data)),
        };
        let delta = chunk.delta.unwrap_or_default();
        match &*chunk.kind {
            "response.output_text.delta" | "response.refusal.delta" => self.say(delta, emit),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.think(delta, emit);
            }
            "response.reasoning_summary_part.added" if self.thought => {
                self.think("\n\n".to_owned(), emit);
            }
            "response.output_item.done" => self.item(chunk.item.unwrap_or_default()),
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.over(chunk.response.unwrap_or_default())?;
            }
            "error" | "" => {
                let body: Value = serde_json::from_str(text).unwrap_or_default();
                if &*chunk.kind == "error" || !body["error"].is_null() {
                    return Err(failure::reported(self.peer, &body));
                }
            }
            _ => {}
        }
        Ok(self.flow())
    }

    fn object(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let response: Value = serde_json::from_slice(body).map_err(|_| self.peer.nonsense(body))?;
        if !response["error"].is_null() {
            return Err(failure::reported(self.peer, &response));
        }
        let Some(output) = response["output"].as_array() else {
            return Err(self.peer.nonsense(body));
        };
        for item in output {
            for part in item["content"].as_array().into_iter().flatten() {
                if item["type"] == "message" {
                    let text = part["text"].as_str().or_else(|| part["refusal"].as_str());
                    self.say(text.unwrap_or_default().to_owned(), emit);
                }
            }
            for part in item["summary"].as_array().into_iter().flatten() {
                self.think(part["text"].as_str().unwrap_or_default().to_owned(), emit);
            }
            self.item(item.clone());
        }
        self.over(response)
    }

    fn end(self: Box<Self>, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let verdict = self.verdict();
        emit_usage(&self.usage, emit);
        verdict?;
        if !self.calls.is_empty() {
            self.signed
                .into_iter()
                .map(ProviderEvent::Signed)
                .for_each(&mut *emit);
        }
        self.calls.into_iter().map(call).for_each(emit);
        Ok(())
    }
}

impl Response<'_> {
    fn say(&mut self, text: String, emit: &mut Emit<'_>) {
        if !text.is_empty() {
            self.place.chars += text.chars().count() as u64;
            emit(ProviderEvent::Saying(text));
        }
    }

    fn think(&mut self, text: String, emit: &mut Emit<'_>) {
        if !text.is_empty() {
            self.thought = true;
            emit(ProviderEvent::Thinking(text));
        }
    }

    /// An item that is complete.
    fn item(&mut self, mut item: Value) {
        match item["type"].as_str() {
            Some("function_call") => {
                self.calls.push(item);
                self.place.calls += 1;
            }
            // Without its encrypted content it means nothing to a vendor that stored nothing.
            Some("reasoning") if item["encrypted_content"].is_string() => {
                if let Some(item) = item.as_object_mut() {
                    item.remove("status");
                }
                self.signed.push(placed(item, self.place));
            }
            _ => {}
        }
    }

    fn over(&mut self, mut response: Value) -> Result<(), ProviderError> {
        if response["status"] == "failed" || !response["error"].is_null() {
            return Err(failure::reported(self.peer, &response));
        }
        self.usage = response["usage"].take();
        // Some servers tell the items only here.
        if self.calls.is_empty()
            && let Value::Array(output) = response["output"].take()
        {
            let calls = output.into_iter();
            self.calls
                .extend(calls.filter(|item| item["type"] == "function_call"));
        }
        let reason = response["incomplete_details"]["reason"].as_str();
        self.ended = Some(match (response["status"] == "incomplete", reason) {
            (true, reason) => End::Incomplete(reason.unwrap_or_default().to_owned()),
            (false, _) => End::Complete,
        });
        Ok(())
    }

    fn verdict(&self) -> Result<(), ProviderError> {
        let Some(End::Incomplete(reason)) = &self.ended else {
            return Ok(());
        };
        let message = match (reason.as_str(), self.calls.is_empty(), self.place.chars) {
            ("content_filter", _, _) => "the vendor's content filter stopped the answer",
            (_, false, _) if self.calls.iter().any(is_cut) => {
                "the model's limit of output tokens cut a tool call off"
            }
            (_, true, 0) => "the model used all its output tokens before it answered",
            _ => return Ok(()),
        };
        Err(ProviderError {
            class: ErrorClass::Fatal,
            message: message.to_owned(),
        })
    }
}

fn arguments(item: &Value) -> Option<Value> {
    let text = item["arguments"].as_str().unwrap_or_default().trim();
    match text.is_empty() {
        true => Some(Value::Object(Map::new())),
        false => serde_json::from_str(text).ok(),
    }
}

fn is_cut(item: &Value) -> bool {
    item["status"] == "incomplete" || arguments(item).is_none()
}

fn call(item: Value) -> ProviderEvent {
    let id = item["call_id"].as_str().filter(|id| !id.is_empty());
    ProviderEvent::Doing {
        id: id.map(str::to_owned),
        name: item["name"].as_str().unwrap_or_default().to_owned(),
        arguments: arguments(&item).unwrap_or_else(|| item["arguments"].clone()),
    }
}

fn emit_usage(usage: &Value, emit: &mut Emit<'_>) {
    let (input, output) = (
        usage["input_tokens"].as_u64(),
        usage["output_tokens"].as_u64(),
    );
    if input.is_some() || output.is_some() {
        let cached = usage["input_tokens_details"]["cached_tokens"].as_u64();
        emit(ProviderEvent::Usage {
            input: input.unwrap_or(0),
            output: output.unwrap_or(0),
            cached: cached.unwrap_or(0),
        });
    }
}
