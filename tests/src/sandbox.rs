//! A home, state and workspace of their own for each test, in one folder that goes away with it.
//! Must never read or write anything of the person who runs the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A machine for one test: nothing in it, nothing shared.
#[derive(Debug)]
pub struct Sandbox {
    folder: TempDir,
    env: Vec<(String, String)>,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("dwell-").tempdir().unwrap();
        let sandbox = Self {
            folder,
            env: Vec::new(),
        };
        for part in ["home", "work", "data", "state", "config", "run"] {
            fs::create_dir(sandbox.path(part)).unwrap();
            // Whatever the umask of whoever runs the tests.
            set_mode(&sandbox.path(part), 0o755);
        }
        set_mode(&sandbox.path("run"), 0o700);
        sandbox
    }

    /// A path inside.
    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.path().join(part)
    }

    /// The directory that sessions are made for.
    pub fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// Writes a file of the workspace, with the folders above it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.work().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Reads a file of the workspace; none is empty.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.work().join(name)).unwrap_or_default()
    }

    /// One more variable for everything started in here; the last word on a name counts.
    pub fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        let value = value.as_ref().to_str().unwrap().to_owned();
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value));
    }

    /// Takes one of the sandbox's own variables away.
    pub fn unset(&mut self, name: &str) {
        self.set(name, "");
    }

    /// Puts the sandbox's environment, and nothing else, into a command.
    pub fn apply(&self, command: &mut Command) {
        command.env_clear().current_dir(self.work());
        command.envs(self.variables());
    }

    /// The environment of everything started in here.
    pub fn variables(&self) -> Vec<(String, String)> {
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
        let mut all = vec![
            ("PATH".to_owned(), path),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ];
        let places = [
            ("HOME", "home"),
            ("XDG_RUNTIME_DIR", "run"),
            ("DWELL_DATA_DIR", "data"),
            ("DWELL_STATE_DIR", "state"),
            ("DWELL_CONFIG_DIR", "config"),
        ];
        for (name, part) in places {
            all.push((
                name.to_owned(),
                self.path(part).to_str().unwrap().to_owned(),
            ));
        }
        for (name, value) in &self.env {
            all.retain(|(known, _)| known != name);
            if !value.is_empty() {
                all.push((name.clone(), value.clone()));
            }
        }
        all
    }

    /// What the user's (not the workspace's) permissions say.
    pub fn permissions(&self, json: &serde_json::Value) {
        let folder = self.path("home").join(".agents");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("permissions.json"), json.to_string()).unwrap();
    }
}

/// Sets a file's mode.
pub fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A file's mode, permission bits only.
pub fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
