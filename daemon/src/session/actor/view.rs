//! A session as clients and lists see it, and the row that the store keeps of it.

use super::Actor;
use crate::provider::Message;
use crate::provider::Provider;
use crate::session::message::Handle;
use crate::session::state::title_of;
use crate::session::{SessionResult, session_of};
use crate::store::{Durability, Entry, SessionRow};
use protocol::daemon::Change;
use protocol::event::{EventKind, TurnStatus};
use protocol::provider::ProviderInstance;
use protocol::session::{Session, SessionState};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

impl Actor {
    pub(super) fn view(&self) -> Session {
        let mut session = session_of(self.row.clone());
        (session.state, session.reason) = self.state.status();
        if self.running.is_none() && !self.owed.is_empty() {
            let why = self.owed.iter().rev().find_map(|(_, kind)| match kind {
                EventKind::TurnEnded { reply, .. } => Some(reply.clone()),
                _ => None,
            });
            (session.state, session.reason) = (SessionState::Failed, why);
        }
        session.turn = self.state.turn.as_ref().map(|t| t.id.clone());
        session.approvals = self.state.approvals.values().cloned().collect();
        session.queue.clone_from(&self.state.queue);
        let told = self.state.told.iter();
        session.untold = told.map(|told| told.command.clone()).collect();
        session.env = (*self.shared.env).clone();
        session.clients = self.feed.clients();
        session.toolbox.clone_from(&self.shared.toolbox);
        session.context_percent = self.context_percent();
        session
    }

    fn context_percent(&self) -> Option<u8> {
        let usage = self.state.usage?;
        let window = usage.window.filter(|w| *w > 0)?;
        u8::try_from((usage.input + usage.output).saturating_mul(100) / window)
            .ok()
            .map(|p| p.min(100))
    }

    pub(super) fn tell_change(&self) {
        let changes = &self.shared.services.changes;
        if changes.receiver_count() > 0 {
            let mut session = self.view();
            session.env.clear();
            // Nobody listens any more: nothing to tell.
            let _ = changes.send(Change::Session {
                session: Box::new(session),
            });
        }
    }

    /// The row after these events; none when they do not touch what lists show.
    pub(super) fn row_after(&self, entries: &[Entry]) -> Option<SessionRow> {
        let mut row: Option<SessionRow> = None;
        for entry in entries {
            let turn = entry.event.turn.is_some();
            let rest = if turn {
                SessionState::Running
            } else {
                SessionState::Idle
            };
            change_row(
                || row.get_or_insert_with(|| self.row.clone()),
                &entry.event.kind,
                rest,
            );
        }
        let (mut row, last) = (row?, entries.last()?);
        row.seq = last.event.seq;
        row.updated_at = last.event.at;
        Some(row)
    }

    pub(super) async fn archive(&mut self, archived: bool) -> SessionResult<()> {
        let row = SessionRow {
            archived,
            ..self.row.clone()
        };
        self.shared.services.store.update_row(row.clone()).await?;
        self.row = row;
        self.tell_change();
        Ok(())
    }

    /// The store keeps them; here they would only take room.
    pub(super) async fn keep_settings(&self, settings: String) -> SessionResult<()> {
        let row = SessionRow {
            settings,
            ..self.row.clone()
        };
        Ok(self.shared.services.store.update_row(row).await?)
    }

    pub(super) async fn switch(
        &mut self,
        name: String,
        model: Option<String>,
        provider: Arc<dyn Provider>,
    ) -> SessionResult<u64> {
        let turn = self.turn_id();
        let seq = self
            .record(
                vec![(turn, EventKind::ProviderSwitched { name, model })],
                Durability::SyncSoon,
            )
            .await?;
        self.provider = Some(provider);
        Ok(seq)
    }

    pub(super) fn instance(&self) -> Option<ProviderInstance> {
        self.provider.as_ref()?;
        Some(ProviderInstance {
            session: self.id.clone(),
            name: self.row.provider.clone(),
            model: self.row.model.clone(),
            in_flight: self.running.is_some() && self.state.pending_calls().next().is_none(),
            back_off_until: self
                .shared
                .services
                .providers
                .back_off_until(&self.row.provider),
        })
    }

    /// The conversation without its system prompt.
    pub(super) fn messages(&self) -> Vec<Message> {
        self.state
            .conversation
            .messages(self.shared.services.limits.now().history)
    }

    pub(super) fn spill_dir(&self) -> PathBuf {
        self.shared.services.spill_dir.join(self.id.as_str())
    }

    pub(super) fn handle_with(&self, mailbox: mpsc::Sender<Box<super::Msg>>) -> Handle {
        Handle {
            id: self.id.clone(),
            mailbox,
            feed: Arc::clone(&self.feed),
            live: Arc::clone(&self.live),
            shared: Arc::clone(&self.shared),
        }
    }
}

/// `rest` is what a session does that no longer waits.
fn change_row<'a>(row: impl FnOnce() -> &'a mut SessionRow, kind: &EventKind, rest: SessionState) {
    match kind {
        EventKind::TurnStarted { text, .. } => {
            let row = row();
            (row.state, row.reason) = (SessionState::Running, None);
            if row.title.is_empty() {
                row.title = title_of(text);
            }
        }
        EventKind::TurnEnded { status, reply } => {
            let row = row();
            (row.state, row.reason) = match status {
                TurnStatus::Completed | TurnStatus::Cancelled | TurnStatus::MaxRounds => {
                    (SessionState::Idle, None)
                }
                TurnStatus::Failed | TurnStatus::Interrupted | TurnStatus::Refused => {
                    (SessionState::Failed, Some(reply.clone()))
                }
            };
        }
        EventKind::ApprovalAsked { .. } => row().state = SessionState::Waiting,
        EventKind::ApprovalAnswered { .. } | EventKind::ApprovalWithdrawn { .. } => {
            row().state = rest
        }
        EventKind::Renamed { title } => title.clone_into(&mut row().title),
        EventKind::ProviderSwitched { name, model } => {
            let row = row();
            name.clone_into(&mut row.provider);
            row.model.clone_from(model);
        }
        _ => {}
    }
}
