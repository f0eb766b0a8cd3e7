//! Rows as the engine keeps them, to and from the store's types. Must never decide when or whether to write.

use super::{SessionRow, search};
use protocol::id::{CallId, SessionId};
use protocol::session::SessionState;
use rusqlite::{Connection, Row};

/// A session's columns, in the order that `session` reads them.
pub(super) const COLUMNS: &str = "id, title, cwd, state, reason, provider, model, created_at, updated_at, seq, archived, parent, owner, task";

/// A session's number in the store; never used twice.
pub(super) type Key = i64;

/// Where a session's event stands among all events.
pub(super) fn event_id(key: Key, seq: u64) -> i64 {
    (key << 32) | (seq.min(u64::from(u32::MAX)) as i64)
}

pub(super) fn seq_of(event_id: i64) -> u64 {
    (event_id & i64::from(u32::MAX)) as u64
}

/// Times and counts; the engine's integers are signed.
pub(super) fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

pub(super) fn session(row: &Row<'_>) -> rusqlite::Result<(SessionRow, Option<String>)> {
    let unsigned =
        |column: usize| -> rusqlite::Result<u64> { Ok(row.get::<_, i64>(column)?.unsigned_abs()) };
    let read = SessionRow {
        id: SessionId::from(row.get::<_, String>(0)?),
        title: row.get(1)?,
        cwd: row.get(2)?,
        state: state(row.get_ref(3)?.as_str()?),
        reason: row.get(4)?,
        provider: row.get(5)?,
        model: row.get(6)?,
        created_at: unsigned(7)?,
        updated_at: unsigned(8)?,
        seq: unsigned(9)?,
        archived: row.get(10)?,
        parent: row.get::<_, Option<String>>(11)?.map(SessionId::from),
        task: row.get::<_, Option<String>>(13)?.map(CallId::from),
        settings: String::new(),
    };
    Ok((read, row.get(12)?))
}

fn state(text: &str) -> SessionState {
    [
        SessionState::Running,
        SessionState::Waiting,
        SessionState::Failed,
    ]
    .into_iter()
    .find(|state| state.as_str() == text)
    .unwrap_or(SessionState::Idle)
}

pub(super) fn insert_session(
    conn: &Connection,
    row: &SessionRow,
    owner: &str,
) -> rusqlite::Result<Key> {
    conn.prepare_cached(
        "INSERT INTO sessions (id, title, cwd, state, reason, provider, model, created_at, updated_at, seq, archived, parent, owner, task)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 0, ?10, ?11, ?12, ?13)",
    )?
    .execute((
        row.id.as_str(),
        &row.title,
        &row.cwd,
        row.state.as_str(),
        &row.reason,
        &row.provider,
        &row.model,
        int(row.created_at),
        int(row.updated_at),
        row.archived,
        row.parent.as_ref().map(SessionId::as_str),
        owner,
        row.task.as_ref().map(CallId::as_str),
    ))?;
    let key = conn.last_insert_rowid();
    conn.prepare_cached("INSERT INTO settings (session, json) VALUES (?1, ?2)")?
        .execute((key, &row.settings))?;
    search::index_title(conn, key, &row.title, row.updated_at)?;
    Ok(key)
}

/// Replaces what a row says; its number of events stays the store's own business, and so does who owns it. Settings
/// that are left empty, as lists leave them, stay what they were.
pub(super) fn update_session(
    conn: &Connection,
    key: Key,
    row: &SessionRow,
    seq: u64,
) -> rusqlite::Result<()> {
    let title: String = conn
        .prepare_cached("SELECT title FROM sessions WHERE key = ?1")?
        .query_row([key], |row| row.get(0))?;
    conn.prepare_cached(
        "UPDATE sessions SET title = ?2, cwd = ?3, state = ?4, reason = ?5, provider = ?6, model = ?7,
         created_at = ?8, updated_at = ?9, seq = ?10, archived = ?11, parent = ?12 WHERE key = ?1",
    )?
    .execute((
        key,
        &row.title,
        &row.cwd,
        row.state.as_str(),
        &row.reason,
        &row.provider,
        &row.model,
        int(row.created_at),
        int(row.updated_at),
        int(seq),
        row.archived,
        row.parent.as_ref().map(SessionId::as_str),
    ))?;
    if !row.settings.is_empty() {
        conn.prepare_cached("UPDATE settings SET json = ?2 WHERE session = ?1 AND json IS NOT ?2")?
            .execute((key, &row.settings))?;
    }
    if title != row.title {
        search::index_title(conn, key, &row.title, row.updated_at)?;
    }
    Ok(())
}

pub(super) fn insert_event(
    conn: &Connection,
    key: Key,
    seq: u64,
    json: &str,
) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO events (id, json) VALUES (?1, ?2)")?
        .execute((event_id(key, seq), json))
        .map(drop)
}

pub(super) struct Piece<'a> {
    pub(super) id: i64,
    pub(super) seq: u64,
    pub(super) of: &'a str,
    pub(super) json: &'a str,
}

pub(super) fn insert_piece(conn: &Connection, key: Key, piece: &Piece<'_>) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO tail (id, session, seq, piece, json) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute((piece.id, key, int(piece.seq), piece.of, piece.json))
    .map(drop)
}

/// The newest event's number, from all the places where it may stand. No piece of the session has an id below `from`.
pub(super) fn newest(conn: &Connection, key: Key, from: i64) -> rusqlite::Result<u64> {
    let seq: i64 = conn
        .prepare_cached(
            "SELECT max(
               (SELECT seq FROM sessions WHERE key = ?1),
               (SELECT coalesce(max(id), 0) & 4294967295 FROM events WHERE id BETWEEN ?2 AND ?3),
               (SELECT coalesce(max(seq), 0) FROM tail WHERE id >= ?4 AND session = ?1))",
        )?
        .query_row(
            (key, event_id(key, 0), event_id(key, u64::MAX), from),
            |row| row.get(0),
        )?;
    Ok(seq.unsigned_abs())
}
