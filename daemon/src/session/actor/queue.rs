//! Prompts that wait behind the running turn. Must never lose one that was acknowledged, nor run one without being told.

use super::Actor;
use crate::session::message::Reply;
use crate::session::{Prompt, SessionError, SessionResult, WhenBusy};
use crate::store::Durability;
use protocol::event::EventKind;
use protocol::id::QueuedId;
use protocol::session::Queued;
use protocol::turn::Started;

impl Actor {
    pub(super) async fn enqueue(&mut self, prompt: Prompt) -> SessionResult<Started> {
        let queued = self.state.next_queued();
        let Prompt {
            text,
            images,
            token,
            client,
            when_busy: _,
        } = prompt;
        let event = EventKind::Queued {
            queued: queued.clone(),
            text,
            images,
            token,
            client,
        };
        let seq = self.record(vec![(None, event)], Durability::Synced).await?;
        Ok(Started {
            turn: None,
            queued: Some(queued),
            seq,
        })
    }

    pub(super) async fn unqueue(&mut self, queued: QueuedId) -> SessionResult<u64> {
        if !self.state.queue.iter().any(|q| q.queued == queued) {
            return Err(SessionError::NotFound {
                what: "queued prompt",
                id: queued.to_string(),
            });
        }
        Ok(self
            .record(
                vec![(None, EventKind::Dequeued { queued })],
                Durability::SyncSoon,
            )
            .await?)
    }

    /// Begins the one that is named, or the first.
    pub(super) async fn next_queued(&mut self, which: Option<&QueuedId>) {
        if !self.state.queue.is_empty() && self.state.turn.is_none() && self.running.is_none() {
            self.begin_queued(which, None).await;
        }
    }

    pub(super) async fn begin_queued(
        &mut self,
        which: Option<&QueuedId>,
        reply: Option<Reply<Started>>,
    ) {
        let is_it = |waiting: &&Queued| which.is_none_or(|which| waiting.queued == *which);
        let Some(Queued {
            queued,
            text,
            images,
            token,
            client,
            at: _,
        }) = self.state.queue.iter().find(is_it).cloned()
        else {
            return;
        };
        let prompt = Prompt {
            text,
            images,
            token,
            client,
            when_busy: WhenBusy::Refuse,
        };
        self.begin_after(vec![(None, EventKind::Dequeued { queued })], prompt, reply)
            .await;
    }
}
