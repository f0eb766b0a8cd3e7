//! `dwell watch`: all sessions at once, a line for each change. Must never answer or start anything.

use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::listing::{directory, now};
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use crate::timestamp::time_of_day;
use protocol::daemon::{Change, DaemonRpcClient};
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{SessionId, TurnId};
use protocol::session::{Session, SessionRpcClient, SessionState};
use protocol::turn::TurnRpcClient;
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// How many sessions one request asks for.
const PAGE: u32 = 500;

/// Among how many of a session's newest events the end of its last turn is looked for.
const NEWEST: u32 = 50;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Each change as one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    crate::lost::tell(&link);
    let mut watch = Watch {
        known: None,
        json: args.json,
        paint: Paint::of(&std::io::stdout()),
    };
    loop {
        let (connection, generation) = link.connection();
        match DaemonRpcClient::watch(&connection.client).await {
            Ok(mut changes) => {
                // After the subscription, so that nothing falls between the two.
                watch.look(&link).await?;
                while let Some(change) = changes.next().await {
                    let change = change.map_err(|error| {
                        Failure::new(format!("a change does not fit this client: {error}"))
                    })?;
                    watch.take(&link, change).await?;
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                if !failure.is_disconnect() {
                    return Err(failure);
                }
            }
        }
        mend(&link, generation).await?;
    }
}

/// Whoever watches waits for the daemon to come back, and starts none.
async fn mend(link: &Link, generation: u64) -> Result<(), Failure> {
    link.mend(generation)
        .await
        .map_err(|failure| failure.exit(Exit::Unreachable))
}

/// What was told last of a session.
struct Known {
    state: SessionState,
    turn: Option<TurnId>,
    seq: u64,
}

impl Known {
    fn of(session: &Session) -> Self {
        Self {
            state: session.state,
            turn: session.turn.clone(),
            seq: session.seq,
        }
    }
}

/// What has been told, and how.
struct Watch {
    /// None before the first look.
    known: Option<HashMap<String, Known>>,
    json: bool,
    paint: Paint,
}

/// A change as `--json` writes it.
#[derive(Serialize)]
struct Told<'a> {
    #[serde(flatten)]
    change: &'a Change,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a End>,
}

/// The turn that has ended with a change.
#[derive(Serialize)]
struct End {
    turn: TurnId,
    status: TurnStatus,
}

impl Watch {
    /// Tells what runs or waits already; of a later look, what has changed while nothing was heard, the oldest first.
    async fn look(&mut self, link: &Link) -> Result<(), Failure> {
        let mut list = all(link).await?;
        let Some(known) = &self.known else {
            let known = list.iter().map(|one| (one.id.to_string(), Known::of(one)));
            self.known = Some(known.collect());
            list.retain(|one| matches!(one.state, SessionState::Running | SessionState::Waiting));
            for listed in list {
                if let Some(session) = whole(link, listed).await? {
                    self.remember(&session);
                    let line = line(self.paint, &session, None);
                    self.write(&Change::Session { session }, None, || line)?;
                }
            }
            return Ok(());
        };
        let listed: HashSet<&str> = list.iter().map(|one| one.id.as_str()).collect();
        let gone = known.keys().filter(|id| !listed.contains(id.as_str()));
        let gone: Vec<SessionId> = gone.map(|id| id.as_str().into()).collect();
        list.retain(|one| {
            let before = known.get(one.id.as_str());
            before.is_none_or(|before| before.seq != one.seq || before.state != one.state)
        });
        list.sort_by_key(|session| session.updated_at);
        for session in gone {
            self.take(link, Change::Deleted { session }).await?;
        }
        for listed in list {
            if let Some(session) = whole(link, listed).await? {
                let before = self.before(&session).map_or(0, |before| before.seq);
                let ended = match session.turn {
                    Some(_) => None,
                    None => last_end(link, &session, before).await?,
                };
                self.tell(session, ended)?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, link: &Link, change: Change) -> Result<(), Failure> {
        let session = match change {
            Change::Session { session } => session,
            Change::Deleted { ref session } => {
                self.known.get_or_insert_default().remove(session.as_str());
                let line = format!("{session}  deleted");
                return self.write(&change, None, || line);
            }
            Change::Unknown => return self.write(&change, None, String::new),
        };
        let before = self.before(&session);
        if before.is_some_and(|before| before.seq > session.seq) {
            return Ok(());
        }
        let left = before.and_then(|before| before.turn.clone());
        let ended = match left.filter(|turn| session.turn.as_ref() != Some(turn)) {
            Some(turn) => end_of(link, turn).await?,
            None => None,
        };
        self.tell(session, ended)
    }

    /// One session as it is now, and which of its turns has ended meanwhile.
    fn tell(&mut self, session: Box<Session>, ended: Option<End>) -> Result<(), Failure> {
        let before = self.before(&session);
        let same = before.is_some_and(|before| before.state == session.state);
        self.remember(&session);
        if !self.json && same && ended.is_none() {
            return Ok(());
        }
        let status = ended.as_ref().map(|end| end.status);
        let mut text = line(self.paint, &session, status);
        if status.is_some() && session.turn.is_some() {
            // The next turn began with the end of the one before.
            text = format!("{text}\n{}", line(self.paint, &session, None));
        }
        self.write(&Change::Session { session }, ended.as_ref(), || text)
    }

    fn before(&self, session: &Session) -> Option<&Known> {
        self.known.as_ref()?.get(session.id.as_str())
    }

    fn write(
        &self,
        change: &Change,
        ended: Option<&End>,
        line: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        match self.json {
            true => out::json(&Told { change, ended }),
            false => match line() {
                line if line.is_empty() => Ok(()),
                line => out::line(&line),
            },
        }
    }

    fn remember(&mut self, session: &Session) {
        let known = self.known.get_or_insert_default();
        known.insert(session.id.to_string(), Known::of(session));
    }
}

async fn all(link: &Link) -> Result<Vec<Session>, Failure> {
    let (mut all, mut cursor) = (Vec::new(), None);
    loop {
        let page = link
            .call(async |client| {
                SessionRpcClient::list(client, None, None, None, Some(PAGE), cursor.clone()).await
            })
            .await?;
        all.extend(page.sessions);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(all);
        }
    }
}

/// A session of a list with what lists leave out: its turn. None when it has gone.
async fn whole(link: &Link, listed: Session) -> Result<Option<Box<Session>>, Failure> {
    let got = link
        .call(async |client| SessionRpcClient::get(client, listed.id.clone()).await)
        .await;
    match got {
        Ok(session) => Ok(Some(Box::new(session))),
        Err(failure) if failure.kind == Some(ErrorKind::NotFound) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// How a turn that is over ended; none where its session has gone.
async fn end_of(link: &Link, turn: TurnId) -> Result<Option<End>, Failure> {
    let ended = link
        .call(async |client| TurnRpcClient::wait(client, turn.clone()).await)
        .await;
    match ended {
        Ok(ended) => Ok(Some(End {
            turn: ended.turn,
            status: ended.status,
        })),
        Err(failure) if failure.is_disconnect() => Err(failure),
        Err(_) => Ok(None),
    }
}

/// The last turn of a session that ended after this event.
async fn last_end(link: &Link, session: &Session, after: u64) -> Result<Option<End>, Failure> {
    let before = Some(session.seq + 1);
    let page = link
        .call(async |client| {
            SessionRpcClient::history(client, session.id.clone(), None, before, Some(NEWEST)).await
        })
        .await;
    let events = match page {
        Ok(page) => page.events,
        Err(failure) if failure.kind == Some(ErrorKind::NotFound) => return Ok(None),
        Err(failure) => return Err(failure),
    };
    let end = |event: Event| match event.kind {
        EventKind::TurnEnded { status, .. } if event.seq > after => Some(End {
            turn: event.turn?,
            status,
        }),
        _ => None,
    };
    Ok(events.into_iter().rev().find_map(end))
}

fn line(paint: Paint, session: &Session, ended: Option<TurnStatus>) -> String {
    let (part, word) = match (ended, session.state) {
        (Some(TurnStatus::Completed), _) => (Part::Good, "done"),
        (Some(TurnStatus::Cancelled), _) => (Part::Quiet, "cancelled"),
        (Some(status), _) => (Part::Bad, status.as_str()),
        (None, SessionState::Idle) => (Part::Quiet, "idle"),
        (None, SessionState::Running) => (Part::Tool, "running"),
        (None, SessionState::Waiting) => (Part::Ask, "waiting"),
        (None, SessionState::Failed) => (Part::Bad, "failed"),
    };
    let gap = " ".repeat(WORD.saturating_sub(word.len()));
    let time = time_of_day(session.updated_at, now());
    let what = session.reason.as_deref().unwrap_or(&session.title);
    let what = match first_line(what) {
        what if what.is_empty() => what,
        what => format!("{what}  "),
    };
    let word = paint.dress(part, word);
    let place = paint.dress(Part::Quiet, &directory(&session.cwd));
    format!("{}  {word}{gap}  {time}  {what}{place}", session.id)
}

/// The longest word for what a session does.
const WORD: usize = "interrupted".len();
