//! The store through its face.

mod faults;
mod folding;
mod listing;
mod searching;

use super::*;
use protocol::event::EventKind;
use protocol::id::{CallId, MessageId};
use protocol::session::SessionState;
use tempfile::TempDir;

/// A store in a directory of its own.
pub(super) struct Bed {
    pub(super) dir: TempDir,
    pub(super) store: Store,
}

pub(super) fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, "state");
    Bed { dir, store }
}

pub(super) fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("data/dwell.db")
}

pub(super) fn owner(dir: &TempDir, state: &str) -> Owner {
    Owner {
        pid: std::process::id(),
        socket: format!("/run/{state}.sock"),
        state_dir: dir.path().join(state),
    }
}

pub(super) fn open(dir: &TempDir, state: &str) -> Store {
    Store::open(&path(dir), owner(dir, state)).unwrap()
}

pub(super) fn id(name: &str) -> SessionId {
    SessionId::from(name)
}

pub(super) fn row(name: &str) -> SessionRow {
    SessionRow {
        id: id(name),
        title: String::new(),
        cwd: "/srv/work".into(),
        state: SessionState::Idle,
        reason: None,
        provider: "stub".into(),
        model: None,
        created_at: 1,
        updated_at: 1,
        seq: 0,
        archived: false,
        parent: None,
        task: None,
        settings: "{}".into(),
    }
}

pub(super) fn entry(session: &str, seq: u64, kind: EventKind) -> Entry {
    Entry::new(Event {
        session: id(session),
        seq,
        first_seq: None,
        at: 1000 + seq,
        turn: None,
        kind,
    })
}

pub(super) fn prompt(text: &str) -> EventKind {
    EventKind::TurnStarted {
        text: text.into(),
        images: Vec::new(),
        token: None,
        client: None,
    }
}

pub(super) fn saying(message: &str, offset: u64, text: &str) -> EventKind {
    EventKind::Saying {
        message: MessageId::from(message),
        offset,
        text: text.into(),
    }
}

pub(super) fn output(call: &str, offset: u64, text: &str) -> EventKind {
    EventKind::ToolOutput {
        call: CallId::from(call),
        offset,
        text: text.into(),
    }
}

pub(super) async fn put(store: &Store, session: &str, seq: u64, kind: EventKind) {
    try_put(store, session, seq, kind).await.unwrap();
}

pub(super) async fn try_put(
    store: &Store,
    session: &str,
    seq: u64,
    kind: EventKind,
) -> Result<(), StoreError> {
    let entries = vec![entry(session, seq, kind)];
    store
        .append(
            &id(session),
            entries,
            None,
            Pace::Now,
            Durability::Committed,
        )
        .await
}

/// Waits until the writer has done all its chores.
pub(super) async fn settle(store: &Store) {
    while store.inner.mailbox.has_chores() {
        tokio::task::yield_now().await;
    }
    // One may be under way: the writer answers when it is done.
    let _ = store.lease(&id("nobody")).await;
}

pub(super) fn json(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.json.to_string()).collect()
}

#[tokio::test]
async fn what_was_appended_is_read_with_the_same_bytes() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let entries = vec![
        entry("a", 1, prompt("héllo \u{1F600} \"q\" \n")),
        entry("a", 2, saying("m1", 0, "hi")),
        entry("a", 3, EventKind::Cleared),
    ];
    bed.store
        .append(
            &id("a"),
            entries.clone(),
            None,
            Pace::Now,
            Durability::Synced,
        )
        .await
        .unwrap();
    let read = bed.store.read(&id("a"), 0, 100).await.unwrap();
    assert_eq!(json(&read), json(&entries));
    assert_eq!(*read[0].event, *entries[0].event);
    let after = bed.store.read(&id("a"), 1, 1).await.unwrap();
    assert_eq!(json(&after), json(&entries[1..2]));
    let (before, _) = bed.store.page_before(&id("a"), 3, 1).await.unwrap();
    assert_eq!(json(&before), json(&entries[1..2]));
    let stored = bed.store.row(&id("a")).await.unwrap();
    assert_eq!((stored.seq, stored.updated_at), (3, 1003));
    bed.store.close().await;
    let again = open(&bed.dir, "state");
    assert_eq!(
        json(&again.read(&id("a"), 0, 100).await.unwrap()),
        json(&entries)
    );
    again.close().await;
}

#[tokio::test]
async fn an_entry_that_does_not_follow_is_refused_and_nothing_is_written() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    put(&bed.store, "a", 1, prompt("one")).await;
    for seqs in [vec![1], vec![3], vec![2, 4], vec![3, 2], vec![2, 2]] {
        let entries = seqs
            .iter()
            .map(|seq| entry("a", *seq, prompt("x")))
            .collect();
        let refused = bed
            .store
            .append(&id("a"), entries, None, Pace::Now, Durability::Committed)
            .await;
        assert!(
            matches!(refused, Err(StoreError::Io { .. })),
            "{seqs:?}: {refused:?}"
        );
    }
    assert_eq!(bed.store.read(&id("a"), 0, 10).await.unwrap().len(), 1);
    put(&bed.store, "a", 2, prompt("two")).await;
}

#[tokio::test]
async fn an_append_is_in_a_copy_of_the_files_when_it_returns() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    for seq in 1..=20 {
        let pace = if seq % 2 == 0 { Pace::Floor } else { Pace::Now };
        let entries = vec![entry("a", seq, saying("m1", seq - 1, "x"))];
        bed.store
            .append(&id("a"), entries, None, pace, Durability::Committed)
            .await
            .unwrap();
        // What a `kill -9` leaves: the files as they are at this moment.
        let copy = tempfile::tempdir().unwrap();
        std::fs::create_dir(copy.path().join("data")).unwrap();
        for name in ["dwell.db", "dwell.db-wal"] {
            let from = bed.dir.path().join("data").join(name);
            std::fs::copy(from, copy.path().join("data").join(name)).unwrap();
        }
        let store = open(&copy, "other");
        assert_eq!(store.row(&id("a")).await.unwrap().seq, seq);
        assert_eq!(
            store.read(&id("a"), 0, 100).await.unwrap().len() as u64,
            seq
        );
        store.close().await;
    }
}

#[tokio::test]
async fn a_session_belongs_to_one_daemon_until_it_lets_go() {
    let bed = bed();
    let other = open(&bed.dir, "other");
    bed.store.create(row("a")).await.unwrap();
    bed.store.lease(&id("a")).await.unwrap();
    let held = other.lease(&id("a")).await;
    match held {
        Err(StoreError::Held {
            session,
            pid,
            socket,
        }) => {
            assert_eq!(session, id("a"));
            assert_eq!(pid, std::process::id());
            assert_eq!(socket, "/run/state.sock");
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        try_put(&other, "a", 1, prompt("x")).await,
        Err(StoreError::Held { .. })
    ));
    assert!(matches!(
        other.delete(&id("a")).await,
        Err(StoreError::Held { .. })
    ));
    put(&bed.store, "a", 1, prompt("x")).await;
    bed.store.release(&id("a")).await;
    other.lease(&id("a")).await.unwrap();
    assert!(matches!(
        try_put(&bed.store, "a", 2, prompt("x")).await,
        Err(StoreError::Held { .. })
    ));
    put(&other, "a", 2, prompt("y")).await;
    other.close().await;
    bed.store.lease(&id("a")).await.unwrap();
    put(&bed.store, "a", 3, prompt("z")).await;
}

#[tokio::test]
async fn a_dead_daemons_sessions_are_orphans_and_can_be_taken() {
    let bed = bed();
    let mut running = row("a");
    running.state = SessionState::Running;
    bed.store.create(running).await.unwrap();
    bed.store.create(row("b")).await.unwrap();
    put(&bed.store, "a", 1, saying("m1", 0, "x")).await;
    let other = open(&bed.dir, "other");
    assert!(other.orphans().await.unwrap().is_empty());
    assert!(bed.store.orphans().await.unwrap().is_empty());
    assert_eq!(
        other.row(&id("a")).await.unwrap().state,
        SessionState::Running
    );
    // The writer dies with its lock, as the process would.
    let died = bed.store.inner.mailbox.ask(Work::Panic).await;
    assert!(matches!(died, Err(StoreError::Io { .. })), "{died:?}");
    let after = try_put(&bed.store, "a", 2, prompt("x")).await;
    assert!(matches!(after, Err(StoreError::Io { .. })), "{after:?}");
    assert_eq!(other.orphans().await.unwrap(), [id("a")]);
    let found = other.row(&id("a")).await.unwrap();
    assert_eq!((found.state, found.seq), (SessionState::Failed, 1));
    other.lease(&id("a")).await.unwrap();
    put(&other, "a", 2, prompt("y")).await;
    let locks = std::fs::read_dir(bed.dir.path().join("state/daemons")).unwrap();
    assert_eq!(locks.count(), 0);
    bed.store.close().await;
    other.close().await;
}

#[tokio::test]
async fn appends_that_come_together_share_a_commit() {
    let bed = bed();
    let names: Vec<_> = (0..100).map(|n| format!("s{n}")).collect();
    for name in &names {
        bed.store.create(row(name)).await.unwrap();
    }
    let log = sync::log_path(&path(&bed.dir));
    let before = std::fs::metadata(&log).unwrap().len();
    let puts = names
        .iter()
        .map(|name| try_put(&bed.store, name, 1, saying("m1", 0, "x")));
    for put in futures_util::future::join_all(puts).await {
        put.unwrap();
    }
    let pages = (std::fs::metadata(&log).unwrap().len() - before) / 4096;
    assert!(pages < 50, "{pages} pages for 100 appends");
}

#[tokio::test]
async fn one_refused_append_does_not_touch_the_others_of_its_group() {
    let bed = bed();
    for name in ["a", "b", "c"] {
        bed.store.create(row(name)).await.unwrap();
    }
    let (a, b, c, nobody) = tokio::join!(
        try_put(&bed.store, "a", 1, prompt("x")),
        try_put(&bed.store, "b", 7, prompt("x")),
        try_put(&bed.store, "c", 1, prompt("x")),
        try_put(&bed.store, "nobody", 1, prompt("x")),
    );
    assert!(a.is_ok() && c.is_ok());
    assert!(matches!(b, Err(StoreError::Io { .. })), "{b:?}");
    assert!(matches!(nobody, Err(StoreError::NotFound(_))), "{nobody:?}");
}

#[tokio::test]
async fn two_appends_of_one_session_in_one_group_follow_each_other() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let session = id("a");
    let (first, second) = tokio::join!(
        bed.store.append(
            &session,
            vec![entry("a", 1, saying("m1", 0, "x"))],
            None,
            Pace::Floor,
            Durability::Committed
        ),
        try_put(&bed.store, "a", 2, prompt("y")),
    );
    first.unwrap();
    second.unwrap();
    assert_eq!(bed.store.read(&id("a"), 0, 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn many_daemons_write_to_one_store_and_nothing_is_lost() {
    let bed = bed();
    let other = open(&bed.dir, "other");
    bed.store.create(row("a")).await.unwrap();
    other.create(row("b")).await.unwrap();
    let stream = async |store: &Store, name: &str| {
        for seq in 1..=200 {
            put(store, name, seq, saying("m1", seq - 1, "x")).await;
        }
    };
    tokio::join!(stream(&bed.store, "a"), stream(&other, "b"));
    bed.store.fold(&id("a"), "m1");
    settle(&bed.store).await;
    for seq in 201..=250 {
        put(&bed.store, "a", seq, saying("m2", seq - 201, "x")).await;
    }
    assert_eq!(bed.store.read(&id("a"), 0, 999).await.unwrap().len(), 51);
    assert_eq!(bed.store.read(&id("b"), 0, 999).await.unwrap().len(), 200);
}

#[tokio::test]
async fn a_deleted_session_leaves_nothing() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    for seq in 1..=1200 {
        let kind = if seq % 3 == 0 {
            saying("m1", seq, "x")
        } else {
            prompt("needle")
        };
        put(&bed.store, "a", seq, kind).await;
    }
    bed.store.delete(&id("a")).await.unwrap();
    assert!(matches!(
        bed.store.row(&id("a")).await,
        Err(StoreError::NotFound(_))
    ));
    assert!(bed.store.search("needle", 9).await.unwrap().is_empty());
    bed.store.create(row("a")).await.unwrap();
    assert!(bed.store.read(&id("a"), 0, 9).await.unwrap().is_empty());
    settle(&bed.store).await;
    bed.store.delete(&id("a")).await.unwrap();
    bed.store.delete(&id("a")).await.unwrap();
    settle(&bed.store).await;
    bed.store.close().await;
    let conn = rusqlite::Connection::open(path(&bed.dir)).unwrap();
    for table in [
        "sessions", "settings", "events", "tail", "words", "doomed", "daemons",
    ] {
        let sql = format!("SELECT count(*) FROM {table}");
        let left: i64 = conn.query_row(&sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0, "{table}");
    }
}

#[tokio::test]
async fn a_closed_store_says_so_and_a_second_close_is_harmless() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    bed.store.close().await;
    bed.store.close().await;
    assert!(matches!(
        try_put(&bed.store, "a", 1, prompt("x")).await,
        Err(StoreError::Closed)
    ));
    assert!(matches!(
        bed.store.row(&id("a")).await,
        Err(StoreError::Closed)
    ));
    assert!(!sync::log_path(&path(&bed.dir)).exists());
    let locks = std::fs::read_dir(bed.dir.path().join("state/daemons")).unwrap();
    assert_eq!(locks.count(), 0);
}

#[tokio::test]
async fn a_dropped_store_still_writes_what_it_took() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let entries = vec![entry("a", 1, saying("m1", 0, "x"))];
    let session = id("a");
    let append = bed
        .store
        .append(&session, entries, None, Pace::Now, Durability::Committed);
    // Asked once, then given up.
    let mut append = Box::pin(append);
    let _ = futures_util::FutureExt::now_or_never(append.as_mut());
    drop(append);
    let Bed { dir, store } = bed;
    drop(store);
    let again = open(&dir, "again");
    while again.lease(&id("a")).await.is_err() {
        tokio::task::yield_now().await;
    }
    assert_eq!(again.row(&id("a")).await.unwrap().seq, 1);
}

#[tokio::test]
async fn a_row_given_with_an_append_replaces_all_but_the_number() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let mut changed = row("a");
    changed.title = "new".into();
    changed.state = SessionState::Waiting;
    changed.model = Some("m".into());
    changed.updated_at = 77;
    changed.seq = 900;
    changed.settings = String::new();
    let entries = vec![entry("a", 1, prompt("x"))];
    bed.store
        .append(
            &id("a"),
            entries,
            Some(changed.clone()),
            Pace::Now,
            Durability::SyncSoon,
        )
        .await
        .unwrap();
    let wanted = SessionRow {
        seq: 1,
        settings: "{}".into(),
        ..changed
    };
    assert_eq!(bed.store.row(&id("a")).await.unwrap(), wanted);
    let archived = SessionRow {
        archived: true,
        ..wanted
    };
    bed.store.update_row(archived.clone()).await.unwrap();
    assert_eq!(bed.store.row(&id("a")).await.unwrap(), archived);
}

#[test]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let bed = bed();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let path = path(&bed.dir);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(&sync::log_path(&path)), 0o600);
}
