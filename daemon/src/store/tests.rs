//! The store through its face.

use super::*;
use protocol::event::EventKind;
use protocol::id::{CallId, MessageId};
use protocol::session::SessionState;
use tempfile::TempDir;

/// A store in a directory of its own.
pub(crate) struct Bed {
    pub(crate) dir: TempDir,
    pub(crate) store: Store,
}

pub(crate) fn bed() -> Bed {
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir, "state");
    Bed { dir, store }
}

pub(crate) fn path(dir: &TempDir) -> PathBuf {
    dir.path().join("data/dwell.db")
}

pub(crate) fn owner(dir: &TempDir, state: &str) -> Owner {
    Owner {
        pid: std::process::id(),
        socket: format!("/run/{state}.sock"),
        state_dir: dir.path().join(state),
    }
}

pub(crate) fn open(dir: &TempDir, state: &str) -> Store {
    Store::open(&path(dir), owner(dir, state)).unwrap()
}

pub(crate) fn id(name: &str) -> SessionId {
    SessionId::from(name)
}

pub(crate) fn row(name: &str) -> SessionRow {
    SessionRow {
        id: id(name),
        title: String::new(),
        cwd: "/work".into(),
        state: SessionState::Idle,
        reason: None,
        provider: "stub".into(),
        model: None,
        created_at: 1,
        updated_at: 1,
        seq: 0,
        archived: false,
        parent: None,
        settings: "{}".into(),
    }
}

pub(crate) fn entry(session: &str, seq: u64, kind: EventKind) -> Entry {
    Entry::new(Event {
        session: id(session),
        seq,
        first_seq: None,
        at: 1000 + seq,
        turn: None,
        kind,
    })
}

pub(crate) fn prompt(text: &str) -> EventKind {
    EventKind::TurnStarted {
        text: text.into(),
        images: Vec::new(),
        token: None,
        client: None,
    }
}

pub(crate) fn saying(message: &str, offset: u64, text: &str) -> EventKind {
    EventKind::Saying {
        message: MessageId::from(message),
        offset,
        text: text.into(),
    }
}

pub(crate) fn output(call: &str, offset: u64, text: &str) -> EventKind {
    EventKind::ToolOutput {
        call: CallId::from(call),
        offset,
        text: text.into(),
    }
}

pub(crate) async fn put(store: &Store, session: &str, seq: u64, kind: EventKind) {
    try_put(store, session, seq, kind).await.unwrap();
}

pub(crate) async fn try_put(
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

fn json(entries: &[Entry]) -> Vec<String> {
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
    let before = bed.store.read_before(&id("a"), 3, 1).await.unwrap();
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
    assert!(try_put(&bed.store, "a", 2, prompt("x")).await.is_err());
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
