//! What is found, and by which queries.

use super::*;
use serde_json::json;

async fn hits(store: &Store, query: &str) -> Vec<(String, u64, String)> {
    let hits = store.search(query, 50).await.unwrap();
    hits.into_iter()
        .map(|hit| (hit.session.to_string(), hit.seq, hit.snippet))
        .collect()
}

#[tokio::test]
async fn prompts_replies_results_and_titles_are_found() {
    let bed = bed();
    let mut titled = row("a");
    titled.title = "Caf\u{e9} renovation".into();
    bed.store.create(titled.clone()).await.unwrap();
    put(&bed.store, "a", 1, prompt("please paint the kitchen")).await;
    put(&bed.store, "a", 2, saying("m1", 0, "unfinished kitchens")).await;
    let said = EventKind::Said {
        message: MessageId::from("m1"),
        text: "The Kitchen is PAINTED".into(),
    };
    put(&bed.store, "a", 3, said).await;
    let result = json!({"ok": true, "output": {"lines": ["a pot of turquoise"]}, "code": 0});
    let done = EventKind::Done {
        call: CallId::from("c1"),
        result: result.as_object().unwrap().clone(),
        ms: 1,
    };
    put(&bed.store, "a", 4, done).await;
    assert_eq!(
        hits(&bed.store, "kitchen please").await,
        [("a".into(), 1, "[please] paint the [kitchen]".into())]
    );
    assert_eq!(hits(&bed.store, "kitchen").await.len(), 2);
    assert_eq!(
        hits(&bed.store, "\"is painted\"").await,
        [("a".into(), 3, "The Kitchen [is PAINTED]".into())]
    );
    assert_eq!(hits(&bed.store, "turq*").await[0].1, 4);
    assert_eq!(
        hits(&bed.store, "cafe").await,
        [("a".into(), 0, "[Caf\u{e9}] renovation".into())]
    );
    titled.title = "Bath".into();
    bed.store.update_row(titled).await.unwrap();
    assert!(hits(&bed.store, "cafe").await.is_empty());
    assert_eq!(hits(&bed.store, "bath").await.len(), 1);
}

#[tokio::test]
async fn odd_queries_are_answered() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(
        &bed.store,
        "a",
        1,
        prompt("a AND b: foo-bar \"quoted\" x*y C++ 100% \u{65e5}\u{672c}"),
    )
    .await;
    for query in [
        "\"unbalanced",
        "AND",
        "a AND b",
        "foo-bar",
        "b:",
        "x*y",
        "C++",
        "100%",
        "\u{65e5}\u{672c}",
        "(foo",
        "quoted\"",
        "foo-b*",
        "\"foo bar\"",
        "'foo'",
        "{a}",
    ] {
        let found = bed.store.search(query, 10).await;
        assert!(found.is_ok(), "{query}: {found:?}");
        if query != "\"unbalanced" {
            assert_eq!(found.unwrap().len(), 1, "{query}");
        }
    }
    for query in ["", " ", "\"", "*", "-"] {
        let refused = bed.store.search(query, 10).await;
        assert!(
            matches!(refused, Err(StoreError::Query { .. })),
            "{query}: {refused:?}"
        );
    }
}

/// What the words' index lacks when a daemon dies between a commit and the time it has for the index.
fn forget_words(bed: &Bed) -> rusqlite::Connection {
    let conn = rusqlite::Connection::open(path(&bed.dir)).unwrap();
    conn.execute_batch("DELETE FROM words").unwrap();
    conn
}

#[tokio::test]
async fn words_that_a_dead_daemon_left_are_found_after_the_next_start() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, prompt("needle")).await;
    bed.store.close().await;
    forget_words(&bed)
        .execute_batch(
            "UPDATE sessions SET owner = 'dead';
             INSERT INTO daemons (token, pid, socket, lock) VALUES ('dead', 1, 's', '/nonexistent/lock')",
        )
        .unwrap();
    let next = open(&bed.dir, "next");
    settle(&next).await;
    let hits = next.search("needle", 9).await.unwrap();
    assert_eq!(hits.len(), 1, "{hits:?}");
    next.close().await;
}

#[tokio::test]
async fn words_that_were_left_are_found_once_the_session_is_taken() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, prompt("needle")).await;
    bed.store.close().await;
    drop(forget_words(&bed));
    let next = open(&bed.dir, "next");
    assert!(next.search("needle", 9).await.unwrap().is_empty());
    next.lease(&id("a")).await.unwrap();
    assert_eq!(next.search("needle", 9).await.unwrap().len(), 1);
    next.close().await;
}

#[tokio::test]
async fn a_long_append_is_searched_to_its_end() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let entries = (1..=350).map(|seq| entry("a", seq, prompt(&format!("word{seq}"))));
    let entries: Vec<_> = entries.collect();
    let session = id("a");
    let appended = bed
        .store
        .append(&session, entries, None, Pace::Now, Durability::Committed);
    appended.await.unwrap();
    for word in ["word1", "word100", "word101", "word350"] {
        assert_eq!(bed.store.search(word, 9).await.unwrap().len(), 1, "{word}");
    }
    bed.store.close().await;
}

#[tokio::test]
async fn what_was_said_just_before_a_session_was_given_back_is_found() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, prompt("needle")).await;
    bed.store.release(&id("a")).await;
    bed.store.close().await;
    let next = open(&bed.dir, "next");
    assert_eq!(next.search("needle", 9).await.unwrap().len(), 1);
    next.close().await;
}
