//! `dwell-local` spoken to directly, over its own wire. Must never outlive its test, and waits with a deadline.

use crate::binaries::binaries;
use crate::wait::SOON;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

/// A running one.
#[derive(Debug)]
pub struct Local {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    next_id: u64,
}

/// What came of a round trip.
#[derive(Debug, Default)]
pub struct Answer {
    pub text: String,
    pub thought: String,
    /// Name and arguments.
    pub calls: Vec<(String, Value)>,
    pub usage: Value,
}

impl Local {
    /// With nothing but these variables.
    pub fn start(variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(&binaries().local)
            .env_clear()
            .envs(variables.iter().copied())
            .env("DWELL_LOCAL_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, lines) = sync_channel(4096);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("it writes JSON lines");
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            next_id: 0,
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends a request and gives its id.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.write(
            &json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}),
        );
        self.next_id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    fn write(&mut self, message: &Value) {
        self.write_raw(format!("{message}\n").as_bytes());
    }

    /// Bytes as they are, for tests that misbehave.
    pub fn write_raw(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        stdin.write_all(bytes).unwrap();
    }

    /// The next line, whatever it is.
    #[track_caller]
    pub fn line(&self) -> Value {
        self.lines
            .recv_timeout(SOON)
            .expect("dwell-local says something")
    }

    /// The answer to a request, and the events before it.
    #[track_caller]
    pub fn finish(&self, id: u64) -> (Result<Value, String>, Answer) {
        let mut answer = Answer::default();
        loop {
            let mut line = self.line();
            if line["id"] == id {
                let result = match line.get("error") {
                    Some(error) => Err(error["message"].as_str().unwrap().to_owned()),
                    None => Ok(line["result"].take()),
                };
                return (result, answer);
            }
            assert_eq!(
                line["params"]["fetch"], id,
                "an event of another request: {line}"
            );
            answer.add(&line["params"]);
        }
    }

    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.send(method, params);
        self.finish(id).0
    }

    /// Builds an instance.
    #[track_caller]
    pub fn build(&mut self, name: &str, model: Option<&str>) -> Result<String, String> {
        let built = self.call("provider/build", json!({"name": name, "model": model}))?;
        Ok(built["instance"].as_str().unwrap().to_owned())
    }

    /// A round trip that must succeed.
    #[track_caller]
    pub fn fetch(&mut self, instance: &str, messages: &Value, tools: &Value) -> Answer {
        let id = self.ask(instance, messages, tools);
        let (result, answer) = self.finish(id);
        result.expect("a round trip");
        answer
    }

    /// Begins a round trip.
    pub fn ask(&mut self, instance: &str, messages: &Value, tools: &Value) -> u64 {
        self.send(
            "provider/fetch",
            json!({"instance": instance, "messages": messages, "tools": tools}),
        )
    }

    /// Closes its input, and says whether it then ended by itself.
    pub fn close(mut self) -> bool {
        drop(self.stdin.take());
        crate::daemon::wait_child(&mut self.child, SOON).is_some_and(|status| status.success())
    }

    /// How long it takes from a cancel to the answer of what was cancelled.
    pub fn cancel(&mut self, id: u64) -> (Duration, Result<Value, String>) {
        let start = Instant::now();
        self.notify("provider/cancel", json!({"id": id}));
        let (result, _) = self.finish(id);
        (start.elapsed(), result)
    }
}

impl Answer {
    fn add(&mut self, event: &Value) {
        let text = event["text"].as_str().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "saying" => self.text.push_str(text),
            "thinking" => self.thought.push_str(text),
            "doing" => {
                let name = event["name"].as_str().unwrap().to_owned();
                self.calls.push((name, event["arguments"].clone()));
            }
            "usage" => self.usage = event.clone(),
            other => panic!("an event of type {other}"),
        }
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
