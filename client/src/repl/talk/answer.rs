//! Answers that take more than one key: a pattern for good, a reason. What is typed for one question must never answer
//! another, nor go to the model as a prompt.

use super::Talk;
use super::job::{self, Refused};
use crate::approval::{ALWAYS, Reply, named_pattern};
use crate::repl::complaint;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use protocol::approval::Scope;
use std::rc::Rc;
use std::time::Instant;

impl Talk<'_> {
    /// Answers the first question. It is gone from here at once, so that the next key is not for it; the event tells
    /// everybody.
    pub(super) fn answer(&mut self, reply: Reply) {
        self.replying = None;
        if let Some(question) = self.questions.take_first() {
            let link = Rc::clone(&self.link);
            self.jobs.push(job::answer(link, question, reply));
            self.question_since = Instant::now();
        }
    }

    /// Puts the likeliest pattern into the line, to be changed or confirmed; where there is none to offer, the word for what
    /// stands there and nothing else.
    pub(super) fn offer_pattern(&mut self) {
        let Some(question) = self.questions.first() else {
            return;
        };
        let line = match question.patterns.first() {
            Some(pattern) => format!("{ALWAYS}: {pattern}"),
            None => ALWAYS.to_owned(),
        };
        self.replying = Some(question.approval.clone());
        self.console.editor.clear();
        self.console.editor.set(&line);
    }

    /// A no with a reason is begun.
    pub(super) fn begin_reason(&mut self) {
        self.replying = self.questions.first().map(|first| first.approval.clone());
        self.console.editor.set("r ");
    }

    /// A key while a pattern stands in the line: other patterns, or back to the question.
    pub(super) fn turns_pattern(&mut self, key: KeyEvent) -> bool {
        let text = self.console.editor.text();
        let begun = named_pattern(text).is_some() || text == ALWAYS;
        if self.questions.first().is_none() || !begun {
            return false;
        }
        // In a line of several rows the arrows move between them.
        let lone = !self.console.editor.text().contains('\n');
        match key.code {
            KeyCode::Esc if self.console.editor.mode() != "insert" => {
                self.replying = None;
                self.console.editor.clear();
            }
            KeyCode::Tab => self.turn_pattern(1),
            KeyCode::Down if lone && key.modifiers == KeyModifiers::NONE => self.turn_pattern(1),
            KeyCode::BackTab => self.turn_pattern(-1),
            KeyCode::Up if lone && key.modifiers == KeyModifiers::NONE => self.turn_pattern(-1),
            _ => return false,
        }
        true
    }

    fn turn_pattern(&mut self, step: isize) {
        let Some(question) = self.questions.first() else {
            return;
        };
        let text = self.console.editor.text();
        if let Some(line) = turned(text, &question.patterns, step) {
            self.console.editor.clear();
            self.console.editor.set(&line);
        }
    }

    /// Notes for which question an answer is being typed.
    pub(super) fn note_replying(&mut self) {
        let typed = self.console.editor.text();
        if typed.is_empty() {
            self.replying = None;
        } else if self.replying.is_none() && is_answer(typed) {
            self.replying = self.questions.first().map(|first| first.approval.clone());
        }
    }

    /// The question is another, or none is left: a pattern for the last one means nothing any more.
    pub(super) fn forget_pattern(&mut self) {
        if self.replying.is_some() && named_pattern(self.console.editor.text()).is_some() {
            self.replying = None;
            self.console.editor.clear();
            self.hint = Some("the question that the pattern was for is answered".into());
        }
    }

    /// Whether a line was typed for a question that somebody else has answered since: it stays, and is looked at again.
    pub(super) fn comes_late(&mut self, typed: &str) -> bool {
        let Some(meant) = self.replying.take() else {
            return false;
        };
        let first = self.questions.first().map(|first| &first.approval);
        if first == Some(&meant) || !is_answer(typed) {
            return false;
        }
        self.hint = Some(match first {
            Some(_) => "that question is answered, this is another: Enter answers it".into(),
            None => {
                "that question is answered: Enter makes this a prompt, Ctrl-C empties it".into()
            }
        });
        self.console.editor.set(typed);
        true
    }

    /// An answer that is not whole yet.
    pub(super) fn is_unfinished(&mut self, typed: &str) -> bool {
        if self.questions.first().is_none() {
            return false;
        }
        if matches!(typed.trim(), "r" | "reason") {
            self.hint = Some("the reason is missing; n is a no without one".into());
            self.begin_reason();
            return true;
        }
        if named_pattern(typed).is_some_and(|(_, pattern)| pattern.is_empty()) {
            self.hint = Some("the pattern is missing; Tab offers one, Esc goes back".into());
            self.console.editor.set(typed.trim_end());
            self.note_replying();
            return true;
        }
        false
    }

    /// The pattern was refused: it stands in the line again, to be mended.
    pub(super) fn take_refused(&mut self, refused: Refused) {
        let Refused {
            question,
            reply,
            failure,
        } = refused;
        let text = complaint(self.paint, &failure);
        self.line(&text);
        let word = match reply.scope {
            Scope::Session => "session",
            Scope::Call | Scope::Program | Scope::Always => ALWAYS,
        };
        let line = format!("{word}: {}", reply.pattern.as_deref().unwrap_or_default());
        self.replying = Some(question.approval.clone());
        self.questions.put_back(question);
        if self.console.editor.is_empty() {
            self.console.editor.set(&line);
        }
    }
}

/// Whether a line answers a question, or begins to.
fn is_answer(typed: &str) -> bool {
    let begun = matches!(typed.trim(), "r" | "reason");
    begun || named_pattern(typed).is_some() || Reply::parse(typed).is_some()
}

/// The line with the pattern that follows the one in it; the first where that is none of them.
fn turned(text: &str, patterns: &[String], step: isize) -> Option<String> {
    let (scope, pattern) = named_pattern(text)?;
    let count = isize::try_from(patterns.len())
        .ok()
        .filter(|count| *count > 0)?;
    let at = patterns.iter().position(|known| known == pattern);
    let at = at.and_then(|at| isize::try_from(at).ok());
    let next = at.map_or(0, |at| (at + step).rem_euclid(count));
    let word = match scope {
        Scope::Session => "session",
        Scope::Call | Scope::Program | Scope::Always => ALWAYS,
    };
    let next = usize::try_from(next).ok()?;
    Some(format!("{word}: {}", patterns[next]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_each_other_in_a_ring() {
        let patterns = ["cargo test *".to_owned(), "cargo test".to_owned()];
        let table = [
            ("always: cargo test *", 1, "always: cargo test"),
            ("always: cargo test", 1, "always: cargo test *"),
            ("always: cargo test *", -1, "always: cargo test"),
            ("session: cargo", 1, "session: cargo test *"),
            ("always:", -1, "always: cargo test *"),
        ];
        for (text, step, expected) in table {
            assert_eq!(
                turned(text, &patterns, step).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        assert_eq!(turned("always: x", &[], 1), None);
        assert_eq!(turned("a prompt", &patterns, 1), None);
    }
}
