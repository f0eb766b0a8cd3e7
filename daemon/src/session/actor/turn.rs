//! Turns as the actor sees them: beginning, steps, retries.

use super::{Actor, Draft, Running};
use crate::presentation::Toolkit;
use crate::provider::Message;
use crate::session::message::{Again, Reply};
use crate::session::port::Port;
use crate::session::state::{Token, thought_of};
use crate::session::{Prompt, SessionError, SessionResult, WhenBusy, restart};
use crate::store::{Durability, Pace};
use crate::toolbox::{BoxFuture, Toolbox};
use crate::turn::compaction::Fill;
use crate::turn::round::RoundEnd;
use crate::turn::step::{self, Step};
use crate::turn::{Context, Round, Work, prompt};
use protocol::event::{EventKind, TurnStatus};
use protocol::id::{CallId, MessageId, TurnId};
use protocol::turn::Started;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

impl Actor {
    /// Puts in order what an earlier daemon left: waits go on, everything else is ended and said so.
    pub(super) async fn recover(&mut self) {
        let max_rounds = self.shared.services.limits.now().max_rounds;
        let plan = restart::plan(&self.state, max_rounds, self.waits());
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
            let tools = self.read_tools();
            self.spawn_turn(turn, None, tools);
        }
    }

    /// The first turn of a sub-session is its task; any later one is a person's.
    fn waits(&self) -> restart::Waits {
        match self.shared.task.is_some() && self.state.counters.turns == 1 {
            true => restart::Waits::ForNobody,
            false => restart::Waits::ForPeople,
        }
    }

    pub(super) async fn start(&mut self, prompt: Prompt, reply: Reply<Started>) {
        match self.admit(&prompt).await {
            Ok(Admission::Begin) => self.begin(prompt, Some(reply)).await,
            Ok(Admission::Enqueue) => super::send(reply, self.enqueue(prompt).await),
            Ok(Admission::EnqueueAndGoOn) => {
                let queued = self.enqueue(prompt).await;
                super::send(reply, queued);
                self.next_queued(None).await;
            }
            Ok(Admission::EnqueueAfterCancel) => {
                let queued = self.enqueue(prompt).await;
                let id = queued
                    .as_ref()
                    .ok()
                    .and_then(|started| started.queued.clone());
                self.after_cancel.queued = self.after_cancel.queued.take().or(id);
                super::send(reply, queued);
            }
            Ok(Admission::AwaitCancelled) => self.after_cancel.start = Some((prompt, reply)),
            Ok(Admission::GoOn) => self.begin_queued(None, Some(reply)).await,
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
        let cancelled = self.is_cancelled();
        let awaited = self.after_cancel.start.is_some();
        match (&self.state.turn, prompt.when_busy) {
            (Some(_), WhenBusy::Refuse) if cancelled && !awaited && !blank => {
                Ok(Admission::AwaitCancelled)
            }
            (Some(turn), WhenBusy::Refuse) => Err(SessionError::Busy {
                session: self.id.clone(),
                turn: turn.id.clone(),
            }),
            (None, _) if blank && !self.state.queue.is_empty() => Ok(Admission::GoOn),
            (_, _) if blank => Err(SessionError::Invalid(
                "text is empty: say what the turn is about".into(),
            )),
            (Some(_), WhenBusy::Queue) if cancelled => Ok(Admission::EnqueueAfterCancel),
            (Some(_), WhenBusy::Queue) => Ok(Admission::Enqueue),
            (None, WhenBusy::Queue) if !self.state.queue.is_empty() => {
                Ok(Admission::EnqueueAndGoOn)
            }
            (None, WhenBusy::Queue | WhenBusy::Refuse) => Ok(Admission::Begin),
        }
    }

    pub(super) async fn begin(&mut self, prompt: Prompt, reply: Option<Reply<Started>>) {
        self.begin_after(Vec::new(), prompt, reply).await;
    }

    /// One commit for the turn and its first round trip; the answer goes out before any of its notifications.
    pub(super) async fn begin_after(
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
        // Files are read while the turn's beginning is committed.
        let system = self.read_prompt(Some(turn.clone()));
        let tools = self.read_tools();
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
        let work = Work::Model(Box::new(self.round(message, system)));
        self.spawn_turn(turn, Some(work), tools);
    }

    /// The turn keeps the tools that it begins with to its end.
    fn spawn_turn(
        &mut self,
        turn: TurnId,
        work: Option<Work>,
        tools: JoinHandle<(Arc<dyn Toolkit>, Vec<String>)>,
    ) {
        let Some(mailbox) = self.own.upgrade() else {
            return;
        };
        let cancel = CancellationToken::new();
        let port = Arc::new(Port::new(self.handle_with(mailbox)));
        let mut context = Context {
            session: self.id.clone(),
            turn: turn.clone(),
            cwd: self.shared.cwd.clone(),
            env: Arc::clone(&self.shared.env),
            spill_dir: self.spill_dir(),
            toolkit: Arc::new(Toolbox::default()),
            max_reply_bytes: self.shared.services.limits.now().max_reply_bytes,
            compact_at_percent: self.shared.services.limits.now().compact_at_percent,
            cancel: cancel.clone(),
            port,
        };
        let shared = Arc::clone(&self.shared);
        let task = tokio::spawn(async move {
            // Who cancels does not wait for the tools, and needs none.
            tokio::select! {
                read = tools => {
                    let known = |_| shared.present(shared.workspace.toolbox());
                    let (toolkit, missing) = read.unwrap_or_else(known);
                    context.toolkit = toolkit;
                    missing.iter().for_each(|missing| context.port.warn(missing));
                }
                () = context.cancel.cancelled() => {}
            }
            crate::turn::run(context, work).await;
        });
        self.set_running(Some(Running {
            turn,
            cancel,
            task,
            _work: self.shared.services.activity.work(),
        }));
    }

    /// Begins to read the session's tools, as their files are now.
    fn read_tools(&self) -> JoinHandle<(Arc<dyn Toolkit>, Vec<String>)> {
        let shared = Arc::clone(&self.shared);
        tokio::spawn(async move { shared.present(shared.tools().await) })
    }

    /// Begins to read the system prompt: files are read while the round trip's beginning is committed.
    fn read_prompt(&self, turn: Option<TurnId>) -> BoxFuture<'static, String> {
        if self.shared.agent.is_none() {
            let reading = self.shared.workspace.guidance();
            return Box::pin(async { prompt::system(None, reading.await.as_deref()) });
        }
        let (shared, live) = (Arc::clone(&self.shared), Arc::clone(&self.live));
        let spill_dir = self.spill_dir();
        Box::pin(async move {
            let turn = turn.as_ref().map(|turn| (turn, &*live));
            shared.system(turn, spill_dir).await
        })
    }

    fn round(&self, message: MessageId, prompt: BoxFuture<'static, String>) -> Round {
        let used = self.state.usage.map(|usage| usage.input + usage.output);
        let floor = self.state.floor;
        Round {
            fill: Fill { used, floor },
            message,
            messages: self.messages(),
            provider: self.provider.clone(),
            prompt,
        }
    }

    pub(super) async fn next(&mut self) -> SessionResult<Work> {
        match step::next_step(&self.state, self.shared.services.limits.now().max_rounds) {
            Step::Idle => Ok(Work::Over),
            Step::CallModel(round) => {
                let message = self.state.next_message();
                let event = EventKind::RoundStarted {
                    round,
                    message: message.clone(),
                };
                let system = self.read_prompt(self.turn_id());
                self.record(vec![(self.turn_id(), event)], Durability::Committed)
                    .await?;
                Ok(Work::Model(Box::new(self.round(message, system))))
            }
            Step::RunCall(call) | Step::AwaitApproval(call, _) => Ok(self.call_work(&call)),
            Step::Finish(status, reply) => {
                self.end(status, reply).await;
                Ok(Work::Over)
            }
        }
    }

    pub(super) fn call_work(&self, call: &CallId) -> Work {
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
        let mut drafts: Vec<Draft> = Vec::new();
        let mut add = |kind| drafts.push((turn.clone(), kind));
        for block in end.signed {
            add(EventKind::Signed {
                message: message.clone(),
                provider: end.provider.clone(),
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

    /// The model goes on with a summary, in the round trip that is under way.
    pub(super) async fn compacted(
        &mut self,
        summary: String,
        usage: Option<(u64, u64, u64)>,
    ) -> SessionResult<Vec<Message>> {
        let turn = self.turn_id();
        let cost = usage.map(|(input, output, cached)| EventKind::Usage {
            input,
            output,
            cached,
            window: None,
        });
        let events = cost.into_iter().chain([EventKind::Compacted { summary }]);
        let drafts = events.map(|kind| (turn.clone(), kind)).collect();
        self.record(drafts, Durability::SyncSoon).await?;
        Ok(self.messages())
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

    pub(super) async fn call_done(
        &mut self,
        call: CallId,
        result: Map<String, Value>,
        ms: u64,
    ) -> SessionResult<Work> {
        let max = self.shared.services.limits.now().max_rounds;
        let step = step::after_call(&self.state, &call, &result, max);
        let turn = self.turn_id();
        let mut drafts = restart::ending(&self.state, call, turn.clone(), result, ms);
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
                Some((message, self.read_prompt(self.turn_id())))
            }
            _ => None,
        };
        self.record(drafts, Durability::SyncSoon).await?;
        match message {
            Some((message, system)) => Ok(Work::Model(Box::new(self.round(message, system)))),
            None if cancelled => Ok(self.stopping_work()),
            None => self.next().await,
        }
    }

    /// A cancelled turn gets no new step; any work makes its task look at the token.
    pub(super) fn stopping_work(&self) -> Work {
        Work::Call {
            call: "".into(),
            name: String::new(),
            arguments: json!({}),
        }
    }

    pub(super) fn turn_id(&self) -> Option<TurnId> {
        self.state.turn.as_ref().map(|t| t.id.clone())
    }
}

pub(super) enum Admission {
    Begin,
    Enqueue,
    EnqueueAndGoOn,
    GoOn,
    /// The turn that runs is cancelled: what is queued now goes on when it has ended.
    EnqueueAfterCancel,
    /// As that, without a place in the queue.
    AwaitCancelled,
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
