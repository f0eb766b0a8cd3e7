//! `dwell mcp`: a session's tools for programs that speak the Model Context Protocol. Must never write to stdout what is
//! no message, nor answer a question without being told to.

use crate::error::Failure;
use crate::mcp::{Consent, Server};
use crate::open::{self, Model};
use crate::place::Place;
use crate::{select, trust};
use protocol::session::{Session, SessionRpcClient};

/// Marks the session that is made for this, so that the next start finds it.
const TITLE: &str = "dwell mcp";

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Whose tools [default: those of a session that is made for this, one a directory]
    #[arg(short, long, value_name = "SESSION")]
    session: Option<String>,

    /// Allow this tool when it needs an approval; may be given again
    #[arg(long, value_name = "TOOL")]
    allow: Vec<String>,

    /// Allow whatever needs an approval
    #[arg(short, long)]
    yes: bool,
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
    let consent = match args.yes {
        true => Consent::All,
        false => Consent::Tools(args.allow),
    };
    Ok(Server::new(link, &session, consent))
}

/// This directory's newest that was made for this, or a new one.
async fn own(link: &crate::link::Link) -> Result<Session, Failure> {
    let cwd = link.place().here()?;
    let listed = link
        .call(async |client| {
            let (cwd, query) = (Some(cwd.clone()), Some(TITLE.to_owned()));
            SessionRpcClient::list(client, cwd, query, None, None, None).await
        })
        .await?;
    let own = |session: &Session| session.title == TITLE;
    match listed.sessions.into_iter().find(own) {
        Some(session) => Ok(session),
        None => open::create(link, &cwd, &Model::default(), Some(TITLE.to_owned())).await,
    }
}
