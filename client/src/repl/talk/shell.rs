//! `!command`: a person's own command in the session's directory, through the gate like any call, and its output for the
//! model with the next prompt. Must never answer a question about anything but that very command.

use super::{Talk, job};
use crate::approval::Question;
use crate::error::Failure;
use crate::paint::Part;
use serde_json::{Map, Value};
use std::rc::Rc;

/// How much of an output the model is shown; it can run the command itself for more.
const LONGEST: usize = 16 << 10;

/// Commands that run, and what of those that are over the model has not seen.
#[derive(Debug, Default)]
pub(super) struct Shell {
    running: Vec<String>,
    told: Vec<String>,
}

impl Shell {
    pub(super) fn is_busy(&self) -> bool {
        !self.running.is_empty()
    }

    /// Whether a question is about a command that was typed here, which nobody needs to allow again.
    pub(super) fn is_own(&self, question: &Question) -> bool {
        let command = question.arguments.get("command").and_then(Value::as_str);
        let alone = question
            .arguments
            .as_object()
            .is_some_and(|all| all.len() == 1);
        question.tool == "execute"
            && alone
            && command.is_some_and(|command| self.running.iter().any(|own| own == command))
    }

    /// A prompt with the outputs that go with it.
    pub(super) fn told_with(&mut self, text: String) -> String {
        let told = std::mem::take(&mut self.told);
        match told.is_empty() {
            true => text,
            false => format!("{}\n\n{text}", told.join("\n\n")),
        }
    }

    fn end(&mut self, command: &str) {
        if let Some(at) = self.running.iter().position(|own| own == command) {
            self.running.remove(at);
        }
    }
}

impl Talk<'_> {
    pub(super) fn run_shell(&mut self, command: String) {
        self.shell.running.push(command.clone());
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::shell(link, session, command));
    }

    pub(super) fn told(&mut self, command: &str, result: Result<Map<String, Value>, Failure>) {
        self.shell.end(command);
        match result {
            Ok(result) => {
                let output = output(&result);
                let shown = crate::paint::tame(output.trim_end());
                if !shown.is_empty() {
                    let text = self.paint.dress(Part::Quiet, &shown);
                    self.line(&text);
                }
                self.shell.told.push(for_model(command, &output, &result));
                self.hint = Some("the model sees this with your next words".into());
            }
            Err(failure) => self.line(&super::complaint(self.paint, &failure)),
        }
    }
}

fn output(result: &Map<String, Value>) -> String {
    let text = result.get("content").or_else(|| result.get("error"));
    text.and_then(Value::as_str).unwrap_or_default().to_string()
}

/// As the model reads it: fenced, and cut where it is long.
fn for_model(command: &str, output: &str, result: &Map<String, Value>) -> String {
    let mut end = output.len().min(LONGEST);
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    let more = if end < output.len() { "\n[cut]" } else { "" };
    let status = match result.get("exit_status").and_then(Value::as_i64) {
        Some(0) | None => String::new(),
        Some(status) => format!(" (exit status {status})"),
    };
    let fence = "`".repeat(3.max(longest_run(output) + 1));
    let kept = output[..end].trim_end();
    format!("I ran `{command}`{status}:\n{fence}\n{kept}{more}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn question(arguments: Value) -> Question {
        Question {
            approval: "s.a1".into(),
            call: "c1".into(),
            tool: "execute".into(),
            arguments,
            why: String::new(),
        }
    }

    #[test]
    fn only_the_very_command_that_was_typed_is_ones_own() {
        let shell = Shell {
            running: vec!["ls".into()],
            told: Vec::new(),
        };
        assert!(shell.is_own(&question(json!({"command": "ls"}))));
        assert!(!shell.is_own(&question(json!({"command": "ls; rm x"}))));
        assert!(!shell.is_own(&question(json!({"command": "ls", "cwd": "/"}))));
    }

    #[test]
    fn the_model_reads_what_ran_and_what_it_printed_once() {
        let result = json!({"exit_status": 2, "content": "a\n```\n", "ok": true});
        let mut shell = Shell::default();
        shell
            .told
            .push(for_model("make", "a\n```\n", result.as_object().unwrap()));
        let first = shell.told_with("fix it".into());
        assert_eq!(
            first,
            "I ran `make` (exit status 2):\n````\na\n```\n````\n\nfix it"
        );
        assert_eq!(shell.told_with("again".into()), "again");
    }
}
