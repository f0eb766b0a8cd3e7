//! Both ends of MCP beside the product: a fake server behind HTTP, of the same script as the one that is a child, and a
//! client that starts `dwell mcp`. Must never outlive its test.

use crate::binaries::{binaries, root};
use crate::sandbox::Sandbox;
use crate::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

/// It runs while this lives.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    pub url: String,
}

impl HttpServer {
    /// `words` say how it behaves; see the script. What it lives through is noted in `notes`.
    pub fn start(words: &[&str], notes: &Path) -> Self {
        let script = root().join("tests/fixtures/mcp/server.py");
        let mut child = Command::new("python3")
            .arg(script)
            .arg("http")
            .args(words)
            .env("NOTES", notes)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout)
            .read_line(&mut line)
            .expect("it says its port");
        Self {
            child,
            url: format!("http://127.0.0.1:{}/mcp", line.trim()),
        }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `dwell mcp`, as another program starts it.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    lines: Receiver<Value>,
    /// What came and nobody asked for yet.
    kept: Vec<Value>,
    next: u64,
}

impl McpClient {
    /// Starts it in the sandbox, and shakes hands. `capabilities` are the client's.
    pub fn start(sandbox: &Sandbox, socket: &Path, args: &[&str], capabilities: &Value) -> Self {
        let mut command = Command::new(&binaries().client);
        sandbox.apply(&mut command);
        command.arg("--socket").arg(socket).arg("mcp").args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = Self::of(command);
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = client.call("initialize", params);
        assert_eq!(hello["protocolVersion"], "2025-06-18", "{hello}");
        client.tell("notifications/initialized", json!({}));
        client
    }

    /// Starts it with this command, its streams piped, and says nothing yet. A shell that began this test in the background
    /// has Ctrl-C ignored; it counts all the same.
    pub fn of(mut command: Command) -> Self {
        // SAFETY: signal is async-signal-safe, and nothing else runs between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::signal(libc::SIGINT, libc::SIG_DFL);
                Ok(())
            });
        }
        let mut child = command.stderr(Stdio::null()).spawn().expect("dwell runs");
        let stdout = BufReader::new(child.stdout.take().expect("it is piped"));
        let (send, lines) = sync_channel(1000);
        std::thread::spawn(move || {
            let lines = stdout.lines().map_while(Result::ok);
            for line in lines {
                let message = serde_json::from_str(&line).expect("nothing but messages");
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            kept: Vec::new(),
            next: 0,
        }
    }

    /// Sends a request; its number.
    pub fn send(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        let id = self.next;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub fn tell(&mut self, method: &str, params: Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub fn write(&mut self, message: &Value) {
        self.line(&message.to_string());
    }

    /// Ends it, as `kill` does.
    pub fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status();
        assert!(sent.expect("kill runs").success());
    }

    pub fn line(&mut self, message: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        stdin
            .write_all(format!("{message}\n").as_bytes())
            .expect("it reads");
    }

    /// A request that must succeed.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.result(id)
    }

    pub fn result(&mut self, id: u64) -> Value {
        let answer = self.until("an answer", |one| {
            one["id"] == id && one.get("method").is_none()
        });
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// The next message that fits; others stay for later.
    pub fn until(&mut self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + SOON;
        loop {
            if let Some(at) = self.kept.iter().position(&fits) {
                return self.kept.remove(at);
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(message) => self.kept.push(message),
                Err(_) => panic!("waited for {what}; there is {:?}", self.kept),
            }
        }
    }

    /// What came and was not asked for.
    pub fn kept(&self) -> &[Value] {
        &self.kept
    }

    /// Closes its stdin; what it says then can be waited for.
    pub fn close(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Closes its stdin, and waits for its end.
    pub fn end(self) -> bool {
        self.exit().is_some_and(|status| status.success())
    }

    pub fn exit(mut self) -> Option<ExitStatus> {
        self.close();
        let mut status = None;
        until_true("it ends", SOON, || {
            status = self.child.try_wait().expect("it is ours");
            status.is_some()
        });
        status
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
