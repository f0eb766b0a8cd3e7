//! The REPL's loop on a terminal that can be drawn on: events and keys in, rows and calls out. Must never wait for the
//! daemon or the keyboard alone, nor let one hold up the other.

mod answer;
mod image;
mod job;
pub(super) mod notice;
mod press;
mod program;
pub(super) mod shell;
mod tell;
mod unfold;

use super::console::{Console, Sign};
use super::panel::{Busy, FRAME, HELD, Status, TOLD, View, Waiting};
use super::{Leave, complaint, past};
use crate::approval::{Open, Question};
use crate::error::Failure;
use crate::follow::{Follow, News};
use crate::link::Link;
use crate::paint::{Paint, Part};
use crate::render::{Prompts, Renderer, first_line};
use crossterm::event::Event as Pressed;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt};
use job::{Done, Job};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, QueuedId, SessionId, TurnId};
use protocol::session::Session;
use shell::{Shell, Told};
use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::time::{MissedTickBehavior, interval};

/// The least time between two frames that no key asked for.
const PAUSE: Duration = Duration::from_millis(30);

/// How long leaving waits for what was asked before.
const PARTING: Duration = Duration::from_millis(300);

/// How many events are taken at once before the screen is looked after, and how long that may take: a key waits for it.
const BATCH: usize = 512;
const BATCH_TIME: Duration = Duration::from_millis(4);

/// Runs one session until the person leaves it.
pub(super) async fn run(
    link: Rc<Link>,
    session: &Session,
    console: &mut Console,
    opening: Option<String>,
) -> Result<Leave, Failure> {
    let paint = Paint::of(&std::io::stdout());
    let (columns, _) = console.screen.size();
    let on = past::On::Screen(columns.saturating_sub(1));
    let past = past::read(&link, &session.id, paint, on).await?;
    console.screen.write(&past.text);
    console.editor.history().set_cwd(&session.cwd);
    let mut talk = Talk {
        follow: Follow::with_view(Rc::clone(&link), session.id.clone(), past.view),
        link,
        session: session.id.clone(),
        cwd: session.cwd.clone().into(),
        paint,
        renderer: past.renderer,
        console,
        status: Status::default(),
        running: past.turn.map(Running::new),
        questions: past.questions.into_iter().collect(),
        question_since: Instant::now(),
        answered: None,
        replying: None,
        own: HashSet::new(),
        sending: Vec::new(),
        queue: Vec::new(),
        held: false,
        shell: Shell::default(),
        telling: past.told,
        untold: Vec::new(),
        jobs: FuturesUnordered::new(),
        interrupted: None,
        unfolded: 0,
        hint: None,
        drawn: None,
        down: None,
    };
    talk.take_session(&past.session);
    let left = talk.talk(opening).await;
    talk.send_off().await;
    if left.is_err() {
        talk.keep_unsent();
    }
    if let Some(text) = talk.telling.farewell() {
        talk.line(&paint.dress(Part::Quiet, &text));
    }
    talk.console.screen.leave()?;
    left
}

/// The turn that runs.
struct Running {
    turn: TurnId,
    since: Instant,
    /// How many prompts waited behind it when it was cancelled from here.
    cancelled: Option<usize>,
}

impl Running {
    fn new(turn: TurnId) -> Self {
        Self {
            turn,
            since: Instant::now(),
            cancelled: None,
        }
    }
}

/// A prompt on its way to the daemon.
struct Sending {
    token: String,
    text: String,
}

/// A prompt that waits behind the running turn.
type Waits = (QueuedId, String);

struct Talk<'a> {
    link: Rc<Link>,
    follow: Follow,
    session: SessionId,
    cwd: PathBuf,
    paint: Paint,
    renderer: Renderer,
    console: &'a mut Console,
    status: Status,
    running: Option<Running>,
    /// Questions that wait; keys answer the first.
    questions: Open,
    /// Since when it is the first.
    question_since: Instant,
    /// When a key answered one.
    answered: Option<Instant>,
    /// The question that what is typed is to answer.
    replying: Option<ApprovalId>,
    /// Tokens of turns that were typed here.
    own: HashSet<String>,
    sending: Vec<Sending>,
    /// Prompts that wait behind the running turn.
    queue: Vec<Waits>,
    /// Whether they wait for a person, and not for a turn.
    held: bool,
    shell: Shell,
    /// Commands of people's own that run, and those whose output goes along with the next words to the model.
    telling: Told,
    untold: Vec<String>,
    jobs: FuturesUnordered<Job>,
    /// When Ctrl-C was pressed with nothing to cancel.
    interrupted: Option<Instant>,
    /// How many folded things the last keys have unfolded.
    unfolded: usize,
    hint: Option<String>,
    /// When the last frame was drawn; none while one is due at once.
    drawn: Option<Instant>,
    /// Why there is no connection.
    down: Option<String>,
}

/// What the loop saw.
enum Saw {
    News(Result<News, Failure>),
    Key(std::io::Result<Pressed>),
    Job(Done),
    Frame,
    Sign(Sign),
    Link(Option<String>),
}

impl Talk<'_> {
    async fn talk(&mut self, opening: Option<String>) -> Result<Leave, Failure> {
        let mut tick = interval(Duration::from_millis(FRAME));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut changed = true;
        let mut down = self.link.down();
        self.draw()?;
        self.follow.attach().await?;
        // Who is here, this client among them.
        self.look_again();
        if let Some(text) = opening {
            self.start(text);
        }
        loop {
            if changed && self.drawn.is_none_or(|at| at.elapsed() >= PAUSE) {
                self.draw()?;
                changed = false;
            }
            let due = self
                .drawn
                .map_or(Duration::ZERO, |at| PAUSE.saturating_sub(at.elapsed()));
            // Keys come first: a flood of events must not make them wait.
            let saw = tokio::select! {
                biased;
                key = self.console.keys.next() => Saw::Key(key),
                sign = self.console.signals.next() => Saw::Sign(sign),
                () = tokio::time::sleep(due), if changed => Saw::Frame,
                Ok(()) = down.changed() => Saw::Link(down.borrow_and_update().clone()),
                Some(done) = self.jobs.next() => Saw::Job(done),
                news = self.follow.news() => Saw::News(news),
                _ = tick.tick(), if self.is_busy() => Saw::Frame,
            };
            changed = true;
            match saw {
                Saw::News(news) => self.take_all(news?).await?,
                Saw::Key(key) => {
                    if let Some(left) = self.press_all(key?).await? {
                        return Ok(left);
                    }
                    self.drawn = None;
                }
                Saw::Job(Done::Forked(fork)) => return Ok(self.go_to(fork)),
                Saw::Job(done) => self.finish(done)?,
                Saw::Frame => {}
                Saw::Link(down) => self.down = down,
                Saw::Sign(Sign::End) => {
                    self.keep_typed();
                    return Ok(Leave::Detach);
                }
                Saw::Sign(Sign::GoOn) => self.console.go_on()?,
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.busy().is_some()
    }

    /// What Ctrl-C would stop.
    fn busy(&self) -> Option<Busy> {
        let command = self.shell.busy().map(Busy::Command);
        let turn = |running: &Running| Busy::Turn(running.since.elapsed());
        command
            .or_else(|| self.running.as_ref().map(turn))
            .or_else(|| self.telling.busy().map(Busy::Command))
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let busy = self.busy();
        let size = self.console.look();
        self.renderer.set_room(size.0.saturating_sub(1));
        let console = &mut *self.console;
        let view = View {
            paint: self.paint,
            size,
            live: match console.is_dragged() {
                true => Vec::new(),
                false => self.renderer.live(now.as_millis() as u64),
            },
            waiting: waiting(&self.untold, &self.sending, &self.queue, self.held),
            question: self.questions.first(),
            questions: (self.questions.number(), self.questions.len()),
            editor: &console.editor,
            status: &self.status,
            busy,
            hint: self.hint.as_deref(),
            down: self.down.as_deref(),
        };
        console.screen.draw(view.panel())?;
        self.drawn = Some(Instant::now());
        Ok(())
    }

    /// Takes what is new and what has come with it.
    async fn take_all(&mut self, first: News) -> Result<(), Failure> {
        let began = Instant::now();
        self.take(first)?;
        for _ in 1..BATCH {
            if began.elapsed() >= BATCH_TIME {
                break;
            }
            let Some(next) = self.follow.news().now_or_never() else {
                return Ok(());
            };
            self.take(next?)?;
        }
        // The keyboard's thread gets a word in.
        tokio::task::yield_now().await;
        Ok(())
    }

    fn take(&mut self, news: News) -> Result<(), Failure> {
        match news {
            News::Event(event) => self.show(&event),
            News::Clients(clients) => {
                self.status.clients = clients;
                Ok(())
            }
        }
    }

    /// Shows an event, and notes what it changes here.
    fn show(&mut self, event: &Event) -> Result<(), Failure> {
        self.note(event)?;
        if self.shell.hides(event) {
            return Ok(());
        }
        for chunk in self.renderer.event(event) {
            self.unfolded = 0;
            self.console.screen.write(&chunk.text);
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) -> Result<(), Failure> {
        let before = self.questions.first().map(|first| first.approval.clone());
        self.questions.settle(event);
        if let Some(question) = Question::of(event) {
            self.ask(self.renderer.knows(question))?;
        }
        if self.questions.first().map(|first| &first.approval) != before.as_ref() {
            self.question_since = Instant::now();
            if before.is_some() {
                self.forget_pattern();
            }
        }
        self.note_untold(event);
        match &event.kind {
            EventKind::TurnStarted { token, .. } => {
                self.running = event.turn.clone().map(Running::new);
                self.held = false;
                let own = token.as_ref().is_some_and(|token| self.own.remove(token));
                self.sending
                    .retain(|one| Some(&one.token) != token.as_ref());
                self.renderer.set_prompts(match own {
                    true => Prompts::Own,
                    false => Prompts::Shown,
                });
                self.look_again();
            }
            EventKind::TurnEnded { status, .. } if self.runs(event.turn.as_ref()) => {
                self.end_turn(*status)?;
            }
            EventKind::Queued {
                queued,
                text,
                token,
                ..
            } => {
                self.sending
                    .retain(|one| Some(&one.token) != token.as_ref());
                self.queue.push((queued.clone(), text.clone()));
            }
            EventKind::Doing {
                call,
                arguments,
                via,
                ..
            } if via.as_deref() == Some("run") => self.note_own(call, arguments),
            EventKind::Dequeued { queued } => self.queue.retain(|(id, _)| id != queued),
            EventKind::Usage {
                input,
                output,
                window,
                ..
            } => {
                self.status.tokens.0 += input;
                self.status.tokens.1 += output;
                let percent = window
                    .filter(|window| *window > 0)
                    .map(|window| (input * 100 / window).min(100));
                self.status.context = percent.map(|percent| percent as u8).or(self.status.context);
            }
            EventKind::ProviderSwitched { name, model } => {
                self.status.model = crate::local::named(name, model.as_deref());
            }
            _ => {}
        }
        Ok(())
    }

    /// A question: a person's own command needs no second yes.
    fn ask(&mut self, question: Question) -> Result<(), Failure> {
        if self.shell.takes(&question) {
            let (link, approval) = (Rc::clone(&self.link), question.approval);
            self.jobs.push(job::answer_own(link, approval));
            return Ok(());
        }
        // Who typed a command of their own elsewhere answers it there.
        let elsewhere = self.telling.has(&question.call);
        if self.questions.first().is_none() && !elsewhere {
            let text = format!("{} waits: allow {}?", self.session, question.tool);
            if self.console.notices.tell_question() {
                self.console.screen.notify(&text)?;
            }
        }
        let (_, rows) = self.console.screen.size();
        if question.text(self.paint).lines().count() > rows {
            self.hint = Some("Alt-O shows all of it".into());
        }
        self.questions.push(question);
        Ok(())
    }

    fn end_turn(&mut self, status: TurnStatus) -> Result<(), Failure> {
        let ended = self.running.take();
        // What waits goes on by itself behind a turn that came to its end.
        self.held = !matches!(status, TurnStatus::Completed | TurnStatus::MaxRounds);
        // What was queued after the cancel goes on.
        let waited = ended.as_ref().and_then(|ended| ended.cancelled);
        if let Some(waited) = waited.filter(|_| self.held) {
            self.take_back(..waited.min(self.queue.len()));
        }
        let since = ended.map(|ended| ended.since);
        if since.is_some_and(|since| self.console.notices.tell_end(since.elapsed())) {
            let text = format!("{} is {}", self.session, ended_word(status));
            self.console.screen.notify(&text)?;
        }
        self.hint = None;
        self.look_again();
        Ok(())
    }

    fn runs(&self, turn: Option<&TurnId>) -> bool {
        self.running.as_ref().map(|running| &running.turn) == turn
    }

    /// Asks what events do not tell, such as who else is here.
    fn look_again(&mut self) {
        let (link, session) = (Rc::clone(&self.link), self.session.clone());
        self.jobs.push(job::look(link, session));
    }

    fn take_session(&mut self, session: &Session) {
        self.status.session = session.id.to_string();
        self.status.model = crate::local::named(&session.provider, session.model.as_deref());
        self.status.context = session.context_percent.or(self.status.context);
        self.status.clients = session.clients;
        self.untold.clone_from(&session.untold);
        self.held = session.turn.is_none() && self.running.is_none();
        self.queue = session
            .queue
            .iter()
            .map(|queued| (queued.queued.clone(), queued.text.clone()))
            .collect();
    }

    /// Gives what was asked for a moment to reach the daemon: leaving must not take back a cancel, an answer or a prompt.
    async fn send_off(&mut self) {
        let sending = async { while self.jobs.next().await.is_some() {} };
        let _ = tokio::time::timeout(PARTING, sending).await;
    }

    /// Takes prompts that wait out of the queue and back into the line.
    fn take_back(&mut self, which: impl std::slice::SliceIndex<[Waits], Output = [Waits]>) {
        let queued = self.queue.get(which).unwrap_or_default().to_vec();
        if !queued.is_empty() {
            let (link, session) = (Rc::clone(&self.link), self.session.clone());
            self.jobs.push(job::take_back(link, session, queued));
        }
    }

    fn line(&mut self, text: &str) {
        self.console.screen.write(&format!("{text}\n"));
    }
}

fn ended_word(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Completed => "done",
        other => other.as_str(),
    }
}

fn waiting(
    untold: &[String],
    sending: &[Sending],
    queue: &[(QueuedId, String)],
    held: bool,
) -> Vec<Waiting> {
    let commands: Vec<String> = untold
        .iter()
        .map(|command| format!("`{}`", first_line(command)))
        .collect();
    let told = (!commands.is_empty()).then(|| Waiting {
        state: TOLD,
        text: format!("the output of {}", commands.join(", ")),
    });
    let queued = queue.iter().map(|(_, text)| Waiting {
        state: if held { HELD } else { "queued" },
        text: text.clone(),
    });
    let sent = sending.iter().map(|one| Waiting {
        state: "sending",
        text: one.text.clone(),
    });
    told.into_iter().chain(queued).chain(sent).collect()
}
