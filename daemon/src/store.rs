//! The store: events, session rows and leases behind one small face; nothing above may know which engine it is.
//! Must never interpret what a session means by its events.

mod checkpoint;
mod fault;
mod fold;
mod kind;
mod lease;
mod mailbox;
mod pace;
mod read;
mod rows;
mod schema;
mod search;
mod sync;
mod writer;

use self::mailbox::{Append, Chore, Mailbox, Work};
use self::read::{Place, Pool, Stretch};
use self::writer::{Heads, Writer};
use protocol::event::Event;
use protocol::id::SessionId;
use protocol::session::SearchHit;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

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
    /// The parent's call that it works for, where it is a sub-session.
    pub task: Option<protocol::id::CallId>,
    /// JSON of what a session was created with (env, toolbox, agent, vars). Empty in lists; written empty, it leaves
    /// what is stored.
    pub settings: String,
}

/// Which sessions, newest first: the archived ones or the others. A limit of 0 is none.
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
    inner: Arc<Inner>,
}

struct Inner {
    token: String,
    mailbox: Arc<Mailbox>,
    heads: Arc<Heads>,
    asker: sync::Asker,
    pool: Pool,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    /// What is in the mailbox is still written; nobody waits for it here.
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

/// Whether a start could open the store at this path; changes nothing there, and blocks on the disk.
pub fn look(path: &Path) -> Result<(), StoreError> {
    schema::look(path)
}

impl Store {
    /// Opens the store, or makes it with its directory. Blocks for a few milliseconds.
    pub fn open(path: &Path, owner: Owner) -> Result<Self, StoreError> {
        let path =
            std::path::absolute(path).map_err(|error| fault::from_io(path, "open it", &error))?;
        let mut conn = schema::open(&path)?;
        let proof = lease::Proof::new(&owner)?;
        let dead = schema::first_commit(&path, &conn, |conn| proof.announce(conn, &owner))
            .map_err(|error| fault::from_sqlite(&path, "open it", &error))?;
        let pages =
            watch_log(&mut conn).map_err(|error| fault::from_sqlite(&path, "open it", &error))?;
        let mailbox = Arc::new(Mailbox::new(&path));
        mailbox.chore(Chore::Purge);
        if dead == lease::Dead::Some {
            mailbox.chore(Chore::Survey);
        }
        let heads = Arc::new(Heads::default());
        let token = proof.token.clone();
        let threads = |error: std::io::Error| fault::from_io(&path, "start its threads", &error);
        let syncer = sync::Syncer::start(&path).map_err(threads)?;
        let asker = syncer.asker();
        let writer = Writer::new(
            path.clone(),
            conn,
            Arc::clone(&mailbox),
            Arc::clone(&heads),
            proof,
            syncer,
            checkpoint::Checkpointer::new(&path, pages),
        );
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .stack_size(512 * 1024)
            .spawn(move || writer.run())
            .map_err(threads)?;
        Ok(Self {
            inner: Arc::new(Inner {
                pool: Pool::new(&path),
                token,
                mailbox,
                heads,
                asker,
                writer: Mutex::new(Some(thread)),
            }),
        })
    }

    /// Adds a session and leases it to this daemon. It has no events yet, whatever `seq` says.
    pub async fn create(&self, row: SessionRow) -> Result<(), StoreError> {
        self.inner.mailbox.ask(Work::Create(row)).await
    }

    /// Commits all entries or none; they are consecutive and follow the newest stored one. `row`, when given, replaces
    /// the session's row in the same commit, but for `seq`; else `seq` and `updated_at` follow the entries (with live
    /// pieces alone, the row's `updated_at` waits for the next other event). Goes through, too, when nobody waits for it.
    pub async fn append(
        &self,
        session: &SessionId,
        entries: Vec<Entry>,
        row: Option<SessionRow>,
        pace: Pace,
        durability: Durability,
    ) -> Result<(), StoreError> {
        let append = Append {
            session: session.clone(),
            entries,
            row,
            pace,
            durability,
        };
        self.inner.mailbox.ask(Work::Append(append)).await
    }

    /// Returns when all that was committed before is on the disk. Those who wait at the same time share a sync.
    pub async fn synced(&self) -> Result<(), StoreError> {
        self.inner.asker.synced().await
    }

    /// Somebody waits for what an append at `Pace::Floor` holds up: it is committed now.
    pub fn hurry(&self) {
        self.inner.mailbox.hurry();
    }

    /// Events with `seq` after the cursor, oldest first, at least one if there is any: a page with fewer than `limit` need
    /// not be the last. Folded pieces come as one entry whose `seq` is the last piece's.
    pub async fn read(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let (entries, _) = self.page_after(session, after, limit).await?;
        Ok(entries)
    }

    /// As `read`, and whether more may follow.
    pub async fn page_after(
        &self,
        session: &SessionId,
        after: u64,
        limit: u32,
    ) -> Result<(Vec<Entry>, bool), StoreError> {
        self.stretch(session, Stretch::After(after), limit).await
    }

    /// The newest events before `before`, oldest first, and whether older ones may be left.
    pub async fn page_before(
        &self,
        session: &SessionId,
        before: u64,
        limit: u32,
    ) -> Result<(Vec<Entry>, bool), StoreError> {
        self.stretch(session, Stretch::Before(before), limit).await
    }

    /// Folds a finished message's (call's) pieces into one; returns at once, the work is done when there is time.
    pub fn fold(&self, session: &SessionId, key: &str) {
        self.inner.mailbox.chore(Chore::Fold {
            session: session.clone(),
            piece: key.to_owned(),
        });
    }

    pub async fn row(&self, session: &SessionId) -> Result<SessionRow, StoreError> {
        let (heads, token) = self.shared();
        let id = session.clone();
        let row = self
            .inner
            .pool
            .run("read a session", move |conn| {
                read::row(conn, &heads, &token, &id)
            })
            .await?;
        row.ok_or_else(|| StoreError::NotFound(session.clone()))
    }

    /// A page, and the cursor of the next one. Rows come without their settings.
    pub async fn list(
        &self,
        query: ListQuery,
    ) -> Result<(Vec<SessionRow>, Option<String>), StoreError> {
        let from = Place::parse(query.cursor.as_deref())?;
        let (_, token) = self.shared();
        self.inner
            .pool
            .run("list sessions", move |conn| {
                read::list(conn, &token, &query, from)
            })
            .await
    }

    pub async fn count(&self) -> Result<u64, StoreError> {
        self.inner.pool.run("count sessions", read::count).await
    }

    /// Best matches first: words, "phrases" and prefixes* must all be there. A title's hit has `seq` 0.
    pub async fn search(&self, query: &str, limit: u32) -> Result<Vec<SearchHit>, StoreError> {
        let expression = search::understand(query)?;
        // Words are made known when there is time; whoever searches now finds what was said just before. A store that
        // cannot write still finds the rest.
        if let Err(error) = self.inner.mailbox.ask(Work::Index).await {
            tracing::debug!(%error, "the newest words are not searched");
        }
        self.inner
            .pool
            .run("search", move |conn| {
                search::search(conn, &expression, limit)
            })
            .await
    }

    /// Changes a row without an event (archive). Needs no lease, but nobody else may have one.
    pub async fn update_row(&self, row: SessionRow) -> Result<(), StoreError> {
        self.inner.mailbox.ask(Work::UpdateRow(row)).await
    }

    /// Deleting an unknown session succeeds.
    pub async fn delete(&self, session: &SessionId) -> Result<(), StoreError> {
        self.inner.mailbox.ask(Work::Delete(session.clone())).await
    }

    /// Takes the session for this daemon, or says who holds it. Idempotent.
    pub async fn lease(&self, session: &SessionId) -> Result<(), StoreError> {
        self.inner.mailbox.ask(Work::Lease(session.clone())).await
    }

    /// Gives the session back. A store that fails here frees it when the daemon ends.
    pub async fn release(&self, session: &SessionId) {
        let released = self.inner.mailbox.ask(Work::Release(session.clone())).await;
        if let Err(error) = released {
            tracing::debug!(%session, %error, "not released");
        }
    }

    /// Sessions whose row says running or waiting but whose owner is gone: a crash left them.
    pub async fn orphans(&self) -> Result<Vec<SessionId>, StoreError> {
        let (_, token) = self.shared();
        self.inner
            .pool
            .run("look for orphans", move |conn| read::orphans(conn, &token))
            .await
    }

    /// Commits and syncs what is under way, checkpoints, stops the threads.
    pub async fn close(&self) {
        self.inner.pool.close().await;
        let _ = self.inner.mailbox.ask(Work::Close).await;
        let thread = self
            .inner
            .writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = tokio::task::spawn_blocking(move || thread.join()).await;
        }
    }

    async fn stretch(
        &self,
        session: &SessionId,
        stretch: Stretch,
        limit: u32,
    ) -> Result<(Vec<Entry>, bool), StoreError> {
        let (heads, _) = self.shared();
        let id = session.clone();
        let found = self
            .inner
            .pool
            .run("read events", move |conn| {
                let found = read::events(conn, &heads, &id, stretch, limit)?;
                Ok(found.map(|(found, more)| {
                    let entries = found.into_iter();
                    let entries = entries.map(|(seq, json)| read::entry(&id, seq, json));
                    (entries.collect(), more)
                }))
            })
            .await?;
        found.ok_or_else(|| StoreError::NotFound(session.clone()))
    }

    fn shared(&self) -> (Arc<Heads>, String) {
        (Arc::clone(&self.inner.heads), self.inner.token.clone())
    }
}

/// How long the log is, in pages, as of the last commit.
fn watch_log(conn: &mut rusqlite::Connection) -> rusqlite::Result<Arc<AtomicU32>> {
    let pages = Arc::new(AtomicU32::new(0));
    let told = Arc::clone(&pages);
    conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, count| {
        told.store(u32::try_from(count).unwrap_or(0), Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(pages)
}

#[cfg(test)]
mod tests;
