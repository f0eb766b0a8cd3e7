//! What is asked of one session: each method is one message to its actor, which loads first when it rests.

use super::{Sessions, reach};
use crate::provider::Message;
use crate::session::message::{Answering, Guard, Msg};
use crate::session::{Prompt, SessionError, SessionResult, Subscriber, fork};
use crate::store::StoreError;
use protocol::approval::Approval;
use protocol::event::EventKind;
use protocol::id::{CallId, QueuedId, SessionId, TurnId};
use protocol::session::{Queued, Session};
use protocol::turn::{Cancelled, Ended, Started};
use serde_json::Value;

impl Sessions {
    pub async fn get(&self, session: &SessionId) -> SessionResult<Session> {
        self.open(session).await?.ask(Msg::View).await
    }

    pub async fn rename(&self, session: &SessionId, title: String) -> SessionResult<u64> {
        let title = title.trim().to_owned();
        if title.is_empty() {
            return Err(SessionError::Invalid("title is empty".into()));
        }
        self.record(session, EventKind::Renamed { title }, Guard::Anytime)
            .await
    }

    pub async fn archive(&self, session: &SessionId, archived: bool) -> SessionResult<()> {
        self.open(session)
            .await?
            .ask(|reply| Msg::Archive(archived, reply))
            .await
    }

    pub async fn clear(&self, session: &SessionId) -> SessionResult<u64> {
        self.record(session, EventKind::Cleared, Guard::WhenIdle)
            .await
    }

    /// The model goes on with the summary alone.
    pub async fn compact(&self, session: &SessionId, summary: String) -> SessionResult<u64> {
        self.record(session, EventKind::Compacted { summary }, Guard::WhenIdle)
            .await
    }

    pub async fn replace(&self, session: &SessionId, messages: Vec<Value>) -> SessionResult<u64> {
        for (n, message) in messages.iter().enumerate() {
            serde_json::from_value::<Message>(message.clone()).map_err(|error| {
                SessionError::Invalid(format!("messages[{n}] is no message: {error}"))
            })?;
        }
        self.record(session, EventKind::Replaced { messages }, Guard::WhenIdle)
            .await
    }

    pub async fn say(&self, session: &SessionId, text: String) -> SessionResult<u64> {
        self.record(session, EventKind::CommandOutput { text }, Guard::Anytime)
            .await
    }

    pub(super) async fn record(
        &self,
        session: &SessionId,
        kind: EventKind,
        guard: Guard,
    ) -> SessionResult<u64> {
        self.open(session)
            .await?
            .ask(|reply| Msg::Record(kind, guard, reply))
            .await
    }

    /// `after: None` starts at the newest event. The session stays in memory while the subscriber lives.
    pub async fn attach(
        &self,
        session: &SessionId,
        after: Option<u64>,
    ) -> SessionResult<Subscriber> {
        let handle = self.open(session).await?;
        handle
            .feed
            .subscribe(session, &self.services().store, after)
    }

    pub async fn queue(&self, session: &SessionId) -> SessionResult<Vec<Queued>> {
        self.open(session).await?.ask(Msg::Queue).await
    }

    pub async fn unqueue(&self, session: &SessionId, queued: &QueuedId) -> SessionResult<u64> {
        self.open(session)
            .await?
            .ask(|reply| Msg::Unqueue(queued.clone(), reply))
            .await
    }

    /// What a person said, with the resources that it mentions. What models, servers and files say mentions nothing.
    pub async fn with_resources(&self, session: &SessionId, text: String) -> SessionResult<String> {
        let handle = self.open(session).await?;
        Ok({
            let own = handle.shared.own_servers();
            handle
                .shared
                .workspace
                .with_resources(text, own.as_deref())
                .await
        })
    }

    pub async fn start(&self, session: &SessionId, prompt: Prompt) -> SessionResult<Started> {
        let handle = self.open(session).await?;
        handle.ask(|reply| Msg::Start(prompt, reply)).await
    }

    pub async fn steer(&self, session: &SessionId, text: String) -> SessionResult<u64> {
        let handle = self.open(session).await?;
        handle.ask(|reply| Msg::Steer(text, reply)).await
    }

    /// Stops what runs; with a turn, that one alone.
    pub async fn cancel(
        &self,
        session: &SessionId,
        turn: Option<TurnId>,
    ) -> SessionResult<Cancelled> {
        let handle = self.open(session).await?;
        handle.ask(|reply| Msg::Cancel(turn, reply)).await
    }

    /// Stops a call that no turn made, if it still runs.
    pub async fn cancel_call(&self, session: &SessionId, call: CallId) -> SessionResult<()> {
        self.open(session)
            .await?
            .ask(|reply| Msg::CancelCall(call, reply))
            .await
    }

    pub async fn wait(&self, turn: &TurnId) -> SessionResult<Ended> {
        let unknown = || SessionError::NotFound {
            what: "turn",
            id: turn.to_string(),
        };
        let session = fork::session_of_turn(turn).ok_or_else(unknown)?;
        let handle = self.open(&session).await.map_err(|error| match error {
            SessionError::Store(StoreError::NotFound(_)) => unknown(),
            other => other,
        })?;
        handle.ask(|reply| Msg::Wait(turn.clone(), reply)).await
    }

    /// Questions that wait, of one session or of all. A session with a question is never unloaded.
    pub async fn approvals(&self, session: Option<&SessionId>) -> SessionResult<Vec<Approval>> {
        if let Some(session) = session {
            return self.open(session).await?.ask(Msg::Approvals).await;
        }
        let mut all = Vec::new();
        for handle in self.handles() {
            all.extend(handle.ask(Msg::Approvals).await.unwrap_or_default());
        }
        // What a sub-session asks is asked in its parent too.
        all.retain(|a| fork::session_of(a.approval.as_str()).as_ref() == Some(&a.session));
        all.sort_by_key(|a| a.asked_at);
        Ok(all)
    }

    pub async fn answer(&self, answering: Answering) -> SessionResult<u64> {
        let approval = answering.approval.clone();
        let unknown = || SessionError::NotFound {
            what: "approval",
            id: approval.to_string(),
        };
        let session = fork::session_of(approval.as_str()).ok_or_else(unknown)?;
        let handle = self.open(&session).await.map_err(|error| match error {
            SessionError::Store(StoreError::NotFound(_)) => unknown(),
            other => other,
        })?;
        if let Some(pattern) = &answering.pattern {
            let spill_dir = self.services().spill_dir.join(session.as_str());
            reach::check(&handle, &answering, pattern, &spill_dir).await?;
        }
        handle.ask(|reply| Msg::Answer(answering, reply)).await
    }
}
