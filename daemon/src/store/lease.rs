//! Who owns what: a lock file per daemon proves that it lives, rows name the owner of each session.
//! Must never guess from a pid.

use super::rows::Key;
use super::{Owner, StoreError, fault};
use rusqlite::{Connection, OptionalExtension};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// This daemon's proof of life: dies with the process, whatever kills it.
pub(super) struct Proof {
    pub(super) token: String,
    path: PathBuf,
    /// Locked as long as it is open; closed on exec, so that no tool inherits it.
    _file: File,
}

impl Proof {
    pub(super) fn new(owner: &Owner) -> Result<Self, StoreError> {
        let dir = owner.state_dir.join("daemons");
        let failed = |error: std::io::Error| fault::from_io(&dir, "keep a lock file in it", &error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(failed)?;
        sweep(&dir);
        let token = token(owner.pid);
        let path = std::path::absolute(dir.join(format!("{token}.lock"))).map_err(failed)?;
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|error| failed(error.into()))?;
        // Only for people: nothing reads it.
        writeln!(file, "{} {}", owner.pid, owner.socket).map_err(failed)?;
        Ok(Self {
            token,
            path,
            _file: file,
        })
    }

    /// Makes this daemon known, so that others can find its lock, and forgets the dead; says whether there were any.
    pub(super) fn announce(&self, conn: &Connection, owner: &Owner) -> rusqlite::Result<Dead> {
        let mut rows = conn.prepare("SELECT token, lock FROM daemons")?;
        let others = rows
            .query_map([], |row| {
                Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
            })?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        let mut dead = Dead::None;
        for (token, lock) in others {
            if !is_locked(Path::new(&lock)) {
                dead = Dead::Some;
                conn.execute("DELETE FROM daemons WHERE token = ?1", [&token])?;
            }
        }
        conn.execute(
            "INSERT INTO daemons (token, pid, socket, lock) VALUES (?1, ?2, ?3, ?4)",
            (
                &self.token,
                i64::from(owner.pid),
                &owner.socket,
                self.path.to_string_lossy(),
            ),
        )?;
        Ok(dead)
    }

    /// An orderly end: nobody has to find out.
    pub(super) fn retire(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "lock file stays");
        }
    }
}

/// Whether a daemon died without giving its sessions back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dead {
    None,
    Some,
}

/// Sessions whose owner is not known any more.
pub(super) fn abandoned(conn: &Connection) -> rusqlite::Result<Vec<Key>> {
    conn.prepare(
        "SELECT key FROM sessions WHERE owner IS NOT NULL AND owner NOT IN (SELECT token FROM daemons)",
    )?
    .query_map([], |row| row.get(0))?
    .collect()
}

/// A daemon that holds a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) pid: u32,
    pub(super) socket: String,
}

/// Which owners live, each asked at most once.
pub(super) struct Living<'a> {
    conn: &'a Connection,
    own: &'a str,
    known: HashMap<String, Option<Holder>>,
}

impl<'a> Living<'a> {
    pub(super) fn new(conn: &'a Connection, own: &'a str) -> Self {
        Self {
            conn,
            own,
            known: HashMap::new(),
        }
    }

    /// The living daemon other than this one that has this token.
    pub(super) fn other(&mut self, owner: Option<&str>) -> rusqlite::Result<Option<Holder>> {
        let Some(owner) = owner.filter(|owner| *owner != self.own) else {
            return Ok(None);
        };
        if let Some(known) = self.known.get(owner) {
            return Ok(known.clone());
        }
        let found = self
            .conn
            .prepare_cached("SELECT pid, socket, lock FROM daemons WHERE token = ?1")?
            .query_row([owner], |row| {
                let holder = Holder {
                    pid: row.get(0)?,
                    socket: row.get(1)?,
                };
                Ok((holder, row.get::<_, String>(2)?))
            })
            .optional()?;
        let holder = found
            .filter(|(_, lock)| is_locked(Path::new(lock)))
            .map(|(holder, _)| holder);
        self.known.insert(owner.to_owned(), holder.clone());
        Ok(holder)
    }

    /// Whether anybody, this daemon too, holds it.
    pub(super) fn any(&mut self, owner: Option<&str>) -> rusqlite::Result<bool> {
        Ok(owner == Some(self.own) || self.other(owner)?.is_some())
    }
}

/// Whether a living process has the lock. A dead one's file is removed; one that cannot be asked counts as living.
fn is_locked(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return true;
    }
    let _ = std::fs::remove_file(path);
    false
}

/// Lock files of daemons that died before they were announced. A fresh one may be in the hands of a daemon that has
/// made it and not locked it yet, so only old ones are asked.
fn sweep(dir: &Path) {
    let Ok(files) = std::fs::read_dir(dir) else {
        return;
    };
    let now = seconds(SystemTime::now());
    for file in files.flatten() {
        let old = file
            .metadata()
            .is_ok_and(|meta| now.saturating_sub(meta.mtime().unsigned_abs()) > 60);
        if old && file.path().extension().is_some_and(|ext| ext == "lock") {
            is_locked(&file.path());
        }
    }
}

/// Unique over time and processes: a pid alone comes again.
fn token(pid: u32) -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let nanos = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    format!(
        "{pid}-{nanos:x}-{:x}",
        COUNT.fetch_add(1, Ordering::Relaxed)
    )
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
