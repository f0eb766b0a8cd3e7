//! `dwell` as a person runs it, in a sandbox: arguments, standard streams, exit code. Must never outlive its test.

use crate::binaries::binaries;
use crate::daemon::{TestDaemon, wait_child};
use crate::sandbox::Sandbox;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// A command line to run.
#[derive(Debug)]
pub struct Dwell {
    command: Command,
    stdin: Option<Vec<u8>>,
    limit: Duration,
}

/// What came of it.
#[derive(Debug, PartialEq)]
pub struct Ran {
    /// None when a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Dwell {
    /// Against a daemon that runs.
    pub fn new(daemon: &TestDaemon) -> Self {
        let mut this = Self::alone(daemon);
        this.command.env("DWELL_SOCKET", daemon.socket());
        this
    }

    /// In a sandbox where no daemon may run yet.
    pub fn alone(sandbox: &Sandbox) -> Self {
        Self::of(&binaries().client, sandbox)
    }

    pub fn of(binary: &PathBuf, sandbox: &Sandbox) -> Self {
        let mut command = Command::new(binary);
        sandbox.apply(&mut command);
        Self {
            command,
            stdin: None,
            limit: Duration::from_secs(60),
        }
    }

    #[must_use]
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(args);
        self
    }

    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Pipes text in.
    #[must_use]
    pub fn stdin(mut self, text: &str) -> Self {
        self.stdin = Some(text.as_bytes().to_vec());
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(mut self) -> Ran {
        let stdin = if self.stdin.is_some() {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        let command = self
            .command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), self.stdin.take()) {
            // In a thread, and not minding a reader that has had enough.
            thread::spawn(move || pipe.write_all(&text));
        }
        let stdout = collect(child.stdout.take().unwrap());
        let stderr = collect(child.stderr.take().unwrap());
        let status = wait_child(&mut child, self.limit);
        let stderr = stderr.join().unwrap();
        let Some(status) = status else {
            panic!("{:?} does not end; stderr: {stderr}", self.command);
        };
        Ran {
            code: status.code(),
            stdout: stdout.join().unwrap(),
            stderr,
        }
    }

    /// Runs it with its output thrown away and gives its exit code: nothing but the process itself is waited for.
    pub fn run_closely(mut self) -> Option<i32> {
        let command = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().unwrap().code()
    }

    /// Runs it, and fails unless it succeeds; returns standard output.
    #[track_caller]
    pub fn ok(self) -> String {
        let ran = self.run();
        assert_eq!(
            ran.code,
            Some(0),
            "stdout: {}\nstderr: {}",
            ran.stdout,
            ran.stderr
        );
        ran.stdout
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Ends a daemon that a client started by itself, when a test is over.
#[derive(Debug)]
pub struct AutoStarted<'a>(pub &'a Sandbox);

impl Drop for AutoStarted<'_> {
    fn drop(&mut self) {
        let _ = Dwell::alone(self.0).args(["daemon", "stop"]).run();
        // And if that does not work: every dwelld whose environment names this sandbox.
        let mark = self.0.path("home").to_str().unwrap().to_owned();
        for pid in crate::procfs::marked(&mark) {
            let is_daemon = std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "dwelld");
            if let (true, Ok(raw)) = (is_daemon, i32::try_from(pid)) {
                let pid = rustix::process::Pid::from_raw(raw).unwrap();
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}
