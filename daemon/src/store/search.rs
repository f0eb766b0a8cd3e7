//! Full-text search: the index, and how a person's query is understood.
//! Must never fail on odd syntax: what is not a word, a "phrase" or a prefix* is taken literally.

use super::StoreError;
use super::kind;
use super::rows::{self, Key};
use protocol::event::Event;
use protocol::id::SessionId;
use protocol::session::SearchHit;
use rusqlite::{Connection, OptionalExtension};

/// Words around a match.
const SNIPPET: &str = "snippet(words, 0, '[', ']', '…', 16)";

/// Events that are looked at in one step: few enough that an append hardly waits.
const STEP: u32 = 100;

/// Whether a step came to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    More,
    All,
}

pub(super) struct Step {
    /// The last event that was looked at.
    pub(super) last: u64,
    pub(super) found: Found,
}

/// The newest event of a session whose words are known; 0 when there is none.
pub(super) fn newest(conn: &Connection, key: Key) -> rusqlite::Result<u64> {
    let newest: Option<i64> = conn
        .prepare_cached(
            "SELECT rowid FROM words WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC LIMIT 1",
        )?
        .query_row(
            (rows::event_id(key, 0), rows::event_id(key, u64::MAX)),
            |row| row.get(0),
        )
        .optional()?;
    Ok(newest.map_or(0, rows::seq_of))
}

/// Makes the words of a session's next events known. Of a deleted session nothing is.
pub(super) fn index_after(conn: &Connection, key: Key, after: u64) -> rusqlite::Result<Step> {
    let mut statement = conn.prepare_cached(
        "SELECT id, json FROM events WHERE id > ?1 AND id <= ?2
         AND EXISTS (SELECT 1 FROM sessions WHERE key = ?3) ORDER BY id LIMIT ?4",
    )?;
    let (from, to) = (rows::event_id(key, after), rows::event_id(key, u64::MAX));
    let mut events = statement.query((from, to, key, STEP))?;
    let (mut last, mut count) = (after, 0);
    while let Some(row) = events.next()? {
        (last, count) = (rows::seq_of(row.get(0)?), count + 1);
        match serde_json::from_str(row.get_ref(1)?.as_str()?) {
            Ok(event) => index_event(conn, key, &event)?,
            // Read as a gap too, and said there.
            Err(error) => tracing::debug!(key, last, %error, "an event has no words"),
        }
    }
    let found = if count < STEP {
        Found::All
    } else {
        Found::More
    };
    Ok(Step { last, found })
}

fn index_event(conn: &Connection, key: Key, event: &Event) -> rusqlite::Result<()> {
    match kind::words(&event.kind) {
        Some(text) if !text.is_empty() => insert(conn, key, event.seq, &text, event.at),
        _ => Ok(()),
    }
}

/// The title stands where no event does, at 0.
pub(super) fn index_title(
    conn: &Connection,
    key: Key,
    title: &str,
    at: u64,
) -> rusqlite::Result<()> {
    conn.prepare_cached("DELETE FROM words WHERE rowid = ?1")?
        .execute([rows::event_id(key, 0)])?;
    match title {
        "" => Ok(()),
        title => insert(conn, key, 0, title, at),
    }
}

pub(super) fn search(
    conn: &Connection,
    expression: &str,
    limit: u32,
) -> rusqlite::Result<Vec<SearchHit>> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT words.rowid, {SNIPPET}, words.at, sessions.id, sessions.title
         FROM words JOIN sessions ON sessions.key = words.rowid >> 32
         WHERE words MATCH ?1 ORDER BY rank LIMIT ?2"
    ))?;
    statement
        .query_map((expression, limit), |row| {
            Ok(SearchHit {
                seq: rows::seq_of(row.get(0)?),
                snippet: row.get(1)?,
                at: row.get::<_, i64>(2)?.unsigned_abs(),
                session: SessionId::from(row.get::<_, String>(3)?),
                title: row.get(4)?,
            })
        })?
        .collect()
}

/// The longest query in bytes, and the most terms in it: the engine's time grows faster than their number.
const LONGEST: usize = 1000;
const MOST: usize = 50;

/// The engine's form of a query, or what is wrong with it.
pub(super) fn understand(query: &str) -> Result<String, StoreError> {
    let refuse = |detail: String| {
        let query = query.chars().take(80).collect();
        Err(StoreError::Query { query, detail })
    };
    if query.len() > LONGEST {
        return refuse(format!("it has {} bytes, more than {LONGEST}", query.len()));
    }
    match query.split_whitespace().count() {
        words if words > MOST => refuse(format!("it has {words} words, more than {MOST}")),
        _ => expression(query).map_or_else(|| refuse("there is no word in it".into()), Ok),
    }
}

/// The engine's form of what a person wrote: all terms must be there. None when there is no word in it.
pub(super) fn expression(query: &str) -> Option<String> {
    let mut terms = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[start..];
        let term;
        (term, rest) = match rest.strip_prefix('"') {
            Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
            None => rest.split_at(
                rest.find(|c: char| c.is_whitespace() || c == '"')
                    .unwrap_or(rest.len()),
            ),
        };
        // A star behind a phrase's quote, or at a word's end.
        let (term, prefix) = match (rest.strip_prefix('*'), term.strip_suffix('*')) {
            (Some(after), _) => {
                rest = after;
                (term, "*")
            }
            (None, Some(word)) => (word, "*"),
            (None, None) => (term, ""),
        };
        if term.chars().any(char::is_alphanumeric) {
            let quoted = term.replace(['"', '\0'], " ");
            terms.push(format!("\"{quoted}\"{prefix}"));
        }
    }
    (!terms.is_empty()).then(|| terms.join(" "))
}

fn insert(conn: &Connection, key: Key, seq: u64, text: &str, at: u64) -> rusqlite::Result<()> {
    conn.prepare_cached("INSERT INTO words (rowid, text, at) VALUES (?1, ?2, ?3)")?
        .execute((rows::event_id(key, seq), text, rows::int(at)))
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::{expression, understand};

    #[test]
    fn a_query_that_would_take_for_ever_is_refused() {
        for query in ["hello ".repeat(51), "x".repeat(1001)] {
            let refused = understand(&query).expect_err("too much").to_string();
            assert!(refused.contains("more than"), "{refused}");
        }
        assert!(understand(&"hello ".repeat(50)).is_ok());
    }

    #[test]
    fn words_phrases_and_prefixes_are_kept_and_the_rest_is_literal() {
        for (query, wanted) in [
            ("one two", r#""one" "two""#),
            (r#""one two" three"#, r#""one two" "three""#),
            (r#"a"b c"d"#, r#""a" "b c" "d""#),
            ("pre*", r#""pre"*"#),
            (r#""one tw"*"#, r#""one tw"*"#),
            (r#""never closed"#, r#""never closed""#),
            ("a AND NOT b", r#""a" "AND" "NOT" "b""#),
            ("NEAR(a b)", r#""NEAR(a" "b)""#),
            ("text:x -y ^z +w", r#""text:x" "-y" "^z" "+w""#),
            ("- * \"\" x", r#""x""#),
            ("nul\0byte", r#""nul byte""#),
        ] {
            assert_eq!(expression(query).as_deref(), Some(wanted), "{query}");
        }
        for query in ["", "  ", "\"", "* - ()", "\"\"*"] {
            assert_eq!(expression(query), None, "{query}");
        }
    }
}
