//! What became of calls to the daemon, on the screen and in what is typed. Must never make one.

use super::Talk;
use super::job::Done;
use crate::error::Failure;
use crate::paint::{Part, tame};
use crate::render::first_line;
use crate::repl::line::{own_help, with_own};
use crate::repl::{Leave, complaint, is_final};
use protocol::command::CommandResult;
use protocol::session::Session;

/// What is said when this client is ended from outside, or its daemon.
const KEPT: &str = "what was typed is in the history: Up brings it back here";

impl Talk<'_> {
    /// Somebody else ends this client: what is typed is not lost by that.
    pub(super) fn keep_typed(&mut self) {
        let typed = self.console.editor.whole();
        if !typed.trim().is_empty() {
            self.console.editor.history().add(typed.trim_end());
            self.line(&self.paint.dress(Part::Quiet, KEPT));
        }
    }

    /// Nobody takes any more what is on its way, or still in the line.
    pub(super) fn keep_unsent(&mut self) {
        for one in std::mem::take(&mut self.sending) {
            self.tell_not_sent(&one.text);
        }
        self.keep_typed();
    }

    /// What was typed is in the history.
    fn tell_not_sent(&mut self, text: &str) {
        let text = format!("not sent: {}", first_line(text));
        self.line(&self.paint.dress(Part::Quiet, &text));
    }

    /// On to a session that was made from this one.
    pub(super) fn go_to(&mut self, fork: Box<Session>) -> Leave {
        let text = format!("forked; /attach {} comes back here", self.session);
        self.line(&self.paint.dress(Part::Quiet, &text));
        Leave::Switch(fork)
    }

    /// What became of a call to the daemon.
    pub(super) fn finish(&mut self, done: Done) -> Result<(), Failure> {
        match done {
            Done::Started { token, started } => match started {
                // A turn is told by its event, maybe before this answer; one that waits is as much this person's.
                Ok(_) => {}
                Err(failure) => {
                    self.give_back(&token);
                    return self.finish(Done::Failed(failure));
                }
            },
            Done::Command { line, result } => self.tell_result(&line, &result),
            // The loop goes there.
            Done::Forked(_) => {}
            Done::Completed { wish, found } => {
                // Where nothing fits there is no menu to say it.
                if found.candidates.is_empty() && found.more.is_some() {
                    self.hint.clone_from(&found.more);
                }
                self.console.editor.complete(&wish, found);
            }
            Done::Looked(session) => self.take_session(&session),
            Done::Unfolded(text) => self.console.screen.write(&text),
            Done::TookBack(text) => self.put_back(&text),
            Done::Ran { number, result } => self.told(number, result),
            Done::Refused(refused) => self.take_refused(*refused),
            Done::Quietly => {}
            Done::Failed(failure) if is_final(&failure) => return Err(failure),
            Done::Failed(failure) => self.line(&complaint(self.paint, &failure)),
        }
        Ok(())
    }

    /// A prompt that was not taken goes back where it was typed, unless something else stands there by now.
    fn give_back(&mut self, token: &str) {
        self.own.remove(token);
        let Some(at) = self.sending.iter().position(|one| one.token == token) else {
            return;
        };
        let sending = self.sending.remove(at);
        match self.console.editor.is_empty() {
            true => self.console.editor.set(&sending.text),
            false => self.tell_not_sent(&sending.text),
        }
    }

    /// What waited in the queue stands in the line again, before what is typed there by now.
    fn put_back(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let typed = self.console.editor.whole();
        let text = match typed.is_empty() {
            true => text.to_string(),
            false => format!("{text}\n{typed}"),
        };
        self.console.editor.clear();
        self.console.editor.set(&text);
        self.hint = Some("taken out of the queue; Enter sends it again".into());
    }

    fn tell_result(&mut self, line: &str, result: &CommandResult) {
        let output = tame(&result.output);
        if !output.trim().is_empty() {
            self.line(output.trim_end());
        }
        if result.ran && line == "/help" {
            self.line(&own_help(&output));
        }
        if let Some(error) = &result.error {
            let text = self.paint.dress(Part::Bad, &with_own(&tame(error)));
            self.line(&text);
        }
    }
}
