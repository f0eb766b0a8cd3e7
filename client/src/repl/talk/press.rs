//! Keys: what each does to the text, the question, the turn or the screen. Must never show an event.

use super::{Sending, Talk, image, job, program};
use crate::approval::{Question, Reply};
use crate::error::Failure;
use crate::paint::Part;
use crate::render::Thoughts;
use crate::repl::editor::Asked;
use crate::repl::line::Line;
use crate::repl::pick::{self, Chosen};
use crate::repl::{Leave, complaint};
use crate::select;
use crossterm::event::{Event as Pressed, KeyCode, KeyEvent, KeyModifiers};
use protocol::approval::Scope;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Within this time a second Ctrl-C on an idle session leaves it.
const TWICE: Duration = Duration::from_secs(2);

/// A key this soon after a question came was meant for something else.
const UNSEEN: Duration = Duration::from_millis(500);

/// A key this soon after an answer by one key is the rest of a word ("yes").
const REST: Duration = Duration::from_millis(400);

impl Talk<'_> {
    /// Takes a key and what was pressed with it.
    pub(super) async fn press_all(&mut self, first: Pressed) -> Result<Option<Leave>, Failure> {
        let mut next = Some(Ok(first));
        while let Some(pressed) = next {
            if let Some(left) = self.press(pressed?).await? {
                return Ok(Some(left));
            }
            next = self.console.keys.ready();
        }
        Ok(None)
    }

    async fn press(&mut self, pressed: Pressed) -> Result<Option<Leave>, Failure> {
        match pressed {
            // The next drawing looks.
            Pressed::Resize(..) => {}
            Pressed::FocusGained => self.console.notices.set_focus(true),
            Pressed::FocusLost => self.console.notices.set_focus(false),
            Pressed::Key(key) if self.is_rest_of_answer(key) => {}
            Pressed::Key(key) if self.answers(key) => {}
            Pressed::Key(key) if self.turns_pattern(key) => self.hint = None,
            other => {
                self.hint = None;
                let asked = self.console.editor.event(other);
                if asked == Asked::Nothing {
                    self.note_replying();
                }
                self.wish();
                return self.obey(asked).await;
            }
        }
        Ok(None)
    }

    /// Has completions fetched, if the text wants any.
    fn wish(&mut self) {
        if let Some(wish) = self.console.editor.take_wish() {
            let (link, session) = (Rc::clone(&self.link), self.session.clone());
            self.jobs.push(job::complete(link, session, wish));
        }
    }

    fn is_rest_of_answer(&self, key: KeyEvent) -> bool {
        let soon = self.answered.is_some_and(|at| at.elapsed() < REST);
        soon && matches!(key.code, KeyCode::Char(_)) && key.modifiers.is_empty()
    }

    /// A key that answers the question, or moves among several. Only on an empty line, and only once the question was
    /// there to be seen.
    fn answers(&mut self, key: KeyEvent) -> bool {
        let asked = self.questions.first().is_some() && self.stands_alone(key);
        if !asked || !key.modifiers.is_empty() {
            return false;
        }
        if key.code == KeyCode::Tab {
            // It answers nothing, so it may come as early as it likes.
            self.next_question();
            return true;
        }
        if self.question_since.elapsed() < UNSEEN {
            // The first one stands in the line, where it can be seen; more of the same add nothing.
            return !self.console.editor.is_empty();
        }
        let reply = match key.code {
            KeyCode::Char('r') => {
                self.begin_reason();
                return true;
            }
            KeyCode::Char('a') => {
                self.offer_pattern();
                return true;
            }
            KeyCode::Char(c) => Reply::parse(&c.to_string()),
            _ => None,
        };
        match reply {
            Some(reply) => {
                self.answered = Some(Instant::now());
                self.console.editor.clear();
                self.answer(reply);
                true
            }
            None => false,
        }
    }

    fn next_question(&mut self) {
        if self.questions.len() > 1 {
            self.questions.rotate();
            self.question_since = Instant::now();
            self.forget_pattern();
        }
    }

    /// Whether nothing is typed, or nothing but this key: it came before its question could be read, and comes again.
    fn stands_alone(&self, key: KeyEvent) -> bool {
        let typed = self.console.editor.text();
        match key.code {
            KeyCode::Char(c) => typed.is_empty() || typed == c.to_string(),
            _ => typed.is_empty(),
        }
    }

    async fn obey(&mut self, asked: Asked) -> Result<Option<Leave>, Failure> {
        match asked {
            Asked::Nothing => {}
            Asked::Line(line) => return self.obey_line(&line).await,
            Asked::Interrupt => return Ok(self.interrupt()),
            Asked::Detach => return Ok(Some(Leave::Detach)),
            Asked::Clear => self.console.screen.clear()?,
            Asked::Compose => {
                let text = self.console.editor.whole();
                if let Some(text) = self.compose(text).await? {
                    self.console.editor.clear();
                    self.console.editor.set(&text);
                }
            }
            Asked::Program(key) => self.obey_key(key).await?,
        }
        Ok(None)
    }

    async fn obey_key(&mut self, key: KeyEvent) -> Result<(), Failure> {
        let control = key.modifiers == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Char('t') => {
                self.hint = Some(match self.renderer.toggle_thoughts() {
                    Thoughts::Shown => "thoughts stay on the screen from here on".into(),
                    Thoughts::Folded => "thoughts fold from here on".into(),
                });
            }
            KeyCode::Char('o') if control => self.unfold(),
            KeyCode::Char('o') => self.page().await?,
            KeyCode::Char('s') => self.steer(),
            KeyCode::Up => self.take_back(self.queue.len().saturating_sub(1)..),
            KeyCode::Char('z') => self.console.suspend()?,
            KeyCode::Char('n') => self.next_question(),
            _ => {}
        }
        Ok(())
    }

    async fn obey_line(&mut self, typed: &str) -> Result<Option<Leave>, Failure> {
        self.interrupted = None;
        if self.comes_late(typed) {
            return Ok(None);
        }
        if let (Some(_), Some(reply)) = (self.questions.first(), Reply::parse(typed)) {
            let names_none = reply.scope == Scope::Always && reply.pattern.is_none();
            let is_offered = |question: &Question| !question.patterns.is_empty();
            match names_none && self.questions.first().is_some_and(is_offered) {
                true => self.offer_pattern(),
                false => self.answer(reply),
            }
            return Ok(None);
        }
        if self.is_unfinished(typed) {
            return Ok(None);
        }
        if self.questions.first().is_some() && is_stutter(typed) {
            self.hint = Some(format!("{} is no answer: press one key", typed.trim()));
            return Ok(None);
        }
        match Line::parse(typed) {
            Line::Blank => {}
            Line::Leave => return Ok(Some(Leave::Detach)),
            Line::Attach(Some(word)) => match select::session(&self.link, &word).await {
                Ok(other) => return Ok(Some(Leave::Switch(Box::new(other)))),
                Err(failure) => self.line(&complaint(self.paint, &failure)),
            },
            Line::Attach(None) => {
                self.console.screen.leave()?;
                return Ok(match pick::pick(&self.link, self.console).await? {
                    Chosen::Session(session) => Some(Leave::Switch(session)),
                    Chosen::Nothing => None,
                    Chosen::Ended => Some(Leave::Detach),
                });
            }
            Line::Edit(text) => match self.compose(text.clone()).await? {
                Some(text) => self.start(text),
                None => self.console.editor.set(&text),
            },
            Line::Shell(command) => self.run_shell(command),
            Line::Command(line) => {
                let (link, session) = (Rc::clone(&self.link), self.session.clone());
                self.jobs.push(job::command(link, session, line));
            }
            Line::Text(text) => self.start(text),
        }
        Ok(None)
    }

    /// Ctrl-C with nothing typed: a command of one's own goes first, then the turn, then this client.
    fn interrupt(&mut self) -> Option<Leave> {
        if self.stop_shell() {
            return None;
        }
        let Some(running) = &mut self.running else {
            if !self.queue.is_empty() {
                self.take_back(..);
                return None;
            }
            if self.stop_told() {
                return None;
            }
            if self.interrupted.is_some_and(|at| at.elapsed() < TWICE) {
                return Some(Leave::Detach);
            }
            self.interrupted = Some(Instant::now());
            self.hint = Some("Ctrl-C again, Ctrl-D or /exit detaches".into());
            return None;
        };
        if running.cancelled.replace(self.queue.len()).is_some() {
            return Some(Leave::Detach);
        }
        let turn = running.turn.clone();
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::cancel(link, session, turn));
        self.hint = Some("cancelling; Ctrl-C again detaches".into());
        None
    }

    /// Has a text written in the person's editor; none if nothing came of it.
    async fn compose(&mut self, text: String) -> Result<Option<String>, Failure> {
        self.console.sleep()?;
        let written = program::compose(text).await;
        if written.is_err() {
            self.console.mend()?;
        }
        self.console.wake()?;
        match written {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => Ok(Some(text.trim_end().to_string())),
            Err(broken) => {
                // Whoever closed the window sees no name of a file.
                if let Some(saved) = broken.saved {
                    self.console.editor.history().add(saved.trim_end());
                }
                self.line(&complaint(self.paint, &broken.failure));
                Ok(None)
            }
        }
    }

    /// What is typed goes into the running turn: the model sees it at its next round trip.
    fn steer(&mut self) {
        let text = self.console.editor.whole();
        if self.questions.first().is_some() && Reply::parse(&text).is_some() {
            self.hint = Some("this answers the question: press Enter".into());
            return;
        }
        if text.trim().is_empty() || self.running.is_none() {
            self.hint = Some("Alt-S sends what is typed into the running turn".into());
            return;
        }
        self.console.editor.history().add(text.trim_end());
        self.console.editor.clear();
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs
            .push(job::steer(link, session, text.trim_end().into()));
    }

    pub(super) fn start(&mut self, text: String) {
        let token = crate::open::token();
        self.own.insert(token.clone());
        self.sending.push(Sending {
            token: token.clone(),
            text: text.clone(),
        });
        let image::Named { images, left } = image::named(&text, &self.cwd);
        if !left.is_empty() {
            let left = crate::paint::tame(&format!("not sent along: {}", left.join("; ")));
            let left = self.paint.dress(Part::Quiet, &left);
            self.line(&left);
        }
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs
            .push(job::start(link, session, text, images, token));
    }
}

/// Whether a line is one answer's key several times: pressed for questions that were not there yet, and no prompt.
fn is_stutter(typed: &str) -> bool {
    let typed = typed.trim();
    let mut keys = typed.chars();
    let first = keys
        .next()
        .filter(|c| Reply::parse(&c.to_string()).is_some());
    first.is_some_and(|first| keys.all(|c| c == first)) && typed.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_repeated_key_is_a_stutter() {
        for stutter in ["yy", "nnn", " ss "] {
            assert!(is_stutter(stutter), "{stutter:?}");
        }
        for text in ["", "y", "yes", "yn", "xx", "no"] {
            assert!(!is_stutter(text), "{text:?}");
        }
    }
}
