//! One answer of Messages, put together from its events: text goes on at once, calls and signed blocks at the end.
//! Does no input or output.

use super::super::failure;
use super::super::place::{Place, placed};
use super::super::sse::Event;
use super::super::stream::{Answer, Emit, Flow, Peer};
use super::super::{ErrorClass, ProviderError, ProviderEvent};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The largest arguments of one call.
const ARGUMENTS: usize = 16 * 1024 * 1024;

pub(super) struct Message<'a> {
    peer: &'a Peer,
    /// Those whose pieces still come, by their index; most often one.
    open: Vec<(u64, Block)>,
    calls: Vec<Call>,
    signed: Vec<Value>,
    place: Place,
    usage: Usage,
    /// Why the model stopped; its presence makes the answer whole.
    stop: Option<String>,
    ended: bool,
}

/// A block whose pieces come. Text has none: it goes on at once.
enum Block {
    Call(Call),
    Thinking {
        thinking: String,
        signature: String,
        place: Place,
    },
    Other,
}

struct Call {
    id: String,
    name: String,
    arguments: Arguments,
}

enum Arguments {
    Text(String),
    /// As a server writes them that does not stream.
    Whole(Value),
}

#[derive(Default)]
struct Usage {
    told: bool,
    input: u64,
    output: u64,
    cached: u64,
    created: u64,
}

/// One event; only what is used of it, and lenient about the rest.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    index: u64,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    #[serde(default)]
    content_block: Option<Value>,
    #[serde(default)]
    message: Option<Value>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Cow<'a, str>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(borrow, default)]
    signature: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    stop_reason: Option<Cow<'a, str>>,
}

impl<'a> Message<'a> {
    pub(super) fn new(peer: &'a Peer) -> Self {
        Self {
            peer,
            open: Vec::new(),
            calls: Vec::new(),
            signed: Vec::new(),
            place: Place::default(),
            usage: Usage::default(),
            stop: None,
            ended: false,
        }
    }
}

impl Answer for Message<'_> {
    fn flow(&self) -> Flow {
        match (self.ended, &self.stop) {
            (true, _) => Flow::Ended,
            (false, Some(_)) => Flow::Tail,
            (false, None) => Flow::Open,
        }
    }

    fn event(&mut self, event: &Event<'_>, emit: &mut Emit<'_>) -> Result<Flow, ProviderError> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data == b"[DONE]" {
            return Ok(self.flow());
        }
        let text = std::str::from_utf8(data).map_err(|_| self.peer.nonsense(data))?;
        let chunk = serde_json::from_str(text);
        if event.name == "error" && chunk.is_err() {
            return Err(failure::reported(self.peer, &text.into()));
        }
        self.chunk(chunk.map_err(|_| self.peer.nonsense(data))?, emit)?;
        Ok(self.flow())
    }

    fn object(&mut self, body: &[u8], emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let message: Value = serde_json::from_slice(body).map_err(|_| self.peer.nonsense(body))?;
        if message["type"] == "error" || message.get("error").is_some() {
            return Err(failure::reported(self.peer, &message));
        }
        let Some(content) = message["content"].as_array() else {
            return Err(self.peer.nonsense(body));
        };
        for block in content {
            self.begin(0, block, emit);
            self.close(0);
        }
        self.usage.take(&message["usage"]);
        let reason = message["stop_reason"].as_str().unwrap_or("end_turn");
        self.stop = Some(reason.to_owned());
        Ok(())
    }

    fn end(self: Box<Self>, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        let verdict = self.verdict();
        self.usage.emit(emit);
        verdict?;
        if !self.calls.is_empty() {
            self.signed
                .into_iter()
                .map(ProviderEvent::Signed)
                .for_each(&mut *emit);
        }
        self.calls.into_iter().map(Call::event).for_each(emit);
        Ok(())
    }
}

impl Message<'_> {
    fn chunk(&mut self, chunk: Chunk<'_>, emit: &mut Emit<'_>) -> Result<(), ProviderError> {
        match &*chunk.kind {
            "message_start" => {
                let message = chunk.message.unwrap_or_default();
                self.usage.take(&message["usage"]);
            }
            "content_block_start" => {
                self.begin(chunk.index, &chunk.content_block.unwrap_or_default(), emit);
            }
            "content_block_delta" => {
                if let Some(delta) = chunk.delta {
                    self.delta(chunk.index, delta, emit)?;
                }
            }
            "content_block_stop" => self.close(chunk.index),
            "message_delta" => {
                self.usage.take(&chunk.usage.unwrap_or_default());
                let reason = chunk.delta.and_then(|delta| delta.stop_reason);
                if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
                    self.stop = Some(reason.into_owned());
                }
            }
            "message_stop" => self.ended = true,
            _ => {
                if let Some(error) = chunk.error {
                    return Err(failure::reported(self.peer, &error));
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, index: u64, block: &Value, emit: &mut Emit<'_>) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let open = match block["type"].as_str() {
            Some("text") => {
                self.say(text("text"), emit);
                return;
            }
            Some("tool_use") => Block::Call(Call {
                id: text("id"),
                name: text("name"),
                arguments: match &block["input"] {
                    Value::Object(input) if !input.is_empty() => {
                        Arguments::Whole(block["input"].clone())
                    }
                    _ => Arguments::Text(String::new()),
                },
            }),
            Some("thinking") => {
                think(text("thinking"), emit);
                Block::Thinking {
                    thinking: text("thinking"),
                    signature: text("signature"),
                    place: self.place,
                }
            }
            Some("redacted_thinking") => {
                self.signed.push(placed(block.clone(), self.place));
                Block::Other
            }
            _ => Block::Other,
        };
        self.open.retain(|(known, _)| *known != index);
        self.open.push((index, open));
    }

    fn delta(
        &mut self,
        index: u64,
        delta: Delta<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), ProviderError> {
        if &*delta.kind == "text_delta" {
            self.say(delta.text.unwrap_or_default(), emit);
            return Ok(());
        }
        let open = self.open.iter_mut().find(|(known, _)| *known == index);
        match open.map(|(_, block)| block) {
            Some(Block::Call(call)) => {
                let piece = delta.partial_json.unwrap_or_default();
                return call.add(&piece);
            }
            Some(Block::Thinking {
                thinking,
                signature,
                ..
            }) => {
                if let Some(piece) = delta.thinking {
                    thinking.push_str(&piece);
                    think(piece, emit);
                }
                if let Some(piece) = delta.signature {
                    signature.push_str(&piece);
                }
            }
            // Thinking whose begin was lost is shown all the same.
            Some(Block::Other) | None => think(delta.thinking.unwrap_or_default(), emit),
        }
        Ok(())
    }

    fn close(&mut self, index: u64) {
        let Some(at) = self.open.iter().position(|(known, _)| *known == index) else {
            return;
        };
        match self.open.swap_remove(at).1 {
            Block::Call(call) => {
                self.calls.push(call);
                self.place.calls += 1;
            }
            // Unsigned it may not go back.
            Block::Thinking { signature, .. } if signature.is_empty() => {}
            Block::Thinking {
                thinking,
                signature,
                place,
            } => {
                let block =
                    json!({"type": "thinking", "thinking": thinking, "signature": signature});
                self.signed.push(placed(block, place));
            }
            Block::Other => {}
        }
    }

    fn say(&mut self, text: String, emit: &mut Emit<'_>) {
        if !text.is_empty() {
            self.place.chars += text.chars().count() as u64;
            emit(ProviderEvent::Saying(text));
        }
    }

    fn verdict(&self) -> Result<(), ProviderError> {
        let begun = |(_, block): &(u64, Block)| matches!(block, Block::Call(_));
        let is_cut = self.open.iter().any(begun) || self.calls.iter().any(Call::is_cut);
        let said_nothing = self.place.chars == 0 && self.calls.is_empty();
        let message = match self.stop.as_deref() {
            Some("refusal") => "the vendor's safety rules stopped the answer",
            Some("max_tokens") if is_cut => {
                "the model's limit of output tokens cut a tool call off"
            }
            Some("max_tokens") if said_nothing => {
                "the model used all its output tokens before it answered"
            }
            Some("model_context_window_exceeded") if is_cut || said_nothing => {
                "the conversation does not fit into the model's window"
            }
            _ if self.open.iter().any(begun) => return Err(self.peer.ended_early()),
            _ => return Ok(()),
        };
        Err(ProviderError {
            class: ErrorClass::Fatal,
            message: message.to_owned(),
        })
    }
}

fn think(text: String, emit: &mut Emit<'_>) {
    if !text.is_empty() {
        emit(ProviderEvent::Thinking(text));
    }
}

impl Call {
    fn add(&mut self, piece: &str) -> Result<(), ProviderError> {
        let Arguments::Text(text) = &mut self.arguments else {
            return Ok(());
        };
        text.push_str(piece);
        match text.len() > ARGUMENTS {
            true => Err(ProviderError {
                class: ErrorClass::Fatal,
                message: format!("the arguments of {} are too large", self.name),
            }),
            false => Ok(()),
        }
    }

    fn is_cut(&self) -> bool {
        match &self.arguments {
            Arguments::Text(text) if !text.trim().is_empty() => {
                serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
            }
            Arguments::Text(_) | Arguments::Whole(_) => false,
        }
    }

    fn event(self) -> ProviderEvent {
        ProviderEvent::Doing {
            id: Some(self.id).filter(|id| !id.is_empty()),
            name: self.name,
            arguments: match self.arguments {
                Arguments::Whole(value) => value,
                Arguments::Text(text) if text.trim().is_empty() => Value::Object(Map::new()),
                Arguments::Text(text) => {
                    serde_json::from_str(text.trim()).unwrap_or_else(|_| text.into())
                }
            },
        }
    }
}

impl Usage {
    /// Later counts replace earlier ones: they are of the whole answer.
    fn take(&mut self, usage: &Value) {
        let counts = [
            ("input_tokens", &mut self.input),
            ("output_tokens", &mut self.output),
            ("cache_read_input_tokens", &mut self.cached),
            ("cache_creation_input_tokens", &mut self.created),
        ];
        for (name, count) in counts {
            if let Some(number) = usage[name].as_u64() {
                *count = number;
                self.told = true;
            }
        }
    }

    fn emit(&self, emit: &mut Emit<'_>) {
        if self.told {
            emit(ProviderEvent::Usage {
                input: self.input + self.cached + self.created,
                output: self.output,
                cached: self.cached,
            });
        }
    }
}
