//! `dwell wait`: until a session's turn has ended, or how its last one did. Its exit code is the turn's.

use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::place::Place;
use crate::{out, select};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::TurnId;
use protocol::session::SessionRpcClient;
use protocol::turn::{Ended, TurnRpcClient};
use std::time::Duration;

/// How many events are looked through at once.
const PAGE: u32 = 200;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Give up after so many seconds, with exit code 124; the turn goes on
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// What ended, as one JSON object
    #[arg(long)]
    json: bool,

    /// Which session: its running turn, or else its last one; or a turn by its own id
    #[arg(default_value = select::LAST)]
    session: String,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let Some(turn) = turn_of(&link, &args.session).await? else {
        return out::note(&format!("nothing has run in {}", args.session));
    };
    let wait = link.call(async |client| TurnRpcClient::wait(client, turn.clone()).await);
    let ended = match args.timeout {
        None => wait.await?,
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), wait)
            .await
            .map_err(|_| {
                Failure::new(format!("{turn} still runs after {seconds} s")).exit(Exit::TimedOut)
            })??,
    };
    report(&ended, args.json)
}

/// The turn that a word names: its own id, or the session's that runs, or else its last one.
async fn turn_of(link: &Link, word: &str) -> Result<Option<TurnId>, Failure> {
    // A session's id has no dot.
    if word.contains('.') {
        return Ok(Some(word.into()));
    }
    let id = select::id(link, word).await?;
    let session = link
        .call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await?;
    if session.turn.is_some() {
        return Ok(session.turn);
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
            return Ok(last.turn.clone());
        }
        match page.events.first().map(Event::first) {
            Some(oldest) if oldest < before => before = oldest,
            _ => break,
        }
    }
    Ok(None)
}

fn report(ended: &Ended, json: bool) -> Result<(), Failure> {
    if json {
        out::json(ended)?;
    }
    match ended.status {
        TurnStatus::Completed if json => Ok(()),
        TurnStatus::Completed => out::line(ended.reply.trim_end()),
        TurnStatus::Cancelled => Err(Failure::shown(Exit::Cancelled)),
        TurnStatus::Failed
        | TurnStatus::Interrupted
        | TurnStatus::Refused
        | TurnStatus::MaxRounds => {
            let why = match ended.reply.trim() {
                "" => ended.status.as_str(),
                reply => reply,
            };
            Err(Failure::new(why))
        }
    }
}
