//! `dwell rename`: another title for a session.

use crate::error::Failure;
use crate::place::Place;
use crate::select;
use protocol::session::SessionRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    session: String,

    /// The title
    #[arg(required = true)]
    title: Vec<String>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    let title = args.title.join(" ");
    link.call(async |client| {
        SessionRpcClient::rename(client, session.clone(), title.clone()).await
    })
    .await?;
    Ok(())
}
