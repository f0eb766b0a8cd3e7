//! `!command`: a person's own command in the session's directory, through the gate like any call; the daemon gives its output to the
//! model with the next prompt. Must never answer a question about anything but that very command.

use super::{Talk, job};
use crate::approval::Question;
use crate::error::Failure;
use crate::link::Link;
use protocol::event::{Event, EventKind};
use protocol::id::{ApprovalId, CallId, SessionId};
use protocol::tool::ToolRpcClient;
use serde_json::{Map, Value, json};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Commands that run.
#[derive(Debug, Default)]
pub(in crate::repl) struct Shell {
    running: Vec<Own>,
    /// How many have run.
    count: u64,
    /// Questions about them, which were answered as the commands were typed.
    answered: Vec<ApprovalId>,
}

/// Commands that people run in the session, in this terminal, another, or one that is gone, and of which the model is to be
/// told.
#[derive(Debug, Default)]
pub(in crate::repl) struct Told(Vec<Running>);

#[derive(Debug)]
struct Running {
    call: CallId,
    command: String,
    since: Instant,
    /// Whether it was told to end from here.
    stopped: bool,
}

impl Told {
    /// Takes an event; the command that it ends, if it does. `now` is the time of day in milliseconds.
    pub(in crate::repl) fn note(&mut self, event: &Event, now: u64) -> Option<String> {
        match &event.kind {
            EventKind::Doing {
                call,
                name,
                arguments,
                tell: true,
                ..
            } => {
                let command = arguments.get("command").and_then(Value::as_str);
                let ago = Duration::from_millis(now.saturating_sub(event.at));
                let begun = Instant::now();
                self.0.push(Running {
                    call: call.clone(),
                    command: command.unwrap_or(name).to_owned(),
                    since: begun.checked_sub(ago).unwrap_or(begun),
                    stopped: false,
                });
                None
            }
            EventKind::Done { call, .. } => {
                let at = self.0.iter().position(|one| one.call == *call)?;
                Some(self.0.remove(at).command)
            }
            _ => None,
        }
    }

    /// Whether a call is one of these.
    pub(in crate::repl) fn has(&self, call: &CallId) -> bool {
        self.0.iter().any(|one| one.call == *call)
    }

    /// How long the newest has run.
    pub(in crate::repl) fn busy(&self) -> Option<Duration> {
        self.0.last().map(|one| one.since.elapsed())
    }

    /// The newest that was not typed here is to end; its call, if there is one left.
    fn stop(&mut self, here: &Shell) -> Option<CallId> {
        let mut newest = self.0.iter_mut().rev();
        let one = newest.find(|one| !one.stopped && !here.has(&one.call))?;
        one.stopped = true;
        Some(one.call.clone())
    }

    /// What is said of those that go on when one leaves.
    pub(in crate::repl) fn farewell(&self) -> Option<String> {
        let newest = &self.0.last()?.command;
        let newest = crate::render::first_line(newest);
        Some(match self.0.len() - 1 {
            0 => format!("`{newest}` goes on"),
            more => format!("`{newest}` and {more} more go on"),
        })
    }
}

/// A command that runs.
#[derive(Debug)]
struct Own {
    number: u64,
    command: String,
    since: Instant,
    /// The call it is, once an event has told.
    call: Option<CallId>,
    /// Whether it is to end.
    stopped: bool,
}

impl Shell {
    /// How long a command has run that nobody has stopped yet.
    pub(in crate::repl) fn busy(&self) -> Option<Duration> {
        self.running.last().map(|own| own.since.elapsed())
    }

    /// One more, and its number.
    pub(in crate::repl) fn begin(&mut self, command: String) -> u64 {
        self.count += 1;
        self.running.push(Own {
            number: self.count,
            command,
            since: Instant::now(),
            call: None,
            stopped: false,
        });
        self.count
    }

    /// Learns which call a command is; gives the call back if it is to end.
    pub(in crate::repl) fn note(&mut self, call: &CallId, arguments: &Value) -> Option<CallId> {
        let command = lone_command(arguments)?;
        let mut own = self.running.iter_mut();
        let own = own.find(|own| own.call.is_none() && own.command == command)?;
        own.call = Some(call.clone());
        own.stopped.then(|| call.clone())
    }

    /// The newest command is to end; its call, if it is known by now. None if there is nothing left to stop.
    pub(in crate::repl) fn stop(&mut self) -> Option<Option<CallId>> {
        let own = self.running.iter_mut().rev().find(|own| !own.stopped)?;
        own.stopped = true;
        Some(own.call.clone())
    }

    /// Takes a question about a command that was typed here, which nobody needs to allow again.
    pub(in crate::repl) fn takes(&mut self, question: &Question) -> bool {
        let own = self.is_own(question);
        if own {
            self.answered.push(question.approval.clone());
        }
        own
    }

    /// Whether an event tells nothing that the person has not typed.
    pub(in crate::repl) fn hides(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::ApprovalAsked { approval, .. }
            | EventKind::ApprovalAnswered { approval, .. } => self.answered.contains(approval),
            _ => false,
        }
    }

    fn has(&self, call: &CallId) -> bool {
        self.running
            .iter()
            .any(|own| own.call.as_ref() == Some(call))
    }

    fn is_own(&self, question: &Question) -> bool {
        question.tool == "execute"
            && lone_command(&question.arguments)
                .is_some_and(|command| self.running.iter().any(|own| own.command == command))
    }

    /// A command is over; what it printed is shown by its events, in every terminal alike.
    /// Whether it was told to end from here.
    pub(in crate::repl) fn over(&mut self, number: u64) -> bool {
        let ended = self.running.extract_if(.., |own| own.number == number);
        ended.last().is_some_and(|own| own.stopped)
    }
}

/// Runs one, of which the model is told with the next words to it.
pub(in crate::repl) async fn execute(
    link: &Link,
    session: &SessionId,
    command: &str,
) -> Result<Map<String, Value>, Failure> {
    let arguments = json!({"command": command});
    link.call_once(async |client| {
        let (session, arguments) = (session.clone(), Some(arguments.clone()));
        let (name, tell) = ("execute".into(), Some(true));
        ToolRpcClient::run(client, session, name, arguments, None, None, tell).await
    })
    .await
}

/// The command of a call that has no other argument.
fn lone_command(arguments: &Value) -> Option<&str> {
    let alone = arguments.as_object().is_some_and(|all| all.len() == 1);
    let command = arguments.get("command").and_then(Value::as_str);
    command.filter(|_| alone)
}

impl Talk<'_> {
    pub(super) fn run_shell(&mut self, command: String) {
        let number = self.shell.begin(command.clone());
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::shell(link, session, number, command));
    }

    /// A call that was made by hand begins: maybe one of ours.
    pub(super) fn note_own(&mut self, call: &CallId, arguments: &Value) {
        if let Some(call) = self.shell.note(call, arguments) {
            self.end_call(call);
        }
    }

    /// What goes along with the next words to the model, whoever ran it.
    pub(super) fn note_untold(&mut self, event: &Event) {
        self.untold.extend(self.telling.note(event, event.at));
        match &event.kind {
            EventKind::TurnStarted { .. }
            | EventKind::Steered { .. }
            | EventKind::Cleared
            | EventKind::Replaced { .. } => self.untold.clear(),
            _ => {}
        }
    }

    /// Ends the newest command that runs and was typed elsewhere; whether there was one.
    pub(super) fn stop_told(&mut self) -> bool {
        let Some(call) = self.telling.stop(&self.shell) else {
            return false;
        };
        self.hint = Some("stopping the command".into());
        self.end_call(call);
        true
    }

    /// Ends the newest command that runs; whether there was one.
    pub(super) fn stop_shell(&mut self) -> bool {
        let Some(call) = self.shell.stop() else {
            return false;
        };
        self.hint = Some("stopping the command".into());
        // One whose call is not known yet ends as soon as it is.
        if let Some(call) = call {
            self.end_call(call);
        }
        true
    }

    fn end_call(&mut self, call: CallId) {
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::cancel_call(link, session, call));
    }

    pub(super) fn told(&mut self, number: u64, result: Result<Map<String, Value>, Failure>) {
        self.shell.over(number);
        if let Err(failure) = result {
            self.line(&super::complaint(self.paint, &failure));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(arguments: Value) -> Question {
        Question {
            approval: "s.a1".into(),
            call: "c1".into(),
            tool: "execute".into(),
            arguments,
            why: String::new(),
            patterns: Vec::new(),
            of_program: false,
            change: None,
        }
    }

    #[test]
    fn only_the_very_command_that_was_typed_is_ones_own() {
        let mut shell = Shell::default();
        shell.begin("ls".into());
        assert!(shell.is_own(&question(json!({"command": "ls"}))));
        assert!(!shell.is_own(&question(json!({"command": "ls; rm x"}))));
        assert!(!shell.is_own(&question(json!({"command": "ls", "cwd": "/"}))));
    }

    #[test]
    fn a_command_that_is_stopped_before_its_call_is_known_ends_once_it_is() {
        let mut shell = Shell::default();
        shell.begin("make".into());
        shell.begin("make".into());
        let arguments = json!({"command": "make"});
        assert_eq!(shell.note(&"c1".into(), &arguments), None);
        assert_eq!(shell.stop(), Some(None), "the newest has no call yet");
        assert_eq!(shell.note(&"c2".into(), &arguments), Some("c2".into()));
        assert_eq!(shell.stop(), Some(Some("c1".into())));
        assert_eq!(shell.stop(), None);
    }
}
