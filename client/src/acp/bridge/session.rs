//! One session that the editor has open, and the editor's turns in it. Must never touch a turn of somebody else, but by the
//! session's own cancel.

use super::catalogue::Catalogue;
use super::choices::Mode;
use super::commands::Commands;
use super::hear::Task;
use crate::acp::convert::error::{self};
use crate::acp::convert::prompt::Prompt;
use crate::acp::convert::update::Updates;
use crate::acp::peer::{Peer, Responder};
use crate::link::Link;
use agent_client_protocol_schema::v1::{
    AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, CurrentModeUpdate,
    SessionModeState, SessionNotification, SessionUpdate, UnstructuredCommandInput,
};
use jsonrpsee::core::client::Error as CallError;
use protocol::command::CommandRpcClient;
use protocol::event::Level;
use protocol::id::{QueuedId, SessionId, TurnId};
use protocol::session::{QueueRpcClient, Session};
use protocol::tool::ToolRpcClient;
use protocol::turn::TurnRpcClient;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_local;

/// Answers that may wait for their place behind events; there is one for each request of the editor's.
const ORDERS: usize = 64;

/// How long what is due to the editor may hold up the answer to its letting go of a session.
const PARTING: Duration = Duration::from_secs(1);

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
    /// Whether the editor shows notices.
    pub(super) notices: bool,
    /// The editor's turns that have not ended.
    pub(super) prompts: RefCell<Vec<Pending>>,
    /// The editor's slash commands that have not ended.
    pub(super) commands: Commands,
    /// The turn that a cancel hit last. Held while one is under way.
    stopped: tokio::sync::Mutex<Option<TurnId>>,
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
pub(super) enum Order {
    /// An answer that comes behind the event with this number.
    After(After),
    /// The answer to whoever waits for a turn that somebody else began.
    Turn(TurnId, Responder),
    /// The editor wants something of the session: it is followed again where that had failed.
    Wake,
    /// The editor wants no more of this session. Dropped when all that was due to it has been said.
    Shut(oneshot::Sender<()>),
}

/// An answer behind an event, and who waits until it is said.
pub(super) struct After {
    pub(super) seq: u64,
    pub(super) reply: Responder,
    pub(super) result: Value,
    pub(super) said: oneshot::Sender<()>,
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
            link,
            mode: Cell::default(),
            peer,
            notices,
            prompts: RefCell::default(),
            commands: Commands::default(),
            stopped: tokio::sync::Mutex::default(),
            orders: sender,
        });
        let task = Task::new(&open, catalogue, session, from);
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
        // It counts for questions that wait, too.
        self.order(Order::Wake).await;
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
            Some(Order::Wake | Order::Shut(_)) | None => None,
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

    /// The turns that have not ended, for whoever answers them from now on.
    pub(super) fn take_all(&self) -> Vec<Pending> {
        std::mem::take(&mut *self.prompts.borrow_mut())
    }

    /// Stops the turn that runs, and takes the editor's others out of the queue. Their ends answer them.
    pub(super) async fn cancel(&self) {
        self.commands.cancel(|_| true);
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

    /// Begins a turn of the editor's, or has it wait behind the one that runs.
    pub(super) async fn begin(&self, token: &str, prompt: &Prompt) {
        let started = self.link.call(async |client| {
            // It was answered meanwhile that no daemon can be had: what is told to have failed must not run later.
            if self.with_token(token, |_| ()).is_none() {
                return Err(CallError::Custom("nobody waits for the turn".to_owned()));
            }
            let (id, text, token) = (self.id.clone(), prompt.text.clone(), token.to_owned());
            let images = Some(prompt.images.clone()).filter(|images| !images.is_empty());
            TurnRpcClient::start(client, id, text, images, Some(token), Some(true), None).await
        });
        let failure = match started.await {
            Ok(started) => {
                let cancelled = self.with_token(token, |one| {
                    one.turn = one.turn.take().or(started.turn);
                    one.queued = one.queued.take().or(started.queued);
                    one.cancelled
                });
                // The cancel came when there was nothing to cancel yet.
                if cancelled == Some(true) {
                    self.withdraw(|one| one.token == token).await;
                }
                return;
            }
            Err(failure) => failure,
        };
        if let Some(pending) = self.take(|one| one.token == token) {
            let error = Err::<(), _>(error::from(failure));
            pending.reply.send(error).await;
        }
    }

    /// What waits behind a turn that came to no good end would wait until somebody says something else: the queue goes on
    /// as it stands, the first in it first.
    pub(super) async fn go_on(&self) {
        let waits = |one: &Pending| !one.cancelled && one.turn.is_none() && one.queued.is_some();
        if !self.prompts.borrow().iter().any(waits) {
            return;
        }
        let go_on = self.link.call(async |client| {
            let (id, nothing) = (self.id.clone(), String::new());
            TurnRpcClient::start(client, id, nothing, None, None, None, None).await
        });
        // It went on by itself, or somebody else saw to it.
        let _ = go_on.await;
    }

    /// Takes back one turn of the editor's: out of the queue, or stopped if it runs. No other is touched.
    pub(super) async fn withdraw(&self, is: impl Fn(&Pending) -> bool) {
        let mark = |one: &mut Pending| {
            one.cancelled = true;
            (one.turn.clone(), one.queued.clone())
        };
        let found = self
            .prompts
            .borrow_mut()
            .iter_mut()
            .find(|one| is(one))
            .map(mark);
        match found {
            Some((Some(turn), _)) => self.cancel_own(&turn).await,
            Some((None, Some(queued))) => {
                let call = self.link.call(async |client| {
                    QueueRpcClient::queue_remove(client, self.id.clone(), queued.clone()).await
                });
                // It may have begun meanwhile: then its beginning finds it cancelled.
                let _ = call.await;
            }
            // What becomes of it is not known yet; whoever learns it finds it cancelled.
            Some((None, None)) | None => {}
        }
    }

    /// Stops this turn, unless that is under way: a second cancel would hit the prompt behind it.
    pub(super) async fn cancel_own(&self, turn: &TurnId) {
        let stopped = self.stopped.lock().await;
        if stopped.as_ref() != Some(turn) {
            self.stop(stopped).await;
        }
    }

    pub(super) async fn cancel_turn(&self) {
        let stopped = self.stopped.lock().await;
        self.stop(stopped).await;
    }

    async fn stop(&self, mut stopped: tokio::sync::MutexGuard<'_, Option<TurnId>>) {
        let call = self
            .link
            .call(async |client| TurnRpcClient::cancel(client, self.id.clone(), None).await);
        match call.await {
            Ok(cancelled) => *stopped = cancelled.turn,
            Err(failure) => self.tell(Level::Error, &failure.message).await,
        }
    }

    /// Lets go of it; the session lives on. Gives what resolves when the editor has its answers.
    pub(super) fn shut(&self) -> impl Future<Output = ()> + use<> {
        let (over, done) = oneshot::channel();
        // A full queue is emptied by a task that sees it closed as soon as it has written what it holds.
        let _ = self.orders.try_send(Order::Shut(over));
        async {
            let _ = tokio::time::timeout(PARTING, done).await;
        }
    }

    /// Something the person should know.
    pub(super) async fn tell(&self, level: Level, text: &str) {
        let updates = Updates::new(self.cwd.clone().into(), self.notices);
        for update in updates.notice(level, text) {
            self.send(update).await;
        }
    }

    /// Says where it works, should the editor have another directory in mind.
    pub(super) async fn tell_place(&self, cwd: &str) {
        if cwd != self.cwd {
            let note = format!("this session works in {}, not in {cwd}", self.cwd);
            self.tell(Level::Warning, &note).await;
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

    /// What of its tools is not there: servers that did not start, files that cannot be read.
    pub(super) async fn tell_problems(&self) {
        let call = self
            .link
            .call(async |client| ToolRpcClient::list(client, self.id.clone(), None).await);
        // A session without tools is still one to talk in.
        let Ok(list) = call.await else { return };
        for problem in list.problems {
            self.tell(Level::Warning, &problem).await;
        }
    }

    pub(super) fn peer(&self) -> &Rc<Peer> {
        &self.peer
    }
}
