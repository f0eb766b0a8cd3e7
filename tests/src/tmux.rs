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
        self.open_sized(name, line, 100, 30);
    }

    /// A terminal of so many columns and rows.
    #[track_caller]
    pub fn open_sized(&self, name: &str, line: &str, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let done = self.tmux(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            name,
            "-x",
            &columns,
            "-y",
            &rows,
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

    /// What stands in the window, with nothing of what has scrolled away.
    pub fn window(&self, name: &str) -> String {
        let done = self.tmux(&["capture-pane", "-p", "-t", &format!("={name}:")]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_end().to_owned()
    }

    /// The same with its colours.
    pub fn coloured(&self, name: &str) -> String {
        let done = self.tmux(&["capture-pane", "-p", "-e", "-t", &format!("={name}:")]);
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Gives the window another size.
    pub fn resize(&self, name: &str, columns: u16, rows: u16) {
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let target = format!("={name}:");
        self.tmux(&["resize-window", "-t", &target, "-x", &columns, "-y", &rows]);
    }

    /// Pastes text, bracketed where the program asked for that.
    pub fn paste(&self, name: &str, text: &str) {
        self.tmux(&["set-buffer", "-b", "paste", "--", text]);
        self.tmux(&[
            "paste-buffer",
            "-p",
            "-d",
            "-b",
            "paste",
            "-t",
            &format!("={name}:"),
        ]);
    }

    /// Types text without Enter.
    pub fn type_text(&self, name: &str, text: &str) {
        self.tmux(&["send-keys", "-t", &format!("={name}:"), "-l", text]);
    }

    /// The process that runs in the terminal.
    pub fn pid(&self, name: &str) -> u32 {
        let target = format!("={name}:");
        let done = self.tmux(&["display-message", "-p", "-t", &target, "#{pane_pid}"]);
        String::from_utf8_lossy(&done.stdout)
            .trim()
            .parse()
            .expect("a process")
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
