//! Real clients of other people: programs of `tests/clients/` and `tests/openrpc/` with the libraries that `.ci/run` installs
//! for them. Must never use what happens to be installed elsewhere, but for the editors themselves.

use crate::binaries::root;
use crate::daemon::{TestDaemon, wait_child};
use crate::sandbox::Sandbox;
use std::fs;
use std::io::Read;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Which programs, and the variable that names the folder with what they need: `node_modules`, a Python environment `py`.
const CLIENTS: (&str, &str) = ("tests/clients", "DWELL_TEST_CLIENTS");
const OPENRPC: (&str, &str) = ("tests/openrpc", "DWELL_TEST_OPENRPC");

/// How long one client may take for its whole scenario.
const LIMIT: Duration = Duration::from_secs(60);

/// The installed libraries.
#[derive(Debug)]
pub struct Clients {
    folder: PathBuf,
    programs: &'static str,
}

impl Clients {
    /// None where they are not installed; the test then says that it was skipped.
    pub fn find(test: &str, needs: &str) -> Option<Self> {
        Self::find_of(CLIENTS, test, needs)
    }

    /// The same for what reads the document of the wire.
    pub fn of_the_document(test: &str) -> Option<Self> {
        Self::find_of(OPENRPC, test, "node_modules/@open-rpc/schema-utils-js")
    }

    fn find_of(
        (programs, variable): (&'static str, &str),
        test: &str,
        needs: &str,
    ) -> Option<Self> {
        let named = std::env::var_os(variable).filter(|name| !name.is_empty());
        let folder = named.map(PathBuf::from);
        let found = folder.filter(|folder| folder.join(needs).exists());
        if found.is_none() {
            let why = format!("{variable} names no folder with {needs}: see .ci/run");
            crate::wait::skip(test, &why);
        }
        found.map(|folder| Self { folder, programs })
    }

    /// A copy of a program that finds its libraries as it would beside them.
    pub fn program(&self, sandbox: &Sandbox, name: &str) -> PathBuf {
        let folder = sandbox.path("clients");
        if !folder.exists() {
            fs::create_dir(&folder).unwrap();
            symlink(
                self.folder.join("node_modules"),
                folder.join("node_modules"),
            )
            .unwrap();
        }
        let copy = folder.join(name);
        fs::copy(root().join(self.programs).join(name), &copy).unwrap();
        copy
    }

    /// A program that the libraries brought.
    pub fn binary(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Whether a program is on PATH; where it is not, the test says that it was skipped.
pub fn on_path(test: &str, program: &str, package: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders.find_map(|folder| Some(folder.join(program)).filter(|file| file.is_file()));
    if found.is_none() {
        let why = format!("no {program} on PATH: the package {package} has it");
        crate::wait::skip(test, &why);
    }
    found
}

/// What a client said.
#[derive(Debug)]
pub struct Said {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Said {
    /// Fails with all that was said unless the client ended well.
    #[track_caller]
    pub fn well(self) -> String {
        assert_eq!(
            self.code,
            Some(0),
            "--- stdout ---\n{}\n--- stderr ---\n{}",
            self.stdout,
            self.stderr
        );
        self.stdout
    }
}

/// Runs a client in a daemon's sandbox to its end, or to the limit.
pub fn run(daemon: &TestDaemon, mut command: Command) -> Said {
    let variables = daemon.variables();
    command
        .env_clear()
        .envs(variables)
        .env("DWELL_SOCKET", daemon.socket())
        .current_dir(daemon.work())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stdout = collect(child.stdout.take().unwrap());
    let stderr = collect(child.stderr.take().unwrap());
    let status = wait_child(&mut child, LIMIT);
    Said {
        code: status.and_then(|status| status.code()),
        stdout: stdout.join().unwrap(),
        stderr: stderr.join().unwrap(),
    }
}

fn collect(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
