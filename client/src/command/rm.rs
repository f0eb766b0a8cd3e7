//! `dwell rm`: sessions are deleted, or put away. Must never delete what somebody uses without being told to.

use crate::ask_tty::Tty;
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::listing::directory;
use crate::place::Place;
use crate::render::first_line;
use crate::{out, select};
use protocol::error::ErrorKind;
use protocol::id::SessionId;
use protocol::session::{Session, SessionRpcClient, SessionState};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Put them away and delete nothing
    #[arg(long)]
    archive: bool,

    /// Delete also those that run, wait for an answer, or are open in a terminal, and ask nobody
    #[arg(short, long, conflicts_with = "archive")]
    force: bool,

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
    if !args.archive && !args.force {
        ids = those_that_may_go(&link, ids).await?;
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

/// Without those that are in use, unless the person at the terminal says yes; without a terminal none goes.
async fn those_that_may_go(link: &Link, ids: Vec<SessionId>) -> Result<Vec<SessionId>, Failure> {
    let mut used = Vec::new();
    for id in &ids {
        if let Some(session) = get(link, id).await?
            && let Some(how) = use_of(&session)
        {
            used.push((session, how));
        }
    }
    if used.is_empty() {
        return Ok(ids);
    }
    let Some(mut tty) = Tty::find() else {
        let (session, how) = &used[0];
        return Err(
            Failure::new(format!("{} {how}: nothing was deleted", session.id))
                .hint("`dwell rm --force` deletes it all the same, `--archive` puts it away"),
        );
    };
    let mut kept = Vec::new();
    for (session, how) in used {
        let about = match first_line(&session.title) {
            title if title.is_empty() => directory(&session.cwd),
            title => format!("{title}, {}", directory(&session.cwd)),
        };
        let question = format!("{} {how} ({about}): delete it? [y/N] ", session.id);
        let line = tty.ask(&question).await?.unwrap_or_default();
        if !matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
            kept.push(session.id);
        }
    }
    if kept.len() == ids.len() {
        out::note("nothing was deleted")?;
        return Err(Failure::shown(Exit::Failed));
    }
    Ok(ids.into_iter().filter(|id| !kept.contains(id)).collect())
}

/// The session as it is now; one that has gone meanwhile is none.
async fn get(link: &Link, id: &SessionId) -> Result<Option<Session>, Failure> {
    let got = link
        .call(async |client| SessionRpcClient::get(client, id.clone()).await)
        .await;
    match got {
        Err(failure) if failure.kind == Some(ErrorKind::NotFound) => Ok(None),
        other => other.map(Some),
    }
}

/// What would be lost with the session beside its past.
fn use_of(session: &Session) -> Option<String> {
    let does = match session.state {
        SessionState::Running => Some("runs"),
        SessionState::Waiting => Some("waits for an answer"),
        SessionState::Idle | SessionState::Failed => None,
    };
    let open = match session.clients {
        0 => None,
        1 => Some("is open in a terminal or an editor".to_owned()),
        n => Some(format!("is open in {n} terminals or editors")),
    };
    match (does, open) {
        (Some(does), Some(open)) => Some(format!("{does} and {open}")),
        (does, open) => does.map(str::to_owned).or(open),
    }
}
