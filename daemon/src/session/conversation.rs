//! The conversation as the model sees it, built event by event. Pure; what it yields is valid for every vendor: each
//! call has its result, no assistant message is empty.

use crate::provider::{Message, Signed, ToolCall};
use protocol::event::Image;
use protocol::id::{CallId, MessageId};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// How many times a call may fail in the same way before the model is told.
const TELL_AFTER: u32 = 3;

#[derive(Clone, Debug, Default)]
pub struct Conversation {
    items: Vec<Item>,
    /// Words of people that wait for the next round trip, with the number of their event.
    steers: Vec<(u64, String)>,
    /// The prompt of the running turn: no summary takes its place.
    prompt: Option<Arc<Message>>,
}

#[derive(Clone, Debug)]
enum Item {
    User(Arc<Message>),
    Assistant(Arc<Assistant>),
}

/// What the model said and did in one round trip.
#[derive(Clone, Debug)]
pub struct Assistant {
    message: MessageId,
    text: String,
    /// Unicode scalar values in `text`, so that an offset is compared without counting.
    chars: u64,
    calls: Vec<Call>,
    signed: Vec<Signed>,
    /// Whether its turn has ended: its signed blocks are not sent any more.
    past: bool,
}

#[derive(Clone, Debug)]
struct Call {
    call: CallId,
    id: Option<String>,
    name: String,
    arguments: Map<String, Value>,
    result: Option<Map<String, Value>>,
    /// How often it failed in the same way, this time included.
    repeated: u32,
}

/// Which calls of past turns the model still sees (`history.tools`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum History {
    /// All of the session's.
    #[default]
    Session,
    /// Only those of the running turn.
    Turn,
}

impl Conversation {
    pub fn user(&mut self, content: String, images: Vec<Image>) {
        self.items
            .push(Item::User(Arc::new(Message::User { content, images })));
    }

    /// A turn begins with this.
    pub fn prompt(&mut self, content: String, images: Vec<Image>) {
        let prompt = Arc::new(Message::User { content, images });
        self.prompt = Some(Arc::clone(&prompt));
        self.items.push(Item::User(prompt));
    }

    pub fn steer(&mut self, seq: u64, text: String) {
        self.steers.push((seq, text));
    }

    pub fn has_steers(&self) -> bool {
        !self.steers.is_empty()
    }

    /// A round trip begins: the model sees every word that came before event `seq`.
    pub fn begin(&mut self, message: &MessageId, seq: u64) {
        let (seen, later) = std::mem::take(&mut self.steers)
            .into_iter()
            .partition(|(at, _)| *at < seq);
        self.steers = later;
        self.take_words(seen);
        self.open(message);
    }

    /// The running turn's prompt and what came of it are no part of the conversation.
    pub fn withdraw(&mut self) {
        let is_it = |prompt: &Arc<Message>, item: &Item| matches!(item, Item::User(message) if Arc::ptr_eq(message, prompt));
        let prompt = self.prompt.as_ref();
        let at = prompt.and_then(|prompt| self.items.iter().rposition(|item| is_it(prompt, item)));
        if let Some(at) = at {
            self.items.truncate(at);
        }
    }

    /// The turn ended: words that no round trip took are there for the next turn.
    pub fn end(&mut self) {
        let words = std::mem::take(&mut self.steers);
        self.take_words(words);
        self.prompt = None;
        for item in self.items.iter_mut().rev() {
            match item {
                Item::Assistant(a) if a.past => break,
                Item::Assistant(a) => Arc::make_mut(a).past = true,
                Item::User(_) => {}
            }
        }
    }

    fn take_words(&mut self, words: Vec<(u64, String)>) {
        for (_, text) in words {
            self.user(text, Vec::new());
        }
    }

    /// A reader's rule for pieces: what lies beyond what is there counts.
    pub fn saying(&mut self, message: &MessageId, offset: u64, text: &str) {
        let it = self.open(message);
        let known = it.chars.saturating_sub(offset);
        let count = text.chars().count() as u64;
        if known >= count {
            return;
        }
        let at = text
            .char_indices()
            .nth(usize::try_from(known).unwrap_or(usize::MAX))
            .map_or(text.len(), |(i, _)| i);
        it.text.push_str(&text[at..]);
        it.chars += count - known;
    }

    pub fn said(&mut self, message: &MessageId, text: &str) {
        let it = self.open(message);
        it.chars = text.chars().count() as u64;
        text.clone_into(&mut it.text);
    }

    pub fn signed(&mut self, message: &MessageId, provider: &str, block: &Value) {
        self.open(message).signed.push(Signed {
            provider: provider.to_owned(),
            block: block.clone(),
        });
    }

    pub fn unsaid(&mut self, message: &MessageId) {
        self.items.retain(
            |i| !matches!(i, Item::Assistant(a) if a.message == *message && a.calls.is_empty()),
        );
    }

    pub fn doing(
        &mut self,
        message: &MessageId,
        call: &CallId,
        id: Option<&str>,
        name: &str,
        arguments: &Value,
    ) {
        self.open(message).calls.push(Call {
            call: call.clone(),
            id: id.map(str::to_owned),
            name: name.to_owned(),
            arguments: object_of(arguments),
            result: None,
            repeated: 0,
        });
    }

    pub fn done(&mut self, call: &CallId, result: &Map<String, Value>, repeated: u32) {
        for item in self.items.iter_mut().rev() {
            let Item::Assistant(a) = item else { continue };
            if let Some(at) = a
                .calls
                .iter()
                .position(|c| c.call == *call && c.result.is_none())
            {
                let it = &mut Arc::make_mut(a).calls[at];
                it.result = Some(result.clone());
                it.repeated = repeated;
                return;
            }
        }
    }

    /// The model forgets what came before; the round trip under way stays.
    pub fn restart(&mut self) {
        let open = self
            .items
            .pop()
            .filter(|i| matches!(i, Item::Assistant(a) if !a.past));
        self.items.clear();
        self.items.extend(open);
        self.prompt = None;
    }

    /// The model sees a summary instead of what came before. The prompt of the running turn stays as it was said, in front
    /// of the summary when that tells of work done for it; a draft stays, and so does a call without its result.
    pub fn compact(&mut self, summary: String) {
        let prompt = self.prompt.clone();
        let is_open = |item: &Item| matches!(item, Item::Assistant(a) if !a.past && a.is_open());
        let open = self.items.pop_if(|item| is_open(item));
        let worked = |item: &Item| matches!(item, Item::Assistant(a) if !a.past);
        let worked = self.items.iter().any(worked);
        self.items.clear();
        let prompt_item = || prompt.clone().map(Item::User);
        self.items.extend(prompt_item().filter(|_| worked));
        self.user(summary, Vec::new());
        self.items.extend(prompt_item().filter(|_| !worked));
        self.items.extend(open);
        self.prompt = prompt;
    }

    /// The model sees these messages instead. Those that are none are left out; the caller has checked them.
    pub fn replace(&mut self, messages: &[Value]) {
        self.restart();
        for (n, message) in messages.iter().enumerate() {
            if let Ok(message) = serde_json::from_value::<Message>(message.clone()) {
                self.put(n, message);
            }
        }
    }

    fn put(&mut self, n: usize, message: Message) {
        match message {
            Message::System { .. } => {}
            Message::User { .. } => self.items.push(Item::User(Arc::new(message))),
            Message::Assistant {
                content,
                tool_calls,
                signed,
            } => {
                let call_of = |c: ToolCall| Call {
                    call: c.id.as_str().into(),
                    id: Some(c.id),
                    name: c.name,
                    arguments: c.arguments,
                    result: None,
                    repeated: 0,
                };
                let calls = tool_calls.into_iter().map(call_of).collect();
                let chars = content.chars().count() as u64;
                let message = format!("replaced {n}").into();
                let it = Assistant {
                    message,
                    text: content,
                    chars,
                    calls,
                    signed,
                    past: true,
                };
                self.items.push(Item::Assistant(Arc::new(it)));
            }
            Message::Tool {
                tool_call_id,
                content,
            } => {
                let result = match serde_json::from_str(&content) {
                    Ok(Value::Object(map)) => map,
                    Ok(_) | Err(_) => {
                        Map::from_iter([("content".to_owned(), Value::String(content))])
                    }
                };
                self.done(&tool_call_id.into(), &result, 0);
            }
        }
    }

    pub fn assistant(&self, message: &MessageId) -> Option<&Assistant> {
        self.items.iter().rev().find_map(|i| match i {
            Item::Assistant(a) if a.message == *message => Some(&**a),
            Item::Assistant(_) | Item::User(_) => None,
        })
    }

    fn open(&mut self, message: &MessageId) -> &mut Assistant {
        let found = self
            .items
            .iter()
            .rposition(|i| matches!(i, Item::Assistant(a) if a.message == *message));
        let at = found.unwrap_or_else(|| {
            self.items
                .push(Item::Assistant(Arc::new(Assistant::new(message))));
            self.items.len() - 1
        });
        match &mut self.items[at] {
            Item::Assistant(a) => Arc::make_mut(a),
            Item::User(_) => unreachable!("the position is an assistant's"),
        }
    }

    /// The messages for a provider, without the system prompt.
    pub fn messages(&self, history: History) -> Vec<Message> {
        let mut ids = Ids::default();
        let mut out = Vec::with_capacity(self.items.len());
        for item in &self.items {
            match item {
                Item::User(message) => out.push((**message).clone()),
                Item::Assistant(a) => a.messages(history, &mut ids, &mut out),
            }
        }
        out
    }
}

impl Assistant {
    fn new(message: &MessageId) -> Self {
        let (calls, signed) = (Vec::new(), Vec::new());
        Self {
            message: message.clone(),
            text: String::new(),
            chars: 0,
            calls,
            signed,
            past: false,
        }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it may still change.
    fn is_open(&self) -> bool {
        self.calls.is_empty() || self.calls.iter().any(|call| call.result.is_none())
    }

    fn messages(&self, history: History, ids: &mut Ids, out: &mut Vec<Message>) {
        let calls: &[Call] = if self.past && history == History::Turn {
            &[]
        } else {
            &self.calls
        };
        if self.text.trim().is_empty() && calls.is_empty() {
            return;
        }
        let with_ids: Vec<_> = calls.iter().map(|c| (ids.of(c), c)).collect();
        let tool_calls = with_ids
            .iter()
            .map(|(id, c)| ToolCall {
                id: id.clone(),
                name: c.name.clone(),
                arguments: c.arguments.clone(),
            })
            .collect();
        let signed = if self.past {
            Vec::new()
        } else {
            self.signed.clone()
        };
        out.push(Message::Assistant {
            content: self.text.clone(),
            tool_calls,
            signed,
        });
        out.extend(with_ids.into_iter().map(|(tool_call_id, c)| Message::Tool {
            tool_call_id,
            content: c.content(),
        }));
    }
}

impl Call {
    fn content(&self) -> String {
        let Some(result) = &self.result else {
            return json!({"error": "interrupted: the call has no result", "ok": false})
                .to_string();
        };
        if self.repeated != TELL_AFTER {
            return serde_json::to_string(result).unwrap_or_default();
        }
        let mut told = result.clone();
        let note =
            format!("this call failed {TELL_AFTER} times in the same way: do something else");
        told.insert("notice".into(), Value::String(note));
        serde_json::to_string(&told).unwrap_or_default()
    }
}

/// Ids as vendors get them: the provider's own while it is unique, else the session's.
#[derive(Default)]
struct Ids(HashSet<String>);

impl Ids {
    fn of(&mut self, call: &Call) -> String {
        let own = call
            .id
            .as_deref()
            .filter(|id| !id.is_empty() && !self.0.contains(*id));
        let id = own.map_or_else(|| self.fresh(call.call.as_str()), str::to_owned);
        self.0.insert(id.clone());
        id
    }

    fn fresh(&self, call: &str) -> String {
        let plain = format!("call_{}", call.replace('/', "_"));
        let numbered = |n: u32| {
            if n == 1 {
                plain.clone()
            } else {
                format!("{plain}_{n}")
            }
        };
        (1..)
            .map(numbered)
            .find(|id| !self.0.contains(id))
            .unwrap_or_default()
    }
}

/// Arguments as an object, the form that every vendor takes back; what the model wrote as text stays visible.
fn object_of(arguments: &Value) -> Map<String, Value> {
    let kept = |value: Value| Map::from_iter([("arguments".to_owned(), value)]);
    match arguments {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        Value::String(text) if text.trim().is_empty() => Map::new(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            Ok(_) | Err(_) => kept(arguments.clone()),
        },
        Value::Bool(_) | Value::Number(_) | Value::Array(_) => kept(arguments.clone()),
    }
}
