//! `dwell ask`: one turn, from the command line to the reply. Must never say yes to a question without being told to.

mod drawn;
mod progress;
mod prompt;
mod schema;

use crate::approval::{self, Open, Question, Reply};
use crate::ask_tty::Tty;
use crate::consent::Consent;
use crate::error::{Exit, Failure};
use crate::follow::Follow;
use crate::link::Link;
use crate::open::{self, Model};
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::{Channel, Chunk, Prompts, Renderer};
use crate::{local, out, select, trust};
use drawn::Drawn;
use progress::Progress;
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::TurnId;
use protocol::session::Session;
use protocol::turn::{Started, TurnRpcClient};
use schema::Schema;
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    model: Model,

    /// Pull this model first, unless it is here, and ask it (`dwell model list` shows which there are)
    #[arg(long, value_name = "MODEL", conflicts_with = "session")]
    pull: Option<String>,

    /// In this session [default: a new one]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    /// The turn's events on stdout, one JSON object a line
    #[arg(long)]
    json: bool,

    /// The reply is JSON that this JSON Schema accepts; what it does not accept is sent back
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,

    /// How often a reply that the schema does not accept is sent back
    #[arg(long, value_name = "N", default_value_t = 2, requires = "schema")]
    retries: u32,

    #[command(flatten)]
    consent: Consent,

    /// What goes on, on stderr, also where that is no terminal
    #[arg(short, long)]
    verbose: bool,

    /// What to ask; what is piped to stdin is added
    text: Vec<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let text = prompt::assemble(&args.text.join(" "), prompt::piped()?)?;
    let schema = args.schema.as_deref().map(Schema::read).transpose()?;
    let link = super::link(place).await?;
    crate::lost::tell(&link);
    if let Some(schema) = &schema {
        schema.settle(&link).await?;
    }
    let mut tty = Tty::find();
    let session = settle(&link, &args, tty.as_mut()).await?;
    let mut turn = Turn::begin(link, &args, &session, tty)?;
    let ended = match schema {
        Some(schema) => {
            let valid = turn.play_until_valid(&session, &text, &schema, args.retries);
            valid.await
        }
        None => turn.play_once(&session, &text).await,
    };
    if let Err(failure) = &ended
        && failure.exit != Exit::Unread
    {
        turn.progress.is_news()?;
    }
    ended
}

/// The session to ask in, after its directory's trust has been settled.
async fn settle(link: &Link, args: &Args, mut tty: Option<&mut Tty>) -> Result<Session, Failure> {
    let (session, waiting) = match &args.session {
        Some(_) if args.model.toolbox.value().is_some() => {
            return Err(Failure::usage(
                "a session has its toolbox from when it was made: leave out --toolbox or --session",
            ));
        }
        Some(word) => {
            let session = select::session(link, word).await?;
            let waiting = trust::waiting(link, &session.cwd).await;
            (session, waiting)
        }
        None => {
            let cwd = link.place().here()?;
            let model = match &args.pull {
                Some(name) => local::chosen(link, name, &args.model).await?,
                None => args.model.clone(),
            };
            let made = open::create(link, &cwd, &model, None);
            let (made, waiting) =
                futures_util::future::join(made, trust::waiting(link, &cwd)).await;
            let made = local::offer(link, made?, &model, tty.as_deref_mut()).await?;
            local::check_answers(link, &made, &model).await?;
            (made, waiting)
        }
    };
    let waiting = match waiting {
        Err(failure) if failure.kind == Some(ErrorKind::MethodNotFound) => None,
        other => other?,
    };
    trust::settle(link, &session.cwd, waiting, tty).await?;
    Ok(session)
}

/// One turn as this process shows it.
struct Turn {
    link: Rc<Link>,
    follow: Follow,
    turn: Option<TurnId>,
    renderer: Renderer,
    interrupts: Signal,
    interrupted: bool,
    tty: Option<Tty>,
    questions: Open,
    look: Look,
    progress: Progress,
    /// Of what is asked next.
    writer: Writer,
    /// Where the reply is drawn as it grows.
    drawn: Option<Drawn>,
    consent: Consent,
}

/// What goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The reply, as it comes.
    Stream,
    /// The reply, once it is whole.
    Whole,
    /// Events.
    Json,
}

/// Whose words a prompt is: what a person did not write mentions no resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writer {
    Person,
    /// A pipe, or this program of what a model said.
    Program,
}

impl Turn {
    fn begin(
        link: Rc<Link>,
        args: &Args,
        session: &Session,
        tty: Option<Tty>,
    ) -> Result<Self, Failure> {
        let look = match (args.json, std::io::stdout().is_terminal()) {
            (true, _) => Look::Json,
            // What the schema has not accepted yet is no reply.
            (false, true) if args.schema.is_none() => Look::Stream,
            (false, _) => Look::Whole,
        };
        let paint = Paint::of(&std::io::stderr());
        let mut progress = Progress::new(args.verbose);
        progress.line(&paint.dress(Part::Quiet, &format!("session {}", session.id)))?;
        let drawn = Drawn::find().filter(|_| look == Look::Stream);
        let renderer = Renderer::new(paint, Prompts::Hidden);
        Ok(Self {
            follow: Follow::new(Rc::clone(&link), session.id.clone(), session.seq),
            link,
            turn: None,
            renderer: match (&drawn, out::columns()) {
                (Some(drawn), _) => renderer.rich(drawn.room()),
                (None, Some(columns)) if look == Look::Stream => renderer.broken(columns),
                (None, _) => renderer,
            },
            interrupts: signal(SignalKind::interrupt())?,
            interrupted: false,
            tty,
            questions: Open::default(),
            look,
            progress,
            writer: match args.text.is_empty() {
                true => Writer::Program,
                false => Writer::Person,
            },
            drawn,
            consent: args.consent.clone(),
        })
    }

    /// Attaches and starts in one go: nothing of the turn can be missed, and no round trip is waited for twice.
    async fn start(&mut self, session: &Session, text: &str) -> Result<(), Failure> {
        let token = open::token();
        let link = Rc::clone(&self.link);
        let mentions = Some(self.writer == Writer::Person);
        let started = link.call(async |client| {
            let (session, text, token) = (session.id.clone(), text.into(), Some(token.clone()));
            TurnRpcClient::start(client, session, text, None, token, None, mentions).await
        });
        let (attached, started) = futures_util::future::join(self.follow.attach(), started).await;
        attached?;
        let Started { turn, .. } = started?;
        self.turn = turn;
        Ok(())
    }

    /// Shows events until the turn ends.
    async fn play(&mut self) -> Result<(TurnStatus, String), Failure> {
        loop {
            if let Some(question) = self.questions.take_first() {
                if let Some(end) = self.put(question).await? {
                    return Ok(end);
                }
                continue;
            }
            tokio::select! {
                event = self.follow.next() => {
                    if let Some(end) = self.show(event?).await? {
                        return Ok(end);
                    }
                }
                _ = self.interrupts.recv() => self.interrupt().await?,
                () = tokio::time::sleep(drawn::PAUSE), if self.drawn.is_some() => self.draw()?,
            }
        }
    }

    /// What has grown or gone on since the last frame.
    fn draw(&mut self) -> Result<(), Failure> {
        match &mut self.drawn {
            Some(drawn) => drawn.draw(&mut self.renderer),
            None => Ok(()),
        }
    }

    /// Shows an event of the turn; gives the end when it is the last.
    async fn show(&mut self, event: Event) -> Result<Option<(TurnStatus, String)>, Failure> {
        if event.turn.is_some() && event.turn != self.turn {
            return Ok(None);
        }
        match self.look {
            Look::Json => out::json(&event)?,
            Look::Stream | Look::Whole => {
                let chunks = self.renderer.event(&event);
                self.write(chunks)?;
            }
        }
        self.questions.settle(&event);
        if let Some(question) = Question::of(&event) {
            self.decide(self.renderer.knows(question)).await?;
        }
        if let EventKind::TurnEnded { status, reply } = event.kind {
            return Ok(Some((status, reply)));
        }
        Ok(None)
    }

    fn write(&mut self, chunks: Vec<Chunk>) -> Result<(), Failure> {
        if let Some(drawn) = &mut self.drawn {
            drawn.write(&chunks);
            return self.draw();
        }
        for chunk in chunks {
            match (chunk.channel, self.look) {
                (Channel::Reply, Look::Stream) => out::raw(&chunk.text)?,
                (Channel::Reply, Look::Whole | Look::Json) => {}
                (Channel::Progress, _) => self.progress.text(&chunk.text)?,
            }
        }
        Ok(())
    }

    /// Answers by what was allowed beforehand, or by having nobody to ask; else the question waits for its turn.
    async fn decide(&mut self, question: Question) -> Result<(), Failure> {
        let allowed = self.consent.allows(&question.tool);
        let reply = match (allowed, &self.tty) {
            (true, _) => Reply::yes(),
            (false, None) => {
                self.progress.is_news()?;
                Reply::no(format!(
                    "there is no terminal to ask on, and neither --allow {} nor --yes was given",
                    question.tool
                ))
            }
            (false, Some(_)) => {
                self.questions.push(question);
                return Ok(());
            }
        };
        approval::answer(&self.link, &question.approval, &reply).await
    }

    /// Asks the person, while events go on: somebody else may answer first.
    async fn put(&mut self, question: Question) -> Result<Option<(TurnStatus, String)>, Failure> {
        let Some(mut tty) = self.tty.take() else {
            return Ok(None);
        };
        // A frame would be drawn over what the person types.
        let mut drawn = self.drawn.take();
        if let Some(drawn) = &mut drawn {
            drawn.leave()?;
        }
        let end = self.put_on(&mut tty, &question).await;
        self.drawn = drawn;
        self.tty = Some(tty);
        end
    }

    async fn put_on(
        &mut self,
        tty: &mut Tty,
        question: &Question,
    ) -> Result<Option<(TurnStatus, String)>, Failure> {
        if self.look == Look::Json {
            out::note(&question.text(Paint::of(&std::io::stderr())))?;
        }
        out::note(&format!("  {}", question.line_keys()))?;
        loop {
            let line = {
                let mut asking = pin!(tty.ask("  allow? "));
                loop {
                    tokio::select! {
                        line = &mut asking => break line?,
                        event = self.follow.next() => {
                            let event = event?;
                            let settled = question.is_settled_by(&event);
                            if settled {
                                out::progress("\n")?;
                            }
                            let end = self.show(event).await?;
                            if settled || end.is_some() {
                                return Ok(end);
                            }
                        }
                        _ = self.interrupts.recv() => {
                            out::progress("\n")?;
                            self.interrupt().await?;
                        }
                    }
                }
            };
            let reply = match line.as_deref().map(Reply::parse) {
                Some(Some(reply)) => reply,
                Some(None) => continue,
                None => Reply::no("not answered"),
            };
            match approval::answer(&self.link, &question.approval, &reply).await {
                Err(failure) if approval::is_refused(&reply, &failure) => {
                    out::note(&failure.message)?;
                }
                other => return other.map(|()| None),
            }
        }
    }

    /// The first interrupt cancels the turn, whose end is waited for; the second one ends this process.
    async fn interrupt(&mut self) -> Result<(), Failure> {
        if self.interrupted {
            return Err(Failure::shown(Exit::Cancelled));
        }
        self.interrupted = true;
        let Some(turn) = &self.turn else {
            return Err(Failure::shown(Exit::Cancelled));
        };
        let session = self.follow.session();
        self.link
            .call(async |client| {
                TurnRpcClient::cancel(client, session.clone(), Some(turn.clone())).await
            })
            .await?;
        Ok(())
    }

    async fn play_once(&mut self, session: &Session, text: &str) -> Result<(), Failure> {
        self.start(session, text).await?;
        let (status, reply) = self.play().await?;
        self.end(status, &reply)
    }

    /// Asks until a reply validates, and writes only its JSON.
    async fn play_until_valid(
        &mut self,
        session: &Session,
        text: &str,
        schema: &Schema,
        retries: u32,
    ) -> Result<(), Failure> {
        let mut prompt = schema.prompt(text);
        for left in (0..=retries).rev() {
            self.start(session, &prompt).await?;
            self.writer = Writer::Program;
            let (status, reply) = self.play().await?;
            if status != TurnStatus::Completed {
                return self.end(status, &reply);
            }
            let faults = match schema.check(&self.link, &reply).await? {
                Ok(value) if self.look == Look::Json => {
                    return out::json(&json!({"type": "schema", "fits": true, "value": value}));
                }
                Ok(value) => return out::line(&value.to_string()),
                Err(faults) => faults,
            };
            if left == 0 && self.look == Look::Json {
                out::json(&json!({"type": "schema", "fits": false, "faults": faults}))?;
            }
            if left == 0 {
                return Err(
                    Failure::new(format!("the reply does not fit the schema: {faults}")).hint(
                        format!(
                            "`{} log {}` shows what was said",
                            self.link.place().dwell(),
                            session.id
                        ),
                    ),
                );
            }
            let again = format!("asked again: {faults}");
            let paint = Paint::of(&std::io::stderr());
            self.progress.line(&paint.dress(Part::Quiet, &again))?;
            prompt = Schema::again(&faults);
        }
        Ok(())
    }

    fn end(&mut self, status: TurnStatus, reply: &str) -> Result<(), Failure> {
        let unfinished = self.renderer.finish();
        self.write(unfinished)?;
        if let Some(drawn) = &mut self.drawn {
            drawn.leave()?;
        }
        match status {
            TurnStatus::Completed if reply.trim().is_empty() => {
                Err(Failure::new("the reply is blank"))
            }
            TurnStatus::Completed => {
                if self.look == Look::Whole {
                    out::raw(reply)?;
                    if !reply.ends_with('\n') {
                        out::raw("\n")?;
                    }
                }
                Ok(())
            }
            TurnStatus::Cancelled => Err(Failure::shown(Exit::Cancelled)),
            TurnStatus::Failed
            | TurnStatus::Interrupted
            | TurnStatus::Refused
            | TurnStatus::MaxRounds => match self.look {
                Look::Json => Err(Failure::of_reply(reply)),
                // Its line on stderr has said so.
                Look::Stream | Look::Whole => Err(Failure::shown(Exit::Failed)),
            },
        }
    }
}
