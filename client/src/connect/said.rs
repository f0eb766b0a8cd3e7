//! What ssh, and `dwell` behind it, say on standard error. All of it is passed on where a person may read it, but for how
//! `dwell` there says why it failed: that is told once, from here. Must never keep more than a line's beginning of the rest.

use std::io::{Read as _, Write as _};
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

/// How long last words may take after the end: what ssh left in the background may hold the stream for ever.
const LAST: Duration = Duration::from_millis(300);

/// How much of one line, and of one failure, is kept.
const LINE: usize = 4096;
const FAILURE: usize = 16 << 10;

const ERROR: &str = "error: ";
const HINT: &str = "hint: ";

/// What was said, once it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// Why `dwell` there failed, in its words.
    pub(super) error: String,
    /// What it says is to be done there.
    pub(super) hint: Option<String>,
    /// The last line of all.
    pub(super) last: String,
}

/// Somebody who listens.
pub(super) struct Listener {
    said: Arc<Mutex<Said>>,
    over: mpsc::Receiver<()>,
}

/// Whether a person may read it as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    AsItComes,
    Never,
}

impl Listener {
    /// The thread ends with ssh and what ssh left in the background.
    pub(super) fn new(mut stderr: ChildStderr, shown: Shown) -> Self {
        // Held for as long as it takes to add a line.
        let said = Arc::new(Mutex::new(Said::default()));
        let (sender, over) = mpsc::sync_channel(1);
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            let (mut chunk, mut lines) = ([0; 4096], Lines::default());
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                let mut passed = Vec::new();
                with(&heard, |said| lines.take(&chunk[..read], said, &mut passed));
                if shown == Shown::AsItComes {
                    let _ = std::io::stderr().write_all(&passed);
                }
            }
            with(&heard, |said| lines.end(said, &mut Vec::new()));
            let _ = sender.try_send(());
        });
        Self { said, over }
    }

    /// All that was said by the end.
    pub(super) async fn all(self) -> Said {
        let said = tokio::task::spawn_blocking(|| self.all_now()).await;
        said.unwrap_or_default()
    }

    /// The same for whoever may block.
    pub(super) fn all_now(self) -> Said {
        let _ = self.over.recv_timeout(LAST);
        with(&self.said, |said| said.clone())
    }
}

fn with<T>(said: &Mutex<Said>, act: impl FnOnce(&mut Said) -> T) -> T {
    let mut said = said.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    act(&mut said)
}

/// Text cut into lines as it comes.
#[derive(Default)]
struct Lines {
    line: Vec<u8>,
    /// How much of this line has been passed on: a question has no newline.
    passed: usize,
    part: Part,
}

/// What the line before belonged to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Other,
    Error,
    Hint,
}

impl Lines {
    fn take(&mut self, bytes: &[u8], said: &mut Said, passed: &mut Vec<u8>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            let part = self.part_of();
            match (part, piece.ends_with(b"\n")) {
                (Some(Part::Other), false) => self.pass(passed),
                (_, true) => self.end(said, passed),
                (_, false) => {}
            }
        }
    }

    /// What this line is part of, as far as it can be told by now.
    fn part_of(&self) -> Option<Part> {
        let begins = |with: &str| self.line.starts_with(with.as_bytes());
        let may_begin = |with: &str| with.as_bytes().starts_with(&self.line);
        match self.part {
            _ if begins(ERROR) => Some(Part::Error),
            _ if begins(HINT) && self.part != Part::Other => Some(Part::Hint),
            part if begins("  ") && part != Part::Other => Some(part),
            _ if may_begin(ERROR) => None,
            part if part != Part::Other && (may_begin(HINT) || may_begin("  ")) => None,
            _ => Some(Part::Other),
        }
    }

    /// What of a line that is no failure's has not been passed on.
    fn pass(&mut self, passed: &mut Vec<u8>) {
        passed.extend_from_slice(&self.line[self.passed..]);
        self.passed = self.line.len();
        // A line without an end must not fill the memory.
        if self.line.len() > LINE {
            self.line.truncate(LINE);
            self.passed = LINE;
        }
    }

    fn end(&mut self, said: &mut Said, passed: &mut Vec<u8>) {
        let part = self.part_of().unwrap_or_default();
        let text = String::from_utf8_lossy(&self.line).trim_end().to_owned();
        match part {
            Part::Error => match text.strip_prefix(ERROR) {
                Some(error) => (said.error, said.hint) = (error.to_owned(), None),
                None if said.error.len() < FAILURE => {
                    said.error.push('\n');
                    said.error.push_str(&text);
                }
                None => {}
            },
            Part::Hint => said.hint = text.strip_prefix(HINT).map(str::to_owned),
            Part::Other => self.pass(passed),
        }
        if !text.trim().is_empty() {
            said.last = text.trim().to_owned();
        }
        self.part = part;
        self.line.clear();
        self.passed = 0;
    }
}

/// What is to be done on another machine, said for whoever is here: `dwell` gets there by itself.
pub(super) fn from_here(hint: &str, host: &str) -> String {
    let commands = || hint.split('`').skip(1).step_by(2);
    let is_ours = |command: &str| command == "dwell" || command.starts_with("dwell ");
    match commands().next().is_some() && commands().all(is_ours) {
        true => hint.replace("`dwell", &format!("`dwell --host {host}")),
        false => format!("on {host}: {hint}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Warning: added\nerror: dwelld did not start; it said:\n  no room\n  at all\nhint: its log is /x\nbye\n";

    fn hear(pieces: &[&[u8]]) -> (Said, String) {
        let (mut lines, mut said, mut passed) = (Lines::default(), Said::default(), Vec::new());
        for piece in pieces {
            lines.take(piece, &mut said, &mut passed);
        }
        lines.end(&mut said, &mut passed);
        (said, String::from_utf8(passed).unwrap())
    }

    #[test]
    fn a_failure_is_kept_and_the_rest_is_passed_on_however_it_was_split() {
        for at in 0..TEXT.len() {
            let (first, second) = TEXT.as_bytes().split_at(at);
            let (said, passed) = hear(&[first, second]);
            assert_eq!(
                said.error,
                "dwelld did not start; it said:\n  no room\n  at all"
            );
            assert_eq!(said.hint.as_deref(), Some("its log is /x"));
            assert_eq!(said.last, "bye");
            assert_eq!(passed, "Warning: added\nbye\n", "split at {at}");
        }
    }

    #[test]
    fn a_question_is_passed_on_before_its_line_ends() {
        let (mut lines, mut said, mut passed) = (Lines::default(), Said::default(), Vec::new());
        lines.take(b"password: ", &mut said, &mut passed);
        assert_eq!(passed, b"password: ");
        lines.take(b"\nhint: none of ours\n", &mut said, &mut passed);
        assert_eq!(passed, b"password: \nhint: none of ours\n");
    }

    #[test]
    fn a_hint_of_another_machine_names_it() {
        let check = |hint| from_here(hint, "me@box");
        assert_eq!(
            check("`dwell daemon start` starts one"),
            "`dwell --host me@box daemon start` starts one"
        );
        assert_eq!(
            check("`dwell` starts it again and goes on"),
            "`dwell --host me@box` starts it again and goes on"
        );
        assert_eq!(
            check("`dwell daemon stop`, or `kill 7`, ends it"),
            "on me@box: `dwell daemon stop`, or `kill 7`, ends it"
        );
        assert_eq!(check("its log is /x"), "on me@box: its log is /x");
    }
}
