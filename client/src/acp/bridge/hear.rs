//! The task that hears one session: its events go to the editor in their order, and answers that belong behind them. Must
//! never answer a turn before all that it said.

use super::catalogue::Catalogue;
use super::old;
use super::question::Questions;
use super::session::{After, From, Open, Order, Pending};
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::update::{Prompted, Updates};
use crate::acp::peer::Responder;
use crate::approval::Question;
use crate::error::Failure;
use crate::follow::Follow;
use agent_client_protocol_schema::v1::{
    ConfigOptionUpdate, PromptResponse, SessionInfoUpdate, SessionUpdate, StopReason,
};
use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{QueuedId, TurnId};
use protocol::session::{Session, SessionRpcClient};
use std::rc::Rc;
use tokio::sync::mpsc;

/// The task that follows a session.
pub(super) struct Task {
    open: Rc<Open>,
    follow: Follow,
    updates: Updates,
    questions: Questions,
    catalogue: Rc<Catalogue>,
    /// Events up to this one were there when the session was opened: what they ask may have been answered behind them.
    live_from: u64,
    /// What the editor was told of it, or could read.
    title: String,
    /// The turn that ended last.
    ended: Option<(TurnId, TurnStatus, String)>,
    /// Answers that wait for an event.
    after: Vec<After>,
}

impl Task {
    pub(super) fn new(
        open: &Rc<Open>,
        catalogue: Rc<Catalogue>,
        session: Session,
        from: From,
    ) -> Self {
        let cursor = match from {
            From::Beginning => 0,
            From::Now => session.seq,
        };
        let mut questions = Questions::new(Rc::clone(open));
        if from == From::Now {
            questions.open(session.approvals.iter().map(Question::from));
        }
        Self {
            follow: Follow::new(Rc::clone(&open.link), session.id, cursor),
            updates: Updates::new(session.cwd.into(), open.notices),
            questions,
            catalogue,
            live_from: session.seq,
            title: session.title,
            ended: None,
            after: Vec::new(),
            open: Rc::clone(open),
        }
    }

    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        // While the daemon cannot be had, until somebody wants something of the session.
        let mut resting = false;
        let _over = loop {
            self.release().await;
            tokio::select! {
                event = self.follow.next(), if !resting => match event {
                    Ok(event) => self.event(event).await,
                    Err(failure) => {
                        resting = true;
                        self.fail(failure).await;
                    }
                },
                order = orders.recv() => {
                    resting = false;
                    match order {
                        Some(Order::After(after)) => self.after.push(after),
                        Some(Order::Turn(turn, reply)) => self.turn(turn, reply).await,
                        Some(Order::Wake) => {}
                        Some(Order::Shut(over)) => break Some(over),
                        None => break None,
                    }
                }
            }
        };
        self.close().await;
    }

    /// Says what has waited for the events that have come by now.
    async fn release(&mut self) {
        let cursor = self.follow.cursor();
        for after in std::mem::take(&mut self.after) {
            match after.seq <= cursor {
                true => {
                    after.reply.send(Ok::<_, Error>(after.result)).await;
                    let _ = after.said.send(());
                }
                false => self.after.push(after),
            }
        }
        if cursor >= self.live_from {
            self.questions.ask().await;
        }
    }

    async fn turn(&mut self, turn: TurnId, reply: Responder) {
        match &self.ended {
            Some((ended, status, words)) if *ended == turn => {
                reply.send(stop(*status, words, false)).await;
            }
            _ => self.open.prompts.borrow_mut().push(Pending {
                token: String::new(),
                turn: Some(turn),
                queued: None,
                cancelled: false,
                reply,
            }),
        }
    }

    async fn event(&mut self, event: Event) {
        let prompted = self.prompted(&event);
        if let (EventKind::TurnStarted { .. }, Prompted::Here) = (&event.kind, prompted) {
            self.stop_if_cancelled(&event).await;
        }
        if let EventKind::Doing {
            name, arguments, ..
        } = &event.kind
            && event.seq > self.live_from
        {
            let cwd = std::path::Path::new(&self.open.cwd);
            self.updates
                .before(old::of(&self.open.link, name, arguments, cwd));
        }
        for update in self.updates.of(&event, prompted) {
            self.open.send(update).await;
        }
        if let Some(question) = Question::of(&event) {
            self.questions.open([question]);
        }
        self.questions.settle(&event).await;
        match event.kind {
            EventKind::TurnStarted { .. } if self.title.is_empty() => self.titled().await,
            EventKind::Renamed { title } => self.title = title,
            EventKind::ProviderSwitched { .. } if event.seq > self.live_from => {
                self.switched().await
            }
            EventKind::Dequeued { queued } => self.dequeued(event.seq, &queued).await,
            EventKind::TurnEnded { status, reply } => {
                let Some(turn) = event.turn else { return };
                if let Some(pending) = self.open.take(|one| one.turn.as_ref() == Some(&turn)) {
                    let stop = stop(status, &reply, pending.cancelled);
                    pending.reply.send(stop).await;
                }
                self.ended = Some((turn, status, reply));
                let goes_on = matches!(status, TurnStatus::Completed | TurnStatus::MaxRounds);
                if !goes_on && event.seq > self.live_from {
                    self.open.go_on().await;
                }
            }
            _ => {}
        }
    }

    /// A prompt may be taken back while it leaves the queue.
    async fn stop_if_cancelled(&self, event: &Event) {
        let is_off = |one: &Pending| one.cancelled && one.turn == event.turn;
        let is_off = self.open.prompts.borrow().iter().any(is_off);
        if let Some(turn) = event.turn.as_ref().filter(|_| is_off)
            && event.seq > self.live_from
        {
            self.open.cancel_own(turn).await;
        }
    }

    /// Whose turn an event belongs to, where that makes a difference; learns what the editor's turns are called.
    fn prompted(&self, event: &Event) -> Prompted {
        let own = match &event.kind {
            EventKind::TurnStarted { token, .. } => {
                let learn = |one: &mut Pending| one.turn = event.turn.clone();
                let token = token.as_deref();
                token
                    .and_then(|token| self.open.with_token(token, learn))
                    .is_some()
            }
            EventKind::Queued { token, queued, .. } => {
                let learn = |one: &mut Pending| one.queued = Some(queued.clone());
                let token = token.as_deref();
                token
                    .and_then(|token| self.open.with_token(token, learn))
                    .is_some()
            }
            EventKind::TurnEnded { .. } => {
                let prompts = self.open.prompts.borrow();
                event.turn.is_some() && prompts.iter().any(|one| one.turn == event.turn)
            }
            _ => false,
        };
        match own {
            // What was before is shown whole to an editor that wants it anew.
            true if event.seq > self.live_from => Prompted::Here,
            _ => Prompted::Elsewhere,
        }
    }

    /// A prompt that left the queue became a turn with the next event, or somebody has taken it out.
    async fn dequeued(&self, seq: u64, queued: &QueuedId) {
        let id = self.open.id.clone();
        let own = |one: &Pending| one.queued.as_ref() == Some(queued);
        if !self.open.prompts.borrow().iter().any(own) {
            return;
        }
        let next = self
            .open
            .link
            .call(async |client| {
                SessionRpcClient::history(client, id.clone(), Some(seq), None, Some(1)).await
            })
            .await;
        let next = next
            .ok()
            .and_then(|history| history.events.into_iter().next());
        let begun = |one: &Pending| {
            matches!(&next, Some(Event { kind: EventKind::TurnStarted { token, .. }, .. })
                if token.as_deref() == Some(one.token.as_str()))
        };
        if let Some(pending) = self.open.take(|one| own(one) && !begun(one)) {
            let stop = PromptResponse::new(StopReason::Cancelled);
            pending.reply.send(Ok::<_, Error>(stop)).await;
        }
    }

    /// A session without a title takes one from its first prompt, which no event tells.
    async fn titled(&mut self) {
        let id = self.open.id.clone();
        let link = &self.open.link;
        let call = link.call(async |client| SessionRpcClient::get(client, id.clone()).await);
        let Ok(session) = call.await else { return };
        if !session.title.is_empty() {
            let info = SessionInfoUpdate::new().title(session.title.clone());
            self.title = session.title;
            self.open.send(SessionUpdate::SessionInfoUpdate(info)).await;
        }
    }

    async fn switched(&self) {
        let id = self.open.id.clone();
        let link = &self.open.link;
        let call = link.call(async |client| SessionRpcClient::get(client, id.clone()).await);
        if let Ok(session) = call.await {
            let options = self.catalogue.options(&session, self.open.mode.get()).await;
            let update = ConfigOptionUpdate::new(options);
            self.open
                .send(SessionUpdate::ConfigOptionUpdate(update))
                .await;
        }
    }

    /// Nobody waits for ever: what has not been answered is answered with why not. Questions stay: an answer to one may
    /// still reach the daemon.
    async fn fail(&mut self, why: Failure) {
        let why = error::from(why);
        while let Some(pending) = self.open.take(|_| true) {
            pending.reply.send(Err::<(), _>(why.clone())).await;
        }
        for after in std::mem::take(&mut self.after) {
            after.reply.send(Err::<(), _>(why.clone())).await;
        }
    }

    /// The editor has let go of the session.
    async fn close(mut self) {
        self.questions.forget().await;
        while let Some(pending) = self.open.take(|_| true) {
            let cancelled = PromptResponse::new(StopReason::Cancelled);
            pending.reply.send(Ok::<_, Error>(cancelled)).await;
        }
        for after in self.after {
            let gone = error::not_open(self.open.id.as_str());
            after.reply.send(Err::<(), _>(gone)).await;
        }
    }
}

/// How a turn's end is told to whoever asked for it.
fn stop(status: TurnStatus, reply: &str, cancelled: bool) -> Result<PromptResponse, Error> {
    let reason = match status {
        TurnStatus::Completed => StopReason::EndTurn,
        TurnStatus::Cancelled => StopReason::Cancelled,
        TurnStatus::MaxRounds => StopReason::MaxTurnRequests,
        _ if cancelled => StopReason::Cancelled,
        TurnStatus::Failed | TurnStatus::Interrupted | TurnStatus::Refused => {
            return Err(error::failed(reply));
        }
    };
    Ok(PromptResponse::new(reason))
}
