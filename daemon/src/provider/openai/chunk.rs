//! One event of the stream (or a whole answer) as typed values: only what is used, and lenient about the rest.

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(default)]
    pub(super) choices: Option<Vec<Choice>>,
    #[serde(borrow, default)]
    pub(super) usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(default)]
    pub(super) delta: Option<Delta>,
    /// In place of `delta` in an answer that is not streamed.
    #[serde(default)]
    pub(super) message: Option<Box<Delta>>,
    #[serde(default)]
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Delta {
    #[serde(default)]
    pub(super) content: Option<Text>,
    #[serde(default)]
    pub(super) refusal: Option<Text>,
    /// Thinking, by the name that most compatible servers use, and by the other.
    #[serde(default)]
    pub(super) reasoning_content: Option<Text>,
    #[serde(default)]
    pub(super) reasoning: Option<Text>,
    /// The blocks of a vendor that joins many.
    #[serde(default)]
    pub(super) reasoning_details: Option<Vec<Value>>,
    #[serde(default)]
    pub(super) tool_calls: Option<Vec<CallDelta>>,
    /// A call as older servers write it.
    #[serde(default)]
    pub(super) function_call: Option<Box<FunctionDelta>>,
}

#[derive(Deserialize)]
pub(super) struct CallDelta {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) function: Option<FunctionDelta>,
    /// What a vendor wants back with the call.
    #[serde(default)]
    pub(super) extra_content: Option<Value>,
}

#[derive(Default, Deserialize)]
pub(super) struct FunctionDelta {
    #[serde(default)]
    pub(super) name: Option<String>,
    /// A piece of JSON text; some servers send the object itself.
    #[serde(default)]
    pub(super) arguments: Option<Value>,
}

/// A string, or the text of a list of parts; anything else is no text.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Text {
    pub(super) said: String,
    /// Of parts that are thinking.
    pub(super) thought: String,
}

impl Text {
    fn said(said: String) -> Self {
        let thought = String::new();
        Self { said, thought }
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or parts of text")
    }

    fn visit_str<E>(self, text: &str) -> Result<Text, E> {
        Ok(Text::said(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Text, E> {
        Ok(Text::said(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Text, A::Error> {
        let mut text = Text::default();
        while let Some(part) = parts.next_element::<Value>()? {
            text.said
                .push_str(part["text"].as_str().unwrap_or_default());
            for thought in part["thinking"].as_array().into_iter().flatten() {
                let thought = thought["text"].as_str().unwrap_or_default();
                text.thought.push_str(thought);
            }
        }
        Ok(text)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Text, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text::default())
    }

    fn visit_unit<E>(self) -> Result<Text, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Text, E> {
        Ok(Text::default())
    }
}
