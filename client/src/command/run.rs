//! `dwell run`: a tool by hand, through the same gate as a model's call. Must never answer its own question without
//! being told to.

use crate::approval::{self, Question, Reply};
use crate::ask_tty::Tty;
use crate::error::{Exit, Failure};
use crate::follow::Follow;
use crate::link::Link;
use crate::open::{self, Model};
use crate::paint::Paint;
use crate::place::Place;
use crate::toolbox::Toolbox;
use crate::{out, select};
use protocol::event::{Event, EventKind};
use protocol::id::{CallId, SessionId};
use protocol::session::SessionRpcClient;
use protocol::tool::ToolRpcClient;
use serde_json::{Map, Value};
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// In which session [default: this directory's newest, or one that is made for this]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    toolbox: Toolbox,

    /// Allow the call if it needs an approval
    #[arg(short, long)]
    yes: bool,

    /// The tool
    tool: String,

    /// Its arguments, a JSON object
    #[arg(value_name = "JSON", default_value = "{}")]
    arguments: String,
}

/// Prints the result, and fails when the tool did.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let arguments: Value = serde_json::from_str(&args.arguments).map_err(|error| {
        Failure::usage(format!("the arguments are no JSON: {error}"))
            .hint("such as '{\"path\": \"README.md\"}'")
    })?;
    let link = super::link(place).await?;
    crate::lost::tell(&link);
    let session = session_for(&link, args.session.as_deref()).await?;
    // Before the call: a question that was put meanwhile would be nobody's.
    let mut follow = follow_from_now(&link, &session).await?;
    let mut attending = Attending::new(&link, &session, &args, &arguments)?;
    let stopped = Rc::clone(&attending.stopped);
    let ran = link.call_once(async |client| {
        let name = args.tool.clone();
        let (arguments, toolbox) = (Some(arguments.clone()), args.toolbox.value());
        ToolRpcClient::run(
            client,
            session.clone(),
            name,
            arguments,
            toolbox,
            None,
            None,
        )
        .await
    });
    let answered = tokio::select! {
        answered = ran => answered,
        failure = attending.until_it_fails(&mut follow) => return Err(failure),
    };
    let result = match answered {
        // The call goes on there, and the log tells of its end.
        Err(lost) if lost.is_disconnect() => attending.until_done(&mut follow, lost).await?,
        answered => answered?,
    };
    out::json(&result)?;
    match result.get("ok") {
        Some(Value::Bool(true)) => Ok(()),
        _ if stopped.get() => Err(Failure::shown(Exit::Cancelled)),
        _ if is_unknown(&result) => Err(Failure::shown(Exit::NotFound)),
        _ => Err(Failure::shown(Exit::Failed)),
    }
}

/// Whether there is no such tool: it has not run, so these words are the daemon's own.
fn is_unknown(result: &Map<String, Value>) -> bool {
    let error = result.get("error").and_then(Value::as_str);
    error.is_some_and(|error| error.starts_with("unknown tool: "))
}

/// The session that a word names, or this directory's newest, or a new one.
pub(super) async fn session_for(link: &Link, word: Option<&str>) -> Result<SessionId, Failure> {
    if let Some(word) = word {
        return select::id(link, word).await;
    }
    match select::last(link).await? {
        Some(session) => Ok(session.id),
        None => Ok(
            open::create(link, &link.place().here()?, &Model::default(), None)
                .await?
                .id,
        ),
    }
}

async fn follow_from_now(link: &Rc<Link>, session: &SessionId) -> Result<Follow, Failure> {
    let now = link
        .call(async |client| SessionRpcClient::get(client, session.clone()).await)
        .await?;
    Ok(Follow::new(Rc::clone(link), session.clone(), now.seq))
}

/// What a person may want while the call runs: to answer its questions, and to stop it.
struct Attending<'a> {
    link: &'a Link,
    session: &'a SessionId,
    /// What was asked for, to tell the call from those of others.
    tool: &'a str,
    arguments: &'a Value,
    yes: bool,
    tty: Option<Tty>,
    interrupts: Signal,
    /// The call, once an event has told.
    call: Option<CallId>,
    /// Its result, once an event has told.
    done: Option<Map<String, Value>>,
    stopped: Rc<Cell<bool>>,
}

impl<'a> Attending<'a> {
    fn new(
        link: &'a Link,
        session: &'a SessionId,
        args: &'a Args,
        arguments: &'a Value,
    ) -> io::Result<Self> {
        Ok(Self {
            link,
            session,
            tool: &args.tool,
            arguments,
            yes: args.yes,
            tty: Tty::find(),
            interrupts: signal(SignalKind::interrupt())?,
            call: None,
            done: None,
            stopped: Rc::default(),
        })
    }

    async fn until_it_fails(&mut self, follow: &mut Follow) -> Failure {
        loop {
            if let Err(failure) = self.step(follow).await {
                return failure;
            }
        }
    }

    /// Waits for the call's end after its answer was lost on the way. Of a call that the session's log does not have nobody
    /// knows whether it will come.
    async fn until_done(
        &mut self,
        follow: &mut Follow,
        lost: Failure,
    ) -> Result<Map<String, Value>, Failure> {
        let session = self.session.clone();
        let now = self
            .link
            .call(async |client| SessionRpcClient::get(client, session.clone()).await)
            .await?;
        loop {
            if let Some(result) = self.done.take() {
                return Ok(result);
            }
            if self.call.is_none() && follow.cursor() >= now.seq {
                return Err(lost);
            }
            self.step(follow).await?;
        }
    }

    async fn step(&mut self, follow: &mut Follow) -> Result<(), Failure> {
        tokio::select! {
            event = follow.next() => self.take(&event?).await,
            _ = self.interrupts.recv() => self.interrupt().await,
        }
    }

    async fn take(&mut self, event: &Event) -> Result<(), Failure> {
        if self.call.is_none() && self.is_own(event) {
            if let EventKind::Doing { call, .. } = &event.kind {
                self.call = Some(call.clone());
            }
            if self.stopped.get() {
                return self.end_call().await;
            }
        }
        if let EventKind::Done { call, result, .. } = &event.kind
            && self.call.as_ref() == Some(call)
        {
            self.done = Some(result.clone());
        }
        let by_hand = event.turn.is_none();
        let Some(question) = Question::of(event).filter(|_| by_hand && !self.stopped.get()) else {
            return Ok(());
        };
        loop {
            let reply = tokio::select! {
                reply = reply_to(&question, self.yes, self.tty.as_mut()) => reply?,
                _ = self.interrupts.recv() => return self.interrupt().await,
            };
            match approval::answer(self.link, &question.approval, &reply).await {
                Err(failure) if approval::is_refused(&reply, &failure) => {
                    out::note(&failure.message)?;
                }
                other => return other,
            }
        }
    }

    /// Whether an event begins the call that was asked for here.
    fn is_own(&self, event: &Event) -> bool {
        match &event.kind {
            EventKind::Doing {
                name,
                arguments,
                via,
                ..
            } => via.as_deref() == Some("run") && name == self.tool && arguments == self.arguments,
            _ => false,
        }
    }

    /// The first interrupt ends the call, whose result is waited for; the second one ends this process.
    async fn interrupt(&mut self) -> Result<(), Failure> {
        if self.stopped.replace(true) {
            return Err(Failure::shown(Exit::Cancelled));
        }
        self.end_call().await
    }

    /// Ends the call; one that is not known yet ends as soon as it is.
    async fn end_call(&self) -> Result<(), Failure> {
        let Some(call) = &self.call else {
            return Ok(());
        };
        let id = call.clone();
        let session = self.session.clone();
        let ended = self
            .link
            .call(async |client| ToolRpcClient::cancel(client, session.clone(), id.clone()).await);
        ended.await.map(drop)
    }
}

async fn reply_to(question: &Question, yes: bool, tty: Option<&mut Tty>) -> Result<Reply, Failure> {
    if yes {
        return Ok(Reply::yes());
    }
    let Some(tty) = tty else {
        let tool = &question.tool;
        out::note(&format!(
            "denied: {tool} needs an approval and there is no terminal to ask on; `dwell run -y` allows it, a rule in permissions.json does for good"
        ))?;
        return Ok(Reply::no("there is no terminal to ask on"));
    };
    out::note(&question.text(Paint::of(&std::io::stderr())))?;
    loop {
        match tty.ask(&format!("  {}: ", question.line_keys())).await? {
            None => return Ok(Reply::no("not answered")),
            Some(line) => {
                if let Some(reply) = Reply::parse(&line) {
                    return Ok(reply);
                }
            }
        }
    }
}
