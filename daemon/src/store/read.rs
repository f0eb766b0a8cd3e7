//! Reading, on a few connections of their own. Must never show half of a commit, nor wait for the writer.

use super::lease::Living;
use super::rows::{self, Key};
use super::schema::{Cache, connect};
use super::writer::Heads;
use super::{Entry, ListQuery, SessionRow, StoreError, fault};
use protocol::event::{Event, EventKind};
use protocol::id::SessionId;
use protocol::session::SessionState;
use rusqlite::{Connection, OptionalExtension};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// Connections at most: more would cost memory, and reading is short.
const CONNECTIONS: usize = 2;

/// Connections that wait for a reader, opened as needed.
pub(super) struct Pool {
    path: PathBuf,
    idle: Arc<Mutex<Vec<Connection>>>,
    free: Arc<Semaphore>,
}

impl Pool {
    pub(super) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            idle: Arc::default(),
            free: Arc::new(Semaphore::new(CONNECTIONS)),
        }
    }

    /// Runs `work` on a thread for blocking work, within one snapshot of the store. `doing` completes "cannot ...".
    pub(super) async fn run<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.free)
            .acquire_owned()
            .await
            .map_err(|_| StoreError::Closed)?;
        let idle = Arc::clone(&self.idle);
        let path = self.path.clone();
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let waiting = take(&idle);
            let conn = match waiting {
                Some(conn) => conn,
                None => connect(&path, Cache::Reader)?,
            };
            let done = snapshot(&conn, work);
            if done.is_ok() {
                idle.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(conn);
            }
            done
        });
        match done.await {
            Ok(done) => done.map_err(|error| fault::from_sqlite(&self.path, doing, &error)),
            Err(error) => Err(fault::io(&self.path, format!("cannot {doing}: {error}"))),
        }
    }

    /// Waits for those who read, then lets the connections go.
    pub(super) async fn close(&self) {
        if let Ok(all) = self.free.acquire_many(CONNECTIONS as u32).await {
            self.free.close();
            drop(all);
        }
        while take(&self.idle).is_some() {}
    }
}

fn take(idle: &Mutex<Vec<Connection>>) -> Option<Connection> {
    idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

fn snapshot<T>(
    conn: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    conn.prepare_cached("BEGIN")?.execute([])?;
    let done = work(conn);
    conn.prepare_cached("COMMIT")?.execute([])?;
    done
}

/// Which stretch of a session's events.
#[derive(Clone, Copy)]
pub(super) enum Stretch {
    /// The oldest with a number over this.
    After(u64),
    /// The newest with a number below this.
    Before(u64),
}

/// Bytes of events after which a page ends, whatever its limit: what is read for one client is in memory until it is
/// written, and a frame has a limit too.
const BYTES: usize = 1 << 20;

/// Numbered events as their JSON, oldest first.
pub(super) type Numbered = Vec<(u64, String)>;

/// A session's events, and whether the stretch goes on; none when there is no such session.
pub(super) fn events(
    conn: &Connection,
    heads: &Heads,
    session: &SessionId,
    stretch: Stretch,
    limit: u32,
) -> rusqlite::Result<Option<(Numbered, bool)>> {
    let Some((key, tail_from)) = locate(conn, heads, session)? else {
        return Ok(None);
    };
    let (low, high, order) = match stretch {
        Stretch::After(seq) => (
            rows::event_id(key, seq) + 1,
            rows::event_id(key, u64::MAX),
            "",
        ),
        Stretch::Before(seq) => (rows::event_id(key, 0), rows::event_id(key, seq) - 1, "DESC"),
    };
    // One more than asked for shows whether there is one.
    let most = i64::from(limit) + 1;
    let mut folded = conn.prepare_cached(&format!(
        "SELECT id & 4294967295, json FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id {order} LIMIT ?3"
    ))?;
    let mut found = Numbered::new();
    let folded = folded.query_map((low, high, most), numbered)?;
    let folded_to = take_some(folded, &mut found)?;
    let mut live = conn.prepare_cached(&format!(
        "SELECT seq, json FROM tail WHERE id >= ?1 AND session = ?2 AND seq BETWEEN ?3 AND ?4 ORDER BY id {order} LIMIT ?5"
    ))?;
    let (low, high) = (low & i64::from(u32::MAX), high & i64::from(u32::MAX));
    let live = live.query_map((tail_from, key, low, high, most), numbered)?;
    let live_to = take_some(live, &mut found)?;
    let limit = limit as usize;
    // Each half is the best of its kind, as far as it was read; the best of both is what was asked for.
    match stretch {
        Stretch::After(_) => {
            let end = folded_to.into_iter().chain(live_to).min();
            found.retain(|(seq, _)| end.is_none_or(|end| *seq <= end));
            found.sort_unstable_by_key(|(seq, _)| *seq);
            let more = end.is_some() || found.len() > limit;
            found.truncate(limit);
            Ok(Some((found, more)))
        }
        Stretch::Before(_) => {
            let end = folded_to.into_iter().chain(live_to).max();
            found.retain(|(seq, _)| end.is_none_or(|end| *seq >= end));
            found.sort_unstable_by_key(|(seq, _)| *seq);
            let surplus = found.len().saturating_sub(limit);
            found.drain(..surplus);
            Ok(Some((found, end.is_some() || surplus > 0)))
        }
    }
}

/// Reads on while there are few bytes; gives the number of the last event when it stopped for that.
fn take_some(
    rows: impl Iterator<Item = rusqlite::Result<(u64, String)>>,
    found: &mut Numbered,
) -> rusqlite::Result<Option<u64>> {
    let mut bytes = 0;
    for row in rows {
        let (seq, json) = row?;
        bytes += json.len();
        found.push((seq, json));
        if bytes >= BYTES {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

fn numbered(row: &rusqlite::Row<'_>) -> rusqlite::Result<(u64, String)> {
    Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
}

/// The stored text with what it says. What this release cannot read is passed on as it is.
pub(super) fn entry(session: &SessionId, seq: u64, json: String) -> Entry {
    let event = serde_json::from_str(&json).unwrap_or_else(|error| {
        tracing::warn!(%session, seq, %error, "event not understood");
        Event {
            session: session.clone(),
            seq,
            first_seq: None,
            at: 0,
            turn: None,
            kind: EventKind::Unknown,
        }
    });
    Entry {
        event: Arc::new(event),
        json: json.into(),
    }
}

/// The key, and where the session's part of the tail begins. Must be the snapshot's first statement: the hint is asked
/// for before, since it may only lie too low, never beyond pieces that the snapshot still has in the tail.
fn locate(
    conn: &Connection,
    heads: &Heads,
    session: &SessionId,
) -> rusqlite::Result<Option<(Key, i64)>> {
    let hint = heads.get(session);
    let key = conn
        .prepare_cached("SELECT key FROM sessions WHERE id = ?1")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    Ok(key.map(|key| {
        let hint = hint.filter(|head| head.key == key);
        (key, hint.map_or(0, |head| head.tail_from))
    }))
}

/// A session's row, with its settings and its true newest number.
pub(super) fn row(
    conn: &Connection,
    heads: &Heads,
    own: &str,
    session: &SessionId,
) -> rusqlite::Result<Option<SessionRow>> {
    let Some((key, tail_from)) = locate(conn, heads, session)? else {
        return Ok(None);
    };
    let sql = format!("SELECT {} FROM sessions WHERE key = ?1", rows::COLUMNS);
    let (mut row, owner) = conn.prepare_cached(&sql)?.query_row([key], rows::session)?;
    row.settings = conn
        .prepare_cached("SELECT json FROM settings WHERE session = ?1")?
        .query_row([key], |row| row.get(0))?;
    row.seq = rows::newest(conn, key, tail_from)?;
    as_it_is(&mut row, owner.as_deref(), &mut Living::new(conn, own))?;
    Ok(Some(row))
}

/// What a running session of a dead daemon is.
fn as_it_is(
    row: &mut SessionRow,
    owner: Option<&str>,
    living: &mut Living<'_>,
) -> rusqlite::Result<()> {
    if row.state == SessionState::Running && !living.any(owner)? {
        row.state = SessionState::Failed;
        row.reason = Some("interrupted: the daemon stopped".into());
    }
    Ok(())
}

/// Where a page of a list ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    updated_at: i64,
    key: Key,
}

impl Place {
    const NEWEST: Self = Self {
        updated_at: i64::MAX,
        key: i64::MAX,
    };

    pub(super) fn parse(cursor: Option<&str>) -> Result<Self, StoreError> {
        let Some(cursor) = cursor else {
            return Ok(Self::NEWEST);
        };
        cursor
            .split_once('.')
            .and_then(|(updated_at, key)| {
                Some(Self {
                    updated_at: i64::from_str_radix(updated_at, 16).ok()?,
                    key: i64::from_str_radix(key, 16).ok()?,
                })
            })
            .ok_or_else(|| StoreError::Cursor(cursor.to_owned()))
    }

    fn cursor(self) -> String {
        format!("{:x}.{:x}", self.updated_at, self.key)
    }
}

/// A page of sessions, newest first, without their settings, and where the next begins. A limit of 0 is none.
pub(super) fn list(
    conn: &Connection,
    own: &str,
    query: &ListQuery,
    from: Place,
) -> rusqlite::Result<(Vec<SessionRow>, Option<String>)> {
    let limit = match query.limit {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let wanted = query.query.as_deref().unwrap_or_default().to_lowercase();
    let (found, more) = if wanted.is_empty() {
        let (places, more) = places(conn, query, from, limit)?;
        (at(conn, &places)?, more)
    } else {
        matching(conn, query, from, limit, &wanted)?
    };
    let next = found.last().filter(|_| more);
    let next = next.map(|(place, _)| place.cursor());
    let mut living = Living::new(conn, own);
    let mut sessions = Vec::with_capacity(found.len());
    for (_, (mut session, owner)) in found {
        as_it_is(&mut session, owner.as_deref(), &mut living)?;
        sessions.push(session);
    }
    Ok((sessions, next))
}

/// The places of a page, from an index alone, and whether there are more.
fn places(
    conn: &Connection,
    query: &ListQuery,
    from: Place,
    limit: usize,
) -> rusqlite::Result<(Vec<Place>, bool)> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT updated_at, key {} LIMIT ?5",
        newest_first(query)
    ))?;
    // One more than asked for shows whether there is one.
    let most = i64::try_from(limit).map_or(i64::MAX, |limit| limit.saturating_add(1));
    let place = |row: &rusqlite::Row<'_>| {
        Ok(Place {
            updated_at: row.get(0)?,
            key: row.get(1)?,
        })
    };
    let bound = (&query.cwd, query.archived, from.updated_at, from.key, most);
    let mut places = statement
        .query_map(bound, place)?
        .collect::<rusqlite::Result<Vec<_>>>()?;
    let more = places.len() > limit;
    places.truncate(limit);
    Ok((places, more))
}

/// The sessions at these places, in their order. They are read in the order in which they lie, so that each page of the
/// file is read once, however few a connection keeps.
fn at(conn: &Connection, places: &[Place]) -> rusqlite::Result<Vec<(Place, Listed)>> {
    let sql = format!("SELECT {} FROM sessions WHERE key = ?1", rows::COLUMNS);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_unstable_by_key(|index| places[*index].key);
    let mut found: Vec<Option<Listed>> = Vec::new();
    found.resize_with(places.len(), || None);
    for index in order {
        found[index] = Some(statement.query_row([places[index].key], rows::session)?);
    }
    let with_place = |(place, listed): (&Place, Option<Listed>)| Some((*place, listed?));
    Ok(places.iter().zip(found).filter_map(with_place).collect())
}

/// A page of those that hold the wanted text, and whether there are more: each has to be looked at.
fn matching(
    conn: &Connection,
    query: &ListQuery,
    from: Place,
    limit: usize,
    wanted: &str,
) -> rusqlite::Result<(Vec<(Place, Listed)>, bool)> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {}, key {}",
        rows::COLUMNS,
        newest_first(query)
    ))?;
    let bound = (&query.cwd, query.archived, from.updated_at, from.key);
    let mut rows = statement.query(bound)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let listed = rows::session(row)?;
        if !matches(&listed.0, wanted) {
            continue;
        }
        if found.len() == limit {
            return Ok((found, true));
        }
        let place = Place {
            updated_at: rows::int(listed.0.updated_at),
            key: row.get("key")?,
        };
        found.push((place, listed));
    }
    Ok((found, false))
}

/// Where the sessions of a list come from, and in which order; an index holds all of it.
fn newest_first(query: &ListQuery) -> String {
    let directory = match query.cwd {
        Some(_) => "cwd = ?1",
        None => "?1 IS NULL",
    };
    format!(
        "FROM sessions WHERE {directory} AND archived = ?2 AND (updated_at, key) < (?3, ?4)
         ORDER BY updated_at DESC, key DESC"
    )
}

/// A session and its owner.
type Listed = (SessionRow, Option<String>);

fn matches(session: &SessionRow, wanted: &str) -> bool {
    wanted.is_empty()
        || session.id.as_str().to_lowercase().contains(wanted)
        || session.title.to_lowercase().contains(wanted)
}

pub(super) fn count(conn: &Connection) -> rusqlite::Result<u64> {
    conn.prepare_cached("SELECT count(*) FROM sessions")?
        .query_row([], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}

/// Sessions that run or wait by their row, and that nobody living holds.
pub(super) fn orphans(conn: &Connection, own: &str) -> rusqlite::Result<Vec<SessionId>> {
    let mut living = Living::new(conn, own);
    let mut statement = conn.prepare_cached(
        "SELECT id, owner FROM sessions WHERE state IN ('running', 'waiting') ORDER BY key",
    )?;
    let mut rows = statement.query([])?;
    let mut orphans = Vec::new();
    while let Some(row) = rows.next()? {
        let owner: Option<String> = row.get(1)?;
        if !living.any(owner.as_deref())? {
            orphans.push(SessionId::from(row.get::<_, String>(0)?));
        }
    }
    Ok(orphans)
}
