//! `dwell commands`: the slash commands of a session.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use protocol::command::CommandRpcClient;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whose [default: this directory's newest session, or one that is made for this]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = super::run::session_for(&link, args.session.as_deref()).await?;
    let list = link
        .call(async |client| CommandRpcClient::list(client, session.clone()).await)
        .await?;
    list.iter().try_for_each(|one| match args.json {
        true => out::json(one),
        false => out::line(format!("{:14}  {}", one.name, one.description).trim_end()),
    })
}
