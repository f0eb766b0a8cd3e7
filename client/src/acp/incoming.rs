//! What the editor writes, as messages: one line each, a request's id kept as it was written. Must never know a method.

use super::convert::error::{Error, invalid_request, parse_error};
use crate::error::Failure;
use protocol::framing::{DEFAULT_LIMIT, Decoder, FrameError, Style};
use protocol::{head, surrogate};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// One message.
pub(super) enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// To a request of ours.
    Answer {
        id: Value,
        message: Map<String, Value>,
    },
    /// Nothing that can be carried out, and what to answer.
    Refused {
        id: Id,
        error: Error,
    },
}

/// A request's id, word for word: a number may have more digits than any type here.
#[derive(Clone, Debug)]
pub(super) struct Id(Box<RawValue>);

impl Id {
    fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    pub(super) fn as_json(&self) -> &RawValue {
        &self.0
    }

    /// Whether this is the id that the editor names now, perhaps written in another way.
    pub(super) fn is(&self, named: &Value) -> bool {
        serde_json::from_str::<Value>(self.0.get()).is_ok_and(|own| own == *named)
    }
}

/// Bytes in, messages out.
pub(super) struct Inbox(Decoder);

impl Inbox {
    pub(super) fn new() -> Self {
        Self(Decoder::with_style(DEFAULT_LIMIT, Style::Lines))
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    /// The next whole message, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Incoming>, Failure> {
        loop {
            let read = match self.0.next_frame() {
                Ok(Some(frame)) => read(&frame),
                Ok(None) => return Ok(None),
                Err(FrameError::TooLong { limit, head }) => {
                    let error = invalid_request(&format!("a message may have {limit} bytes"));
                    let id = head::id(&head).map_or_else(Id::null, Id);
                    Some(Incoming::Refused { id, error })
                }
                Err(FrameError::Lost(why)) => {
                    return Err(Failure::new(format!("cannot read standard input: {why}")));
                }
            };
            if read.is_some() {
                return Ok(read);
            }
        }
    }

    /// What came behind the last line's end.
    pub(super) fn finish(mut self) -> Option<Incoming> {
        self.0
            .finish()
            .ok()
            .flatten()
            .and_then(|frame| read(&frame))
    }
}

/// None of an empty line.
fn read(frame: &[u8]) -> Option<Incoming> {
    if frame.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let text = surrogate::mend(frame);
    let refused = |id, error| Some(Incoming::Refused { id, error });
    let mut message = match serde_json::from_slice(&text) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return refused(Id::null(), invalid_request("a message is one JSON object")),
        Err(error) => return refused(Id::null(), parse_error(&error.to_string())),
    };
    let params = message.remove("params").unwrap_or(Value::Null);
    let id = message.remove("id");
    let own = || match &id {
        Some(Value::String(_) | Value::Number(_)) => written(&text),
        _ => Id::null(),
    };
    Some(match (message.remove("method"), &id) {
        (Some(Value::String(_)), Some(Value::Bool(_) | Value::Array(_) | Value::Object(_))) => {
            let error = invalid_request("an id is a number, a string or null");
            Incoming::Refused { id: own(), error }
        }
        (Some(Value::String(method)), Some(_)) => Incoming::Request {
            id: own(),
            method,
            params,
        },
        (Some(Value::String(method)), None) => Incoming::Notification { method, params },
        (None, Some(id)) => Incoming::Answer {
            id: id.clone(),
            message,
        },
        (Some(_), _) => {
            let error = invalid_request("a method is a string");
            Incoming::Refused { id: own(), error }
        }
        (None, None) => {
            let error = invalid_request("no method and no id");
            Incoming::Refused { id: own(), error }
        }
    })
}

/// The id as it stands in a message that has one.
fn written(text: &[u8]) -> Id {
    #[derive(Deserialize)]
    struct OnlyId {
        id: Box<RawValue>,
    }
    let own = serde_json::from_slice::<OnlyId>(text);
    own.map_or_else(|_| Id::null(), |own| Id(own.id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> String {
        match read(line.as_bytes()) {
            None => "nothing".to_owned(),
            Some(Incoming::Request { id, method, .. }) => format!("{} {method}", id.0),
            Some(Incoming::Notification { method, .. }) => method,
            Some(Incoming::Answer { id, .. }) => format!("{id} answer"),
            Some(Incoming::Refused { id, error }) => format!("{} {:?}", id.0, error.code),
        }
    }

    #[test]
    fn an_id_is_kept_as_it_was_written() {
        for id in [
            "1234567890123456789012345678901",
            "-1",
            "1.50",
            "1e3",
            r#""a\u0062""#,
            r#""""#,
            "null",
        ] {
            let line = format!(r#"{{"method":"a","params":{{"id":2}},"id":{id}}}"#);
            assert_eq!(check(&line), format!("{id} a"));
        }
        for id in ["true", "[1]", "{}"] {
            assert!(check(&format!(r#"{{"method":"a","id":{id}}}"#)).starts_with("null "));
        }
        assert_eq!(check(r#"{"method":"a"}"#), "a");
        assert_eq!(check(r#"{"id":1,"result":{}}"#), "1 answer");
        assert_eq!(check(" "), "nothing");
    }

    #[test]
    fn an_id_is_known_however_it_is_written() {
        let id = |text: &str| Id(RawValue::from_string(text.to_owned()).unwrap());
        assert!(id(r#""\u0061""#).is(&"a".into()));
        assert!(id("7").is(&7.into()));
        assert!(!id("7").is(&"7".into()));
    }
}
