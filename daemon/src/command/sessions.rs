//! `/sessions [QUERY]`: the newest sessions, or those whose id or title match.

use super::registry::{Command, Invocation, Ran};
use super::table::{first_line, table};
use crate::store::ListQuery;
use protocol::id::SessionId;
use protocol::session::Session;

/// How many are shown.
const LIMIT: u32 = 20;

pub(super) fn command() -> Command {
    Command::new(
        "sessions",
        "list the newest sessions, or those that match",
        run,
    )
}

async fn run(invocation: Invocation) -> Ran {
    let query = ListQuery {
        query: invocation.argument().map(str::to_owned),
        limit: LIMIT,
        ..ListQuery::default()
    };
    let list = invocation.sessions.list(query).await?;
    let text = all(&list.sessions, &invocation.session);
    Ok(match list.cursor {
        Some(_) => format!("{text}\nand older ones: dwell ls"),
        None => text,
    })
}

fn all(sessions: &[Session], current: &SessionId) -> String {
    if sessions.is_empty() {
        return "no sessions".to_owned();
    }
    let rows = sessions.iter().map(|session| {
        let mark = if session.id == *current { "*" } else { " " };
        let state = session.state.as_str().to_owned();
        let title = match (&session.parent, &session.task) {
            (Some(parent), Some(_)) => format!("(task of {parent}) {}", session.title),
            _ => session.title.clone(),
        };
        let title = first_line(&title, 72);
        [
            format!("{mark} {}", session.id),
            state,
            session.cwd.clone(),
            title,
        ]
    });
    table(&rows.collect::<Vec<_>>())
}
