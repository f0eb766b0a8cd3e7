//! All sessions of this daemon: loaded on demand, unloaded when nobody needs them, each by one actor.
//! Must never write events itself.

mod ask;
mod create;
mod reach;
mod read;
mod tools;

use crate::provider::Provider;
use crate::session::actor::{Loaded, Shared, now_ms};
use crate::session::live::Piece;
use crate::session::message::{Handle, Msg};
use crate::session::services::Services;
use crate::session::state::State;
use crate::session::{SessionResult, actor};
use crate::store::SessionRow;
use crate::workspace::Workspace;
use crate::workspace::servers::Own;
use protocol::event::Level;
use protocol::id::SessionId;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::OnceCell;
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

/// The same, without keeping them.
#[derive(Clone)]
pub struct WeakSessions {
    inner: Weak<Inner>,
}

impl WeakSessions {
    pub fn upgrade(&self) -> Option<Sessions> {
        let inner = self.inner.upgrade()?;
        Some(Sessions { inner })
    }
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
        let inner = Arc::new(Inner {
            services: Arc::new(services),
            loaded,
            actors,
            sweeping,
        });
        let weak = Arc::downgrade(&inner);
        let tell = move |cwd: &Path, text: &str| {
            if let Some(inner) = weak.upgrade() {
                Self { inner }.warn(cwd, text);
            }
        };
        inner.services.workspaces.tell_through(Box::new(tell));
        Self { inner }
    }

    /// Tells those who look at a session of this directory. Who comes later sees what is wrong in the list of tools.
    fn warn(&self, cwd: &Path, text: &str) {
        let here = self.handles().into_iter();
        let watched = |handle: &Handle| handle.shared.cwd == cwd && handle.feed.clients() > 0;
        for handle in here.filter(watched) {
            handle.live.push(Piece::Notice {
                level: Level::Warning,
                text: text.to_owned(),
            });
        }
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
    pub(super) async fn open(&self, session: &SessionId) -> SessionResult<Handle> {
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
            let (page, more) = store.page_after(session, state.seq, PAGE).await?;
            for entry in &page {
                state.apply(&entry.event);
            }
            if !more {
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
        let workspace = self.services().workspaces.get(&cwd);
        workspace.needed_by(&row.id);
        let own_servers = self.own_servers(&row, &workspace);
        let shared = Shared {
            own_servers: Mutex::new(own_servers),
            id: row.id.clone(),
            services: Arc::clone(&self.inner.services),
            workspace,
            env: Arc::new(create::env_of(&row.settings)),
            agent: create::agent_of(&row.settings),
            task: create::task_of(&row),
            sessions: WeakSessions {
                inner: Arc::downgrade(&self.inner),
            },
            toolbox: create::toolbox_of(&row.settings),
            told: tokio::sync::Mutex::default(),
            cwd,
            busy: AtomicBool::new(false),
            used_at: AtomicU64::new(now_ms()),
        };
        let (handle, running) = actor::actor(Loaded {
            row,
            state,
            shared,
            provider,
        });
        self.inner.actors.spawn(running);
        self.sweep_later();
        handle
    }

    /// The servers that were named for a session; a task has those of the session that it works for, as they are.
    fn own_servers(&self, row: &SessionRow, workspace: &Workspace) -> Option<Arc<Own>> {
        if let Some(task) = create::task_of(row) {
            let parent = self.map().get(&task.parent).cloned()?;
            return parent.get()?.shared.own_servers();
        }
        let servers = create::servers_of(&row.settings);
        if servers.is_empty() {
            return None;
        }
        match workspace.own_servers(&servers, &create::env_of(&row.settings)) {
            Ok(own) => Some(Arc::new(own)),
            Err(why) => {
                tracing::warn!(session = %row.id, %why, "MCP servers of a session are left out");
                None
            }
        }
    }

    /// One timer for all sessions, and none when every loaded one has clients.
    fn sweep_later(&self) {
        if self.inner.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let weak = Arc::downgrade(&self.inner);
        let (left, after) = (
            Arc::clone(&self.services().left),
            self.services().limits.now().unload_after_ms,
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
