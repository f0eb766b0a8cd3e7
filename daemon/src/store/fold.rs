//! Folding: a finished message's (call's) pieces become one event, and what a deleted session left is removed.
//! Must never change the text that a reader at any cursor ends up with.

use super::rows::{self, Key};
use super::writer::Head;
use protocol::event::{Event, EventKind};
use rusqlite::{Connection, OptionalExtension};
use serde::Deserialize;
use std::borrow::Cow;

/// Rows of a deleted session that go in one step: few enough that an append hardly waits.
const STEP: i64 = 500;

/// What a piece's JSON must say to be joined.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    offset: u64,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

/// Pieces of one kind, joined.
struct Joined {
    kind: String,
    first_seq: u64,
    last_seq: u64,
    last_json: String,
    text: String,
    chars: u64,
}

/// An event that takes the place of pieces.
pub(super) struct Folded {
    pub(super) seq: u64,
    pub(super) json: String,
}

pub(super) struct Plan {
    pub(super) events: Vec<Folded>,
    last_row: i64,
}

/// Joins the pieces of a message; none when there are none, or when they don't fit together and so stay as they are.
pub(super) fn plan(conn: &Connection, head: &Head, piece: &str) -> rusqlite::Result<Option<Plan>> {
    let mut statement = conn.prepare_cached(
        "SELECT id, seq, json FROM tail WHERE id >= ?1 AND session = ?2 AND piece = ?3 ORDER BY id",
    )?;
    let mut rows = statement.query((head.tail_from, head.key, piece))?;
    let mut joined: Vec<Joined> = Vec::new();
    let mut last_row = None;
    while let Some(row) = rows.next()? {
        last_row = Some(row.get(0)?);
        let seq = row.get::<_, i64>(1)?.unsigned_abs();
        if join(&mut joined, seq, row.get_ref(2)?.as_str()?).is_none() {
            tracing::warn!(piece, seq, "pieces don't fit together and stay unfolded");
            return Ok(None);
        }
    }
    let events: Option<Vec<_>> = joined.into_iter().map(fold).collect();
    Ok(last_row
        .zip(events)
        .map(|(last_row, events)| Plan { events, last_row }))
}

pub(super) fn write(
    conn: &Connection,
    head: &Head,
    piece: &str,
    plan: &Plan,
) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "DELETE FROM tail WHERE id BETWEEN ?1 AND ?2 AND session = ?3 AND piece = ?4",
    )?
    .execute((head.tail_from, plan.last_row, head.key, piece))?;
    plan.events
        .iter()
        .try_for_each(|event| rows::insert_event(conn, head.key, event.seq, &event.json))
}

/// Takes a piece in by the rule that readers follow: what lies beyond the text so far counts.
fn join(joined: &mut Vec<Joined>, seq: u64, json: &str) -> Option<()> {
    let piece: Piece<'_> = serde_json::from_str(json).ok()?;
    let index = match joined.iter().position(|j| j.kind == piece.kind) {
        Some(index) => index,
        None => {
            joined.push(Joined {
                kind: piece.kind.into_owned(),
                first_seq: seq,
                last_seq: seq,
                last_json: String::new(),
                text: String::new(),
                chars: 0,
            });
            joined.len() - 1
        }
    };
    let joined = &mut joined[index];
    let known = joined.chars.checked_sub(piece.offset)?;
    let beyond = beyond(&piece.text, known);
    joined.text.push_str(beyond);
    joined.chars += beyond.chars().count() as u64;
    joined.last_seq = seq;
    joined.last_json.clear();
    joined.last_json.push_str(json);
    Some(())
}

fn beyond(text: &str, known: u64) -> &str {
    let known = usize::try_from(known).unwrap_or(usize::MAX);
    match text.char_indices().nth(known) {
        Some((at, _)) => &text[at..],
        None => "",
    }
}

fn fold(joined: Joined) -> Option<Folded> {
    let seq = joined.last_seq;
    if joined.first_seq == seq {
        return Some(Folded {
            seq,
            json: joined.last_json,
        });
    }
    let mut event: Event = serde_json::from_str(&joined.last_json).ok()?;
    event.first_seq = Some(joined.first_seq);
    match &mut event.kind {
        EventKind::Saying { offset, text, .. }
        | EventKind::Thinking { offset, text, .. }
        | EventKind::ToolOutput { offset, text, .. } => {
            *offset = 0;
            *text = joined.text;
        }
        _ => return None,
    }
    let json = serde_json::to_string(&event).ok()?;
    Some(Folded { seq, json })
}

/// What a session's former owner left unfolded.
pub(super) struct Left {
    pub(super) first_row: Option<i64>,
    pub(super) pieces: Vec<String>,
}

pub(super) fn left(conn: &Connection, key: Key) -> rusqlite::Result<Left> {
    let mut statement =
        conn.prepare_cached("SELECT min(id), piece FROM tail WHERE session = ?1 GROUP BY piece")?;
    let rows = statement
        .query_map([key], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(i64, String)>>>()?;
    Ok(Left {
        first_row: rows.iter().map(|(row, _)| *row).min(),
        pieces: rows.into_iter().map(|(_, piece)| piece).collect(),
    })
}

pub(super) fn first_row(conn: &Connection, key: Key, from: i64) -> rusqlite::Result<Option<i64>> {
    conn.prepare_cached("SELECT id FROM tail WHERE id >= ?1 AND session = ?2 ORDER BY id LIMIT 1")?
        .query_row((from, key), |row| row.get(0))
        .optional()
}

/// A deleted session that has left something.
pub(super) fn doomed(conn: &Connection) -> rusqlite::Result<Option<Key>> {
    conn.prepare_cached("SELECT session FROM doomed LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()
}

/// Removes a step's worth of what a deleted session left, and in the end that it left anything.
pub(super) fn purge_some(conn: &Connection, key: Key) -> rusqlite::Result<()> {
    let range = (rows::event_id(key, 0), rows::event_id(key, u64::MAX), STEP);
    let words = conn
        .prepare_cached(
            "DELETE FROM words WHERE rowid IN (SELECT rowid FROM words WHERE rowid BETWEEN ?1 AND ?2 LIMIT ?3)",
        )?
        .execute(range)?;
    let events = conn
        .prepare_cached(
            "DELETE FROM events WHERE id IN (SELECT id FROM events WHERE id BETWEEN ?1 AND ?2 LIMIT ?3)",
        )?
        .execute(range)?;
    if words == 0 && events == 0 {
        conn.execute("DELETE FROM tail WHERE session = ?1", [key])?;
        conn.execute("DELETE FROM doomed WHERE session = ?1", [key])?;
    }
    Ok(())
}
