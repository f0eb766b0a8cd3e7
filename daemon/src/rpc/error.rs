//! The table from what can go wrong with a session or the store to what a client branches on.
//! Must never word a message: that is done where it is known what was attempted.

use crate::session::SessionError;
use crate::store::StoreError;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::expression::{BadExpression, Expression};
use serde_json::Value;

/// The error as it travels.
pub(super) fn to_rpc(error: &SessionError) -> RpcError {
    let message = error.to_string();
    match error {
        SessionError::NotFound { what, id } => RpcError::new(ErrorKind::NotFound, message)
            .with("what", *what)
            .with("id", id.as_str()),
        SessionError::Busy { session, turn } => RpcError::new(ErrorKind::Busy, message)
            .with("session", session.as_str())
            .with("turn", turn.as_str()),
        SessionError::AlreadyAnswered {
            approval,
            answer,
            by,
        } => RpcError::new(ErrorKind::AlreadyAnswered, message)
            .with("approval", approval.as_str())
            .with("by", by.as_str())
            .with(
                "answer",
                serde_json::to_value(answer).unwrap_or(serde_json::Value::Null),
            ),
        SessionError::CursorBeyond { after, newest } => {
            RpcError::new(ErrorKind::CursorBeyond, message)
                .with("after", *after)
                .with("newest", *newest)
        }
        SessionError::Provider(_) => RpcError::new(ErrorKind::Provider, message),
        SessionError::Refused(_) => RpcError::new(ErrorKind::Refused, message),
        SessionError::Invalid(_) => RpcError::new(ErrorKind::InvalidParams, message),
        SessionError::Toolbox(bad) => bad_toolbox(bad),
        SessionError::Stopping => {
            RpcError::new(ErrorKind::Overloaded, message).with("stopping", true)
        }
        SessionError::Store(error) => of_store(error),
    }
}

/// An expression in a parameter; null is none.
pub(super) fn expression(toolbox: Option<&Value>) -> Result<Option<Expression>, ErrorObjectOwned> {
    let given = toolbox.filter(|value| !value.is_null());
    let read = given.map(|value| Expression::parse("toolbox", value));
    read.transpose().map_err(|bad| bad_toolbox(&bad).into())
}

fn bad_toolbox(bad: &BadExpression) -> RpcError {
    RpcError::new(ErrorKind::InvalidParams, bad.to_string()).with("path", bad.path.as_str())
}

/// For `map_err`.
pub(super) fn fail(error: SessionError) -> ErrorObjectOwned {
    to_rpc(&error).into()
}

fn of_store(error: &StoreError) -> RpcError {
    let message = error.to_string();
    match error {
        StoreError::NotFound(session) => RpcError::new(ErrorKind::NotFound, message)
            .with("what", "session")
            .with("id", session.as_str()),
        StoreError::Held {
            session,
            pid,
            socket,
        } => RpcError::new(ErrorKind::Held, message)
            .with("session", session.as_str())
            .with("pid", *pid)
            .with("socket", socket.as_str()),
        StoreError::Full { path, .. } => {
            RpcError::new(ErrorKind::Storage, message).with("path", path.as_str())
        }
        StoreError::Corrupt { path, .. }
        | StoreError::Newer { path, .. }
        | StoreError::Io { path, .. } => {
            RpcError::new(ErrorKind::Storage, message).with("path", path.as_str())
        }
        StoreError::Query { .. } | StoreError::Cursor(_) => {
            RpcError::new(ErrorKind::InvalidParams, message)
        }
        StoreError::Closed => RpcError::new(ErrorKind::Storage, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(error: SessionError, code: i32, data: &Value) {
        let error = to_rpc(&error);
        assert_eq!(error.kind.code(), code);
        assert_eq!(&error.data_value(), data);
    }

    #[test]
    fn each_error_has_its_code_and_data() {
        check(
            SessionError::CursorBeyond {
                after: 9,
                newest: 3,
            },
            -32006,
            &json!({"kind": "cursor_beyond", "after": 9, "newest": 3}),
        );
        check(
            SessionError::AlreadyAnswered {
                approval: "s.a1".into(),
                answer: protocol::approval::Answer::Deny,
                by: "pid 7".into(),
            },
            -32004,
            &json!({"kind": "already_answered", "approval": "s.a1", "by": "pid 7", "answer": "deny"}),
        );
        check(
            SessionError::Stopping,
            -32001,
            &json!({"kind": "overloaded", "retryable": true, "stopping": true}),
        );
        check(
            SessionError::Store(StoreError::Held {
                session: "s".into(),
                pid: 4,
                socket: "/x".into(),
            }),
            -32003,
            &json!({"kind": "held", "session": "s", "pid": 4, "socket": "/x"}),
        );
    }
}
