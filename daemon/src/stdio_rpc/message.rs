//! The lines of JSON-RPC 2.0: what is written, and what a line that came is. Does no input or output.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// An error as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Refusal {
    #[serde(default)]
    pub code: i64,
    #[serde(default)]
    pub message: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl Refusal {
    /// There is no such method.
    pub const NO_METHOD: i64 = -32601;
    /// Too much at once.
    pub const OVERLOADED: i64 = -32001;

    pub fn no_method(method: &str) -> Self {
        Self {
            code: Self::NO_METHOD,
            message: format!("there is no method {method} here"),
            data: Value::Null,
        }
    }
}

/// A line that came.
#[derive(Debug)]
pub(super) enum Incoming<'a> {
    Notification {
        method: Cow<'a, str>,
        params: Cow<'a, RawValue>,
    },
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Cow<'a, RawValue>,
    },
    Answer {
        id: u64,
        result: Result<Box<RawValue>, Refusal>,
    },
    /// An answer whose number is none that was ever given.
    Stray,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Refusal>,
}

impl<'a> Incoming<'a> {
    /// None for what is no message.
    pub(super) fn read(line: &'a [u8]) -> Option<Self> {
        let line: Line<'a> = serde_json::from_slice(line).ok()?;
        let params = || match line.params {
            Some(params) => Cow::Borrowed(params),
            None => Cow::Owned(null()),
        };
        match (line.id, line.method) {
            (None, Some(method)) => Some(Self::Notification {
                method,
                params: params(),
            }),
            (Some(id), Some(method)) => Some(Self::Request {
                id,
                method,
                params: params(),
            }),
            (Some(id), None) => Some(match id.get().parse() {
                Err(_) => Self::Stray,
                Ok(id) => Self::Answer {
                    id,
                    result: match line.error {
                        Some(error) => Err(error),
                        None => Ok(line.result.map_or_else(null, RawValue::to_owned)),
                    },
                },
            }),
            // `"id": null` is no id, as in an answer to what could not be read.
            (None, None) if line.error.is_some() || line.result.is_some() => Some(Self::Stray),
            (None, None) => None,
        }
    }
}

/// What is written; each ends in a newline.
#[derive(Serialize)]
pub(super) struct Outgoing<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Refusal>,
}

impl<'a> Outgoing<'a> {
    const EMPTY: Self = Self {
        jsonrpc: "2.0",
        id: None,
        method: None,
        params: None,
        result: None,
        error: None,
    };

    pub(super) fn request(id: u64, method: &'a str, params: &'a RawValue) -> Vec<u8> {
        let id = raw(&id);
        let message = Outgoing {
            id: Some(&id),
            method: Some(method),
            params: Some(params),
            ..Outgoing::EMPTY
        };
        message.line()
    }

    pub(super) fn notification(method: &'a str, params: &'a RawValue) -> Vec<u8> {
        let message = Self {
            method: Some(method),
            params: Some(params),
            ..Self::EMPTY
        };
        message.line()
    }

    pub(super) fn answer(id: &'a RawValue, answer: &'a Result<Value, Refusal>) -> Vec<u8> {
        let message = Self {
            id: Some(id),
            result: answer.as_ref().ok(),
            error: answer.as_ref().err(),
            ..Self::EMPTY
        };
        message.line()
    }

    fn line(&self) -> Vec<u8> {
        let mut line = serde_json::to_vec(self).expect("strings and JSON are JSON");
        line.push(b'\n');
        line
    }
}

/// Any value as JSON text, without a line end in it.
pub fn raw<T: Serialize + ?Sized>(value: &T) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).expect("what is sent has string keys only")
}

fn null() -> Box<RawValue> {
    raw(&())
}
