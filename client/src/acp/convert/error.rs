//! Failures as the editor is told them.

use crate::error::Failure;
use protocol::error::ErrorKind;
use serde_json::json;

pub(in crate::acp) use agent_client_protocol_schema::v1::Error;

/// What failed, with what to do about it.
pub(in crate::acp) fn from(failure: Failure) -> Error {
    let code = match failure.kind {
        Some(ErrorKind::NotFound) => -32002,
        Some(ErrorKind::InvalidParams) => -32602,
        _ => -32603,
    };
    let error = Error::new(code, failure.whole());
    match failure.kind {
        Some(kind) => error.data(json!({"kind": kind})),
        None => error,
    }
}

/// Parameters that do not fit.
pub(in crate::acp) fn invalid(what: impl Into<String>) -> Error {
    Error::new(-32602, what)
}

/// A session that this editor has not opened.
pub(in crate::acp) fn not_open(session: &str) -> Error {
    let message =
        format!("the session {session} is not open here: session/load or session/resume opens it");
    Error::new(-32002, message)
}

/// A method that nobody knows.
pub(in crate::acp) fn unknown(method: &str) -> Error {
    Error::new(-32601, format!("there is no method {method}"))
}

/// A turn that came to no good end.
pub(in crate::acp) fn failed(reply: &str) -> Error {
    let words = reply.strip_prefix("Error: ").unwrap_or(reply);
    Error::new(-32603, words)
}

/// A message that is no request.
pub(in crate::acp) fn invalid_request(what: &str) -> Error {
    Error::new(-32600, what)
}

/// Bytes that are no message.
pub(in crate::acp) fn parse_error(what: &str) -> Error {
    Error::new(-32700, format!("a line is no JSON: {what}"))
}
