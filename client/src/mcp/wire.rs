//! The messages: JSON-RPC 2.0, one a line. Must never write half of one.

use crate::error::Failure;
use crate::out;
use protocol::surrogate;
use serde_json::{Value, json};

/// A message that came.
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// Of a request of ours; none is an error.
    Answer {
        id: Value,
        result: Option<Value>,
    },
    Nonsense,
}

impl Incoming {
    pub(super) fn of(mut message: Value) -> Self {
        let Some(members) = message.as_object_mut() else {
            return Self::Nonsense;
        };
        let params = members.remove("params").unwrap_or(Value::Null);
        let id = members.remove("id").filter(|id| !id.is_null());
        match (id, members.remove("method")) {
            (Some(id), Some(Value::String(method))) => Self::Request { id, method, params },
            (None, Some(Value::String(method))) => Self::Notification { method, params },
            (Some(id), None) => Self::Answer {
                id,
                result: members.remove("result"),
            },
            _ => Self::Nonsense,
        }
    }
}

/// What one line holds: a message, or several in a list.
pub(super) fn messages(line: &str) -> Vec<Result<Incoming, serde_json::Error>> {
    match serde_json::from_slice(&surrogate::mend(line.as_bytes())) {
        Ok(Value::Array(batch)) => batch.into_iter().map(|one| Ok(Incoming::of(one))).collect(),
        Ok(one) => vec![Ok(Incoming::of(one))],
        Err(error) => vec![Err(error)],
    }
}

pub(super) fn reply(id: &Value, result: &Value) -> Result<(), Failure> {
    write(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

pub(super) fn fault(id: &Value, code: i64, message: &str) -> Result<(), Failure> {
    write(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))
}

pub(super) fn tell(method: &str, params: &Value) -> Result<(), Failure> {
    write(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

pub(super) fn ask(id: u64, method: &str, params: &Value) -> Result<(), Failure> {
    write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

fn write(message: &Value) -> Result<(), Failure> {
    out::raw(&format!("{message}\n"))
}
