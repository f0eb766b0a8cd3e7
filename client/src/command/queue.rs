//! `dwell queue`: what waits behind a session's running turn.

use crate::error::Failure;
use crate::place::Place;
use crate::render::first_line;
use crate::{out, select};
use protocol::id::QueuedId;
use protocol::session::QueueRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Take this one out
    #[arg(long, value_name = "ID")]
    remove: Option<String>,

    /// One JSON object a line
    #[arg(long)]
    json: bool,

    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    if let Some(queued) = args.remove {
        let queued = QueuedId::from(queued);
        link.call(async |client| {
            QueueRpcClient::queue_remove(client, session.clone(), queued.clone()).await
        })
        .await?;
        return Ok(());
    }
    let waiting = link
        .call(async |client| QueueRpcClient::queue_list(client, session.clone()).await)
        .await?;
    if args.json {
        return waiting.iter().try_for_each(out::json);
    }
    waiting
        .iter()
        .try_for_each(|one| out::line(&format!("{}  {}", one.queued, first_line(&one.text))))
}
