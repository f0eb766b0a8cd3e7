//! One session that the editor has open: its events go to the editor in their order, and whatever must come behind them is
//! said by the one task that sends them. Must never answer a turn before all that it said.

use super::choices::{Catalogue, Mode};
use super::old;
use super::question::Questions;
use crate::acp::convert::error::{self, Error};
use crate::acp::convert::update::{Prompted, Updates};
use crate::acp::peer::{Peer, Responder};
use crate::approval::Question;
use crate::error::Failure;
use crate::follow::Follow;
use crate::link::Link;
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, ConfigOptionUpdate,
    CurrentModeUpdate, PromptResponse, SessionModeState, SessionNotification, SessionUpdate,
    StopReason, UnstructuredCommandInput,
};
use protocol::command::CommandRpcClient;
use protocol::event::{Event, EventKind, Level, TurnStatus};
use protocol::id::{QueuedId, SessionId, TurnId};
use protocol::session::{QueueRpcClient, Session, SessionRpcClient};
use protocol::turn::TurnRpcClient;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

/// Answers that may wait for their place behind events; there is one for each request of the editor's.
const ORDERS: usize = 64;

/// From where an editor hears a session.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// All that it was.
    Beginning,
    /// What it is from now on.
    Now,
}

/// A session that is open here.
pub(super) struct Open {
    pub(super) id: SessionId,
    pub(super) cwd: String,
    pub(super) link: Rc<Link>,
    pub(super) mode: Cell<Mode>,
    peer: Rc<Peer>,
    notices: bool,
    /// The editor's turns that have not ended.
    prompts: RefCell<Vec<Pending>>,
    orders: mpsc::Sender<Order>,
}

/// A turn of the editor's.
pub(super) struct Pending {
    pub(super) token: String,
    pub(super) turn: Option<TurnId>,
    pub(super) queued: Option<QueuedId>,
    pub(super) cancelled: bool,
    pub(super) reply: Responder,
}

/// What is to be said behind events.
enum Order {
    /// An answer that comes behind the event with this number.
    After(After),
    /// The answer to whoever waits for a turn that somebody else began.
    Turn(TurnId, Responder),
    /// The editor wants something of the session: it is followed again where that had failed.
    Wake,
    /// The editor wants no more of this session.
    Shut,
}

/// An answer behind an event, and who waits until it is said.
struct After {
    seq: u64,
    reply: Responder,
    result: Value,
    said: oneshot::Sender<()>,
}

impl Open {
    /// Opens it.
    pub(super) fn start(
        link: Rc<Link>,
        peer: Rc<Peer>,
        catalogue: Rc<Catalogue>,
        session: Session,
        from: From,
        notices: bool,
    ) -> Rc<Self> {
        let (sender, orders) = mpsc::channel(ORDERS);
        let open = Rc::new(Self {
            id: session.id.clone(),
            cwd: session.cwd.clone(),
            link: Rc::clone(&link),
            mode: Cell::default(),
            peer,
            notices,
            prompts: RefCell::default(),
            orders: sender,
        });
        let cursor = match from {
            From::Beginning => 0,
            From::Now => session.seq,
        };
        let mut questions = Questions::new(Rc::clone(&open));
        if from == From::Now {
            questions.open(session.approvals.iter().map(Question::from));
        }
        let task = Task {
            follow: Follow::new(link, session.id, cursor),
            updates: Updates::new(session.cwd.into(), notices),
            questions,
            catalogue,
            live_from: session.seq,
            ended: None,
            after: Vec::new(),
            open: Rc::clone(&open),
        };
        spawn_local(task.run(orders));
        open
    }

    pub(super) fn modes(&self) -> SessionModeState {
        self.mode.get().state()
    }

    /// Changes what is answered to questions, and says so to an editor that shows modes.
    pub(super) async fn switch_mode(&self, mode: Mode) {
        self.mode.set(mode);
        let update = CurrentModeUpdate::new(mode.id());
        self.send(SessionUpdate::CurrentModeUpdate(update)).await;
    }

    /// Answers a request behind the event with this number, and returns when that is done.
    pub(super) async fn answer_after(&self, seq: u64, reply: Responder, result: Value) {
        let (said, done) = oneshot::channel();
        let after = After {
            seq,
            reply,
            result,
            said,
        };
        self.order(Order::After(after)).await;
        // It is dropped unsaid when the session is shut meanwhile.
        let _ = done.await;
    }

    /// Answers a request as the turn's end tells.
    pub(super) async fn answer_turn(&self, turn: TurnId, reply: Responder) {
        self.order(Order::Turn(turn, reply)).await;
    }

    async fn order(&self, order: Order) {
        let refused = self.orders.send(order).await.err();
        let reply = match refused.map(|error| error.0) {
            Some(Order::After(after)) => Some(after.reply),
            Some(Order::Turn(_, reply)) => Some(reply),
            Some(Order::Wake | Order::Shut) | None => None,
        };
        if let Some(reply) = reply {
            reply
                .send(Err::<(), _>(error::not_open(self.id.as_str())))
                .await;
        }
    }

    /// Waits for a turn's end, which is heard of however often the daemon was lost before.
    pub(super) async fn add(&self, pending: Pending) {
        self.prompts.borrow_mut().push(pending);
        self.order(Order::Wake).await;
    }

    /// The turn of this token, if it has not ended.
    pub(super) fn with_token<T>(
        &self,
        token: &str,
        tell: impl FnOnce(&mut Pending) -> T,
    ) -> Option<T> {
        let mut prompts = self.prompts.borrow_mut();
        let found = prompts.iter_mut().find(|one| one.token == token);
        found.map(tell)
    }

    pub(super) fn take(&self, is: impl Fn(&Pending) -> bool) -> Option<Pending> {
        let mut prompts = self.prompts.borrow_mut();
        let at = prompts.iter().position(is)?;
        Some(prompts.remove(at))
    }

    /// Whether a turn waits under this id of the editor's.
    pub(super) fn asked(&self, id: &Value) -> bool {
        self.prompts.borrow().iter().any(|one| one.reply.is(id))
    }

    /// Stops the turn that runs, and takes the editor's others out of the queue. Their ends answer them.
    pub(super) async fn cancel(&self) {
        let mut waiting = Vec::new();
        for one in self.prompts.borrow_mut().iter_mut() {
            one.cancelled = true;
            waiting.extend(one.queued.clone().filter(|_| one.turn.is_none()));
        }
        for queued in waiting {
            let _ = self
                .link
                .call(async |client| {
                    QueueRpcClient::queue_remove(client, self.id.clone(), queued.clone()).await
                })
                .await;
        }
        self.cancel_turn().await;
    }

    pub(super) async fn cancel_turn(&self) {
        let call = self
            .link
            .call(async |client| TurnRpcClient::cancel(client, self.id.clone()).await);
        if let Err(failure) = call.await {
            self.tell(Level::Error, &failure.message).await;
        }
    }

    /// Lets go of it; the session lives on.
    pub(super) fn shut(&self) {
        // A full queue is emptied by a task that sees it closed as soon as it has written what it holds.
        let _ = self.orders.try_send(Order::Shut);
    }

    /// Something the person should know.
    pub(super) async fn tell(&self, level: Level, text: &str) {
        let updates = Updates::new(self.cwd.clone().into(), self.notices);
        for update in updates.notice(level, text) {
            self.send(update).await;
        }
    }

    pub(super) async fn send(&self, update: SessionUpdate) {
        let id = self.id.as_str().to_owned();
        self.peer
            .notify("session/update", &SessionNotification::new(id, update))
            .await;
    }

    pub(super) async fn tell_commands(&self) {
        let call = self
            .link
            .call(async |client| CommandRpcClient::list(client, self.id.clone()).await);
        let Ok(commands) = call.await else { return };
        let shown = |command: protocol::command::CommandInfo| {
            let name = command.name.trim_start_matches('/').to_owned();
            let input = UnstructuredCommandInput::new("what the command takes, if anything");
            AvailableCommand::new(name, command.description)
                .input(AvailableCommandInput::Unstructured(input))
        };
        let update = AvailableCommandsUpdate::new(commands.into_iter().map(shown).collect());
        self.send(SessionUpdate::AvailableCommandsUpdate(update))
            .await;
    }

    pub(super) fn peer(&self) -> &Rc<Peer> {
        &self.peer
    }
}

/// The task that follows a session.
struct Task {
    open: Rc<Open>,
    follow: Follow,
    updates: Updates,
    questions: Questions,
    catalogue: Rc<Catalogue>,
    /// Events up to this one were there when the session was opened: what they ask may have been answered behind them.
    live_from: u64,
    /// The turn that ended last.
    ended: Option<(TurnId, TurnStatus, String)>,
    /// Answers that wait for an event.
    after: Vec<After>,
}

impl Task {
    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        // While the daemon cannot be had, until somebody wants something of the session.
        let mut resting = false;
        loop {
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
                        Some(Order::Shut) | None => break,
                    }
                }
            }
        }
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
            }
            _ => {}
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
        if own {
            Prompted::Here
        } else {
            Prompted::Elsewhere
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
