//! `dwell fork`: a new session with another's events; prints its id.

use crate::error::Failure;
use crate::place::Place;
use crate::{out, select};
use protocol::session::SessionRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,

    /// Up to and including this event [default: all]
    #[arg(long, value_name = "SEQ")]
    at: Option<u64>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    let fork = link
        .call_once(async |client| SessionRpcClient::fork(client, session.clone(), args.at).await)
        .await?;
    out::line(fork.id.as_str())
}
