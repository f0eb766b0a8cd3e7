//! The tables, their migrations and how a connection is set up. Migrations are only ever added: one that has been
//! released is never edited.

use super::StoreError;
use super::fault;
use super::sync::log_path;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Step `n` brings a store of format `n` to `n + 1`.
const MIGRATIONS: &[&str] = &[FORMAT_1, FORMAT_2];

/// Marks the file as ours, so that another program's database is not taken for an empty store.
const APPLICATION_ID: i64 = 0x6477_6c6c;

/// `events.id` and `words.rowid` are `sessions.key << 32 | seq` (title: `seq` 0), so that one integer keeps a session's
/// rows together and in order. `tail` takes live pieces of all sessions as they come: one page a commit, however many
/// sessions stream. A key is never used twice: what is left of a deleted session (`doomed`) is removed bit by bit.
const FORMAT_1: &str = "
CREATE TABLE sessions (
  key INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  cwd TEXT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  provider TEXT NOT NULL,
  model TEXT,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  archived INTEGER NOT NULL,
  parent TEXT,
  owner TEXT
) STRICT;
CREATE INDEX sessions_newest ON sessions (archived, updated_at, key);
CREATE INDEX sessions_of_directory ON sessions (cwd, archived, updated_at, key);
CREATE INDEX sessions_under_way ON sessions (key) WHERE state IN ('running', 'waiting');
CREATE TABLE settings (session INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;
CREATE TABLE events (id INTEGER PRIMARY KEY, json TEXT NOT NULL) STRICT;
CREATE TABLE tail (
  id INTEGER PRIMARY KEY,
  session INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  piece TEXT NOT NULL,
  json TEXT NOT NULL
) STRICT;
CREATE TABLE daemons (
  token TEXT PRIMARY KEY,
  pid INTEGER NOT NULL,
  socket TEXT NOT NULL,
  lock TEXT NOT NULL
) STRICT;
CREATE TABLE doomed (session INTEGER PRIMARY KEY) STRICT;
CREATE VIRTUAL TABLE words USING fts5 (text, at UNINDEXED, tokenize = 'unicode61 remove_diacritics 2');
";

/// The parent's call that a sub-session works for.
const FORMAT_2: &str = "ALTER TABLE sessions ADD COLUMN task TEXT;";

/// How long a statement waits for another daemon's writer before it is tried anew.
pub(super) const BUSY: Duration = Duration::from_secs(5);

/// Pages in memory, by what a connection does.
#[derive(Clone, Copy)]
pub(super) enum Cache {
    Writer,
    Reader,
}

/// The writer's connection, with the newest format in the file.
pub(super) fn open(path: &Path) -> Result<Connection, StoreError> {
    create_file(path)?;
    let mut conn = connect(path, Cache::Writer)
        .map_err(|error| fault::from_sqlite(path, "open it", &error))?;
    let format = migrate(path, &mut conn)?;
    tracing::debug!(format, path = %path.display(), "store open");
    Ok(conn)
}

/// Whether a start could open the store, by a look that makes no file and takes no lock. What is only in the log beside it
/// is not seen: of a new store that is everything, and an empty file is no fault.
pub(super) fn look(path: &Path) -> Result<(), StoreError> {
    match std::fs::metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(fault::from_io(path, "open it", &error)),
    }
    let failed = |error: rusqlite::Error| fault::from_sqlite(path, "open it", &error);
    let shown = path.display().to_string();
    let shown = shown
        .replace('%', "%25")
        .replace('?', "%3f")
        .replace('#', "%23");
    let conn = Connection::open_with_flags(
        format!("file:{shown}?immutable=1"),
        OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    );
    format_of(path, &conn.map_err(failed)?, MIGRATIONS.len() as i64).map(drop)
}

/// One more connection to a store that is open.
pub(super) fn connect(path: &Path, cache: Cache) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.busy_timeout(BUSY)?;
    let kib = match cache {
        Cache::Writer => 256,
        Cache::Reader => 128,
    };
    // Nothing here writes. A limit on the log's size makes the engine cut a long one when it starts over.
    conn.execute_batch(&format!(
        "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -{kib}; PRAGMA mmap_size = 0;
         PRAGMA temp_store = MEMORY; PRAGMA foreign_keys = OFF;"
    ))?;
    conn.query_row("PRAGMA wal_autocheckpoint = 0", [], |_| Ok(()))?;
    conn.query_row("PRAGMA journal_size_limit = 4194304", [], |_| Ok(()))?;
    conn.set_prepared_statement_cache_capacity(40);
    Ok(conn)
}

/// Runs the first transaction of a start. The engine syncs the head of a log that it begins, lest old pages behind it
/// come back after a loss of power; a log that did not exist has none, and a start waits for no disk.
pub(super) fn first_commit<T>(
    path: &Path,
    conn: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let old_log = std::fs::metadata(log_path(path)).is_ok_and(|log| log.len() > 0);
    if !old_log {
        conn.execute_batch("PRAGMA synchronous = OFF")?;
    }
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    let done = work(&tx)?;
    tx.commit()?;
    conn.execute_batch("PRAGMA synchronous = NORMAL")?;
    Ok(done)
}

/// The file is made by us before the engine sees it, so that it never has a wider mode; an existing one is not opened:
/// closing it would drop the engine's own locks in this process.
fn create_file(path: &Path) -> Result<(), StoreError> {
    if let Some(dir) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(|error| {
                fault::from_io(path, &format!("create directory {}", dir.display()), &error)
            })?;
    }
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path);
    match made {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => narrow(path),
        Err(error) => Err(fault::from_io(path, "create it", &error)),
    }
}

/// A store is one person's: a wider mode (a copy, a restored backup) is taken back.
fn narrow(path: &Path) -> Result<(), StoreError> {
    let mode = std::fs::metadata(path)
        .map_err(|error| fault::from_io(path, "open it", &error))?
        .permissions()
        .mode();
    if mode & 0o077 != 0
        && let Err(error) = std::fs::set_permissions(path, Permissions::from_mode(0o600))
    {
        tracing::warn!(path = %path.display(), %error, "others may read the store");
    }
    Ok(())
}

fn migrate(path: &Path, conn: &mut Connection) -> Result<i64, StoreError> {
    let failed = |error: rusqlite::Error| fault::from_sqlite(path, "open it", &error);
    let known = MIGRATIONS.len() as i64;
    let mut found = format_of(path, conn, known)?;
    journal(conn).map_err(failed)?;
    if found < known {
        // Another daemon may be doing the same: what is found under the write lock counts.
        let tx = conn
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed)?;
        found = format_of(path, &tx, known)?;
        for step in MIGRATIONS.iter().skip(found as usize) {
            tx.execute_batch(step).map_err(failed)?;
        }
        tx.pragma_update(None, "application_id", APPLICATION_ID)
            .map_err(failed)?;
        tx.pragma_update(None, "user_version", known)
            .map_err(failed)?;
        tx.commit().map_err(failed)?;
    }
    Ok(known)
}

/// The file's format: 0 when it is empty. Refuses newer ones and other programs' files.
fn format_of(path: &Path, conn: &Connection, known: i64) -> Result<i64, StoreError> {
    let read = |sql: &str| {
        conn.query_row(sql, [], |row| row.get::<_, i64>(0))
            .map_err(|error| fault::from_sqlite(path, "open it", &error))
    };
    let tables = read("SELECT count(*) FROM sqlite_schema")?;
    let found = read("PRAGMA user_version")?;
    if tables > 0 && read("PRAGMA application_id")? != APPLICATION_ID {
        return Err(StoreError::Corrupt {
            path: path.display().to_string(),
            detail: "it is another program's database: name another store with DWELL_DATA_DIR"
                .into(),
        });
    }
    if found > known {
        return Err(StoreError::Newer {
            path: path.display().to_string(),
            found,
            known,
        });
    }
    Ok(found)
}

/// The change of journal does not wait for others by itself.
fn journal(conn: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY;
    loop {
        let set = conn.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        });
        match set {
            Err(error) if fault::is_busy(&error) && Instant::now() < deadline => {
                std::thread::park_timeout(Duration::from_millis(2));
            }
            Err(error) => return Err(error),
            Ok(_) => return Ok(()),
        }
    }
}
