//! Sessions as editors list them.

use crate::timestamp::timestamp;
use agent_client_protocol_schema::v1::{ListSessionsResponse, SessionInfo};
use protocol::session::{Session, SessionList};

/// A page. Sessions of tasks belong to a call of another session and are left out.
pub(in crate::acp) fn page(list: SessionList) -> ListSessionsResponse {
    let own = list.sessions.into_iter().filter(|one| one.task.is_none());
    ListSessionsResponse::new(own.map(info).collect()).next_cursor(list.cursor)
}

fn info(session: Session) -> SessionInfo {
    let title = Some(session.title).filter(|title| !title.is_empty());
    SessionInfo::new(session.id.as_str().to_owned(), session.cwd)
        .title(title)
        .updated_at(timestamp(session.updated_at))
}
