//! Turns as the actor sees them: beginning, steps, retries, ends, and the queue behind them.

use super::{Actor, Draft, Running};
use crate::session::message::{Again, Reply};
use crate::session::port::Port;
use crate::session::restart;
use crate::session::state::{Token, thought_of};
use crate::session::{Prompt, SessionError, SessionResult, WhenBusy};
use crate::store::{Durability, Pace, StoreError};
use crate::turn::round::RoundEnd;
use crate::turn::step::{self, Step};
use crate::turn::{Context, Round, Work};
use protocol::event::{EventKind, TurnStatus};
use protocol::id::{CallId, MessageId, QueuedId, TurnId};
use protocol::session::Queued;
use protocol::turn::{Cancelled, Ended, Started};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

impl Actor {
    /// Puts in order what an earlier daemon left: waits go on, everything else is ended and said so.
    pub(super) async fn recover(&mut self) {
        let plan = restart::plan(&self.state, self.shared.services.limits.max_rounds);
        if !plan.drafts.is_empty()
            && self
                .record(plan.drafts, Durability::SyncSoon)
                .await
                .is_err()
        {
            return;
        }
        if let (restart::Turn::GoesOn, Some(turn)) = (plan.turn, &self.state.turn) {
            let turn = turn.id.clone();
            self.spawn_turn(turn, None);
        }
    }

    pub(super) async fn start(&mut self, prompt: Prompt, reply: Reply<Started>) {
        match self.admit(&prompt).await {
            Ok(Admission::Begin) => self.begin(prompt, Some(reply)).await,
            Ok(Admission::Enqueue) => super::send(reply, self.enqueue(prompt).await),
            Ok(Admission::EnqueueAndGoOn) => {
                let queued = self.enqueue(prompt).await;
                super::send(reply, queued);
                self.next_queued().await;
            }
            Ok(Admission::GoOn) => self.begin_queued(Some(reply)).await,
            Ok(Admission::Known(started)) => super::send(reply, Ok(started)),
            Err(error) => super::send(reply, Err(error)),
        }
    }

    async fn admit(&mut self, prompt: &Prompt) -> SessionResult<Admission> {
        if let Some(known) = prompt.token.as_ref().and_then(|t| self.state.tokens.get(t)) {
            return Ok(Admission::Known(started_of(known)));
        }
        if self.shared.services.stopping.load(Ordering::Relaxed) {
            return Err(SessionError::Stopping);
        }
        self.settle().await?;
        let blank = prompt.text.trim().is_empty() && prompt.images.is_empty();
        match (&self.state.turn, prompt.when_busy) {
            (Some(turn), WhenBusy::Refuse) => Err(SessionError::Busy {
                session: self.id.clone(),
                turn: turn.id.clone(),
            }),
            (None, _) if blank && !self.state.queue.is_empty() => Ok(Admission::GoOn),
            (_, _) if blank => Err(SessionError::Invalid(
                "text is empty: say what the turn is about".into(),
            )),
            (Some(_), WhenBusy::Queue) => Ok(Admission::Enqueue),
            (None, WhenBusy::Queue) if !self.state.queue.is_empty() => {
                Ok(Admission::EnqueueAndGoOn)
            }
            (None, WhenBusy::Queue | WhenBusy::Refuse) => Ok(Admission::Begin),
        }
    }

    async fn enqueue(&mut self, prompt: Prompt) -> SessionResult<Started> {
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

    async fn next_queued(&mut self) {
        if !self.state.queue.is_empty() && self.state.turn.is_none() && self.running.is_none() {
            self.begin_queued(None).await;
        }
    }

    async fn begin_queued(&mut self, reply: Option<Reply<Started>>) {
        let Some(Queued {
            queued,
            text,
            images,
            token,
            client,
            at: _,
        }) = self.state.queue.first().cloned()
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

    async fn begin(&mut self, prompt: Prompt, reply: Option<Reply<Started>>) {
        self.begin_after(Vec::new(), prompt, reply).await;
    }

    /// One commit for the turn and its first round trip; the answer goes out before any of its notifications.
    async fn begin_after(
        &mut self,
        before: Vec<Draft>,
        prompt: Prompt,
        reply: Option<Reply<Started>>,
    ) {
        let turn = self.state.next_turn(&self.id);
        let Prompt {
            text,
            images,
            token,
            client,
            when_busy: _,
        } = prompt;
        let message = self.state.next_message();
        let mut drafts = self.drain();
        drafts.extend(before);
        drafts.push((
            Some(turn.clone()),
            EventKind::TurnStarted {
                text,
                images,
                token,
                client,
            },
        ));
        let seq = self.state.seq + drafts.len() as u64;
        drafts.push((
            Some(turn.clone()),
            EventKind::RoundStarted {
                round: 1,
                message: message.clone(),
            },
        ));
        let committed = self.commit(drafts, Pace::Now, Durability::SyncSoon).await;
        let entries = match committed {
            Ok(entries) => entries,
            Err(error) => {
                if let Some(reply) = reply {
                    super::send(reply, Err(error.into()));
                }
                return;
            }
        };
        if let Some(reply) = reply {
            super::send(
                reply,
                Ok(Started {
                    turn: Some(turn.clone()),
                    queued: None,
                    seq,
                }),
            );
        }
        self.publish(entries);
        let work = Work::Model(Box::new(self.round(message)));
        self.spawn_turn(turn, Some(work));
    }

    fn spawn_turn(&mut self, turn: TurnId, work: Option<Work>) {
        let Some(mailbox) = self.own.upgrade() else {
            return;
        };
        let cancel = CancellationToken::new();
        let port = Arc::new(Port::new(self.handle_with(mailbox)));
        let context = Context {
            session: self.id.clone(),
            turn: turn.clone(),
            cwd: self.shared.cwd.clone(),
            env: Arc::clone(&self.shared.env),
            spill_dir: self.spill_dir(),
            toolbox: self.shared.workspace.toolbox(),
            cancel: cancel.clone(),
            port,
        };
        let task = tokio::spawn(crate::turn::run(context, work));
        self.set_running(Some(Running { turn, cancel, task }));
    }

    fn round(&self, message: MessageId) -> Round {
        Round {
            message,
            messages: self.messages(),
            provider: self.provider.clone(),
        }
    }

    pub(super) async fn next(&mut self) -> SessionResult<Work> {
        match step::next_step(&self.state, self.shared.services.limits.max_rounds) {
            Step::Idle => Ok(Work::Over),
            Step::CallModel(round) => {
                let message = self.state.next_message();
                let event = EventKind::RoundStarted {
                    round,
                    message: message.clone(),
                };
                self.record(vec![(self.turn_id(), event)], Durability::Committed)
                    .await?;
                Ok(Work::Model(Box::new(self.round(message))))
            }
            Step::RunCall(call) | Step::AwaitApproval(call, _) => Ok(self.call_work(&call)),
            Step::Finish(status, reply) => {
                self.end(status, reply).await;
                Ok(Work::Over)
            }
        }
    }

    fn call_work(&self, call: &CallId) -> Work {
        match self.state.open_calls.iter().find(|c| c.call == *call) {
            Some(open) => Work::Call {
                call: call.clone(),
                name: open.name.clone(),
                arguments: open.arguments.clone(),
            },
            None => Work::Over,
        }
    }

    /// The round trip ended well. Without calls and without a word from people the turn ends in the same commit.
    pub(super) async fn round_done(&mut self, end: RoundEnd) -> SessionResult<Work> {
        let Some(round) = self.state.turn.as_ref().and_then(|t| t.round.clone()) else {
            return Ok(Work::Over);
        };
        let (turn, message) = (self.turn_id(), round.message);
        let provider = self.row.provider.clone();
        let mut drafts: Vec<Draft> = Vec::new();
        let mut add = |kind| drafts.push((turn.clone(), kind));
        for block in end.signed {
            add(EventKind::Signed {
                message: message.clone(),
                provider: provider.clone(),
                block,
            });
        }
        if !end.text.is_empty() || end.calls == 0 {
            add(EventKind::Said {
                message,
                text: end.text.clone(),
            });
        }
        if let Some((input, output, cached)) = end.usage {
            add(EventKind::Usage {
                input,
                output,
                cached,
                window: end.window,
            });
        }
        if end.calls == 0 && !self.state.conversation.has_steers() {
            self.finish(TurnStatus::Completed, end.text, drafts).await?;
            return Ok(Work::Over);
        }
        self.record(drafts, Durability::Committed).await?;
        self.next().await
    }

    /// The draft is withdrawn and the same round trip begins anew.
    pub(super) async fn again(&mut self, again: Again) -> SessionResult<MessageId> {
        let Some((number, round)) = self
            .state
            .turn
            .as_ref()
            .and_then(|t| Some((t.rounds, t.round.clone()?)))
        else {
            return Err(SessionError::Invalid("no round trip is under way".into()));
        };
        let turn = self.turn_id();
        let mut drafts = self.drain();
        for draft in [thought_of(&round.message), round.message] {
            if self.streaming.contains_key(draft.as_str()) {
                drafts.push((turn.clone(), EventKind::Unsaid { message: draft }));
            }
        }
        let Again {
            attempt,
            after_ms,
            why,
        } = again;
        drafts.push((
            turn.clone(),
            EventKind::Retrying {
                attempt,
                after_ms,
                why,
            },
        ));
        let message = self.state.next_message();
        drafts.push((
            turn,
            EventKind::RoundStarted {
                round: number,
                message: message.clone(),
            },
        ));
        let entries = self
            .commit(drafts, Pace::Now, Durability::Committed)
            .await?;
        self.publish(entries);
        Ok(message)
    }

    pub(super) async fn steer(&mut self, text: String) -> SessionResult<u64> {
        if text.trim().is_empty() {
            return Err(SessionError::Invalid(
                "text is empty: say what the model should know".into(),
            ));
        }
        if self.state.turn.is_none() {
            let id = self.id.to_string();
            return Err(SessionError::NotFound {
                what: "running turn to steer in session",
                id,
            });
        }
        Ok(self
            .record(
                vec![(self.turn_id(), EventKind::Steered { text })],
                Durability::Synced,
            )
            .await?)
    }

    pub(super) async fn cancel(&mut self) -> SessionResult<Cancelled> {
        for cancel in self.by_hand.values() {
            cancel.cancel();
        }
        let Some(running) = &self.running else {
            self.settle().await?;
            return Ok(Cancelled { turn: None });
        };
        running.cancel.cancel();
        let turn = running.turn.clone();
        // The tool of a turn that waits for a person has nothing to stop: the wait itself ends.
        self.withdraw("the turn was cancelled");
        Ok(Cancelled { turn: Some(turn) })
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
    fn ended(&self, turn: TurnId, seq: u64, reply: Reply<Ended>) {
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

    async fn finish(
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
        let committed = self.commit(drafts, Pace::Now, Durability::SyncSoon).await;
        self.withdraw(why_open(status));
        self.set_running(None);
        let seq = match committed {
            Ok(entries) => {
                self.publish(entries);
                self.state.seq
            }
            Err(error) => {
                if let Some((_, EventKind::TurnEnded { reply, .. })) = owed.last_mut() {
                    *reply = format!("Error: {error}");
                }
                self.owed = owed;
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
        let goes_on = matches!(status, TurnStatus::Completed | TurnStatus::MaxRounds);
        if goes_on && !self.shared.services.stopping.load(Ordering::Relaxed) {
            Box::pin(self.next_queued()).await;
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

    fn set_running(&mut self, running: Option<Running>) {
        self.shared.busy.store(running.is_some(), Ordering::Relaxed);
        self.running = running;
    }

    fn answer_waiters(&mut self, turn: &TurnId, ended: &Ended) {
        for (of, reply) in std::mem::take(&mut self.waiters) {
            if of == *turn {
                super::send(reply, Ok(ended.clone()));
            } else {
                self.waiters.push((of, reply));
            }
        }
    }

    fn fail_waiters(&mut self, turn: &TurnId, error: &str) {
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

    pub(super) async fn call_done(
        &mut self,
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
    ) -> SessionResult<Work> {
        let max = self.shared.services.limits.max_rounds;
        let step = step::after_call(&self.state, &call, &result, max);
        let turn = self.turn_id();
        let mut drafts = vec![(turn.clone(), EventKind::Done { call, result, ms })];
        let cancelled = self
            .running
            .as_ref()
            .is_some_and(|r| r.cancel.is_cancelled());
        // The next round trip begins in the same commit, unless the turn is being stopped.
        let message = match step {
            Some(Step::CallModel(round)) if !cancelled => {
                let message = self.state.next_message();
                drafts.push((
                    turn,
                    EventKind::RoundStarted {
                        round,
                        message: message.clone(),
                    },
                ));
                Some(message)
            }
            _ => None,
        };
        self.record(drafts, Durability::SyncSoon).await?;
        match message {
            Some(message) => Ok(Work::Model(Box::new(self.round(message)))),
            None if cancelled => Ok(self.stopping_work()),
            None => self.next().await,
        }
    }

    /// A cancelled turn gets no new step; any work makes its task look at the token.
    fn stopping_work(&self) -> Work {
        Work::Call {
            call: "".into(),
            name: String::new(),
            arguments: json!({}),
        }
    }

    pub(super) fn turn_id(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|t| t.id.clone())
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
        self.feed.close();
    }

    pub(super) fn vanish(&mut self) {
        if let Some(running) = self.running.take() {
            running.task.abort();
        }
        for cancel in self.by_hand.values() {
            cancel.cancel();
        }
        self.feed.close();
    }
}

enum Admission {
    Begin,
    Enqueue,
    EnqueueAndGoOn,
    GoOn,
    Known(Started),
}

fn started_of(token: &Token) -> Started {
    match token {
        Token::Turn(turn, seq) => Started {
            turn: Some(turn.clone()),
            queued: None,
            seq: *seq,
        },
        Token::Queued(queued, seq) => Started {
            turn: None,
            queued: Some(queued.clone()),
            seq: *seq,
        },
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
