//! `dwell wait`: until a session's turn has ended. Its exit code is the turn's.

use crate::error::{Exit, Failure};
use crate::place::Place;
use crate::{out, select};
use protocol::event::TurnStatus;
use protocol::session::SessionRpcClient;
use protocol::turn::{Ended, TurnRpcClient};
use std::time::Duration;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Give up after so many seconds, with exit code 124; the turn goes on
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,

    /// What ended, as one JSON object
    #[arg(long)]
    json: bool,

    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let id = select::id(&link, &args.session).await?;
    let session = link
        .call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await?;
    let Some(turn) = session.turn else {
        return out::note(&format!("nothing runs in {}", session.id));
    };
    let wait = link.call(async |client| TurnRpcClient::wait(client, turn.clone()).await);
    let ended = match args.timeout {
        None => wait.await?,
        Some(seconds) => tokio::time::timeout(Duration::from_secs(seconds), wait)
            .await
            .map_err(|_| {
                Failure::new(format!("{} still runs after {seconds} s", session.id))
                    .exit(Exit::TimedOut)
            })??,
    };
    report(&ended, args.json)
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
