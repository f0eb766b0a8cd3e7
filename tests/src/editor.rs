//! An editor that speaks the Agent Client Protocol: it starts `dwell acp` and reads every line it writes. Must never retry or
//! reorder, nor know the product's types of that protocol.

use crate::binaries::binaries;
use crate::daemon::{TestDaemon, wait_child};
use crate::wait::SOON;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// An editor and the agent it started.
#[derive(Debug)]
pub struct Editor {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// All that came, in order.
    pub log: Vec<Value>,
    /// Which of it nobody waits for any more.
    taken: Vec<bool>,
    next: u64,
}

impl Editor {
    /// Starts an agent and shakes hands with it.
    pub fn start(daemon: &TestDaemon) -> Self {
        let mut editor = Self::launch(daemon, &[]);
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        editor.call("initialize", hello);
        editor
    }

    /// Starts an agent with these arguments and says nothing yet.
    pub fn launch(daemon: &TestDaemon, arguments: &[&str]) -> Self {
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        command
            .arg("acp")
            .args(arguments)
            .env("DWELL_SOCKET", daemon.socket())
            .env("DWELL_PROVIDER", "script");
        Self::of(command)
    }

    /// Starts an agent with this command and says nothing yet.
    pub fn of(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let line = serde_json::from_str(&line).expect("the agent writes JSON");
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            log: Vec::new(),
            taken: Vec::new(),
            next: 1,
        }
    }

    /// A session for the sandbox's workspace.
    pub fn session(&mut self, daemon: &TestDaemon) -> String {
        let asked = json!({"cwd": daemon.work(), "mcpServers": []});
        let made = self.call("session/new", asked);
        made["sessionId"].as_str().unwrap().to_owned()
    }

    /// Begins a turn and returns the request's id.
    pub fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{"type": "text", "text": text}]);
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// A turn to its end; the updates before it.
    #[track_caller]
    pub fn turn(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        let before = self.log.len();
        let id = self.prompt(session, text);
        let stop = self.response(id).expect("the turn ends well")["stopReason"].clone();
        // What belongs to this turn is not what a test waits for next.
        self.taken.fill(true);
        (stop, self.updates(before))
    }

    /// The updates among what came after a place of the log.
    pub fn updates(&self, from: usize) -> Vec<Value> {
        let updates = self.log[from..].iter();
        let updates = updates.filter(|line| line["method"] == "session/update");
        updates
            .map(|line| line["params"]["update"].clone())
            .collect()
    }

    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        self.raw(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.raw(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers a request of the agent's.
    pub fn answer(&mut self, asked: &Value, result: Value) {
        self.raw(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    }

    pub fn raw(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    pub fn line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("standard input is open");
        writeln!(stdin, "{line}").unwrap();
    }

    /// A call that must succeed.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        match self.response(id) {
            Ok(result) => result,
            Err(error) => panic!("{method}: {error}"),
        }
    }

    /// The answer to a request.
    #[track_caller]
    pub fn response(&mut self, id: u64) -> Result<Value, Value> {
        let fits = |line: &Value| line["id"] == id && line.get("method").is_none();
        let mut line = self.wait(&format!("the answer to {id}"), fits);
        match line["error"].take() {
            Value::Null => Ok(line["result"].take()),
            error => Err(error),
        }
    }

    /// The first line that fits and was not given before.
    #[track_caller]
    pub fn wait(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + SOON;
        let mut looked = 0;
        loop {
            self.taken.resize(self.log.len(), false);
            let mut fresh = (looked..self.log.len()).filter(|at| !self.taken[*at]);
            if let Some(at) = fresh.find(|at| fits(&self.log[*at])) {
                self.taken[at] = true;
                return self.log[at].clone();
            }
            looked = self.log.len();
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.log.push(line),
                Err(why) => panic!("waiting for {what}: {why}; so far: {:?}", self.log),
            }
        }
    }

    /// The next update of a kind.
    #[track_caller]
    pub fn update(&mut self, kind: &str) -> Value {
        let line = self.wait(kind, |line| {
            line["params"]["update"]["sessionUpdate"] == kind
        });
        line["params"]["update"].clone()
    }

    /// The next request or notification of a name.
    #[track_caller]
    pub fn asked(&mut self, method: &str) -> Value {
        self.wait(method, |line| line["method"] == method)
    }

    /// Ends standard input and waits for the agent's end; what it still said is in the log.
    pub fn quit(&mut self) -> Option<ExitStatus> {
        self.stdin = None;
        let status = wait_child(&mut self.child, SOON);
        while let Ok(line) = self.lines.recv_timeout(SOON) {
            self.log.push(line);
        }
        status
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The words of updates of a kind, put together.
pub fn words(updates: &[Value], kind: &str) -> String {
    let of_kind = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == kind);
    of_kind
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}
