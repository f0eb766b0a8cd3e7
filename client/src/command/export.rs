//! `dwell export`: a session as one document.

use crate::error::Failure;
use crate::place::Place;
use crate::{out, select};
use protocol::session::{ExportFormat, SessionRpcClient};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session
    #[arg(default_value = select::LAST)]
    session: String,

    /// As the events in JSON, and not as Markdown
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = select::id(&link, &args.session).await?;
    let format = match args.json {
        true => ExportFormat::Json,
        false => ExportFormat::Markdown,
    };
    let export = link
        .call(async |client| SessionRpcClient::export(client, session.clone(), format).await)
        .await?;
    out::raw(&export.text)?;
    match export.text.ends_with('\n') {
        true => Ok(()),
        false => out::raw("\n"),
    }
}
