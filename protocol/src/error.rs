//! The one table of JSON-RPC error codes and the `data` that goes with each. Must never hold a message's wording for
//! a single method: a message says what was attempted and on what, so it is made where that is known.

use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What went wrong, to branch on. Each kind has one code; several kinds may share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// -32700: the bytes are not JSON.
    Parse,
    /// -32600: JSON, but not a request; also a frame over the limit.
    InvalidRequest,
    /// -32601: no such method, or not in this build.
    MethodNotFound,
    /// -32602: the parameters do not fit.
    InvalidParams,
    /// -32603: a fault of the daemon's own.
    Internal,
    /// -32001: too many calls in flight, or the daemon is stopping; `retryable` is true.
    Overloaded,
    /// -32002: no such session, turn, call, approval, tool or command.
    NotFound,
    /// -32003: a turn is running; `turn` has its id.
    Busy,
    /// -32003: another daemon holds the session; `pid` and `socket` say which.
    Held,
    /// -32004: the approval was answered before; `by` and `answer` say how.
    AlreadyAnswered,
    /// -32005: this client may not (an observer, another user).
    NotAllowed,
    /// -32006: the cursor lies beyond the newest event; `newest` has its number.
    CursorBeyond,
    /// -32010: a provider cannot be built or does not answer.
    Provider,
    /// -32011: refused by trust or a limit; the message says what to do.
    Refused,
    /// -32012: the store cannot take or give data (a full disk, a damaged file).
    Storage,
    /// -32013: the two sides speak different protocols; `daemon` and `client` have both versions.
    Version,
    /// -32800: the client took the call back (`$/cancelRequest`) before it was answered.
    Withdrawn,
}

impl ErrorKind {
    /// The JSON-RPC code of the kind.
    pub const fn code(self) -> i32 {
        match self {
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Internal => -32603,
            Self::Overloaded => -32001,
            Self::NotFound => -32002,
            Self::Busy | Self::Held => -32003,
            Self::AlreadyAnswered => -32004,
            Self::NotAllowed => -32005,
            Self::CursorBeyond => -32006,
            Self::Provider => -32010,
            Self::Refused => -32011,
            Self::Storage => -32012,
            Self::Version => -32013,
            Self::Withdrawn => -32800,
        }
    }
}

/// An error as it travels: a code, a message that a person can act on, and `data: {kind, ...}` to branch on.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// What went wrong; also decides the code.
    pub kind: ErrorKind,
    /// What was attempted and on what; lower case, no full stop.
    pub message: String,
    /// Further members of `data`, beside `kind`.
    pub data: Map<String, Value>,
}

impl RpcError {
    /// An error with nothing but its kind in `data`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let mut data = Map::new();
        if kind == ErrorKind::Overloaded {
            data.insert("retryable".into(), Value::Bool(true));
        }
        Self {
            kind,
            message: message.into(),
            data,
        }
    }

    /// Parameters that a method cannot read, in every method's same words.
    pub fn invalid_params(method: &str, detail: &str) -> Self {
        // A parser's place in the text means nothing to whoever wrote an object.
        let detail = detail.split(" at line ").next().unwrap_or(detail);
        let detail = match detail {
            "No more params" => "some that are required are missing",
            other => other,
        };
        let message = format!("parameters of {method} do not fit: {detail}");
        Self::new(ErrorKind::InvalidParams, message).with("method", method)
    }

    /// The same error with one more member in `data`.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.data.insert(name.into(), value.into());
        self
    }

    /// The whole `data` member.
    pub fn data_value(&self) -> Value {
        let kind = serde_json::to_value(self.kind).unwrap_or(Value::Null);
        let mut data = Map::new();
        data.insert("kind".into(), kind);
        data.extend(self.data.clone());
        Value::Object(data)
    }
}

impl From<RpcError> for ErrorObjectOwned {
    fn from(error: RpcError) -> Self {
        let data = error.data_value();
        ErrorObjectOwned::owned(error.kind.code(), error.message, Some(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_do_not_fit_are_told_without_the_parsers_place() {
        let said = |detail| RpcError::invalid_params("turn/start", detail).message;
        assert_eq!(
            said("missing field `text` at line 1 column 34"),
            "parameters of turn/start do not fit: missing field `text`"
        );
        assert_eq!(
            said("No more params"),
            "parameters of turn/start do not fit: some that are required are missing"
        );
    }
}
