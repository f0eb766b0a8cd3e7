//! The REPL in a pipe or on a terminal that cannot be drawn on: a line in, its turn, the next line. Must never take a
//! piped line as the answer to a question.

mod lines;

use super::line::{Line, own_help, with_own};
use super::talk::shell::{self, Shell};
use super::{Leave, complaint, past};
use crate::approval::{self, Open, Question, Reply};
use crate::error::{Exit, Failure};
use crate::follow::Follow;
use crate::link::Link;
use crate::paint::{Paint, tame};
use crate::render::{Prompts, Renderer, first_line};
use crate::{out, select};
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use lines::Lines;
use protocol::command::CommandRpcClient;
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, CallId, QueuedId, SessionId, TurnId};
use protocol::session::{QueueRpcClient, Session};
use protocol::tool::ToolRpcClient;
use protocol::turn::TurnRpcClient;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::io::IsTerminal;
use std::rc::Rc;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Runs one session until the input ends. `bad` is how the last turn or command ended that did not end well.
pub(super) async fn run(
    link: Rc<Link>,
    session: &Session,
    opening: Option<String>,
    bad: &mut Option<Exit>,
) -> Result<Leave, Failure> {
    let paint = Paint::of(&std::io::stdout());
    let past = past::read(&link, &session.id, paint, past::On::Plain(out::columns())).await?;
    let interactive = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    if interactive {
        out::raw(&past.text)?;
        if !past.session.untold.is_empty() {
            let commands = past.session.untold.join("`, `");
            out::note(&tame(&format!(
                "the output of `{commands}` goes along with your next words"
            )))?;
        }
    }
    let mut plain = Plain {
        follow: Follow::with_view(Rc::clone(&link), session.id.clone(), past.view),
        link,
        session: session.id.clone(),
        paint,
        renderer: past.renderer,
        running: past.turn,
        questions: past.questions.into_iter().collect(),
        lines: Lines::start(),
        interrupts: signal(SignalKind::interrupt())?,
        cancelled: None,
        interactive,
        prompted: false,
        own: HashSet::new(),
        queued: HashSet::new(),
        waiting: Vec::new(),
        unsent: Vec::new(),
        runs_own: false,
        bad: *bad,
        shell: Shell::default(),
        commands: FuturesUnordered::new(),
    };
    if let Some(text) = opening {
        plain.start(&text).await?;
    }
    let left = plain.run().await;
    *bad = plain.bad;
    left
}

/// What a turn's end means for whoever runs this program; nothing where it ended well.
fn exit_of(status: TurnStatus) -> Option<Exit> {
    match status {
        TurnStatus::Completed => None,
        TurnStatus::Cancelled => Some(Exit::Cancelled),
        TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Refused
        | TurnStatus::MaxRounds => Some(Exit::Failed),
    }
}

struct Plain {
    link: Rc<Link>,
    follow: Follow,
    session: SessionId,
    paint: Paint,
    renderer: Renderer,
    running: Option<TurnId>,
    questions: Open,
    lines: Lines,
    interrupts: Signal,
    /// How many prompts waited behind the running turn when it was cancelled from here.
    cancelled: Option<usize>,
    interactive: bool,
    /// Whether a prompt stands at the end of the output.
    prompted: bool,
    /// Tokens of turns whose prompts were typed here.
    own: HashSet<String>,
    /// Whether the turn that runs is one of these.
    runs_own: bool,
    /// Those that waited before they became turns.
    queued: HashSet<String>,
    /// Prompts typed here that wait behind the running turn.
    waiting: Vec<(QueuedId, String)>,
    /// Those that are to be taken back.
    unsent: Vec<(QueuedId, String)>,
    /// How the last turn or command that was typed here ended, of those that did not end well.
    bad: Option<Exit>,
    /// Commands typed here, and which of their questions are answered by that.
    shell: Shell,
    commands: FuturesUnordered<LocalBoxFuture<'static, Ran>>,
}

/// A command's number and what came of it.
type Ran = (u64, Result<Map<String, Value>, Failure>);

impl Plain {
    async fn run(&mut self) -> Result<Leave, Failure> {
        loop {
            if let Some(question) = self.questions.first() {
                let approval = question.approval.clone();
                self.ask(approval).await?;
                continue;
            }
            self.take_back().await?;
            let idle = self.running.is_none() && self.commands.is_empty();
            if idle {
                self.prompt("> ")?;
            }
            tokio::select! {
                // What is shown of a command comes before its result, and a next line after both.
                biased;
                _ = self.interrupts.recv() => {
                    if !self.interrupt().await? {
                        self.end_prompt()?;
                        return Ok(Leave::Detach);
                    }
                }
                event = self.follow.next() => self.take(&event?).await?,
                Some(ran) = self.commands.next() => self.ran(ran)?,
                // What a person types meanwhile is not left to the terminal, which throws it away at a Ctrl-C.
                line = self.lines.next(), if idle || self.interactive => {
                    let Some(line) = line else {
                        self.end_prompt()?;
                        return self.end();
                    };
                    self.prompted = false;
                    if let Some(left) = self.obey(&line).await? {
                        return Ok(left);
                    }
                }
            }
        }
    }

    /// Ends the newest command, or the turn, or what waits for the next one; whether there was anything left to end.
    async fn interrupt(&mut self) -> Result<bool, Failure> {
        match self.shell.stop() {
            Some(Some(call)) => self.end_call(call).await?,
            // It ends as soon as its call is known.
            Some(None) => {}
            None if self.running.is_some() && self.cancelled.is_none() => {
                self.cancelled = Some(self.waiting.len());
                self.cancel().await?;
            }
            None if self.running.is_none() && !self.waiting.is_empty() => {
                self.unsent.append(&mut self.waiting);
            }
            None => return Ok(false),
        }
        Ok(true)
    }

    /// Takes prompts out of the queue, and says so: there is no line to put them into.
    async fn take_back(&mut self) -> Result<(), Failure> {
        for (queued, text) in std::mem::take(&mut self.unsent) {
            let session = &self.session;
            let removed = self.link.call(async |client| {
                QueueRpcClient::queue_remove(client, session.clone(), queued.clone()).await
            });
            match removed.await {
                Ok(_) => {
                    self.end_prompt()?;
                    out::line(&tame(&format!("not sent: {text}")))?;
                }
                // It is a turn by now, or somebody else took it.
                Err(failure) if failure.kind == Some(ErrorKind::NotFound) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Whoever piped lines in is told how they ended; who typed them has seen it.
    fn end(&self) -> Result<Leave, Failure> {
        match self.bad.filter(|_| !self.interactive) {
            Some(exit) => Err(Failure::shown(exit)),
            None => Ok(Leave::Detach),
        }
    }

    /// Stops the turn that runs here.
    async fn cancel(&self) -> Result<(), Failure> {
        let (session, turn) = (&self.session, &self.running);
        self.link
            .call(async |client| TurnRpcClient::cancel(client, session.clone(), turn.clone()).await)
            .await?;
        Ok(())
    }

    fn show(&mut self, event: &Event) -> Result<(), Failure> {
        if self.shell.hides(event) {
            return Ok(());
        }
        self.questions.settle(event);
        if let Some(question) = Question::of(event) {
            self.questions.push(self.renderer.knows(question));
        }
        match &event.kind {
            EventKind::TurnStarted { token, .. } => {
                let own = token.as_ref().is_some_and(|token| self.own.remove(token));
                let waited = token
                    .as_ref()
                    .is_some_and(|token| self.queued.remove(token));
                self.renderer.set_prompts(match (own, waited) {
                    (true, false) => Prompts::Hidden,
                    (true, true) => Prompts::Own,
                    (false, _) => Prompts::Shown,
                });
                self.running = event.turn.clone();
                self.runs_own = own;
                self.cancelled = None;
            }
            EventKind::Queued {
                queued,
                text,
                token: Some(token),
                ..
            } if self.own.contains(token) => {
                self.queued.insert(token.clone());
                self.waiting.push((queued.clone(), text.clone()));
            }
            EventKind::Dequeued { queued } => self.waiting.retain(|(id, _)| id != queued),
            EventKind::TurnEnded { status, .. } if self.running == event.turn => {
                self.running = None;
                if std::mem::take(&mut self.runs_own) {
                    self.bad = exit_of(*status).or(self.bad);
                }
                // What is typed after the cancel goes out next.
                if let Some(waited) = self.cancelled
                    && *status == TurnStatus::Cancelled
                {
                    let waited = waited.min(self.waiting.len());
                    self.unsent.extend(self.waiting.drain(..waited));
                }
            }
            _ => {}
        }
        if let Some(columns) = out::columns() {
            self.renderer.set_room(columns);
        }
        let chunks = self.renderer.event(event);
        if !chunks.is_empty() {
            self.end_prompt()?;
        }
        for chunk in chunks {
            out::raw(&chunk.text)?;
        }
        self.tell_held(event)
    }

    /// Says what waits for a person from here on: a turn that failed, or was cancelled elsewhere, keeps it back.
    fn tell_held(&self, event: &Event) -> Result<(), Failure> {
        match &event.kind {
            EventKind::TurnEnded { status, .. }
                if !matches!(status, TurnStatus::Completed | TurnStatus::MaxRounds) =>
            {
                let held = self.waiting.iter();
                held.map(|(_, text)| format!("held until your next prompt: {}", first_line(text)))
                    .try_for_each(|line| out::line(&line))
            }
            _ => Ok(()),
        }
    }

    /// Shows a prompt, unless one stands there or nobody would see it.
    fn prompt(&mut self, text: &str) -> Result<(), Failure> {
        if self.interactive && !self.prompted {
            self.prompted = true;
            out::raw(text)?;
        }
        Ok(())
    }

    /// Ends the line that a prompt stands on.
    fn end_prompt(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.prompted) {
            true => out::raw("\n"),
            false => Ok(()),
        }
    }

    /// Puts a question, or denies where nobody can be asked. Somebody else may answer first.
    async fn ask(&mut self, id: ApprovalId) -> Result<(), Failure> {
        if !self.interactive {
            self.questions.take_first();
            let reply = Reply::no("there is no terminal to ask on");
            return approval::answer(&self.link, &id, &reply).await;
        }
        let program = self.questions.first().is_some_and(|first| first.of_program);
        let prompt = match program {
            true => "allow? y/p/s/a/n/r > ",
            false => "allow? y/s/a/n/r > ",
        };
        let open = |questions: &Open| questions.first().is_some_and(|first| first.approval == id);
        while open(&self.questions) {
            self.prompt(prompt)?;
            tokio::select! {
                event = self.follow.next() => self.take(&event?).await?,
                line = self.lines.next() => {
                    self.prompted = false;
                    let reply = match &line {
                        None => Some(Reply::no("not answered")),
                        Some(line) => Reply::parse(line),
                    };
                    if let Some(reply) = reply {
                        match approval::answer(&self.link, &id, &reply).await {
                            // It goes on waiting, for a pattern that does.
                            Err(failure) if approval::is_refused(&reply, &failure) => {
                                out::note(&complaint(self.paint, &failure))?;
                            }
                            other => {
                                other?;
                                self.questions.take_first();
                            }
                        }
                    }
                }
                _ = self.interrupts.recv() => {
                    self.cancelled = self.cancelled.or(Some(self.waiting.len()));
                    self.cancel().await?;
                }
            }
        }
        Ok(())
    }

    async fn obey(&mut self, typed: &str) -> Result<Option<Leave>, Failure> {
        match Line::parse(typed) {
            Line::Blank => {}
            Line::Leave => return self.end().map(Some),
            Line::Attach(Some(word)) => match select::session(&self.link, &word).await {
                Ok(other) => return Ok(Some(Leave::Switch(Box::new(other)))),
                Err(failure) => self.refuse(&failure)?,
            },
            Line::Attach(None) => {
                out::note("/attach needs a session's id here: `dwell ls` lists them")?
            }
            Line::Edit(_) => out::note("an editor needs a terminal that can be drawn on")?,
            Line::Shell(command) => self.run_shell(command),
            Line::Command(line) => self.command(&line).await?,
            Line::Text(text) => {
                if let Err(failure) = self.start(&text).await {
                    self.refuse(&failure)?;
                }
            }
        }
        Ok(None)
    }

    /// A line came to nothing.
    fn refuse(&mut self, failure: &Failure) -> Result<(), Failure> {
        self.bad = Some(failure.exit);
        out::note(&complaint(self.paint, failure))
    }

    async fn start(&mut self, text: &str) -> Result<(), Failure> {
        let token = crate::open::token();
        self.own.insert(token.clone());
        let text = text.to_owned();
        let session = self.session.clone();
        let started = self
            .link
            .call(async |client| {
                let (session, text, token) = (session.clone(), text.clone(), Some(token.clone()));
                TurnRpcClient::start(client, session, text, None, token, Some(true), None).await
            })
            .await?;
        // No line is read before it ends, even if its first event is not here yet.
        self.running = self.running.take().or(started.turn);
        Ok(())
    }

    /// Begins a command of the person's own.
    fn run_shell(&mut self, command: String) {
        let number = self.shell.begin(command.clone());
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.commands.push(Box::pin(async move {
            (number, shell::execute(&link, &session, &command).await)
        }));
    }

    /// Such a command is over.
    fn ran(&mut self, (number, result): Ran) -> Result<(), Failure> {
        let stopped = self.shell.over(number);
        match result {
            Ok(_) if stopped => self.bad = Some(Exit::Cancelled),
            Ok(result) if !crate::render::went_well(&result) => self.bad = Some(Exit::Failed),
            Ok(_) => {}
            Err(failure) => {
                self.end_prompt()?;
                self.refuse(&failure)?;
            }
        }
        Ok(())
    }

    /// Takes an event: the question about a person's own command is answered by its having been typed.
    async fn take(&mut self, event: &Event) -> Result<(), Failure> {
        if let EventKind::Doing {
            call,
            arguments,
            via,
            ..
        } = &event.kind
            && via.as_deref() == Some("run")
            && let Some(call) = self.shell.note(call, arguments)
        {
            self.end_call(call).await?;
        }
        if let Some(question) = Question::of(event)
            && self.shell.takes(&question)
        {
            return approval::answer(&self.link, &question.approval, &Reply::yes()).await;
        }
        self.show(event)
    }

    async fn end_call(&self, call: CallId) -> Result<(), Failure> {
        let session = self.session.clone();
        let ended = self.link.call(async |client| {
            ToolRpcClient::cancel(client, session.clone(), call.clone()).await
        });
        ended.await.map(drop)
    }

    async fn command(&mut self, line: &str) -> Result<(), Failure> {
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        let mut running = std::pin::pin!(link.call_once(async |client| {
            CommandRpcClient::run(client, session.clone(), line.to_string()).await
        }));
        // What it does may have to be allowed first.
        let ran = loop {
            tokio::select! {
                ran = &mut running => break ran,
                event = self.follow.next() => self.show(&event?)?,
            }
            if let Some(question) = self.questions.first() {
                let approval = question.approval.clone();
                self.ask(approval).await?;
            }
        };
        let result = match ran {
            Ok(result) => result,
            Err(failure) => return self.refuse(&failure),
        };
        if !result.output.trim().is_empty() {
            out::line(tame(&result.output).trim_end())?;
        }
        if result.ran && line == "/help" {
            out::line(&own_help(&result.output))?;
        }
        match result.error {
            Some(error) => {
                self.bad = Some(Exit::Failed);
                out::note(&with_own(&tame(&error)))
            }
            None => Ok(()),
        }
    }
}
