//! `dwell wait`: until the turns of sessions have ended, or how their last ones did. Its exit code is the turns'. Must
//! never say yes to a question without being told to.

use crate::approval::{self, Question, Reply};
use crate::consent::Consent;
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::place::Place;
use crate::{out, select};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use protocol::approval::ApprovalRpcClient;
use protocol::daemon::{Change, DaemonRpcClient};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{ApprovalId, SessionId, TurnId};
use protocol::session::{SessionRpcClient, SessionState};
use protocol::turn::{Ended, TurnRpcClient};
use std::collections::HashSet;
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

    #[command(flatten)]
    consent: Consent,

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
    crate::lost::tell(&link);
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
    let mut asking = pin!(see_to_questions(&link, &awaited, &args.consent));
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
            () = &mut limit => {
                let seconds = args.timeout.unwrap_or_default();
                return Err(late(&link, &awaited, &left, seconds).await);
            }
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

/// What has not ended in time, and which question it waits for.
async fn late(link: &Link, awaited: &[Awaited], left: &[TurnId], seconds: u64) -> Failure {
    let names: Vec<&str> = left.iter().map(TurnId::as_str).collect();
    let runs = if left.len() > 1 { "run" } else { "runs" };
    let names = names.join(", ");
    let failure =
        Failure::new(format!("{names} still {runs} after {seconds} s")).exit(Exit::TimedOut);
    for one in awaited.iter().filter(|one| left.contains(&one.turn)) {
        let waiting = questions(link, &one.session).await.unwrap_or_default();
        if let Some(question) = waiting.first() {
            // How to answer it was told when it was asked.
            let (session, what) = (&one.session, question.brief_line());
            return failure.hint(format!("{session} waits for an approval: {what}"));
        }
    }
    failure
}

/// Answers what was allowed beforehand, and tells of each other question, which a program cannot answer; ends never.
async fn see_to_questions(
    link: &Link,
    awaited: &[Awaited],
    consent: &Consent,
) -> Result<(), Failure> {
    let mut seen = HashSet::new();
    loop {
        let (connection, generation) = link.connection();
        let Ok(mut changes) = DaemonRpcClient::watch(&connection.client).await else {
            // Whoever waits for the end hears of what is wrong.
            return std::future::pending().await;
        };
        for one in awaited {
            see_to(link, &one.session, consent, &mut seen).await?;
        }
        while let Some(change) = changes.next().await {
            let Ok(Change::Session { session }) = change else {
                continue;
            };
            let ours = awaited.iter().any(|one| one.session == session.id);
            if ours && session.state == SessionState::Waiting {
                see_to(link, &session.id, consent, &mut seen).await?;
            }
        }
        link.mend(generation).await?;
    }
}

async fn see_to(
    link: &Link,
    session: &SessionId,
    consent: &Consent,
    seen: &mut HashSet<ApprovalId>,
) -> Result<(), Failure> {
    for question in questions(link, session).await? {
        if !seen.insert(question.approval.clone()) {
            continue;
        }
        match consent.allows(&question.tool) {
            true => approval::answer(link, &question.approval, &Reply::yes()).await?,
            false => out::note(&waits(link, session, &question))?,
        }
    }
    Ok(())
}

async fn questions(link: &Link, session: &SessionId) -> Result<Vec<Question>, Failure> {
    let waiting = link
        .call(async |client| ApprovalRpcClient::list(client, Some(session.clone())).await)
        .await?;
    Ok(waiting.iter().map(Question::from).collect())
}

fn waits(link: &Link, session: &SessionId, question: &Question) -> String {
    let (dwell, what) = (link.place().dwell(), question.brief_line());
    format!(
        "{session} waits for an approval: {what}\n  `{dwell} answer {} yes` allows it (or no), `{dwell} approvals {session}` shows all of it, `{dwell} cancel {session}` ends the turn",
        question.approval
    )
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
