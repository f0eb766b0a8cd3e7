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
