//! The store: events, session rows and leases behind one small face; nothing above may know which engine it is.
//! Must never interpret what a session means by its events.

use protocol::event::Event;
use protocol::id::SessionId;
use protocol::session::SearchHit;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An event with its JSON, made once: the same bytes go to the disk and to every client.
#[derive(Clone, Debug)]
pub struct Entry {
    pub event: Arc<Event>,
    pub json: Arc<str>,
}

impl Entry {
    pub fn new(event: Event) -> Self {
        let json = serde_json::to_string(&event).expect("an event has string keys only");
        Self {
            event: Arc::new(event),
            json: json.into(),
        }
    }
}

/// When an append may wait for company.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Commit now.
    Now,
    /// Streamed pieces: at most one commit each floor (1 ms; 2 to 4 ms with many sessions streaming).
    Floor,
}

/// How far an append must have got before it counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives `kill -9` of the daemon.
    Committed,
    /// As `Committed`; a sync of the disk follows without being waited for.
    SyncSoon,
    /// Survives loss of power.
    Synced,
}

/// A session's row: what lists need without reading events.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionRow {
    pub id: SessionId,
    pub title: String,
    pub cwd: String,
    /// `SessionState` on the wire, as of the last update; a running one whose owner died reads as interrupted.
    pub state: protocol::session::SessionState,
    pub reason: Option<String>,
    pub provider: String,
    pub model: Option<String>,
    pub created_at: u64,
    pub updated_at: u64,
    pub seq: u64,
    pub archived: bool,
    pub parent: Option<SessionId>,
    /// JSON of what a session was created with (env, toolbox, agent, vars).
    pub settings: String,
}

/// Which sessions, newest first.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    pub cwd: Option<String>,
    pub query: Option<String>,
    pub archived: bool,
    pub limit: u32,
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    #[error("no session {0}")]
    NotFound(SessionId),
    #[error("session {session} is held by another daemon, pid {pid}, socket {socket}")]
    Held {
        session: SessionId,
        pid: u32,
        socket: String,
    },
    /// No space: what was acknowledged is safe; the append did not happen and may be tried again.
    #[error("storage full: cannot write {path}: {detail}")]
    Full { path: String, detail: String },
    #[error("the store {path} is damaged: {detail}")]
    Corrupt { path: String, detail: String },
    #[error(
        "the store {path} was written by a newer dwelld (format {found}, this one knows {known}): install that release, or name another store with DWELL_DATA_DIR"
    )]
    Newer {
        path: String,
        found: i64,
        known: i64,
    },
    #[error("the store {path}: {detail}")]
    Io { path: String, detail: String },
    #[error("the search query {query:?} cannot be read: {detail}")]
    Query { query: String, detail: String },
    #[error("the list cursor {0:?} is not one that session/list gave")]
    Cursor(String),
    #[error("the store is closed")]
    Closed,
}

/// Who opens the store, told to a second daemon that finds a session held.
#[derive(Clone, Debug)]
pub struct Owner {
    pub pid: u32,
    pub socket: String,
    /// Lock files that prove the owner lives are kept here.
    pub state_dir: PathBuf,
}

/// A cheap handle.
#[derive(Clone)]
pub struct Store {
    inner: Arc<()>,
}

#[allow(clippy::unused_async, unused_variables)]
impl Store {
    pub fn open(path: &Path, owner: Owner) -> Result<Self, StoreError> {
        unimplemented!()
    }
    /// Adds a session and leases it to this daemon.
    pub async fn create(&self, row: SessionRow) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Commits all entries or none; they are consecutive and follow the newest stored one. `row`, when given, replaces
    /// the session's row in the same commit (else only `seq` and `updated_at` move).
    pub async fn append(
        &self,
        session: &SessionId,
        entries: Vec<Entry>,
        row: Option<SessionRow>,
        pace: Pace,
        durability: Durability,
    ) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Events with `seq` after the cursor, oldest first. Folded pieces come as one entry whose `seq` is the last piece's.
    pub async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        unimplemented!()
    }
    /// The newest events before `before`, oldest first.
    pub async fn read_before(
        &self,
        session: &SessionId,
        before: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        unimplemented!()
    }
    /// Folds a finished message's (call's) pieces into one; returns at once, the work is done when there is time.
    pub fn fold(&self, session: &SessionId, key: &str) {
        unimplemented!()
    }
    pub async fn row(&self, session: &SessionId) -> Result<SessionRow, StoreError> {
        unimplemented!()
    }
    pub async fn list(
        &self,
        query: ListQuery,
    ) -> Result<(Vec<SessionRow>, Option<String>), StoreError> {
        unimplemented!()
    }
    pub async fn count(&self) -> Result<u64, StoreError> {
        unimplemented!()
    }
    pub async fn search(&self, query: &str, limit: u32) -> Result<Vec<SearchHit>, StoreError> {
        unimplemented!()
    }
    /// Changes a row without an event (archive).
    pub async fn update_row(&self, row: SessionRow) -> Result<(), StoreError> {
        unimplemented!()
    }
    pub async fn delete(&self, session: &SessionId) -> Result<(), StoreError> {
        unimplemented!()
    }
    /// Takes the session for this daemon, or says who holds it. Idempotent.
    pub async fn lease(&self, session: &SessionId) -> Result<(), StoreError> {
        unimplemented!()
    }
    pub async fn release(&self, session: &SessionId) {
        unimplemented!()
    }
    /// Sessions whose row says running or waiting but whose owner is gone: a crash left them.
    pub async fn orphans(&self) -> Result<Vec<SessionId>, StoreError> {
        unimplemented!()
    }
    /// Commits and syncs what is under way, checkpoints, stops the threads.
    pub async fn close(&self) {
        unimplemented!()
    }
}
