//! Real model servers, spoken to as a user's would be: llama.cpp's, and one with Ollama's interface. They need Python packages,
//! which `.ci/run` installs. Must never outlive its test.

use crate::binaries::root;
use crate::gguf::{Weight, write_gguf};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Names the Python that has the packages.
const VARIABLE: &str = "DWELL_TEST_SERVERS";

/// Both servers, with the fixture model.
#[derive(Debug)]
pub struct Servers {
    child: Child,
    _folder: TempDir,
    pub llama: String,
    pub ollama: String,
}

impl Servers {
    /// None where the packages are not installed; the test then says that it was skipped.
    pub fn start(test: &str) -> Option<Self> {
        let Some(python) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else {
            crate::wait::skip(
                test,
                &format!("{VARIABLE} names no Python with the servers: see .ci/run"),
            );
            return None;
        };
        let folder = TempDir::new().unwrap();
        let model = folder.path().join("fixture.gguf");
        write_gguf(&model, Weight::Light);
        let mut child = Command::new(python)
            .arg(root().join("tests/servers/servers.py"))
            .arg(&model)
            .env("HOME", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let (send, line) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            let ready = lines.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
            for ready in ready {
                // Only the first is waited for.
                let _ = send.try_send(ready);
            }
        });
        let mut servers = Self {
            child,
            _folder: folder,
            llama: String::new(),
            ollama: String::new(),
        };
        let ready = line
            .recv_timeout(Duration::from_secs(60))
            .expect("the servers answer within a minute");
        ready["llama"]
            .as_str()
            .unwrap()
            .clone_into(&mut servers.llama);
        ready["ollama"]
            .as_str()
            .unwrap()
            .clone_into(&mut servers.ollama);
        Some(servers)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
