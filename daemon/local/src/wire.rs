//! JSON-RPC 2.0, one message a line: reading requests, writing answers and events. Must never know what they mean.

use protocol::plugin::{ProviderEventParams, ProviderNotification};
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, BufRead, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// More than any conversation that a local model could read.
const LINE: u64 = 64 << 20;

/// A request, or a notification where there is no id.
#[derive(Debug, PartialEq)]
pub struct Request {
    pub id: Option<Value>,
    pub method: String,
    pub params: Value,
}

/// What the next line is.
#[derive(Debug, PartialEq)]
pub enum Line {
    Request(Request),
    /// Nothing that could be answered.
    Nonsense,
    End,
}

/// Reads a line. One that is too long is the end: what follows could not be told apart.
pub fn read(input: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    let count = input.by_ref().take(LINE).read_until(b'\n', &mut line)?;
    if count == 0 || count as u64 == LINE {
        return Ok(Line::End);
    }
    let Ok(Value::Object(mut message)) = serde_json::from_slice(&line) else {
        return Ok(Line::Nonsense);
    };
    let Some(Value::String(method)) = message.remove("method") else {
        return Ok(Line::Nonsense);
    };
    Ok(Line::Request(Request {
        id: message.remove("id").filter(|id| !id.is_null()),
        method,
        params: message.remove("params").unwrap_or(Value::Null),
    }))
}

/// An error as it travels.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub code: i32,
    pub message: String,
    pub retryable: bool,
}

impl Failure {
    /// What trying again would not mend. One line, whatever a library has to add.
    pub fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        let mut lines = message.lines().map(str::trim);
        Self {
            code: -32010,
            message: lines
                .find(|line| !line.is_empty())
                .unwrap_or_default()
                .to_owned(),
            retryable: false,
        }
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self::new(message)
    }
}

/// Where answers go; shared by both threads, and each message is written whole.
#[derive(Clone)]
pub struct Out(Arc<Mutex<dyn Write + Send>>);

impl Out {
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(to)))
    }

    /// Answers a request.
    pub fn answer(&self, id: &Value, result: Result<impl Serialize, Failure>) {
        match result {
            Ok(result) => self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Err(failure) => self.write(&json!({"jsonrpc": "2.0", "id": id, "error": {
                "code": failure.code,
                "message": failure.message,
                "data": {"retryable": failure.retryable},
            }})),
        }
    }

    /// Tells what happens in a fetch.
    pub fn event(&self, fetch: Option<u64>, event: ProviderNotification) {
        let params = ProviderEventParams { fetch, event };
        self.write(&json!({"jsonrpc": "2.0", "method": "provider/event", "params": params}));
    }

    /// A daemon that is gone hears nothing; the end of stdin then ends this process.
    fn write(&self, message: &Value) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = out
            .write_all(format!("{message}\n").as_bytes())
            .and_then(|()| out.flush());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_told_from_a_request_and_from_the_end() {
        let mut input = "{\"method\":\"a\",\"id\":3}\n[1]\n\n{\"id\":1}\n".as_bytes();
        let request = Request {
            id: Some(json!(3)),
            method: "a".to_owned(),
            params: Value::Null,
        };
        assert_eq!(read(&mut input).expect("readable"), Line::Request(request));
        for _ in 0..3 {
            assert_eq!(read(&mut input).expect("readable"), Line::Nonsense);
        }
        assert_eq!(read(&mut input).expect("readable"), Line::End);
    }
}
