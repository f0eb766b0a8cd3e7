//! All sessions of this daemon: loaded on demand, unloaded when nobody needs them, each by one actor.
//! Must never write events itself.

use super::actor::{self, Loaded, Shared, now_ms};
use super::message::{Answering, ByHand, Guard, Handle, Msg};
use super::port::Port;
use super::services::Services;
use super::state::State;
use super::{
    NewSession, Prompt, SessionError, SessionResult, Subscriber, export, fork, name, session_of,
};
use crate::provider::registry::BuildOptions;
use crate::provider::{Message, Provider};
use crate::store::{Durability, Entry, ListQuery, Pace, SessionRow, StoreError};
use crate::toolbox::gate::Run;
use crate::turn::prompt;
use protocol::approval::{Answer, Approval, Scope};
use protocol::daemon::Change;
use protocol::event::{Event, EventKind};
use protocol::id::{ApprovalId, QueuedId, SessionId, TurnId};
use protocol::provider::{ModelInfo, ProviderInfo, ProviderInstance};
use protocol::session::{
    Export, ExportFormat, History, Queued, SearchHit, Session, SessionList, SessionState,
};
use protocol::tool::{SourceInfo, ToolList, ToolboxInfo};
use protocol::turn::{Cancelled, Ended, Started};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OnceCell, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Events read at once while a session is loaded.
const PAGE: u32 = 2000;
/// `session/history` without a limit, and its highest.
const HISTORY: (u32, u32) = (1000, 10_000);

/// All sessions of this daemon; a cheap handle. Methods load a session when they need it.
#[derive(Clone)]
pub struct Sessions {
    inner: Arc<Inner>,
}

struct Inner {
    services: Arc<Services>,
    /// Loaded sessions, and those being loaded. The map's own handle is the only one of a session that rests.
    loaded: Mutex<HashMap<SessionId, Arc<OnceCell<Handle>>>>,
    actors: TaskTracker,
    sweeping: AtomicBool,
}

impl Sessions {
    pub fn new(services: Services) -> Self {
        let loaded = Mutex::default();
        let (actors, sweeping) = (TaskTracker::new(), AtomicBool::new(false));
        Self {
            inner: Arc::new(Inner {
                services: Arc::new(services),
                loaded,
                actors,
                sweeping,
            }),
        }
    }

    pub async fn create(&self, new: NewSession) -> SessionResult<Session> {
        if self.services().stopping.load(Ordering::Relaxed) {
            return Err(SessionError::Stopping);
        }
        let cwd = directory(&new.cwd).await?;
        let provider_name = new
            .provider
            .clone()
            .unwrap_or_else(|| self.services().providers.default_name());
        let env = tool_env(new.env.clone());
        let provider = self.build(&provider_name, new.model.clone(), &env).await?;
        let id = name::fresh();
        let row = row_of(&id, &cwd, &new, provider_name, &env);
        self.services().store.create(row.clone()).await?;
        let handle = self.put(row, State::default(), Some(provider));
        let session = handle.ask(Msg::View).await?;
        self.tell(&session);
        Ok(session)
    }

    async fn build(
        &self,
        name: &str,
        model: Option<String>,
        env: &BTreeMap<String, String>,
    ) -> SessionResult<Arc<dyn Provider>> {
        let options = BuildOptions {
            model,
            env: Some(Arc::new(env.clone())),
        };
        let built = self.services().providers.build(name, options).await;
        built.map_err(|error| SessionError::Provider(error.to_string()))
    }

    pub async fn list(&self, query: ListQuery) -> SessionResult<SessionList> {
        let (rows, cursor) = self.services().store.list(query).await?;
        Ok(SessionList {
            sessions: rows.into_iter().map(session_of).collect(),
            cursor,
        })
    }

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

    /// Deletes a session with all its events; its turn is stopped. An unknown one is no error.
    pub async fn delete(&self, session: &SessionId) -> SessionResult<()> {
        match self.services().store.lease(session).await {
            Err(StoreError::NotFound(_)) => return Ok(()),
            other => other?,
        }
        let slot = self.map().remove(session);
        if let Some(handle) = slot.as_ref().and_then(|slot| slot.get()) {
            handle.tell(Msg::Vanish).await;
        }
        self.services().store.delete(session).await?;
        let spill = self.services().spill_dir.join(session.as_str());
        // Only there when a tool printed too much.
        let _ = tokio::task::spawn_blocking(move || std::fs::remove_dir_all(spill)).await;
        let _ = self.services().changes.send(Change::Deleted {
            session: session.clone(),
        });
        Ok(())
    }

    /// A new session with the events up to and including `at`.
    pub async fn fork(&self, session: &SessionId, at: Option<u64>) -> SessionResult<Session> {
        let source = self.services().store.row(session).await?;
        let at = at.unwrap_or(source.seq);
        if at > source.seq {
            return Err(SessionError::CursorBeyond {
                after: at,
                newest: source.seq,
            });
        }
        let id = name::fresh();
        let copies = fork::copy(&self.events(session).await?, at, &id);
        let state = State::fold(&copies);
        let now = now_ms();
        let title = if state.title.is_empty() {
            source.title.clone()
        } else {
            state.title.clone()
        };
        let (status, reason) = state.status();
        let row = SessionRow {
            id: id.clone(),
            title,
            state: status,
            reason,
            created_at: now,
            updated_at: now,
            seq: 0,
            archived: false,
            parent: Some(session.clone()),
            ..source
        };
        self.services().store.create(row.clone()).await?;
        let row = SessionRow {
            seq: state.seq,
            ..row
        };
        let entries: Vec<Entry> = copies.into_iter().map(Entry::new).collect();
        if !entries.is_empty() {
            let store = &self.services().store;
            store
                .append(
                    &id,
                    entries,
                    Some(row.clone()),
                    Pace::Now,
                    Durability::Synced,
                )
                .await?;
        }
        let view = self.put(row, state, None).ask(Msg::View).await?;
        self.tell(&view);
        Ok(view)
    }

    pub async fn history(
        &self,
        session: &SessionId,
        after: Option<u64>,
        before: Option<u64>,
        limit: Option<u32>,
    ) -> SessionResult<History> {
        let limit = limit.unwrap_or(HISTORY.0).clamp(1, HISTORY.1);
        let store = &self.services().store;
        let mut entries = match (after, before) {
            (None, Some(before)) => store.read_before(session, before, limit + 1).await?,
            (after, _) => store.read(session, after.unwrap_or(0), limit + 1).await?,
        };
        if let (Some(_), Some(before)) = (after, before) {
            entries.retain(|e| e.event.seq < before);
        }
        let more = entries.len() > limit as usize;
        if more {
            let newest_first = after.is_none() && before.is_some();
            if newest_first {
                entries.remove(0)
            } else {
                entries.remove(limit as usize)
            };
        }
        Ok(History {
            events: entries.into_iter().map(|e| (*e.event).clone()).collect(),
            more,
        })
    }

    pub async fn search(&self, query: &str, limit: Option<u32>) -> SessionResult<Vec<SearchHit>> {
        Ok(self
            .services()
            .store
            .search(query, limit.unwrap_or(20).clamp(1, 200))
            .await?)
    }

    pub async fn export(&self, session: &SessionId, format: ExportFormat) -> SessionResult<Export> {
        let row = session_of(self.services().store.row(session).await?);
        let events = self.events(session).await?;
        let text = match format {
            ExportFormat::Markdown => export::markdown(&row, &events),
            ExportFormat::Json => serde_json::to_string(&json!({"session": row, "events": events}))
                .map_err(|error| SessionError::Invalid(error.to_string()))?,
        };
        Ok(Export { text })
    }

    pub async fn clear(&self, session: &SessionId) -> SessionResult<u64> {
        self.record(session, EventKind::Cleared, Guard::WhenIdle)
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

    async fn record(
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

    pub async fn start(&self, session: &SessionId, prompt: Prompt) -> SessionResult<Started> {
        self.open(session)
            .await?
            .ask(|reply| Msg::Start(prompt, reply))
            .await
    }

    pub async fn steer(&self, session: &SessionId, text: String) -> SessionResult<u64> {
        self.open(session)
            .await?
            .ask(|reply| Msg::Steer(text, reply))
            .await
    }

    pub async fn cancel(&self, session: &SessionId) -> SessionResult<Cancelled> {
        self.open(session).await?.ask(Msg::Cancel).await
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
        all.sort_by_key(|a| a.asked_at);
        Ok(all)
    }

    pub async fn answer(
        &self,
        approval: &ApprovalId,
        answer: Answer,
        scope: Scope,
        reason: Option<String>,
        by: &str,
    ) -> SessionResult<u64> {
        let unknown = || SessionError::NotFound {
            what: "approval",
            id: approval.to_string(),
        };
        let session = fork::session_of(approval.as_str()).ok_or_else(unknown)?;
        let handle = self.open(&session).await.map_err(|error| match error {
            SessionError::Store(StoreError::NotFound(_)) => unknown(),
            other => other,
        })?;
        let answering = Answering {
            approval: approval.clone(),
            answer,
            scope,
            reason,
            by: by.to_owned(),
        };
        handle.ask(|reply| Msg::Answer(answering, reply)).await
    }

    pub async fn tools(&self, session: &SessionId) -> SessionResult<ToolList> {
        let handle = self.open(session).await?;
        let rules = Port::new(handle.clone()).rules().await;
        let mut list = handle.shared.workspace.toolbox().list(&rules);
        list.problems
            .extend(handle.shared.workspace.problems().await);
        list.problems.dedup();
        Ok(list)
    }

    /// Runs a tool through the gate, as a model's call would. It goes on when the caller goes away.
    pub async fn run_tool(
        &self,
        session: &SessionId,
        name: &str,
        arguments: Value,
    ) -> SessionResult<Map<String, Value>> {
        let handle = self.open(session).await?;
        let (name, spill_dir) = (
            name.to_owned(),
            self.services().spill_dir.join(session.as_str()),
        );
        let running = self
            .inner
            .actors
            .spawn(run_by_hand(handle, name, arguments, spill_dir));
        running.await.map_err(|_| SessionError::Stopping)?
    }

    pub async fn toolboxes(&self, cwd: Option<&str>) -> SessionResult<Vec<ToolboxInfo>> {
        let mut dirs: Vec<PathBuf> = match cwd {
            Some(cwd) => vec![directory(cwd).await?],
            None => self
                .handles()
                .iter()
                .map(|h| h.shared.cwd.clone())
                .collect(),
        };
        dirs.sort();
        dirs.dedup();
        let mut all = Vec::new();
        for dir in dirs {
            all.push(toolbox_info(&self.services().workspaces.get(&dir)).await);
        }
        Ok(all)
    }

    pub fn providers(&self) -> Vec<ProviderInfo> {
        self.services().providers.list()
    }

    /// The conversation is kept. A provider that cannot be built leaves the session on its old one.
    pub async fn switch_provider(
        &self,
        session: &SessionId,
        name: &str,
        model: Option<String>,
    ) -> SessionResult<u64> {
        let handle = self.open(session).await?;
        let provider = self.build(name, model.clone(), &handle.shared.env).await?;
        let name = name.to_owned();
        handle
            .ask(|reply| Msg::Switch {
                name,
                model,
                provider,
                reply,
            })
            .await
    }

    pub async fn models(&self, provider: &str) -> SessionResult<Vec<ModelInfo>> {
        let provider = self.build(provider, None, &BTreeMap::new()).await?;
        provider
            .models()
            .await
            .map_err(|error| SessionError::Provider(error.to_string()))
    }

    pub async fn instances(&self) -> Vec<ProviderInstance> {
        let mut all = Vec::new();
        for handle in self.handles() {
            all.extend(handle.ask(Msg::Instance).await.ok().flatten());
        }
        all
    }

    /// The conversation as the next round trip would send it, system prompt first.
    pub async fn conversation(&self, session: &SessionId) -> SessionResult<Vec<Message>> {
        let handle = self.open(session).await?;
        let messages = handle.ask(Msg::Conversation).await?;
        let system = prompt::system(handle.shared.workspace.agents_md().await.as_deref());
        Ok(prompt::with_system(system, messages))
    }

    /// Changes of all sessions; a receiver that lags sees `Lagged` and should list anew.
    pub fn watch(&self) -> broadcast::Receiver<Change> {
        self.services().changes.subscribe()
    }

    /// Sessions in memory and, of those, with a turn that runs or waits.
    pub fn loaded(&self) -> (u32, u32) {
        let handles = self.handles();
        let busy = handles
            .iter()
            .filter(|h| h.shared.busy.load(Ordering::Relaxed))
            .count();
        (
            u32::try_from(handles.len()).unwrap_or(u32::MAX),
            u32::try_from(busy).unwrap_or(u32::MAX),
        )
    }

    pub async fn stored(&self) -> SessionResult<u64> {
        Ok(self.services().store.count().await?)
    }

    /// Puts sessions in order that a daemon which died left running; those that wait for a person wait again.
    pub async fn recover(&self) {
        let orphans = match self.services().store.orphans().await {
            Ok(orphans) => orphans,
            Err(error) => {
                return tracing::error!(%error, "sessions that an earlier daemon left running are not known");
            }
        };
        for session in orphans {
            if let Err(error) = self.get(&session).await {
                tracing::error!(%session, %error, "a session that an earlier daemon left running cannot be loaded");
            }
        }
    }

    /// No new turns; running ones are interrupted when the grace period is over. Turns that wait for a person stay.
    pub async fn stop(&self, grace_over: impl Future<Output = ()>) {
        self.services().stopping.store(true, Ordering::Relaxed);
        let quiet = async {
            for handle in self.handles() {
                handle.tell(Msg::Quiet).await;
            }
        };
        tokio::select! {
            () = quiet => {}
            () = grace_over => {}
        }
        for handle in self.handles() {
            handle.tell(Msg::Halt).await;
        }
        self.map().clear();
        self.inner.actors.close();
        // Tools that no model called get their cancel from `Halt`; none may keep the daemon.
        let _ = tokio::time::timeout(Duration::from_secs(1), self.inner.actors.wait()).await;
    }

    fn services(&self) -> &Services {
        &self.inner.services
    }

    fn map(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<OnceCell<Handle>>>> {
        self.inner
            .loaded
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn handles(&self) -> Vec<Handle> {
        self.map()
            .values()
            .filter_map(|slot| slot.get().cloned())
            .collect()
    }

    /// The session's handle; loads it when it rests. Several callers load it once.
    async fn open(&self, session: &SessionId) -> SessionResult<Handle> {
        let slot = Arc::clone(self.map().entry(session.clone()).or_default());
        let loaded = slot.get_or_try_init(|| self.load(session)).await.cloned();
        match &loaded {
            Ok(handle) => handle.shared.used_at.store(now_ms(), Ordering::Relaxed),
            Err(_) => self.forget(session, &slot),
        }
        loaded
    }

    fn forget(&self, session: &SessionId, slot: &Arc<OnceCell<Handle>>) {
        let mut loaded = self.map();
        if loaded
            .get(session)
            .is_some_and(|known| Arc::ptr_eq(known, slot) && known.get().is_none())
        {
            loaded.remove(session);
        }
    }

    async fn load(&self, session: &SessionId) -> SessionResult<Handle> {
        let store = &self.services().store;
        store.lease(session).await?;
        let row = store.row(session).await?;
        let mut state = State::default();
        loop {
            let page = store.read(session, state.seq, PAGE).await?;
            for entry in &page {
                state.apply(&entry.event);
            }
            if page.len() < PAGE as usize {
                break;
            }
        }
        if state.title.is_empty() {
            state.title.clone_from(&row.title);
        }
        Ok(self.start_actor(row, state, None))
    }

    /// A session that was just made.
    fn put(&self, row: SessionRow, state: State, provider: Option<Arc<dyn Provider>>) -> Handle {
        let id = row.id.clone();
        let handle = self.start_actor(row, state, provider);
        self.map()
            .insert(id, Arc::new(OnceCell::new_with(Some(handle.clone()))));
        handle
    }

    fn start_actor(
        &self,
        row: SessionRow,
        state: State,
        provider: Option<Arc<dyn Provider>>,
    ) -> Handle {
        let cwd = PathBuf::from(&row.cwd);
        let shared = Shared {
            services: Arc::clone(&self.inner.services),
            workspace: self.services().workspaces.get(&cwd),
            env: Arc::new(env_of(&row.settings)),
            cwd,
            busy: AtomicBool::new(false),
            used_at: AtomicU64::new(now_ms()),
        };
        let (handle, task) = actor::spawn(Loaded {
            row,
            state,
            shared,
            provider,
        });
        self.inner.actors.spawn(task);
        self.sweep_later();
        handle
    }

    async fn events(&self, session: &SessionId) -> SessionResult<Vec<Event>> {
        let mut all: Vec<Event> = Vec::new();
        loop {
            let after = all.last().map_or(0, |e| e.seq);
            let page = self.services().store.read(session, after, PAGE).await?;
            let more = page.len() == PAGE as usize;
            all.extend(page.into_iter().map(|e| Arc::unwrap_or_clone(e.event)));
            if !more {
                return Ok(all);
            }
        }
    }

    fn tell(&self, session: &Session) {
        let mut session = session.clone();
        session.env.clear();
        let _ = self.services().changes.send(Change::Session {
            session: Box::new(session),
        });
    }

    /// One timer for all sessions, and none when every loaded one has clients.
    fn sweep_later(&self) {
        if self.inner.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let weak = Arc::downgrade(&self.inner);
        let (left, after) = (
            Arc::clone(&self.services().left),
            self.services().limits.unload_after_ms,
        );
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(after)).await;
                let Some(inner) = weak.upgrade() else { return };
                match (Self { inner }).sweep(after) {
                    Left::Nothing => return,
                    Left::Unattached => {}
                    Left::Attached => left.notified().await,
                }
            }
        });
    }

    /// Lets go of sessions that nobody holds.
    fn sweep(&self, after_ms: u64) -> Left {
        let now = now_ms();
        let mut loaded = self.map();
        loaded.retain(|_, slot| {
            slot.get()
                .is_none_or(|handle| !rests(handle, now, after_ms))
        });
        if loaded.is_empty() {
            self.inner.sweeping.store(false, Ordering::Relaxed);
            return Left::Nothing;
        }
        let unattached = loaded
            .values()
            .any(|slot| slot.get().is_none_or(|h| h.feed.clients() == 0));
        if unattached {
            Left::Unattached
        } else {
            Left::Attached
        }
    }
}

/// What a sweep left in memory.
enum Left {
    Nothing,
    Unattached,
    Attached,
}

/// Whether only the map holds the session: no client, no turn, no call, no message on its way.
fn rests(handle: &Handle, now: u64, after_ms: u64) -> bool {
    handle.feed.clients() == 0
        && handle.mailbox.strong_count() == 1
        && handle.mailbox.capacity() == handle.mailbox.max_capacity()
        && now.saturating_sub(handle.shared.used_at.load(Ordering::Relaxed)) >= after_ms
}

async fn run_by_hand(
    handle: Handle,
    name: String,
    arguments: Value,
    spill_dir: PathBuf,
) -> SessionResult<Map<String, Value>> {
    let cancel = CancellationToken::new();
    let by_hand = ByHand {
        name: name.clone(),
        arguments: arguments.clone(),
        parent: None,
        via: "run",
        cancel: cancel.clone(),
    };
    let call = handle.ask(|reply| Msg::ByHand(by_hand, reply)).await?;
    let port = Arc::new(Port::new(handle.clone()));
    let run = Run {
        session: handle.id.clone(),
        call: call.clone(),
        name,
        arguments,
        cwd: handle.shared.cwd.clone(),
        env: Arc::clone(&handle.shared.env),
        cancel,
        spill_dir,
        permissions: port.rules().await,
        port,
    };
    let ran = handle.shared.workspace.toolbox().run(run).await;
    let (result, ms) = (ran.result.clone(), ran.ms);
    handle
        .ask(move |reply| Msg::ByHandDone {
            call,
            result,
            ms,
            reply,
        })
        .await?;
    Ok(ran.result)
}

async fn toolbox_info(workspace: &crate::workspace::Workspace) -> ToolboxInfo {
    let mut by_source: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for tool in workspace.toolbox().tools() {
        by_source
            .entry(tool.origin().to_owned())
            .or_default()
            .push(tool.name().to_owned());
    }
    let problems = workspace.problems().await;
    let source = |(name, tools): (String, Vec<String>)| SourceInfo {
        name,
        tools,
        health: "ready".to_owned(),
        problems: problems.clone(),
    };
    let sources = by_source.into_iter().map(source).collect();
    ToolboxInfo {
        name: "default".to_owned(),
        cwd: workspace.cwd().display().to_string(),
        sources,
    }
}

/// The directory of a session: absolute, there, and a directory.
async fn directory(cwd: &str) -> SessionResult<PathBuf> {
    let path = Path::new(cwd);
    if !path.is_absolute() {
        return Err(SessionError::Invalid(format!(
            "cwd {cwd:?} is not an absolute path"
        )));
    }
    match tokio::fs::metadata(path).await {
        Ok(found) if found.is_dir() => Ok(path.components().collect()),
        Ok(_) => Err(SessionError::Invalid(format!(
            "cwd {cwd:?} is not a directory"
        ))),
        Err(error) => Err(SessionError::Invalid(format!(
            "cwd {cwd:?} cannot be used: {error}"
        ))),
    }
}

fn row_of(
    id: &SessionId,
    cwd: &Path,
    new: &NewSession,
    provider: String,
    env: &BTreeMap<String, String>,
) -> SessionRow {
    let now = now_ms();
    let settings =
        json!({"env": env, "toolbox": new.toolbox, "agent": new.agent, "vars": new.vars});
    SessionRow {
        id: id.clone(),
        title: new.title.clone().unwrap_or_default().trim().to_owned(),
        cwd: cwd.display().to_string(),
        state: SessionState::Idle,
        reason: None,
        provider,
        model: new.model.clone(),
        created_at: now,
        updated_at: now,
        seq: 0,
        archived: false,
        parent: None,
        settings: settings.to_string(),
    }
}

fn env_of(settings: &str) -> BTreeMap<String, String> {
    let parsed: Option<Value> = serde_json::from_str(settings).ok();
    parsed
        .and_then(|v| serde_json::from_value(v.get("env")?.clone()).ok())
        .unwrap_or_default()
}

/// What tools see: the client's environment, or the plainest of the daemon's own; never a secret of dwell's.
fn tool_env(given: Option<BTreeMap<String, String>>) -> BTreeMap<String, String> {
    const PLAIN: [&str; 9] = [
        "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "USER", "LOGNAME", "SHELL", "TZ",
    ];
    let own = || {
        PLAIN
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
            .collect()
    };
    let mut env: BTreeMap<String, String> = given.unwrap_or_else(own);
    let secret = crate::provider::registry::Providers::key_variables();
    env.retain(|name, _| !name.starts_with("DWELL_") && !secret.contains(&name.as_str()));
    env
}
