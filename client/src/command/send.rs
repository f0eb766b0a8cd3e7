//! `dwell send`: a prompt for a session, without waiting for what comes of it.

use crate::error::Failure;
use crate::open::token;
use crate::place::Place;
use crate::{local, out, select};
use protocol::turn::TurnRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Into the running turn: the model sees it at its next round trip
    #[arg(long)]
    steer: bool,

    /// Which session
    session: String,

    /// The prompt
    #[arg(required = true)]
    text: Vec<String>,
}

/// Prints the turn that began, or the place in the queue.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::session(&link, &args.session).await?;
    if let Some(warning) = local::warning(&session) {
        out::note(&warning)?;
    }
    let session = session.id;
    let text = args.text.join(" ");
    if args.steer {
        link.call_once(async |client| {
            TurnRpcClient::steer(client, session.clone(), text.clone()).await
        })
        .await?;
        return Ok(());
    }
    let token = token();
    let started = link
        .call(async |client| {
            let (session, text, token) = (session.clone(), text.clone(), Some(token.clone()));
            TurnRpcClient::start(client, session, text, None, token, Some(true), None).await
        })
        .await?;
    match (started.turn, started.queued) {
        (Some(turn), _) => out::line(turn.as_str()),
        (None, Some(queued)) => out::line(queued.as_str()),
        (None, None) => Ok(()),
    }
}
