//! `dwelld` as a test sees it: started, killed and started again on the same state. Must never outlive its test.

use crate::binaries::binaries;
use crate::client::TestClient;
use crate::model::FakeModel;
use crate::sandbox::Sandbox;
use crate::wait::{SOON, until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// A daemon in a sandbox.
#[derive(Debug)]
pub struct TestDaemon {
    sandbox: Sandbox,
    binary: PathBuf,
    socket: PathBuf,
    child: Option<Child>,
    umask: Option<u32>,
}

impl Deref for TestDaemon {
    type Target = Sandbox;
    fn deref(&self) -> &Sandbox {
        &self.sandbox
    }
}

impl DerefMut for TestDaemon {
    fn deref_mut(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }
}

impl Default for TestDaemon {
    fn default() -> Self {
        Self::start()
    }
}

impl TestDaemon {
    /// A fresh one that answers.
    pub fn start() -> Self {
        Self::start_in(Sandbox::new())
    }

    /// One that answers, in a sandbox that was prepared.
    pub fn start_in(sandbox: Sandbox) -> Self {
        let mut daemon = Self::stopped(sandbox, &binaries().daemon);
        daemon.restart();
        daemon
    }

    /// One whose provider `openai` is a fake model, with a session that talks to it.
    pub fn with_model(model: &FakeModel) -> (Self, TestClient, String) {
        Self::with_model_in(Sandbox::new(), model)
    }

    /// The same in a sandbox that was prepared.
    pub fn with_model_in(mut sandbox: Sandbox, model: &FakeModel) -> (Self, TestClient, String) {
        sandbox.set("OPENAI_BASE_URL", model.base_url());
        sandbox.set("OPENAI_API_KEY", "the-key-of-the-test");
        let daemon = Self::start_in(sandbox);
        let mut client = daemon.client();
        let provider =
            serde_json::json!({"cwd": daemon.work(), "provider": "openai", "model": "fake"});
        let session = client.session_with(provider);
        (daemon, client, session)
    }

    /// One where every built-in tool runs without asking.
    pub fn allowing() -> Self {
        let sandbox = Sandbox::new();
        let tools = [
            "execute", "read", "write", "edit", "list", "glob", "grep", "git", "fetch", "todo",
        ];
        let rules = tools
            .map(|tool| (tool.to_owned(), "allow".into()))
            .into_iter()
            .collect();
        sandbox.permissions(&serde_json::Value::Object(rules));
        Self::start_in(sandbox)
    }

    /// One that does not run yet.
    pub fn stopped(sandbox: Sandbox, binary: &Path) -> Self {
        let socket = sandbox.path("run").join("dwell/dwell.sock");
        Self {
            sandbox,
            binary: binary.to_owned(),
            socket,
            child: None,
            umask: None,
        }
    }

    /// The same with a socket elsewhere.
    #[must_use]
    pub fn on_socket(mut self, socket: PathBuf) -> Self {
        self.socket = socket;
        self
    }

    /// Starts with this mask from now on.
    pub fn set_umask(&mut self, mask: u32) {
        self.umask = Some(mask);
    }

    /// Starts it (again) on the same state and waits until it answers.
    pub fn restart(&mut self) {
        self.launch();
        self.wait_ready();
    }

    /// Starts it without waiting.
    pub fn launch(&mut self) {
        assert!(self.child.is_none(), "the daemon runs already");
        let stderr = File::options()
            .create(true)
            .append(true)
            .open(self.stderr_path())
            .unwrap();
        let mut command = Command::new(&self.binary);
        self.sandbox.apply(&mut command);
        command
            .arg("--socket")
            .arg(&self.socket)
            .stdin(Stdio::null());
        if let Some(mask) = self.umask {
            // SAFETY: umask is async-signal-safe, and nothing else runs between fork and exec.
            unsafe {
                command.pre_exec(move || {
                    libc::umask(mask);
                    Ok(())
                });
            }
        }
        self.child = Some(
            command
                .stdout(stderr.try_clone().unwrap())
                .stderr(stderr)
                .spawn()
                .unwrap(),
        );
    }

    /// Waits until a call is answered: a socket's file alone proves nothing.
    pub fn wait_ready(&mut self) {
        let socket = self.socket.clone();
        let child = self.child.as_mut().expect("the daemon was started");
        let log = self.sandbox.path("dwelld.stderr");
        until("the daemon to answer", SOON, || {
            if let Ok(Some(status)) = child.try_wait() {
                panic!("dwelld ended with {status}:\n{}", tail(&log));
            }
            let mut client = TestClient::try_connect(&socket).map_err(|error| error.to_string())?;
            // Who is killed while it starts a process may leave its socket to that for a moment.
            client.answers().map_err(|error| error.to_string())
        });
    }

    /// A new connection.
    pub fn client(&self) -> TestClient {
        match TestClient::try_connect(&self.socket) {
            Ok(client) => client,
            Err(error) => panic!("connecting to the daemon: {error}\n{}", self.log()),
        }
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("the daemon runs").id()
    }

    /// `kill -9`, and reaps it.
    pub fn kill9(&mut self) {
        self.signal(Signal::KILL);
        self.wait_exit();
    }

    /// SIGTERM, and waits for its end.
    pub fn term(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(
            Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap(),
            signal,
        )
        .unwrap();
    }

    /// Waits for its end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("the daemon runs");
        let status = wait_child(&mut child, SOON);
        status.unwrap_or_else(|| panic!("dwelld does not end:\n{}", self.log()))
    }

    /// What it wrote, for messages and for tests of the log.
    pub fn log(&self) -> String {
        let mut text = fs::read_to_string(self.stderr_path()).unwrap_or_default();
        for entry in fs::read_dir(self.sandbox.path("state").join("log"))
            .into_iter()
            .flatten()
            .flatten()
        {
            text.push_str(&fs::read_to_string(entry.path()).unwrap_or_default());
        }
        text
    }

    fn stderr_path(&self) -> PathBuf {
        self.sandbox.path("dwelld.stderr")
    }
}

impl Drop for TestDaemon {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            eprintln!(
                "--- the daemon's log ends with ---\n{}",
                tail(&self.stderr_path())
            );
        }
    }
}

/// Waits for a child; past the limit it is killed, reaped, and none is returned.
pub fn wait_child(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    let end = std::time::Instant::now() + limit;
    while std::time::Instant::now() < end {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        crate::wait::pause();
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

fn tail(path: &Path) -> String {
    let text = fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}
