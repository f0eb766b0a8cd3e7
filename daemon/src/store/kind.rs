//! What the store must know of a kind of event: whether it is a live piece, and which of its words are searched for.
//! Must never know more.

use protocol::event::{Event, EventKind};
use serde_json::Value;
use std::borrow::Cow;

/// Bytes of a tool's result that are indexed.
const RESULT: usize = 8 * 1024;

/// Bytes of anything else.
const TEXT: usize = 256 * 1024;

/// The message or call that a live piece belongs to; none for an event that stands for itself, folded pieces too.
pub(super) fn piece_of(event: &Event) -> Option<&str> {
    match class(&event.kind) {
        Class::Piece(of) if event.first_seq.is_none() => Some(of),
        Class::Piece(_) | Class::Text(_) | Class::Result(_) | Class::Plain => None,
    }
}

/// What a search finds the event by.
pub(super) fn words(kind: &EventKind) -> Option<Cow<'_, str>> {
    match class(kind) {
        Class::Text(text) => Some(Cow::Borrowed(head(text, TEXT))),
        Class::Result(result) => {
            let mut text = String::new();
            result.values().for_each(|value| strings(value, &mut text));
            Some(Cow::Owned(text))
        }
        Class::Piece(_) | Class::Plain => None,
    }
}

/// Whether a search may find it.
pub(super) fn has_words(kind: &EventKind) -> bool {
    match class(kind) {
        Class::Text(_) | Class::Result(_) => true,
        Class::Piece(_) | Class::Plain => false,
    }
}

enum Class<'a> {
    Piece(&'a str),
    Text(&'a str),
    Result(&'a serde_json::Map<String, Value>),
    Plain,
}

fn class(kind: &EventKind) -> Class<'_> {
    match kind {
        EventKind::Saying { message, .. } | EventKind::Thinking { message, .. } => {
            Class::Piece(message.as_str())
        }
        EventKind::ToolOutput { call, .. } => Class::Piece(call.as_str()),
        EventKind::TurnStarted { text, .. }
        | EventKind::Said { text, .. }
        | EventKind::Steered { text }
        | EventKind::CommandOutput { text } => Class::Text(text),
        EventKind::Done { result, .. } => Class::Result(result),
        EventKind::RoundStarted { .. }
        | EventKind::Doing { .. }
        | EventKind::Changing { .. }
        | EventKind::ApprovalAsked { .. }
        | EventKind::ApprovalAnswered { .. }
        | EventKind::ApprovalWithdrawn { .. }
        | EventKind::CallStarted { .. }
        | EventKind::Signed { .. }
        | EventKind::Notice { .. }
        | EventKind::Usage { .. }
        | EventKind::Retrying { .. }
        | EventKind::Unsaid { .. }
        | EventKind::ProviderSwitched { .. }
        | EventKind::Renamed { .. }
        | EventKind::Compacted { .. }
        | EventKind::Cleared
        | EventKind::Replaced { .. }
        | EventKind::Queued { .. }
        | EventKind::Dequeued { .. }
        | EventKind::Granted { .. }
        | EventKind::TurnEnded { .. }
        | EventKind::Unknown => Class::Plain,
    }
}

/// All strings in a result, one a line, up to the cap.
fn strings(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            let room = RESULT.saturating_sub(text.len());
            let taken = head(string, room);
            if !taken.is_empty() {
                text.push_str(taken);
                text.push('\n');
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, text)),
        Value::Object(values) => values.values().for_each(|value| strings(value, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
