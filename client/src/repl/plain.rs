//! The REPL in a pipe or on a terminal that cannot be drawn on: a line in, its turn, the next line. Must never take a
//! piped line as the answer to a question.

use super::line::{Line, own_help, with_own};
use super::talk::shell::Shell;
use super::{Leave, complaint, past};
use crate::approval::{self, Open, Question, Reply};
use crate::error::{Exit, Failure};
use crate::follow::Follow;
use crate::link::Link;
use crate::paint::{Paint, tame};
use crate::render::{Prompts, Renderer};
use crate::{out, select};
use protocol::command::CommandRpcClient;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, CallId, SessionId, TurnId};
use protocol::session::Session;
use protocol::tool::ToolRpcClient;
use protocol::turn::TurnRpcClient;
use serde_json::json;
use std::collections::HashSet;
use std::io::{BufRead, IsTerminal};
use std::rc::Rc;
use std::sync::mpsc as blocking;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

/// Runs one session until the input ends.
pub(super) async fn run(
    link: Rc<Link>,
    session: &Session,
    opening: Option<String>,
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
        cancelled: false,
        interactive,
        prompted: false,
        own: HashSet::new(),
        runs_own: false,
        bad: None,
        shell: Shell::default(),
    };
    if let Some(text) = opening {
        plain.start(&text).await?;
    }
    plain.run().await
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
    cancelled: bool,
    interactive: bool,
    /// Whether a prompt stands at the end of the output.
    prompted: bool,
    /// Tokens of turns whose prompts were typed here.
    own: HashSet<String>,
    /// Whether the turn that runs is one of these.
    runs_own: bool,
    /// How the first of them ended that did not end well.
    bad: Option<Exit>,
    /// Commands typed here, what they printed, and which of their questions are answered by that.
    shell: Shell,
}

/// Lines of stdin, one for each request, so that none is read ahead.
struct Lines {
    wanted: blocking::SyncSender<()>,
    lines: mpsc::Receiver<Option<String>>,
    waiting: bool,
}

impl Lines {
    fn start() -> Self {
        let (wanted, requests) = blocking::sync_channel::<()>(1);
        let (sender, lines) = mpsc::channel(1);
        // Ends with the process, or when nobody asks any more.
        std::thread::spawn(move || {
            while requests.recv().is_ok() {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                let line = read.ok().filter(|read| *read > 0).map(|_| line);
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            wanted,
            lines,
            waiting: false,
        }
    }

    /// The next line; none at the end. Dropping the future loses nothing.
    async fn next(&mut self) -> Option<String> {
        if !self.waiting {
            self.wanted.try_send(()).ok()?;
            self.waiting = true;
        }
        let line = self.lines.recv().await.flatten();
        self.waiting = false;
        line
    }
}

impl Plain {
    async fn run(&mut self) -> Result<Leave, Failure> {
        loop {
            if let Some(question) = self.questions.first() {
                let approval = question.approval.clone();
                self.ask(approval).await?;
                continue;
            }
            let idle = self.running.is_none();
            if idle {
                self.prompt("> ")?;
            }
            tokio::select! {
                event = self.follow.next() => self.show(&event?)?,
                line = self.lines.next(), if idle => {
                    let Some(line) = line else {
                        self.end_prompt()?;
                        return self.end();
                    };
                    self.prompted = false;
                    if let Some(left) = self.obey(&line).await? {
                        return Ok(left);
                    }
                }
                _ = self.interrupts.recv() => {
                    if idle || std::mem::replace(&mut self.cancelled, true) {
                        self.end_prompt()?;
                        return Ok(Leave::Detach);
                    }
                    self.cancel().await?;
                }
            }
        }
    }

    /// Whoever piped lines in is told how their turns ended; who typed them has seen it.
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
                self.renderer.set_prompts(match own {
                    true => Prompts::Hidden,
                    false => Prompts::Shown,
                });
                self.running = event.turn.clone();
                self.runs_own = own;
                self.cancelled = false;
            }
            EventKind::TurnEnded { status, .. } if self.running == event.turn => {
                self.running = None;
                if std::mem::take(&mut self.runs_own) {
                    self.bad = self.bad.or(exit_of(*status));
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
        Ok(())
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
                event = self.follow.next() => self.show(&event?)?,
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
                    self.cancel().await?;
                }
            }
        }
        Ok(())
    }

    async fn obey(&mut self, typed: &str) -> Result<Option<Leave>, Failure> {
        match Line::parse(typed) {
            Line::Blank => {}
            Line::Leave => return Ok(Some(Leave::Detach)),
            Line::Attach(Some(word)) => match select::session(&self.link, &word).await {
                Ok(other) => return Ok(Some(Leave::Switch(Box::new(other)))),
                Err(failure) => out::note(&complaint(self.paint, &failure))?,
            },
            Line::Attach(None) => {
                out::note("/attach needs a session's id here: `dwell ls` lists them")?
            }
            Line::Edit(_) => out::note("an editor needs a terminal that can be drawn on")?,
            Line::Shell(command) => {
                if let Err(failure) = self.run_shell(command).await {
                    out::note(&complaint(self.paint, &failure))?;
                }
            }
            Line::Command(line) => self.command(&line).await?,
            Line::Text(text) => {
                if let Err(failure) = self.start(&text).await {
                    out::note(&complaint(self.paint, &failure))?;
                }
            }
        }
        Ok(None)
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

    /// Runs a command of the person's own to its end; an interrupt ends it.
    async fn run_shell(&mut self, command: String) -> Result<(), Failure> {
        let number = self.shell.begin(command.clone());
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        let mut running = std::pin::pin!(link.call_once(async |client| {
            let (session, arguments) = (session.clone(), Some(json!({"command": command})));
            let (name, tell) = ("execute".into(), Some(true));
            ToolRpcClient::run(client, session, name, arguments, None, None, tell).await
        }));
        let result = loop {
            tokio::select! {
                result = &mut running => break result,
                event = self.follow.next() => self.show_shell(&event?).await?,
                _ = self.interrupts.recv() => {
                    if let Some(Some(call)) = self.shell.stop() {
                        self.end_call(call).await?;
                    }
                }
            }
        };
        match self.shell.over(number, result).transpose()? {
            Some(shown) if !shown.is_empty() => out::line(&shown),
            Some(_) | None => Ok(()),
        }
    }

    /// An event while such a command runs: its own question is answered by its having been typed.
    async fn show_shell(&mut self, event: &Event) -> Result<(), Failure> {
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
        let session = self.session.clone();
        let ran = self
            .link
            .call_once(async |client| {
                CommandRpcClient::run(client, session.clone(), line.to_string()).await
            })
            .await;
        let result = match ran {
            Ok(result) => result,
            Err(failure) => return out::note(&complaint(self.paint, &failure)),
        };
        if !result.output.trim().is_empty() {
            out::line(tame(&result.output).trim_end())?;
        }
        if result.ran && line == "/help" {
            out::line(&own_help(&result.output))?;
        }
        match result.error {
            Some(error) => out::note(&with_own(&tame(&error))),
            None => Ok(()),
        }
    }
}
