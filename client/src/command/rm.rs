//! `dwell rm`: sessions are deleted, or put away.

use crate::error::Failure;
use crate::place::Place;
use crate::select;
use protocol::session::SessionRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Put them away and delete nothing
    #[arg(long)]
    archive: bool,

    /// Which sessions
    #[arg(required = true, value_name = "SESSION")]
    sessions: Vec<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    // All are found before the first one goes: a typing error deletes nothing.
    let mut ids = Vec::new();
    for word in &args.sessions {
        ids.push(select::id(&link, word).await?);
    }
    for id in ids {
        link.call(async |client| match args.archive {
            true => SessionRpcClient::archive(client, id.clone(), Some(true)).await,
            false => SessionRpcClient::delete(client, id.clone()).await,
        })
        .await?;
    }
    Ok(())
}
