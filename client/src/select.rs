//! Which session a person means. Must never guess between two.

use crate::error::{Exit, Failure};
use crate::link::Link;
use protocol::id::SessionId;
use protocol::session::{Session, SessionRpcClient};

/// The word for this directory's newest session.
pub(crate) const LAST: &str = "last";

/// How many sessions one request asks for.
const PAGE: u32 = 200;

/// The session that a word names: an id, the beginning of one, or `last`.
pub(crate) async fn session(link: &Link, word: &str) -> Result<Session, Failure> {
    if word == LAST {
        return last(link).await?.ok_or_else(|| {
            Failure::new("this directory has no session")
                .hint("`dwell new` makes one, `dwell ls` lists those of other directories")
                .exit(Exit::NotFound)
        });
    }
    let mut matching = begin_with(link, word, None).await?;
    if matching.is_empty() {
        matching = begin_with(link, word, Some(true)).await?;
    }
    choose(word, matching)
}

/// The id of the session that a word names.
pub(crate) async fn id(link: &Link, word: &str) -> Result<SessionId, Failure> {
    Ok(session(link, word).await?.id)
}

/// This directory's newest session that a person began.
pub(crate) async fn last(link: &Link) -> Result<Option<Session>, Failure> {
    let cwd = link.place().here()?;
    let mut cursor = None;
    let mut limit = 1;
    loop {
        let page = link
            .call(async |client| {
                let cwd = Some(cwd.clone());
                SessionRpcClient::list(client, cwd, None, None, Some(limit), cursor.clone()).await
            })
            .await?;
        let mut sessions = page.sessions.into_iter();
        if let Some(own) = sessions.find(|session| session.task.is_none()) {
            return Ok(Some(own));
        }
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(None);
        }
        limit = PAGE;
    }
}

async fn begin_with(
    link: &Link,
    word: &str,
    archived: Option<bool>,
) -> Result<Vec<Session>, Failure> {
    let mut found = Vec::new();
    let mut cursor = None;
    loop {
        let page = link
            .call(async |client| {
                let query = Some(word.to_string());
                SessionRpcClient::list(client, None, query, archived, Some(PAGE), cursor.clone())
                    .await
            })
            .await?;
        found.extend(page.sessions);
        cursor = page.cursor;
        if cursor.is_none() {
            // The query looks at titles too.
            found.retain(|session: &Session| session.id.as_str().starts_with(word));
            return Ok(found);
        }
    }
}

fn choose(word: &str, mut matching: Vec<Session>) -> Result<Session, Failure> {
    if let Some(exact) = matching.iter().position(|one| one.id.as_str() == word) {
        return Ok(matching.swap_remove(exact));
    }
    match matching.len() {
        0 => Err(
            Failure::new(format!("no session has an id that begins with \"{word}\""))
                .hint("`dwell ls` lists them")
                .exit(Exit::NotFound),
        ),
        1 => Ok(matching.swap_remove(0)),
        _ => {
            let ids: Vec<&str> = matching.iter().take(8).map(|one| one.id.as_str()).collect();
            Err(
                Failure::new(format!("\"{word}\" may be any of {}", ids.join(", ")))
                    .hint("type more of it")
                    .exit(Exit::NotFound),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sessions(ids: &[&str]) -> Vec<Session> {
        let make = |id: &&str| {
            let whole = json!({
                "id": id, "title": "", "cwd": "/", "state": "idle", "provider": "stub",
                "created_at": 0, "updated_at": 0, "seq": 0
            });
            serde_json::from_value(whole).unwrap()
        };
        ids.iter().map(make).collect()
    }

    #[test]
    fn an_exact_id_wins_over_longer_ones() {
        let chosen = choose("calm", sessions(&["calm-otter", "calm"])).unwrap();
        assert_eq!(chosen.id.as_str(), "calm");
    }

    #[test]
    fn a_word_that_fits_two_is_refused_and_names_both() {
        let failure = choose("ca", sessions(&["calm-otter", "cave-owl"])).unwrap_err();
        assert!(
            failure.message.contains("calm-otter, cave-owl"),
            "{failure}"
        );
        assert_eq!(failure.exit, Exit::NotFound);
    }

    #[test]
    fn a_beginning_that_fits_one_is_enough() {
        assert_eq!(
            choose("cav", sessions(&["cave-owl"])).unwrap().id.as_str(),
            "cave-owl"
        );
        assert_eq!(choose("x", vec![]).unwrap_err().exit, Exit::NotFound);
    }
}
