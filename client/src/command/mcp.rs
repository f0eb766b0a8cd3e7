//! `dwell mcp`: a session's tools for programs that speak the Model Context Protocol. Must never write to stdout what is
//! no message, nor answer a question without being told to.

use crate::consent::Consent;
use crate::error::Failure;
use crate::mcp::Server;
use crate::open::{self, Model};
use crate::place::Place;
use crate::{select, trust};
use protocol::session::{Session, SessionRpcClient};

/// Marks the session that is made for this, so that the next start finds it.
const TITLE: &str = "dwell mcp";

/// How many sessions that have the title in theirs are looked through: the most that the daemon gives at once.
const PAGE: u32 = 1000;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whose tools [default: those of a session that is made for this, one a directory]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    #[command(flatten)]
    consent: Consent,
}

/// Serves until stdin ends. A client is told why not by the answers to its requests: it hardly shows how this ended.
pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    match ready(args, place).await {
        Ok(server) => server.serve().await,
        Err(failure) => crate::mcp::refuse(failure).await,
    }
}

async fn ready(args: Args, place: Place) -> Result<Server, Failure> {
    let link = super::link_unasked(place).await?;
    let session = match &args.session {
        Some(word) => select::session(&link, word).await?,
        None => own(&link).await?,
    };
    let waiting = trust::waiting(&link, &session.cwd).await.unwrap_or(None);
    trust::settle(&link, &session.cwd, waiting, None).await?;
    Ok(Server::new(link, &session, args.consent))
}

/// This directory's newest that was made for this, or a new one.
async fn own(link: &crate::link::Link) -> Result<Session, Failure> {
    let cwd = link.place().here()?;
    let listed = link
        .call(async |client| {
            let (cwd, query) = (Some(cwd.clone()), Some(TITLE.to_owned()));
            SessionRpcClient::list(client, cwd, query, None, Some(PAGE), None).await
        })
        .await?;
    let own = |session: &Session| session.title == TITLE;
    match listed.sessions.into_iter().find(own) {
        Some(session) => Ok(session),
        None => open::create(link, &cwd, &Model::default(), Some(TITLE.to_owned())).await,
    }
}
