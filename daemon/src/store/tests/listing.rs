//! Lists: order, pages, filters, and that ten thousand sessions are few.

use super::*;
use std::time::{Duration, Instant};

async fn pages(store: &Store, query: ListQuery) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut query = query;
    loop {
        let (rows, cursor) = store.list(query.clone()).await.unwrap();
        pages.push(rows.iter().map(|row| row.id.to_string()).collect());
        query.cursor = cursor;
        if query.cursor.is_none() {
            return pages;
        }
    }
}

#[tokio::test]
async fn pages_are_newest_first_without_gap_or_repetition() {
    let bed = bed();
    for (number, updated_at) in [5, 3, 3, 9, 1].into_iter().enumerate() {
        let mut row = row(&format!("s{number}"));
        row.updated_at = updated_at;
        bed.store.create(row).await.unwrap();
    }
    let query = ListQuery {
        limit: 2,
        ..ListQuery::default()
    };
    let wanted = [vec!["s3", "s0"], vec!["s2", "s1"], vec!["s4"]];
    assert_eq!(pages(&bed.store, query.clone()).await, wanted);
    let all = ListQuery { limit: 0, ..query };
    assert_eq!(pages(&bed.store, all).await, [wanted.concat()]);
    let odd = ListQuery {
        cursor: Some("x".into()),
        ..ListQuery::default()
    };
    assert!(matches!(
        bed.store.list(odd).await,
        Err(StoreError::Cursor(_))
    ));
    assert_eq!(bed.store.count().await.unwrap(), 5);
}

#[tokio::test]
async fn lists_are_filtered_by_directory_words_and_archive() {
    let bed = bed();
    for (name, title, cwd, archived) in [
        ("calm-otter", "Fix the \u{c4}pfel", "/a", false),
        ("wild-fox", "100% done_now", "/b", false),
        ("old-fox", "", "/b", true),
    ] {
        let mut row = row(name);
        (row.title, row.cwd, row.archived) = (title.into(), cwd.into(), archived);
        bed.store.create(row).await.unwrap();
    }
    let list = async |cwd: Option<&str>, query: Option<&str>, archived| {
        let query = ListQuery {
            cwd: cwd.map(str::to_owned),
            query: query.map(str::to_owned),
            archived,
            limit: 10,
            cursor: None,
        };
        pages(&bed.store, query).await.concat().join(" ")
    };
    assert_eq!(list(None, None, false).await, "wild-fox calm-otter");
    assert_eq!(list(Some("/a"), None, false).await, "calm-otter");
    assert_eq!(list(Some("/c"), None, false).await, "");
    assert_eq!(list(None, Some("OTTER"), false).await, "calm-otter");
    assert_eq!(list(None, Some("\u{e4}pfel"), false).await, "calm-otter");
    assert_eq!(list(None, Some("0% d"), false).await, "wild-fox");
    assert_eq!(list(None, Some("done%now"), false).await, "");
    assert_eq!(list(None, None, true).await, "old-fox");
}

#[tokio::test]
async fn ten_thousand_sessions_are_listed_in_no_time() {
    let bed = bed();
    let makes = (0..10_000_u64).map(|number| {
        let mut row = row(&format!("s{number}"));
        row.updated_at = number * 7919 % 10_007;
        bed.store.create(row)
    });
    for made in futures_util::future::join_all(makes).await {
        made.unwrap();
    }
    // The bounds are wide, for a debug build on a busy machine; the benchmark has the figures.
    for (limit, bound) in [(50, 200), (0, 2000)] {
        let query = ListQuery {
            limit,
            ..ListQuery::default()
        };
        let began = Instant::now();
        let (rows, _) = bed.store.list(query).await.unwrap();
        assert_eq!(rows.len(), if limit == 0 { 10_000 } else { 50 });
        assert!(rows.is_sorted_by(|a, b| a.updated_at >= b.updated_at));
        assert!(
            began.elapsed() < Duration::from_millis(bound),
            "{:?}",
            began.elapsed()
        );
    }
}
