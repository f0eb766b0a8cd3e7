//! `dwell wait`: until the turns of sessions have ended, or how their last ones did. Its exit code is the turns'.

use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::place::Place;
use crate::{out, select};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::daemon::{Change, DaemonRpcClient};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{SessionId, TurnId};
use protocol::session::{Session, SessionRpcClient, SessionState};
use protocol::turn::{Ended, TurnRpcClient};
use std::pin::pin;
use std::time::Duration;

/// How many events are looked through at once.
const PAGE: u32 = 200;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Give up after so many seconds, with exit code 124; what runs goes on
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// Each end as one JSON object a line
    #[arg(long)]
    json: bool,

    /// Which sessions: the running turn of each, or else its last one; or turns by their own ids
    #[arg(value_name = "SESSION", default_value = select::LAST)]
    sessions: Vec<String>,
}

/// A turn that is waited for, and of which session.
struct Awaited {
    turn: TurnId,
    session: SessionId,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let mut awaited = Vec::new();
    for word in &args.sessions {
        match turn_of(&link, word).await? {
            Some(turn) => awaited.push(turn),
            None => out::note(&format!("nothing has run in {word}"))?,
        }
    }
    let several = args.sessions.len() > 1;
    let mut left: Vec<TurnId> = awaited.iter().map(|one| one.turn.clone()).collect();
    let mut ends: FuturesUnordered<_> = awaited.iter().map(|one| end_of(&link, one)).collect();
    let mut asking = pin!(tell_questions(&link, &awaited));
    let limit = async {
        match args.timeout {
            Some(seconds) => tokio::time::sleep(Duration::from_secs(seconds)).await,
            None => std::future::pending().await,
        }
    };
    let mut limit = pin!(limit);
    let mut worst = Ok(());
    while !left.is_empty() {
        tokio::select! {
            biased;
            Some(ended) = ends.next() => {
                let ended = ended?;
                left.retain(|turn| *turn != ended.turn);
                let told = report(&ended, args.json, several);
                if several && let Err(failure) = &told {
                    out::note(&format!("{}: {}", ended.turn, failure.message))?;
                }
                worst = worst.and(told);
            }
            told = &mut asking => told?,
            () = &mut limit => return Err(late(&left, args.timeout.unwrap_or_default())),
        }
    }
    match worst {
        Err(failure) if several => Err(Failure::shown(failure.exit)),
        other => other,
    }
}

async fn end_of(link: &Link, awaited: &Awaited) -> Result<Ended, Failure> {
    link.call(async |client| TurnRpcClient::wait(client, awaited.turn.clone()).await)
        .await
}

fn late(left: &[TurnId], seconds: u64) -> Failure {
    let names: Vec<&str> = left.iter().map(TurnId::as_str).collect();
    let runs = if left.len() > 1 { "run" } else { "runs" };
    Failure::new(format!(
        "{} still {runs} after {seconds} s",
        names.join(", ")
    ))
    .exit(Exit::TimedOut)
}

/// Tells of each session that waits for an answer, which a program cannot give; ends never.
async fn tell_questions(link: &Link, awaited: &[Awaited]) -> Result<(), Failure> {
    let (connection, _) = link.connection();
    if let Ok(mut changes) = DaemonRpcClient::watch(&connection.client).await {
        for one in awaited {
            let id = one.session.clone();
            let session = link
                .call(async |client| SessionRpcClient::get(client, id.clone()).await)
                .await?;
            tell_question(&session)?;
        }
        while let Some(change) = changes.next().await {
            let Ok(Change::Session { session }) = change else {
                continue;
            };
            if awaited.iter().any(|one| one.session == session.id) {
                tell_question(&session)?;
            }
        }
    }
    std::future::pending().await
}

fn tell_question(session: &Session) -> Result<(), Failure> {
    if session.state != SessionState::Waiting {
        return Ok(());
    }
    let id = &session.id;
    out::note(&format!(
        "{id} waits for an answer: `dwell attach {id}` shows the question, `dwell cancel {id}` ends the turn"
    ))
}

/// The turn that a word names: its own id, or the session's that runs, or else its last one.
async fn turn_of(link: &Link, word: &str) -> Result<Option<Awaited>, Failure> {
    // A session's id has no dot.
    if let Some((session, _)) = word.rsplit_once('.') {
        return Ok(Some(Awaited {
            turn: word.into(),
            session: session.into(),
        }));
    }
    let id = select::id(link, word).await?;
    let of = |turn: Option<TurnId>| {
        let session = id.clone();
        turn.map(|turn| Awaited { turn, session })
    };
    let session = link
        .call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await?;
    if session.turn.is_some() {
        return Ok(of(session.turn));
    }
    let mut before = session.seq + 1;
    while before > 1 {
        let page = link
            .call(async |client| {
                SessionRpcClient::history(client, id.clone(), None, Some(before), Some(PAGE)).await
            })
            .await?;
        let ended = |event: &&Event| matches!(event.kind, EventKind::TurnEnded { .. });
        if let Some(last) = page.events.iter().rev().find(ended) {
            return Ok(of(last.turn.clone()));
        }
        match page.events.first().map(Event::first) {
            Some(oldest) if oldest < before => before = oldest,
            _ => break,
        }
    }
    Ok(None)
}

/// Writes the reply, with its turn's name above it where there are several; or gives why there is none.
fn report(ended: &Ended, json: bool, several: bool) -> Result<(), Failure> {
    if json {
        out::json(ended)?;
    }
    let reply = ended.reply.trim_end();
    match ended.status {
        TurnStatus::Completed if json => Ok(()),
        TurnStatus::Completed if several => out::line(&format!("==> {} <==\n{reply}", ended.turn)),
        TurnStatus::Completed if reply.is_empty() => Ok(()),
        TurnStatus::Completed => out::line(reply),
        TurnStatus::Cancelled if several => Err(Failure::new("cancelled").exit(Exit::Cancelled)),
        TurnStatus::Cancelled => Err(Failure::shown(Exit::Cancelled)),
        TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Refused
        | TurnStatus::MaxRounds => match reply {
            "" => Err(Failure::new(ended.status.as_str())),
            reply => Err(Failure::of_reply(reply)),
        },
    }
}
