//! A fake MCP server behind HTTP, of the same script as the one that is a child. Must never outlive its test.

use crate::binaries::root;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// It runs while this lives.
#[derive(Debug)]
pub struct HttpServer {
    child: Child,
    pub url: String,
}

impl HttpServer {
    /// `words` say how it behaves; see the script. What it lives through is noted in `notes`.
    #[allow(clippy::disallowed_methods)]
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
