//! `dwell fork`: a new session with another's events; prints its id.

use crate::error::Failure;
use crate::link::Link;
use crate::place::Place;
use crate::{out, select};
use protocol::event::{Event, EventKind};
use protocol::session::{Session, SessionRpcClient};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,

    /// Up to and including this event [default: all]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,

    /// Without the last so many exchanges
    #[arg(long, value_name = "N", conflicts_with = "at")]
    back: Option<usize>,
}

/// How many events one request asks for.
const PAGE: u32 = 500;

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::session(&link, &args.session).await?;
    let at = match args.back {
        Some(0) | None => args.at,
        Some(back) => Some(before_exchange(&link, &session, back).await?),
    };
    let fork = link
        .call_once(async |client| SessionRpcClient::fork(client, session.id.clone(), at).await)
        .await?;
    out::line(fork.id.as_str())
}

/// The event before the exchange that is so many from the end.
async fn before_exchange(link: &Link, session: &Session, back: usize) -> Result<u64, Failure> {
    let mut before = session.seq + 1;
    let mut left = back;
    while before > 1 {
        let page = link
            .call(async |client| {
                let id = session.id.clone();
                SessionRpcClient::history(client, id, None, Some(before), Some(PAGE)).await
            })
            .await?;
        for event in page.events.iter().rev() {
            left -= usize::from(matches!(event.kind, EventKind::TurnStarted { .. }));
            if left == 0 {
                return Ok(event.first() - 1);
            }
        }
        match page.events.first().map(Event::first) {
            Some(oldest) if oldest < before => before = oldest,
            _ => break,
        }
    }
    let had = back - left;
    Err(Failure::usage(format!(
        "{} has {had} exchanges",
        session.id
    )))
}
