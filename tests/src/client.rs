//! A raw client: JSON-RPC lines over the socket, nothing of the product's own client code.
//! Must never retry or reorder: what the daemon sends is what the test sees. Each message is held against the document.

use crate::events::Events;
use crate::wait::SOON;
use crate::wire;
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// A connection.
#[derive(Debug)]
pub struct TestClient {
    stream: UnixStream,
    /// Bytes of a line that has not ended yet.
    partial: Vec<u8>,
    lines: VecDeque<Value>,
    /// Requests that were sent here and are not answered yet: method and parameters.
    asked: HashMap<u64, (String, Value)>,
    next_id: u64,
    limit: Duration,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub code: i64,
    pub message: String,
    pub data: Value,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.code, self.message, self.data)
    }
}

/// A subscription's id.
pub type Subscription = Value;

impl TestClient {
    pub fn try_connect(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(SOON))?;
        Ok(Self {
            stream,
            partial: Vec::new(),
            lines: VecDeque::new(),
            asked: HashMap::new(),
            next_id: 0,
            limit: SOON,
        })
    }

    /// Another deadline for what follows.
    pub fn set_limit(&mut self, limit: Duration) {
        self.limit = limit;
    }

    /// The bytes of the wire, for tests that misbehave.
    pub fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        let request =
            json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.send_raw(&request);
        self.next_id
    }

    /// Sends any JSON value as a line.
    pub fn send_raw(&mut self, value: &Value) {
        if let (Some(id), Some(method)) = (value["id"].as_u64(), value["method"].as_str()) {
            let asked = (method.to_owned(), value["params"].clone());
            self.asked.insert(id, asked);
        }
        self.stream
            .write_all(format!("{value}\n").as_bytes())
            .expect("the daemon reads");
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        match self.try_call(method, params) {
            Ok(result) => result,
            Err(fault) => panic!("{method}: {fault}"),
        }
    }

    /// A call that must fail.
    #[track_caller]
    pub fn fault(&mut self, method: &str, params: Value) -> Fault {
        match self.try_call(method, params) {
            Ok(result) => panic!("{method} succeeds: {result}"),
            Err(fault) => fault,
        }
    }

    #[track_caller]
    pub fn try_call(&mut self, method: &str, params: Value) -> Result<Value, Fault> {
        let id = self.send(method, params);
        self.response(id)
    }

    /// Whether anything answers a call; a connection that is lost meanwhile is an error.
    pub fn answers(&mut self) -> io::Result<()> {
        let request = json!({"jsonrpc": "2.0", "id": "ready", "method": "daemon/status"});
        self.stream.write_all(format!("{request}\n").as_bytes())?;
        let end = Instant::now() + self.limit;
        while self.lines.pop_front().is_none() {
            self.read_more(end)?;
        }
        Ok(())
    }

    /// The response to a request; notifications before it are kept for later.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Result<Value, Fault> {
        let found = self.take(&format!("the response to {id}"), |line| line["id"] == id);
        match found.get("error") {
            None => Ok(found["result"].clone()),
            Some(error) => Err(Fault {
                code: error["code"].as_i64().unwrap(),
                message: error["message"].as_str().unwrap_or_default().to_owned(),
                data: error["data"].clone(),
            }),
        }
    }

    /// The next line of any kind.
    #[track_caller]
    pub fn next_line(&mut self) -> Value {
        self.take("a line", |_| true)
    }

    /// Takes the first line that fits; others keep their order.
    #[track_caller]
    pub fn take(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + self.limit;
        let mut looked = 0;
        loop {
            if let Some(at) = (looked..self.lines.len()).find(|at| fits(&self.lines[*at])) {
                return self.lines.remove(at).unwrap();
            }
            looked = self.lines.len();
            match self.read_more(end) {
                Ok(()) => {}
                Err(error) => panic!("waiting for {what}: {error}; unread: {:?}", self.brief()),
            }
        }
    }

    /// Reads until at least one more line is there, or the deadline.
    fn read_more(&mut self, end: Instant) -> io::Result<()> {
        let before = self.lines.len();
        let mut buffer = [0; 64 * 1024];
        while self.lines.len() == before {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let count = match self.stream.read(&mut buffer) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.partial.extend_from_slice(&buffer[..count]);
            self.split_lines();
        }
        Ok(())
    }

    fn split_lines(&mut self) {
        let Some(end) = self.partial.iter().rposition(|byte| *byte == b'\n') else {
            return;
        };
        let rest = self.partial.split_off(end + 1);
        for line in std::mem::replace(&mut self.partial, rest).split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                let line = serde_json::from_slice(line).expect("the daemon writes JSON");
                self.hold_against_the_document(&line);
                self.lines.push_back(line);
            }
        }
    }

    fn hold_against_the_document(&mut self, line: &Value) {
        let checked = if line["method"].is_string() {
            wire::notification(line)
        } else {
            let asked = line["id"].as_u64().and_then(|id| self.asked.remove(&id));
            asked.map_or(Ok(()), |(method, params)| {
                wire::exchange(&method, &params, line)
            })
        };
        if let Err(why) = checked {
            panic!("protocol/openrpc.json is not what is on the wire: {why}");
        }
    }

    fn brief(&self) -> Vec<String> {
        let start = self.lines.len().saturating_sub(8);
        self.lines
            .range(start..)
            .map(|line| line.to_string().chars().take(200).collect())
            .collect()
    }

    /// Everything that arrives until the daemon closes or dies: what this client had received.
    pub fn drain(&mut self) -> Vec<Value> {
        let end = Instant::now() + self.limit;
        while self.read_more(end).is_ok() {}
        self.lines.drain(..).collect()
    }

    /// `drain`, for no longer than this.
    pub fn drain_within(&mut self, limit: Duration) -> Vec<Value> {
        let usual = std::mem::replace(&mut self.limit, limit);
        let lines = self.drain();
        self.limit = usual;
        lines
    }

    /// Whether the daemon has closed this connection, within the deadline.
    pub fn closed(&mut self) -> bool {
        let end = Instant::now() + self.limit;
        loop {
            match self.read_more(end) {
                Ok(()) => {}
                Err(error) => {
                    return !matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock);
                }
            }
        }
    }
}

/// Sessions, in the words of tests.
impl TestClient {
    /// A new session of the script player in a directory.
    #[track_caller]
    pub fn session(&mut self, cwd: &Path) -> String {
        self.session_with(json!({"cwd": cwd, "provider": "script"}))
    }

    #[track_caller]
    pub fn session_with(&mut self, params: Value) -> String {
        self.call("session/create", params)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Attaches; `after: None` sees only what is new.
    #[track_caller]
    pub fn attach(&mut self, session: &str, after: Option<u64>) -> Subscription {
        let mut params = json!({"session": session});
        if let Some(after) = after {
            params["after"] = after.into();
        }
        self.call("session/attach", params)
    }

    /// The next event of any session.
    #[track_caller]
    pub fn event(&mut self) -> Value {
        let line = self.take("an event", |line| line["method"] == "session/event");
        line["params"]["result"].clone()
    }

    /// Events up to and including the first that fits.
    #[track_caller]
    pub fn events_until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Events {
        let mut events = Vec::new();
        loop {
            let line = self.take(what, |line| line["method"] == "session/event");
            let event = line["params"]["result"].clone();
            let end = fits(&event);
            events.push(event);
            if end {
                return Events(events);
            }
        }
    }

    #[track_caller]
    pub fn until_type(&mut self, kind: &str) -> Events {
        self.events_until(kind, |event| event["type"] == kind)
    }

    #[track_caller]
    pub fn until_ended(&mut self) -> Events {
        self.until_type("turn_ended")
    }

    #[track_caller]
    pub fn start(&mut self, session: &str, text: &str) -> Value {
        self.call("turn/start", json!({"session": session, "text": text}))
    }

    /// Attaches, plays a turn to its end, detaches.
    #[track_caller]
    pub fn turn(&mut self, session: &str, text: &str) -> Events {
        let subscription = self.attach(session, None);
        self.start(session, text);
        let events = self.until_ended();
        self.call("session/detach", json!({"subscription": subscription}));
        events
    }

    /// The whole log, page after page.
    #[track_caller]
    pub fn history(&mut self, session: &str) -> Events {
        let mut events = Vec::new();
        let mut after = 0;
        loop {
            let page = self.call(
                "session/history",
                json!({"session": session, "after": after}),
            );
            events.extend(page["events"].as_array().unwrap().iter().cloned());
            if page["more"] != true {
                return Events(events);
            }
            after = events.last().unwrap()["seq"].as_u64().unwrap();
        }
    }

    /// Answers an approval with yes or no.
    #[track_caller]
    pub fn answer(&mut self, approval: &Value, answer: &str) -> Result<Value, Fault> {
        self.try_call(
            "approval/answer",
            json!({"approval": approval, "answer": answer, "scope": "call"}),
        )
    }
}
