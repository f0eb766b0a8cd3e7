//! The REPL's loop on a terminal that can be drawn on: events and keys in, text and calls out. Must never wait for the
//! daemon or the keyboard alone.

mod job;

use super::input::{Heard, Input, Next, Typed, Unfinished, Want};
use super::line::{Line, own_help};
use super::screen::Screen;
use super::{Leave, complaint, is_final, past};
use crate::approval::{Open, Question, Reply};
use crate::error::Failure;
use crate::follow::Follow;
use crate::link::Link;
use crate::paint::{Paint, Part};
use crate::render::{Prompts, Renderer, duration};
use crate::select;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use job::{Done, Job};
use protocol::command::{CommandResult, Completions};
use protocol::event::{Event, EventKind};
use protocol::id::{SessionId, TurnId};
use protocol::session::Session;
use std::collections::HashSet;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

/// How often a status changes.
const TICK: Duration = Duration::from_millis(120);

/// How long nothing is shown before the status says that something runs.
const QUIET: Duration = Duration::from_millis(300);

/// Within this time a second Ctrl-C on an idle session leaves it.
const TWICE: Duration = Duration::from_secs(2);

const FRAMES: [&str; 8] = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠟"];

/// Runs one session until the person leaves it.
pub(super) async fn run(
    link: Rc<Link>,
    session: &Session,
    input: &mut Input,
) -> Result<Leave, Failure> {
    let paint = Paint::of(&std::io::stdout());
    let past = past::read(&link, &session.id, paint).await?;
    let mut screen = Screen::new(input.above());
    screen.write(&past.text)?;
    let mut talk = Talk {
        follow: Follow::with_view(Rc::clone(&link), session.id.clone(), past.view),
        link,
        session: session.id.clone(),
        paint,
        renderer: past.renderer,
        screen,
        input,
        running: past.turn.map(Running::new),
        questions: past.questions.into_iter().collect(),
        own: HashSet::new(),
        jobs: FuturesUnordered::new(),
        sending: 0,
        expected: 0,
        interrupted: None,
        shown: Instant::now(),
        stopping: false,
    };
    let left = talk.talk().await;
    talk.quiet().await?;
    left
}

/// The turn that runs.
struct Running {
    turn: TurnId,
    since: Instant,
    cancelled: bool,
}

impl Running {
    fn new(turn: TurnId) -> Self {
        Self {
            turn,
            since: Instant::now(),
            cancelled: false,
        }
    }
}

struct Talk<'a> {
    link: Rc<Link>,
    follow: Follow,
    session: SessionId,
    paint: Paint,
    renderer: Renderer,
    screen: Screen,
    input: &'a mut Input,
    running: Option<Running>,
    /// Questions that wait; the prompt is for the first.
    questions: Open,
    /// Tokens of turns whose prompts stand on this screen already.
    own: HashSet<String>,
    jobs: FuturesUnordered<Job>,
    /// Prompts on their way to the daemon: what comes of them is about to be shown.
    sending: u32,
    /// The event that records the last of them.
    expected: u64,
    /// When Ctrl-C was pressed with nothing to cancel.
    interrupted: Option<Instant>,
    /// When something was last shown.
    shown: Instant,
    /// Whether the keyboard was told to come back.
    stopping: bool,
}

/// What the loop saw.
enum Saw {
    Event(Result<Event, Failure>),
    Input(Next),
    Job(Done),
    Tick,
    Ended,
}

impl Talk<'_> {
    async fn talk(&mut self) -> Result<Leave, Failure> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hangup = signal(SignalKind::hangup())?;
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.direct()?;
            let saw = tokio::select! {
                event = self.follow.next() => Saw::Event(event),
                next = self.input.next() => Saw::Input(next),
                Some(done) = self.jobs.next() => Saw::Job(done),
                _ = tick.tick(), if self.running.is_some() => Saw::Tick,
                () = ended(&mut terminate, &mut hangup) => Saw::Ended,
            };
            match saw {
                Saw::Event(event) => self.show(&event?)?,
                Saw::Input(Next::Complete(unfinished)) => self.complete(unfinished).await,
                Saw::Input(Next::Heard(heard)) => {
                    if let Some(left) = self.hear(heard).await? {
                        return Ok(left);
                    }
                }
                Saw::Job(done) => self.finish(done)?,
                Saw::Tick => self.tell_status()?,
                Saw::Ended => return Ok(Leave::Detach),
            }
        }
    }

    /// Has the keyboard do what fits: a line is edited when a person is to say something, else keys are watched so that
    /// text can flow.
    fn direct(&mut self) -> Result<(), Failure> {
        let asking = self.questions.first().is_some();
        self.input.set_asking(asking);
        let busy =
            self.running.is_some() || self.sending > 0 || self.expected > self.follow.cursor();
        let watch = busy && !asking;
        match self.input.doing() {
            None if watch => {
                self.screen.end_typing()?;
                self.input.begin(Want::Watch);
            }
            None => self.edit(String::new())?,
            Some(Want::Edit(_)) if watch && !self.input.is_typed() => self.stop(),
            Some(Want::Watch) if !watch => self.stop(),
            Some(_) => {}
        }
        Ok(())
    }

    fn edit(&mut self, text: String) -> Result<(), Failure> {
        self.screen.begin_typing()?;
        self.input.begin(Want::Edit(text));
        Ok(())
    }

    fn stop(&mut self) {
        if !std::mem::replace(&mut self.stopping, true) {
            self.input.stop();
        }
    }

    /// Shows an event, and notes what it changes here.
    fn show(&mut self, event: &Event) -> Result<(), Failure> {
        self.note(event);
        self.shown = Instant::now();
        for chunk in self.renderer.event(event) {
            self.screen.write(&chunk.text)?;
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        self.questions.settle(event);
        if let Some(question) = Question::of(event) {
            self.questions.push(question);
        }
        match &event.kind {
            EventKind::TurnStarted { token, .. } => {
                self.running = event.turn.clone().map(Running::new);
                let own = token.as_ref().is_some_and(|token| self.own.remove(token));
                self.renderer.set_prompts(match own {
                    true => Prompts::Hidden,
                    false => Prompts::Shown,
                });
            }
            EventKind::TurnEnded { .. } if self.runs(event.turn.as_ref()) => self.running = None,
            _ => {}
        }
    }

    fn runs(&self, turn: Option<&TurnId>) -> bool {
        self.running.as_ref().map(|running| &running.turn) == turn
    }

    async fn hear(&mut self, heard: Heard) -> Result<Option<Leave>, Failure> {
        self.stopping = false;
        match heard {
            Heard::Line(line) => {
                self.screen.end_typing()?;
                return self.obey(&line).await;
            }
            Heard::Began(text) => self.edit(text)?,
            Heard::Stopped(Typed::Something) => self.edit(String::new())?,
            Heard::Stopped(Typed::Nothing) => {
                if self.screen.is_typing() {
                    self.screen.erase_prompt()?;
                }
                self.screen.end_typing()?;
            }
            Heard::Interrupt(typed) => {
                self.screen.end_typing()?;
                return self.interrupt(typed);
            }
            Heard::Detach => {
                self.screen.end_typing()?;
                return Ok(Some(Leave::Detach));
            }
            Heard::Broken(why) => {
                return Err(Failure::new(format!("the terminal does not work: {why}"))
                    .hint("with TERM=dumb nothing is drawn"));
            }
        }
        Ok(None)
    }

    async fn obey(&mut self, typed: &str) -> Result<Option<Leave>, Failure> {
        self.interrupted = None;
        if let (Some(question), Some(reply)) = (self.questions.first(), Reply::parse(typed)) {
            let approval = question.approval.clone();
            // Gone from here at once, so that the next line is not for it; the event tells everybody.
            self.questions.take_first();
            self.jobs
                .push(job::answer(Rc::clone(&self.link), approval, reply));
            return Ok(None);
        }
        match Line::parse(typed) {
            Line::Blank => {}
            Line::Leave => return Ok(Some(Leave::Detach)),
            Line::Attach(Some(word)) => match select::session(&self.link, &word).await {
                Ok(other) => return Ok(Some(Leave::Switch(Box::new(other)))),
                Err(failure) => self.screen.line(&complaint(self.paint, &failure))?,
            },
            Line::Attach(None) => {
                let hint = "/attach SESSION; /sessions lists them";
                self.screen.line(&self.paint.dress(Part::Quiet, hint))?;
            }
            Line::Edit(text) => {
                if let Some(text) = self.compose(text).await? {
                    self.start(text);
                }
            }
            Line::Command(line) => {
                let (link, session) = (Rc::clone(&self.link), self.session.clone());
                self.jobs.push(job::command(link, session, line));
            }
            Line::Text(text) => self.start(text),
        }
        Ok(None)
    }

    fn start(&mut self, text: String) {
        let token = crate::open::token();
        self.own.insert(token.clone());
        self.sending += 1;
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::start(link, session, text, token));
    }

    /// Has a prompt written in the person's editor.
    async fn compose(&mut self, text: String) -> Result<Option<String>, Failure> {
        match job::compose(text).await {
            Ok(text) if text.trim().is_empty() => Ok(None),
            Ok(text) => {
                for line in text.trim_end().lines() {
                    self.screen
                        .line(&self.paint.dress(Part::Prompt, &format!("> {line}")))?;
                }
                Ok(Some(text.trim_end().to_string()))
            }
            Err(failure) => {
                self.screen.line(&complaint(self.paint, &failure))?;
                Ok(None)
            }
        }
    }

    /// Ctrl-C: what was typed goes first, then the turn, then this client.
    fn interrupt(&mut self, typed: Typed) -> Result<Option<Leave>, Failure> {
        if typed == Typed::Something {
            return Ok(None);
        }
        let Some(running) = &mut self.running else {
            if self.interrupted.is_some_and(|at| at.elapsed() < TWICE) {
                return Ok(Some(Leave::Detach));
            }
            self.interrupted = Some(Instant::now());
            let hint = "Ctrl-C again, Ctrl-D or /exit detaches";
            self.screen.line(&self.paint.dress(Part::Quiet, hint))?;
            return Ok(None);
        };
        if std::mem::replace(&mut running.cancelled, true) {
            return Ok(Some(Leave::Detach));
        }
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::cancel(link, session));
        let hint = "cancelling; Ctrl-C again detaches";
        self.screen.line(&self.paint.dress(Part::Quiet, hint))?;
        Ok(None)
    }

    /// What became of a call to the daemon.
    fn finish(&mut self, done: Done) -> Result<(), Failure> {
        self.shown = Instant::now();
        match done {
            Done::Started { token, started } => {
                self.sending -= 1;
                match started {
                    Ok(started) => {
                        self.expected = started.seq;
                        if started.turn.is_none() {
                            // It begins later, when other text stands between.
                            self.own.remove(&token);
                        }
                    }
                    Err(failure) => return self.finish(Done::Failed(failure)),
                }
            }
            Done::Command { line, result } => self.tell_result(&line, &result)?,
            Done::Quietly => {}
            Done::Failed(failure) if is_final(&failure) => return Err(failure),
            Done::Failed(failure) => self.screen.line(&complaint(self.paint, &failure))?,
        }
        Ok(())
    }

    fn tell_result(&mut self, line: &str, result: &CommandResult) -> Result<(), Failure> {
        let output = crate::paint::tame(&result.output);
        if !output.trim().is_empty() {
            self.screen.line(output.trim_end())?;
        }
        if result.ran && line == "/help" {
            self.screen.line(&own_help(&output))?;
        }
        if let Some(error) = &result.error {
            self.screen
                .line(&self.paint.dress(Part::Bad, &crate::paint::tame(error)))?;
        }
        Ok(())
    }

    /// Says that something runs, and for how long, where nothing else is shown.
    fn tell_status(&mut self) -> Result<(), Failure> {
        let Some(running) = &self.running else {
            return Ok(());
        };
        if self.shown.elapsed() < QUIET {
            return Ok(());
        }
        let elapsed = running.since.elapsed();
        let frame = match self.paint {
            Paint::Colour => {
                FRAMES[(elapsed.as_millis() / TICK.as_millis()) as usize % FRAMES.len()]
            }
            Paint::Plain => "...",
        };
        // Whole tenths, so that the line does not flicker.
        let time = duration(elapsed.as_millis() as u64 / 100 * 100);
        let activity = self.renderer.activity().unwrap_or_default();
        self.screen
            .show_status(format!("{frame} {time}  {activity}").trim_end())?;
        Ok(())
    }

    async fn complete(&self, unfinished: Unfinished) {
        let found = job::complete(&self.link, &self.session, &unfinished.line).await;
        let found = found.unwrap_or_else(|_| Completions {
            start: unfinished.line.len(),
            candidates: Vec::new(),
        });
        // The editor has given up waiting if this fails.
        let _ = unfinished.answer.try_send(found);
    }

    /// Has the keyboard come back, so that the terminal is as it was.
    async fn quiet(&mut self) -> Result<(), Failure> {
        if self.input.doing().is_some() {
            self.input.stop();
            let heard = tokio::time::timeout(Duration::from_secs(1), self.input.heard()).await;
            if matches!(heard, Ok(Heard::Stopped(_))) && self.screen.is_typing() {
                self.screen.erase_prompt()?;
            }
            let _ = crossterm::terminal::disable_raw_mode();
        }
        self.screen.leave()?;
        Ok(())
    }
}

async fn ended(terminate: &mut Signal, hangup: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
