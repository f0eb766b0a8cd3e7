//! `dwell cancel`: a session's running turn is stopped.

use crate::error::Failure;
use crate::place::Place;
use crate::{out, select};
use protocol::turn::TurnRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    let cancelled = link
        .call(async |client| TurnRpcClient::cancel(client, session.clone(), None).await)
        .await?;
    match cancelled.turn {
        Some(turn) => out::line(turn.as_str()),
        None if cancelled.calls.is_empty() => out::note(&format!("nothing runs in {session}")),
        None => out::note(&format!(
            "no turn runs in {session}; what was run there by hand is stopped"
        )),
    }
}
