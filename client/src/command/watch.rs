//! `dwell watch`: all sessions at once, a line for each change. Must never answer or start anything.

use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use protocol::daemon::{Change, DaemonRpcClient};
use protocol::session::{Session, SessionState};
use std::collections::HashMap;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Each change as one JSON object a line
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let paint = Paint::of(&std::io::stdout());
    let mut known = HashMap::new();
    loop {
        let (connection, generation) = link.connection();
        let mut changes = DaemonRpcClient::watch(&connection.client).await?;
        while let Some(change) = changes.next().await {
            let change = change.map_err(|error| {
                Failure::new(format!("a change does not fit this client: {error}"))
            })?;
            match args.json {
                true => out::json(&change)?,
                false => tell(&mut known, &change, paint)?,
            }
        }
        mend(&link, generation).await?;
    }
}

/// Whoever watches waits for the daemon to come back, and starts none.
async fn mend(link: &Link, generation: u64) -> Result<(), Failure> {
    link.mend(generation)
        .await
        .map_err(|failure| failure.exit(Exit::Unreachable))
}

/// A line, where something changed that a person wants to know.
fn tell(
    known: &mut HashMap<String, SessionState>,
    change: &Change,
    paint: Paint,
) -> Result<(), Failure> {
    match change {
        Change::Session { session } => {
            let before = known.insert(session.id.to_string(), session.state);
            match before == Some(session.state) {
                true => Ok(()),
                false => out::line(&line(session, before, paint)),
            }
        }
        Change::Deleted { session } => {
            known.remove(session.as_str());
            out::line(&format!("{session}  deleted"))
        }
        Change::Unknown => Ok(()),
    }
}

fn line(session: &Session, before: Option<SessionState>, paint: Paint) -> String {
    let ran = matches!(before, Some(SessionState::Running | SessionState::Waiting));
    let (part, word) = match session.state {
        SessionState::Idle if ran => (Part::Good, "done"),
        SessionState::Idle => (Part::Quiet, "idle"),
        SessionState::Running => (Part::Tool, "running"),
        SessionState::Waiting => (Part::Ask, "waiting"),
        SessionState::Failed => (Part::Bad, "failed"),
    };
    let word = format!("{}{}", paint.dress(part, word), " ".repeat(8 - word.len()));
    let what = session.reason.as_deref().unwrap_or(&session.title);
    format!("{}  {word} {}", session.id, first_line(what))
        .trim_end()
        .into()
}
