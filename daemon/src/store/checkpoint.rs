//! When the write-ahead log goes back into the store's file: on a thread and a connection of its own, when it is quiet or
//! the log has grown long; on the writer's only what little is left of a log that never rests. Must never keep a timer
//! while nothing is written.

use super::schema::{Cache, connect};
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Quiet for this long is idle.
const QUIET: Duration = Duration::from_millis(1000);

/// Pages in the log from which it is not waited for quiet: 16 MiB.
const LONG: u32 = 4096;

/// Pages in the log from which the writer itself brings the rest back, so that the log can start over: 64 MiB. Only
/// where commits never cease for a second.
const OVERGROWN: u32 = 4 * LONG;

/// A log file over this size is cut when idle.
const LARGE: u64 = 4 * 1024 * 1024;

pub(super) struct Checkpointer {
    path: PathBuf,
    /// Pages in the log, as the engine told at the last commit.
    pages: Arc<AtomicU32>,
    /// Pages that were in the log when the last checkpoint began.
    seen: u32,
    /// Whether the last checkpoint may have left a little that came while it ran.
    left: bool,
    /// When it is idle, if anything was committed since the last checkpoint.
    due: Option<Instant>,
    running: Option<JoinHandle<()>>,
}

#[derive(Clone, Copy)]
enum Cut {
    Keep,
    /// Gives up at once when a reader or writer is in the way.
    Truncate,
}

impl Checkpointer {
    pub(super) fn new(path: &Path, pages: Arc<AtomicU32>) -> Self {
        Self {
            path: path.to_owned(),
            pages,
            seen: 0,
            left: false,
            due: None,
            running: None,
        }
    }

    /// When the writer should come back if nothing else happens.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    pub(super) fn committed(&mut self) {
        self.due = Some(Instant::now() + QUIET);
        if self.grown() >= LONG && !self.is_running() {
            self.begin(Cut::Keep);
        }
    }

    /// Brings the little back that came while the last checkpoint ran; then the log starts over with the next commit.
    pub(super) fn catch_up(&mut self, conn: &Connection) {
        if self.pages.load(Ordering::Relaxed) < OVERGROWN || !self.left || self.is_running() {
            return;
        }
        self.left = false;
        if let Err(error) = checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)") {
            tracing::debug!(path = %self.path.display(), %error, "the log grows on");
        }
    }

    /// Pages that came since the last checkpoint began.
    fn grown(&mut self) -> u32 {
        let pages = self.pages.load(Ordering::Relaxed);
        // A log that has started over.
        self.seen = self.seen.min(pages);
        pages - self.seen
    }

    pub(super) fn quiet(&mut self) {
        if self.is_running() {
            self.due = Some(Instant::now() + QUIET);
            return;
        }
        self.due = None;
        let size = std::fs::metadata(super::sync::log_path(&self.path)).map_or(0, |log| log.len());
        self.begin(if size > LARGE {
            Cut::Truncate
        } else {
            Cut::Keep
        });
    }

    /// Waits for one that runs.
    pub(super) fn finish(&mut self) {
        if let Some(thread) = self.running.take() {
            let _ = thread.join();
        }
    }

    fn is_running(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|thread| !thread.is_finished())
    }

    fn begin(&mut self, cut: Cut) {
        self.finish();
        self.seen = self.pages.load(Ordering::Relaxed);
        self.left = true;
        let path = self.path.clone();
        let thread = std::thread::Builder::new()
            .name("store-checkpoint".into())
            .stack_size(256 * 1024)
            .spawn(move || run(&path, cut));
        match thread {
            Ok(thread) => self.running = Some(thread),
            Err(error) => tracing::warn!(%error, "no checkpoint: cannot start a thread"),
        }
    }
}

fn run(path: &Path, cut: Cut) {
    let done = connect(path, Cache::Reader).and_then(|conn| {
        checkpoint(&conn, "PRAGMA wal_checkpoint(PASSIVE)")?;
        match cut {
            Cut::Keep => Ok(()),
            Cut::Truncate => {
                conn.busy_timeout(Duration::ZERO)?;
                checkpoint(&conn, "PRAGMA wal_checkpoint(TRUNCATE)")
            }
        }
    });
    if let Err(error) = done {
        tracing::debug!(path = %path.display(), %error, "checkpoint left for later");
    }
}

pub(super) fn checkpoint(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.query_row(sql, [], |_| Ok(()))
}
