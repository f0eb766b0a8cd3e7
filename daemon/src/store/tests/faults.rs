//! Stores that are newer, damaged, read-only or full.

use super::*;
use std::os::unix::fs::MetadataExt;

fn refused(dir: &TempDir) -> StoreError {
    match Store::open(&path(dir), owner(dir, "state")) {
        Ok(_) => panic!("it was opened"),
        Err(error) => error,
    }
}

async fn closed_store() -> TempDir {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    for seq in 1..=200 {
        put(&bed.store, "a", seq, prompt(&"x".repeat(500))).await;
    }
    bed.store.close().await;
    bed.dir
}

#[tokio::test]
async fn a_newer_store_is_refused_and_left_alone() {
    let dir = closed_store().await;
    let conn = rusqlite::Connection::open(path(&dir)).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    let before = std::fs::read(path(&dir)).unwrap();
    let error = refused(&dir);
    assert!(
        matches!(
            error,
            StoreError::Newer {
                found: 99,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("install that release"));
    assert_eq!(std::fs::read(path(&dir)).unwrap(), before);
}

#[tokio::test]
async fn what_is_no_store_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("data")).unwrap();
    let garbage = "this is no database ".repeat(100);
    std::fs::write(path(&dir), &garbage).unwrap();
    let error = refused(&dir);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert!(error.to_string().contains("move the file aside"), "{error}");
    assert_eq!(std::fs::read_to_string(path(&dir)).unwrap(), garbage);
    std::fs::remove_file(path(&dir)).unwrap();
    let conn = rusqlite::Connection::open(path(&dir)).unwrap();
    conn.execute_batch("CREATE TABLE recipes (name TEXT)")
        .unwrap();
    drop(conn);
    let error = refused(&dir);
    assert!(error.to_string().contains("another program"), "{error}");
}

#[tokio::test]
async fn a_damaged_page_is_told_as_damage() {
    let dir = closed_store().await;
    let mut bytes = std::fs::read(path(&dir)).unwrap();
    // All but the first pages, so that it opens.
    let from = bytes.len() / 4;
    bytes[from..].fill(0x5a);
    std::fs::write(path(&dir), &bytes).unwrap();
    let error = match Store::open(&path(&dir), owner(&dir, "state")) {
        Err(error) => error,
        Ok(store) => {
            let read = store.read(&id("a"), 0, 500).await;
            store.close().await;
            read.unwrap_err()
        }
    };
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
}

#[tokio::test]
async fn a_store_that_was_cut_short_is_refused() {
    let dir = closed_store().await;
    let mut bytes = std::fs::read(path(&dir)).unwrap();
    bytes.truncate(4096 * 8 + 100);
    std::fs::write(path(&dir), &bytes).unwrap();
    let error = refused(&dir);
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error}");
    assert_eq!(std::fs::read(path(&dir)).unwrap(), bytes);
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("data"), "a file, not a directory").unwrap();
    let error = refused(&dir);
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("create directory"), "{error}");
}

/// A small file system of its own, unmounted at the end. None without the right to mount.
struct Mount(PathBuf);

impl Mount {
    fn new(dir: &TempDir, test: &str) -> Option<Self> {
        let place = dir.path().join("data");
        std::fs::create_dir(&place).unwrap();
        let mounted = mount(&["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"], &place);
        if !mounted {
            eprintln!("SKIPPED: {test} needs root, to mount a small tmpfs");
        }
        mounted.then_some(Self(place))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        run("umount", &["-l"], &self.0);
    }
}

fn mount(options: &[&str], place: &Path) -> bool {
    run("mount", options, place)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a mount is not a child of the daemon's"
)]
fn run(program: &str, options: &[&str], place: &Path) -> bool {
    let output = std::process::Command::new(program)
        .args(options)
        .arg(place)
        .output();
    output.is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_is_over_when_there_is_space() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::new(
        &dir,
        "a_full_disk_loses_nothing_and_is_over_when_there_is_space",
    ) else {
        return;
    };
    let ballast = mount.0.join("ballast");
    std::fs::write(&ballast, vec![0; 300 * 1024]).unwrap();
    let store = open(&dir, "state");
    store.create(row("a")).await.unwrap();
    store.create(row("b")).await.unwrap();
    let mut stored = 0;
    let error = loop {
        let seq = stored + 1;
        let kind = match seq % 3 {
            0 => saying("m1", seq, &"y".repeat(700)),
            _ => prompt(&"x".repeat(700)),
        };
        // A small one beside it may still find room; it must not be harmed either way.
        match try_put(&store, "a", seq, kind).await {
            Ok(()) => stored = seq,
            Err(error) => break error,
        }
        assert!(seq < 10_000, "a 1 MiB disk does not get full");
    };
    assert!(matches!(error, StoreError::Full { .. }), "{error}");
    assert!(error.to_string().starts_with("storage full"), "{error}");
    assert!(stored > 5, "{stored}");
    let read = store.read(&id("a"), 0, 10_000).await.unwrap();
    assert_eq!(read.len() as u64, stored);
    assert_eq!(store.row(&id("a")).await.unwrap().seq, stored);
    store.list(ListQuery::default()).await.unwrap();
    store.search("xxx*", 3).await.unwrap();
    // A second start on the full disk tells it, too, or works.
    if let Err(error) = Store::open(&path(&dir), owner(&dir, "other")) {
        assert!(matches!(error, StoreError::Full { .. }), "{error}");
    }
    std::fs::remove_file(&ballast).unwrap();
    put(&store, "a", stored + 1, prompt("space again")).await;
    put(&store, "b", 1, prompt("space again")).await;
    assert_eq!(store.read(&id("a"), stored, 9).await.unwrap().len(), 1);
    store.close().await;
    let again = open(&dir, "state");
    assert_eq!(again.row(&id("a")).await.unwrap().seq, stored + 1);
    again.close().await;
    let conn = rusqlite::Connection::open(path(&dir)).unwrap();
    let check: String = conn
        .query_row("PRAGMA integrity_check", [], |row| row.get(0))
        .unwrap();
    assert_eq!(check, "ok");
    drop((conn, again, store));
}

#[tokio::test]
async fn a_read_only_directory_is_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let Some(place) = Mount::new(&dir, "a_read_only_directory_is_told_as_such") else {
        return;
    };
    let store = open(&dir, "state");
    store.create(row("a")).await.unwrap();
    store.close().await;
    drop(store);
    assert!(mount(&["-o", "remount,ro"], &place.0));
    let error = refused(&dir);
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert!(error.to_string().contains("read-only"), "{error}");
}

#[tokio::test]
async fn another_writer_that_keeps_the_store_is_waited_for() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let conn = rusqlite::Connection::open(path(&bed.dir)).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = try_put(&bed.store, "a", 1, prompt("x"));
    tokio::pin!(append);
    let waited = tokio::time::timeout(std::time::Duration::from_millis(200), &mut append).await;
    assert!(waited.is_err(), "it did not wait");
    conn.execute_batch("COMMIT").unwrap();
    append.await.unwrap();
}

#[tokio::test]
async fn the_log_goes_back_into_the_file_when_it_is_quiet() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let before = std::fs::metadata(path(&bed.dir)).unwrap().size();
    for seq in 1..=50 {
        put(&bed.store, "a", seq, prompt(&"x".repeat(2000))).await;
    }
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while std::fs::metadata(path(&bed.dir)).unwrap().size() <= before {
        assert!(std::time::Instant::now() < deadline, "no checkpoint came");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn the_log_stays_bounded_while_commits_never_cease() {
    let bed = bed();
    bed.store.create(row("a")).await.unwrap();
    let text = "x".repeat(250_000);
    let mut log = path(&bed.dir).into_os_string();
    log.push("-wal");
    let mut largest = 0;
    for seq in 1..=600 {
        put(&bed.store, "a", seq, prompt(&text)).await;
        largest = largest.max(std::fs::metadata(&log).map_or(0, |log| log.len()));
    }
    assert!(largest < 110 << 20, "{largest} bytes of log");
    bed.store.close().await;
}

#[tokio::test]
async fn a_store_of_the_first_format_is_brought_to_the_newest_with_all_that_is_in_it() {
    let dir = closed_store().await;
    let conn = rusqlite::Connection::open(path(&dir)).unwrap();
    conn.execute_batch("ALTER TABLE sessions DROP COLUMN task; PRAGMA user_version = 1;")
        .unwrap();
    drop(conn);
    let store = open(&dir, "state");
    let old = store.row(&id("a")).await.unwrap();
    assert_eq!((old.seq, old.task), (200, None));
    let child = SessionRow {
        task: Some(CallId::from("c1")),
        ..row("b")
    };
    store.create(child.clone()).await.unwrap();
    assert_eq!(store.row(&id("b")).await.unwrap().task, child.task);
}
