//! How turns end, whoever ends them: results for open calls, answers for who waits, the store's failures included.

use super::{Actor, Draft, Running};
use crate::session::message::Reply;
use crate::session::{Prompt, SessionError, SessionResult, restart};
use crate::store::{Durability, Pace, StoreError};
use protocol::event::{EventKind, TurnStatus};
use protocol::id::{CallId, QueuedId, TurnId};
use protocol::turn::{Cancelled, Ended, Started};
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// What was asked between a turn's cancel and its end. A prompt that comes then is the person's next: it is not held, as
/// those are that waited before.
#[derive(Default)]
pub(super) struct AfterCancel {
    /// The first that was queued: it begins, and the queue goes on behind it.
    pub(super) queued: Option<QueuedId>,
    /// A turn that begins at once.
    pub(super) start: Option<(Prompt, Reply<Started>)>,
}

impl Actor {
    /// Whether the turn that runs is on its way to its end.
    pub(super) fn is_cancelled(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.cancel.is_cancelled())
    }

    /// Stops what runs; with a turn, that one alone.
    pub(super) async fn cancel(&mut self, only: Option<&TurnId>) -> SessionResult<Cancelled> {
        let runs = self.running.as_ref().map(|running| &running.turn);
        if only.is_some() && only != runs {
            return Ok(Cancelled {
                turn: None,
                calls: Vec::new(),
            });
        }
        let Some(running) = &self.running else {
            let mut calls: Vec<CallId> = self.by_hand.keys().cloned().collect();
            // What a call makes in turn is part of it.
            calls.retain(|call| !call.as_str().contains('/'));
            calls.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
            self.by_hand.values().for_each(CancellationToken::cancel);
            self.settle().await?;
            return Ok(Cancelled { turn: None, calls });
        };
        running.cancel.cancel();
        let turn = running.turn.clone();
        for (call, cancel) in &self.by_hand {
            if self.turn_of(call).as_ref() == Some(&turn) {
                cancel.cancel();
            }
        }
        // The tool of a turn that waits for a person has nothing to stop: the wait itself ends.
        self.withdraw(&self.asked_by(&turn), "the turn was cancelled");
        Ok(Cancelled {
            turn: Some(turn),
            calls: Vec::new(),
        })
    }

    pub(super) fn wait(&mut self, turn: TurnId, reply: Reply<Ended>) {
        if self.state.turn.as_ref().is_some_and(|t| t.id == turn)
            || self.state.ended.contains_key(&turn)
        {
            match self.state.ended.get(&turn) {
                Some(seq) => self.ended(turn, *seq, reply),
                None => self.waiters.push((turn, reply)),
            }
        } else {
            super::send(
                reply,
                Err(SessionError::NotFound {
                    what: "turn",
                    id: turn.to_string(),
                }),
            );
        }
    }

    /// Reads how an ended turn ended, without keeping the actor.
    pub(super) fn ended(&self, turn: TurnId, seq: u64, reply: Reply<Ended>) {
        let (store, session) = (self.shared.services.store.clone(), self.id.clone());
        tokio::spawn(async move {
            let read = store
                .read(&session, seq - 1, 1)
                .await
                .map_err(SessionError::from);
            let found = read.and_then(|entries| match entries.first().map(|e| &e.event.kind) {
                Some(EventKind::TurnEnded { status, reply }) => Ok(Ended {
                    turn: turn.clone(),
                    status: *status,
                    reply: reply.clone(),
                    seq,
                }),
                _ => Err(SessionError::NotFound {
                    what: "turn",
                    id: turn.to_string(),
                }),
            });
            super::send(reply, found);
        });
    }

    /// Ends the turn for good. When the store cannot take it, the session is failed at once and the end is owed.
    pub(super) async fn end(&mut self, status: TurnStatus, reply: String) {
        // The reason is kept by `owed` and told by `trouble`.
        let _ = self.finish(status, reply, Vec::new()).await;
    }

    pub(super) async fn finish(
        &mut self,
        status: TurnStatus,
        reply: String,
        before: Vec<Draft>,
    ) -> SessionResult<()> {
        let Some(turn) = self.turn_id() else {
            return Ok(());
        };
        let mut drafts = self.drain();
        drafts.extend(before);
        drafts.extend(restart::loose_ends(
            &self.state,
            &turn,
            drafts.as_slice(),
            why_open(status),
        ));
        drafts.push((
            Some(turn.clone()),
            EventKind::TurnEnded {
                status,
                reply: reply.clone(),
            },
        ));
        let mut owed = restart::loose_ends(&self.state, &turn, &[], why_open(status));
        owed.push((
            Some(turn.clone()),
            EventKind::TurnEnded {
                status: TurnStatus::Failed,
                reply: String::new(),
            },
        ));
        let asked = self.asked_by(&turn);
        let committed = self.commit(drafts, Pace::Now, Durability::SyncSoon).await;
        self.withdraw(&asked, why_open(status));
        self.set_running(None);
        let seq = match committed {
            Ok(entries) => {
                self.publish(entries);
                self.state.seq
            }
            Err(error) => {
                self.after_cancel = AfterCancel::default();
                if let Some((_, EventKind::TurnEnded { reply, .. })) = owed.last_mut() {
                    *reply = format!("Error: {error}");
                }
                self.owed = owed;
                // What is owed ends these calls, too.
                self.held.forget(&turn);
                self.fail_waiters(&turn, &error.to_string());
                self.streaming.clear();
                self.tell_change();
                self.quieten();
                return Err(error.into());
            }
        };
        self.answer_waiters(
            &turn,
            &Ended {
                turn: turn.clone(),
                status,
                reply,
                seq,
            },
        );
        self.feed.rest();
        self.quieten();
        let after = std::mem::take(&mut self.after_cancel);
        if let Some((prompt, reply)) = after.start {
            return Box::pin(async move {
                self.start(prompt, reply).await;
                Ok(())
            })
            .await;
        }
        if self.shared.services.stopping.load(Ordering::Relaxed) {
            return Ok(());
        }
        match (status, after.queued) {
            (TurnStatus::Completed | TurnStatus::MaxRounds, _) => {
                Box::pin(self.next_queued(None)).await;
            }
            (_, Some(queued)) => Box::pin(self.next_queued(Some(&queued))).await,
            (_, None) => {}
        }
        Ok(())
    }

    /// Writes down what the store could not take before.
    pub(super) async fn settle(&mut self) -> SessionResult<()> {
        if self.owed.is_empty() {
            return Ok(());
        }
        let owed = self.owed.clone();
        let entries = self.commit(owed, Pace::Now, Durability::SyncSoon).await?;
        self.owed.clear();
        self.publish(entries);
        Ok(())
    }

    /// The store does not take what the turn streams: the turn ends, since nobody could be shown more of it.
    pub(super) async fn fail_turn(&mut self, error: &StoreError) {
        if let Some(running) = &self.running {
            running.task.abort();
        }
        self.end(TurnStatus::Failed, format!("Error: {error}"))
            .await;
    }

    pub(super) fn set_running(&mut self, running: Option<Running>) {
        self.shared.busy.store(running.is_some(), Ordering::Relaxed);
        self.running = running;
    }

    pub(super) fn answer_waiters(&mut self, turn: &TurnId, ended: &Ended) {
        for (of, reply) in std::mem::take(&mut self.waiters) {
            if of == *turn {
                super::send(reply, Ok(ended.clone()));
            } else {
                self.waiters.push((of, reply));
            }
        }
    }

    pub(super) fn fail_waiters(&mut self, turn: &TurnId, error: &str) {
        let reply = format!("Error: {error}");
        self.answer_waiters(
            turn,
            &Ended {
                turn: turn.clone(),
                status: TurnStatus::Failed,
                reply,
                seq: self.state.seq,
            },
        );
    }

    pub(super) fn when_quiet(&mut self, reply: oneshot::Sender<()>) {
        self.quiet.push(reply);
        self.quieten();
    }

    /// Tells those who wait that no turn runs but such as wait for a person.
    pub(super) fn quieten(&mut self) {
        if self.running.is_none() || !self.asking.is_empty() {
            for reply in self.quiet.drain(..) {
                let _ = reply.send(());
            }
        }
    }

    /// The daemon stops: a turn that waits for a person stays as it is and waits again after the next start.
    pub(super) async fn halt(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
            // Its guard may hold a child process: ended here, not whenever the runtime gets to it.
            let _ = running.task.await;
            if self.asking.is_empty() {
                self.end(
                    TurnStatus::Interrupted,
                    "interrupted: the daemon stopped".to_owned(),
                )
                .await;
            }
        }
        for cancel in self.by_hand.values() {
            cancel.cancel();
        }
        self.store_held().await;
        self.feed.stop();
    }

    pub(super) fn vanish(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
        }
        for cancel in self.by_hand.values() {
            cancel.cancel();
        }
        self.feed.gone();
    }
}

/// What an open call is told when its turn ends like this.
fn why_open(status: TurnStatus) -> &'static str {
    match status {
        TurnStatus::Cancelled => "cancelled",
        TurnStatus::Failed => "not run: the turn failed before it",
        TurnStatus::Interrupted => "interrupted: the daemon stopped; outcome unknown",
        TurnStatus::Completed | TurnStatus::Refused | TurnStatus::MaxRounds => {
            "not run: the turn ended before it"
        }
    }
}
