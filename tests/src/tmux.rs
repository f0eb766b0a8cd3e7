//! Real terminals for tests: a tmux server of its own on a socket in the sandbox. Must never touch a person's tmux.

use crate::sandbox::Sandbox;
use crate::wait::{SOON, until};
use std::path::PathBuf;
use std::process::{Command, Output};

/// A tmux server; it ends with the test.
#[derive(Debug)]
pub struct Tmux<'a> {
    sandbox: &'a Sandbox,
    socket: PathBuf,
}

impl<'a> Tmux<'a> {
    /// None where tmux is not installed.
    pub fn start(sandbox: &'a Sandbox) -> Option<Self> {
        let found = Command::new("tmux")
            .arg("-V")
            .output()
            .is_ok_and(|out| out.status.success());
        found.then(|| Self {
            sandbox,
            socket: sandbox.path("tmux.sock"),
        })
    }

    /// A terminal of 100 by 30 that runs a command line.
    #[track_caller]
    pub fn open(&self, name: &str, line: &str) {
        let done = self.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            name,
            "-x",
            "100",
            "-y",
            "30",
            line,
        ]);
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    }

    /// What the terminal shows, with what has scrolled away.
    pub fn screen(&self, name: &str) -> String {
        let target = format!("={name}:");
        let done = self.tmux(&["capture-pane", "-p", "-J", "-S", "-1000", "-t", &target]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Types text and Enter.
    pub fn type_line(&self, name: &str, text: &str) {
        let target = format!("={name}:");
        self.tmux(&["send-keys", "-t", &target, "-l", text]);
        self.tmux(&["send-keys", "-t", &target, "Enter"]);
    }

    /// Presses a key by tmux's name for it (`C-c`, `C-d`, `Enter`).
    pub fn press(&self, name: &str, key: &str) {
        self.tmux(&["send-keys", "-t", &format!("={name}:"), key]);
    }

    /// Closes the terminal as a window manager would: the process gets SIGHUP.
    pub fn close(&self, name: &str) {
        self.tmux(&["kill-session", "-t", &format!("={name}")]);
    }

    /// Waits until the terminal shows a text.
    #[track_caller]
    pub fn shows(&self, name: &str, text: &str) -> String {
        until(&format!("terminal {name} to show {text:?}"), SOON, || {
            let screen = self.screen(name);
            if screen.contains(text) {
                Ok(screen)
            } else {
                Err(screen)
            }
        })
    }

    fn tmux(&self, args: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        self.sandbox.apply(&mut command);
        command
            .env("TERM", "xterm-256color")
            .arg("-S")
            .arg(&self.socket)
            .args(args);
        command.output().expect("tmux starts")
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
