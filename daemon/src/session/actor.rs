//! The actor of one session, its only writer: commit, then apply, then publish.
//! Must never wait for a client, a model or a tool.

mod approval;
mod call;
mod end;
mod held;
mod queue;
mod stream;
mod turn;
mod view;

use super::live::Live;
use super::manager::WeakSessions;
use super::message::{Guard, Handle, Msg, Reply};
use super::services::Services;
use super::state::State;
use super::subscriber::Feed;
use super::task::Task;
use super::{SessionError, SessionResult};
use crate::memory::Work;
use crate::provider::Provider;
use crate::store::{Durability, Entry, Pace, SessionRow, StoreError};
use crate::toolbox::Verdict;
use crate::toolbox::source::script::agent::Choice;
use crate::workspace::Workspace;
use crate::workspace::servers::Own;
use end::AfterCancel;
use held::Held;
use protocol::event::{Event, EventKind};
use protocol::expression::Expression;
use protocol::id::{ApprovalId, CallId, SessionId, TurnId};
use protocol::turn::Ended;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What an actor and those who hold its handle share, fixed while it is loaded.
pub struct Shared {
    pub id: SessionId,
    pub services: Arc<Services>,
    pub workspace: Arc<Workspace>,
    pub cwd: PathBuf,
    pub env: Arc<BTreeMap<String, String>>,
    pub agent: Option<Choice>,
    /// What it works for, where it is a sub-session.
    pub task: Option<Task>,
    /// All sessions, for those that calls of this one need.
    pub sessions: WeakSessions,
    /// How its tools are shown, where somebody said it.
    pub toolbox: Option<Expression>,
    /// MCP servers of its own, where a client named some. Held for a look only.
    pub own_servers: std::sync::Mutex<Option<Arc<Own>>>,
    /// What the agent is told in a turn, so that a round trip does not ask for it again.
    pub told: tokio::sync::Mutex<Option<(TurnId, String)>>,
    /// Whether a turn runs or waits.
    pub busy: AtomicBool,
    /// When the session was last asked for, in milliseconds since the Unix epoch.
    pub used_at: AtomicU64,
}

/// An event without its place in the log.
pub type Draft = (Option<TurnId>, EventKind);

pub struct Actor {
    id: SessionId,
    shared: Arc<Shared>,
    state: State,
    row: SessionRow,
    feed: Arc<Feed>,
    live: Arc<Live>,
    mailbox: mpsc::Receiver<Box<Msg>>,
    /// What came while pieces were being stored, in front of the mailbox.
    next: Option<Box<Msg>>,
    /// Weak, so that the actor does not keep itself in memory.
    own: mpsc::WeakSender<Box<Msg>>,
    provider: Option<Arc<dyn Provider>>,
    running: Option<Running>,
    /// What was asked since the running turn was cancelled.
    after_cancel: AfterCancel,
    /// Who waits for the end of a turn.
    waiters: Vec<(TurnId, Reply<Ended>)>,
    /// Calls that wait for people.
    asking: HashMap<ApprovalId, oneshot::Sender<Result<Verdict, String>>>,
    /// Calls that no model made, and what stops them.
    by_hand: HashMap<CallId, CancellationToken>,
    /// How far the pieces of each streaming message, thought or call have come, in Unicode scalar values.
    streaming: HashMap<String, u64>,
    /// The end of a turn that the store could not take yet.
    owed: Vec<Draft>,
    /// What calls of programs left to be stored with what follows.
    held: Held,
    /// How many calls each running call has made.
    children: HashMap<CallId, u32>,
    quiet: Vec<oneshot::Sender<()>>,
}

struct Running {
    turn: TurnId,
    cancel: CancellationToken,
    task: JoinHandle<()>,
    _work: Work,
}

/// Whether the loop goes on.
enum Flow {
    On,
    Ended,
}

/// What an actor starts from.
pub struct Loaded {
    pub row: SessionRow,
    pub state: State,
    pub shared: Shared,
    pub provider: Option<Arc<dyn Provider>>,
}

/// An actor, to be run by whoever keeps track of them, and its handle. It ends by `Halt`, `Vanish`, or when the manager
/// lets it go.
pub fn actor(loaded: Loaded) -> (Handle, impl Future<Output = ()> + Send) {
    let (sender, mailbox) = mpsc::channel(super::message::MAILBOX);
    let id = loaded.row.id.clone();
    let shared = Arc::new(loaded.shared);
    let left = Arc::clone(&shared.services.left);
    let (feed, live) = (
        Arc::new(Feed::new(loaded.state.seq, left)),
        Arc::new(Live::default()),
    );
    let actor = Actor {
        id: id.clone(),
        shared: Arc::clone(&shared),
        state: loaded.state,
        // The store keeps what a session was made with; here it would only take room.
        row: SessionRow {
            settings: String::new(),
            ..loaded.row
        },
        feed: Arc::clone(&feed),
        live: Arc::clone(&live),
        mailbox,
        next: None,
        own: sender.downgrade(),
        provider: loaded.provider,
        running: None,
        after_cancel: AfterCancel::default(),
        waiters: Vec::new(),
        asking: HashMap::new(),
        by_hand: HashMap::new(),
        streaming: HashMap::new(),
        owed: Vec::new(),
        held: Held::default(),
        children: HashMap::new(),
        quiet: Vec::new(),
    };
    let handle = Handle {
        id,
        mailbox: sender,
        feed,
        live,
        shared,
    };
    (handle, actor.run())
}

impl Actor {
    async fn run(mut self) {
        // What works is on the heap while it works, so that a session that rests is small.
        Box::pin(self.recover()).await;
        let live = Arc::clone(&self.live);
        loop {
            let message = match self.next.take() {
                Some(message) => Some(message),
                None => tokio::select! {
                    biased;
                    message = self.mailbox.recv() => message,
                    () = live.filled() => {
                        Box::pin(self.flush()).await;
                        continue;
                    }
                    () = self.held.due() => {
                        Box::pin(self.store_held()).await;
                        continue;
                    }
                },
            };
            let Some(message) = message else {
                return Box::pin(self.store_held()).await;
            };
            if let Flow::Ended = Box::pin(self.handle(*message)).await {
                return;
            }
        }
    }

    /// The table of what an actor does.
    async fn handle(&mut self, message: Msg) -> Flow {
        match message {
            Msg::Start(prompt, reply) => self.start(prompt, reply).await,
            Msg::Steer(text, reply) => send(reply, self.steer(text).await),
            Msg::Cancel(turn, reply) => send(reply, self.cancel(turn.as_ref()).await),
            Msg::CancelCall(call, reply) => {
                self.cancel_by_hand(&call);
                send(reply, Ok(()));
            }
            Msg::Wait(turn, reply) => self.wait(turn, reply),
            Msg::Record(kind, guard, reply) => send(reply, self.record_one(kind, guard).await),
            Msg::Answer(answering, reply) => send(reply, self.answer(answering).await),
            Msg::Unqueue(queued, reply) => send(reply, self.unqueue(queued).await),
            Msg::Switch {
                name,
                model,
                provider,
                reply,
            } => send(reply, self.switch(name, model, provider).await),
            Msg::View(reply) => send(reply, Ok(self.view())),
            Msg::Queue(reply) => send(reply, Ok(self.state.queue.clone())),
            Msg::Approvals(reply) => {
                send(reply, Ok(self.state.approvals.values().cloned().collect()))
            }
            Msg::Conversation(reply) => send(reply, Ok(self.messages())),
            Msg::Grants(reply) => send(reply, Ok(self.state.grants.clone())),
            Msg::Instance(reply) => send(reply, Ok(self.instance())),
            Msg::Next(reply) => send(reply, self.next().await),
            Msg::Built(provider) => self.provider = Some(provider),
            Msg::RoundDone(end, reply) => send(reply, self.round_done(end).await),
            Msg::Again(again, reply) => send(reply, self.again(again).await),
            Msg::Compacted {
                summary,
                usage,
                reply,
            } => send(reply, self.compacted(summary, usage).await),
            Msg::CallDone {
                call,
                result,
                ms,
                reply,
            } => send(reply, self.call_done(call, result, ms).await),
            Msg::End(status, text, reply) => {
                self.end(status, text).await;
                send(reply, Ok(()));
            }
            Msg::ByHand(call, reply) => send(reply, self.begin_by_hand(call).await),
            Msg::ByHandDone {
                call,
                result,
                ms,
                reply,
            } => send(reply, self.end_by_hand(call, result, ms).await),
            Msg::Ask(asking, reply) => self.ask(asking, reply).await,
            Msg::Started(call, access, reply) => self.call_started(call, access, reply).await,
            Msg::Recorded(reply) => send(reply, self.recorded().await),
            Msg::Relay(call, kind, reply) => send(reply, self.relay(call, kind).await),
            Msg::Settings(settings, reply) => send(reply, self.keep_settings(settings).await),
            Msg::Archive(archived, reply) => send(reply, self.archive(archived).await),
            Msg::Quiet(reply) => self.when_quiet(reply),
            Msg::Halt(reply) => {
                self.halt().await;
                let _ = reply.send(());
                return Flow::Ended;
            }
            Msg::Vanish(reply) => {
                self.vanish();
                let _ = reply.send(());
                return Flow::Ended;
            }
        }
        Flow::On
    }

    /// Stores what was streamed since the last time.
    async fn flush(&mut self) {
        let durability = match self.held.is_empty() {
            true => Durability::Committed,
            false => Durability::SyncSoon,
        };
        let drafts = self.drain();
        if drafts.is_empty() {
            return;
        }
        match self.commit(drafts, Pace::Floor, durability).await {
            Ok(entries) => self.publish(entries),
            Err(error) => self.fail_turn(&error).await,
        }
    }

    /// Commits, applies and publishes; what was streamed before comes first. Returns the last event's number.
    async fn record(
        &mut self,
        drafts: Vec<Draft>,
        durability: Durability,
    ) -> Result<u64, StoreError> {
        let mut all = self.drain();
        all.extend(drafts);
        let entries = self.commit(all, Pace::Now, durability).await?;
        self.publish(entries);
        Ok(self.state.seq)
    }

    async fn record_one(&mut self, kind: EventKind, guard: Guard) -> SessionResult<u64> {
        if let (Guard::WhenIdle, Some(turn)) = (guard, &self.state.turn) {
            return Err(SessionError::Busy {
                session: self.id.clone(),
                turn: turn.id.clone(),
            });
        }
        let turn = self.state.turn.as_ref().map(|t| t.id.clone());
        Ok(self
            .record(vec![(turn, kind)], Durability::SyncSoon)
            .await?)
    }

    /// Commits and applies. Nothing of it has been seen by anybody when it fails.
    async fn commit(
        &mut self,
        drafts: Vec<Draft>,
        pace: Pace,
        durability: Durability,
    ) -> Result<Vec<Entry>, StoreError> {
        let at = now_ms();
        let mut seq = self.state.seq;
        let place = |(turn, kind): Draft| {
            seq += 1;
            let session = self.id.clone();
            Entry::new(Event {
                session,
                seq,
                first_seq: None,
                at,
                turn,
                kind,
            })
        };
        let entries: Vec<Entry> = drafts.into_iter().map(place).collect();
        let row = self.row_after(&entries);
        let store = self.shared.services.store.clone();
        let append = store.append(&self.id, entries.clone(), row.clone(), pace, durability);
        let appended = match pace {
            Pace::Now => append.await,
            Pace::Floor => {
                let (mailbox, next) = (&mut self.mailbox, &mut self.next);
                unless_asked(append, mailbox, next, || store.hurry()).await
            }
        };
        if let Err(error) = appended {
            tracing::error!(session = %self.id, %error, "the store did not take events");
            self.feed.trouble(Some(&error.to_string()));
            self.held.refused(entries);
            return Err(error);
        }
        self.feed.trouble(None);
        self.held.stored();
        for entry in &entries {
            self.state.apply(&entry.event);
        }
        self.row.seq = self.state.seq;
        self.row.updated_at = at;
        if let Some(row) = row {
            self.row = row;
            self.tell_change();
        }
        Ok(entries)
    }

    fn publish(&mut self, entries: Vec<Entry>) {
        self.feed.publish(&entries);
        for entry in entries {
            self.fold(&entry.event.kind);
        }
    }
}

/// Waits for an append that may wait for company. When a message comes meanwhile somebody waits: the append is hurried,
/// and the message is kept for after it.
async fn unless_asked<T>(
    append: impl Future<Output = T>,
    mailbox: &mut mpsc::Receiver<Box<Msg>>,
    next: &mut Option<Box<Msg>>,
    hurry: impl FnOnce(),
) -> T {
    tokio::pin!(append);
    if next.is_none() {
        tokio::select! {
            biased;
            done = &mut append => return done,
            message = mailbox.recv() => *next = message,
        }
        hurry();
    }
    append.await
}

fn send<T>(reply: Reply<T>, answer: SessionResult<T>) {
    // Whoever asked may be gone; what was done stays done.
    let _ = reply.send(answer);
}

/// Now, in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}
