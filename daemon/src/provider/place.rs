//! Where in an answer a signed block stood, so that it goes back there: some vendors refuse any other order.
//! Must never show a block to another provider than its own.

use super::{Signed, ToolCall};
use serde_json::{Value, json};

/// A part of an assistant's message, in the order in which the model made them.
#[derive(Debug, PartialEq)]
pub(super) enum Part<'a> {
    Signed(&'a Value),
    /// Never empty.
    Text(&'a str),
    Call(&'a ToolCall),
}

/// How much of an answer was there when a block came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Place {
    /// Unicode scalar values of text.
    pub(super) chars: u64,
    pub(super) calls: u64,
}

/// The block with its place, as it is kept.
pub(super) fn placed(block: Value, place: Place) -> Value {
    json!({"at": [place.chars, place.calls], "block": block})
}

/// The message's parts, with the blocks that `provider` signed.
pub(super) fn weave<'a>(
    provider: &str,
    content: &'a str,
    calls: &'a [ToolCall],
    signed: &'a [Signed],
) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let (mut text, mut chars) = (content, 0);
    let mut calls = calls.iter();
    let mut called = 0;
    let own = |block: &&Signed| block.provider == provider && block.block["block"].is_object();
    for block in signed.iter().filter(own) {
        let at = |n: usize| block.block["at"][n].as_u64().unwrap_or(0);
        let before = split(text, at(0).saturating_sub(chars));
        chars += before.chars().count() as u64;
        text = &text[before.len()..];
        push_text(&mut parts, before);
        while called < at(1) {
            called += 1;
            parts.extend(calls.next().map(Part::Call));
        }
        parts.push(Part::Signed(&block.block["block"]));
    }
    push_text(&mut parts, text);
    parts.extend(calls.map(Part::Call));
    parts
}

fn push_text<'a>(parts: &mut Vec<Part<'a>>, text: &'a str) {
    if !text.is_empty() {
        parts.push(Part::Text(text));
    }
}

/// The first so many characters.
fn split(text: &str, chars: u64) -> &str {
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    let end = text.char_indices().nth(chars).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "t".to_owned(),
            arguments: serde_json::Map::new(),
        }
    }

    fn signed(provider: &str, block: &str, chars: u64, calls: u64) -> Signed {
        Signed {
            provider: provider.to_owned(),
            block: placed(json!({"type": block}), Place { chars, calls }),
        }
    }

    #[test]
    fn blocks_go_back_where_they_stood_and_to_their_own_provider_alone() {
        let calls = [call("a"), call("b")];
        let blocks = [
            signed("me", "one", 0, 0),
            signed("other", "no", 0, 0),
            signed("me", "two", 3, 0),
            signed("me", "three", 3, 1),
        ];
        let [one, two, three] = ["one", "two", "three"].map(|name| json!({"type": name}));
        let expected = vec![
            Part::Signed(&one),
            Part::Text("äöü"),
            Part::Signed(&two),
            Part::Call(&calls[0]),
            Part::Signed(&three),
            Part::Text("end"),
            Part::Call(&calls[1]),
        ];
        assert_eq!(weave("me", "äöüend", &calls, &blocks), expected);
        assert_eq!(weave("another", "x", &[], &blocks), [Part::Text("x")]);
    }

    #[test]
    fn places_beyond_the_message_are_its_end() {
        let blocks = [signed("me", "far", 99, 99)];
        let far = json!({"type": "far"});
        let expected = [Part::Text("x"), Part::Signed(&far)];
        assert_eq!(weave("me", "x", &[], &blocks), expected);
        assert_eq!(weave("me", "", &[], &blocks), [Part::Signed(&far)]);
    }
}
