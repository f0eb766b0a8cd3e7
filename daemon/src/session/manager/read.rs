//! What is read of sessions: rows, events, searches, documents. Must never change anything.

use super::{HISTORY, PAGE, Sessions};
use crate::provider::Message;
use crate::session::export;
use crate::session::message::Msg;
use crate::session::{SessionError, SessionResult, session_of};
use crate::store::ListQuery;
use crate::turn::prompt;
use protocol::daemon::Change;
use protocol::event::Event;
use protocol::id::SessionId;
use protocol::session::{Export, ExportFormat, History, SearchHit, Session, SessionList};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::broadcast;

impl Sessions {
    pub async fn list(&self, query: ListQuery) -> SessionResult<SessionList> {
        let (rows, cursor) = self.services().store.list(query).await?;
        let mut sessions: Vec<Session> = rows.into_iter().map(session_of).collect();
        // Who is attached is no part of the store, and known of those in memory alone: nobody is to any other.
        let attached: HashMap<SessionId, u32> = self
            .handles()
            .into_iter()
            .map(|handle| (handle.id.clone(), handle.feed.clients()))
            .collect();
        for session in &mut sessions {
            session.clients = attached.get(&session.id).copied().unwrap_or(0);
        }
        Ok(SessionList { sessions, cursor })
    }

    pub async fn history(
        &self,
        session: &SessionId,
        after: Option<u64>,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> SessionResult<History> {
        let limit = limit.unwrap_or(HISTORY.0).clamp(1, HISTORY.1);
        let store = &self.services().store;
        let (mut entries, mut more) = match (after, before) {
            (None, Some(before)) => store.page_before(session, before, limit).await?,
            (after, _) => store.page_after(session, after.unwrap_or(0), limit).await?,
        };
        if let (Some(_), Some(before)) = (after, before) {
            more &= entries.last().is_some_and(|e| e.event.seq + 1 < before);
            entries.retain(|e| e.event.seq < before);
        }
        Ok(History {
            events: entries.into_iter().map(|e| (*e.event).clone()).collect(),
            more,
        })
    }

    pub async fn search(&self, query: &str, limit: Option<u32>) -> SessionResult<Vec<SearchHit>> {
        Ok(self
            .services()
            .store
            .search(query, limit.unwrap_or(20).clamp(1, 200))
            .await?)
    }

    pub async fn export(&self, session: &SessionId, format: ExportFormat) -> SessionResult<Export> {
        let row = session_of(self.services().store.row(session).await?);
        let events = self.events(session).await?;
        let text = match format {
            ExportFormat::Markdown => export::markdown(&row, &events),
            ExportFormat::Json => serde_json::to_string(&json!({"session": row, "events": events}))
                .map_err(|error| SessionError::Invalid(error.to_string()))?,
        };
        Ok(Export { text })
    }

    pub async fn stored(&self) -> SessionResult<u64> {
        Ok(self.services().store.count().await?)
    }

    pub(super) async fn events(&self, session: &SessionId) -> SessionResult<Vec<Event>> {
        let mut all: Vec<Event> = Vec::new();
        loop {
            let after = all.last().map_or(0, |e| e.seq);
            let store = &self.services().store;
            let (page, more) = store.page_after(session, after, PAGE).await?;
            all.extend(page.into_iter().map(|e| Arc::unwrap_or_clone(e.event)));
            if !more {
                return Ok(all);
            }
        }
    }

    /// The conversation as the next round trip would send it, system prompt first.
    pub async fn conversation(&self, session: &SessionId) -> SessionResult<Vec<Message>> {
        let handle = self.open(session).await?;
        let messages = handle.ask(Msg::Conversation).await?;
        let spill_dir = self.services().spill_dir.join(session.as_str());
        let system = handle.shared.system(None, spill_dir).await;
        Ok(prompt::with_system(system, messages))
    }

    /// Changes of all sessions; a receiver that lags sees `Lagged` and should list anew.
    pub fn watch(&self) -> broadcast::Receiver<Change> {
        self.services().changes.subscribe()
    }

    /// Sessions in memory and, of those, with a turn that runs or waits.
    pub fn loaded(&self) -> (u32, u32) {
        let handles = self.handles();
        let busy = handles
            .iter()
            .filter(|h| h.shared.busy.load(Ordering::Relaxed))
            .count();
        (
            u32::try_from(handles.len()).unwrap_or(u32::MAX),
            u32::try_from(busy).unwrap_or(u32::MAX),
        )
    }
}
