//! What the store costs: `cargo bench -p dwelld --bench store`. Prints; judges nothing.
//! `DWELL_BENCH_DIR` names the disk to measure; the default is the build's target directory.

#![allow(clippy::print_stdout)]

use daemon::store::{Durability, Entry, ListQuery, Owner, Pace, SessionRow, Store};
use protocol::event::{Event, EventKind};
use protocol::id::{MessageId, SessionId};
use protocol::session::SessionState;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    let place =
        std::env::var("DWELL_BENCH_DIR").unwrap_or_else(|_| env!("CARGO_TARGET_TMPDIR").into());
    let dir = TempDir::new_in(&place).expect("the directory can be written");
    println!("in {place}");
    full_sync(dir.path());
    runtime.block_on(all(dir.path()));
}

async fn all(dir: &Path) {
    let began = Instant::now();
    let store = open(dir);
    println!(
        "open, new: {:?}, then {} KiB resident",
        began.elapsed(),
        resident()
    );
    commits(&store).await;
    stream(&store).await;
    many_streams(&store).await;
    fold(&store).await;
    store.close().await;
    let began = Instant::now();
    let store = open(dir);
    println!(
        "open, again: {:?}, then {} KiB resident",
        began.elapsed(),
        resident()
    );
    make_sessions(&store).await;
    store.close().await;
    let store = open(dir);
    lists(&store).await;
    println!("{} KiB resident, after all that", resident());
    let began = Instant::now();
    store.close().await;
    println!("close: {:?}", began.elapsed());
}

fn open(dir: &Path) -> Store {
    let owner = Owner {
        pid: std::process::id(),
        socket: String::new(),
        state_dir: dir.to_owned(),
    };
    Store::open(&dir.join("dwell.db"), owner).expect("the store opens")
}

/// What the disk itself asks for.
fn full_sync(dir: &Path) {
    let mut file = std::fs::File::create(dir.join("sync")).expect("a file can be made");
    let mut times = Vec::new();
    for _ in 0..200 {
        file.write_all(&[0; 8192]).expect("a page can be written");
        let began = Instant::now();
        file.sync_data().expect("a file can be synced");
        times.push(began.elapsed());
    }
    print("fdatasync of 8 KiB appended", &mut times);
}

async fn commits(store: &Store) {
    let mut log = Log::new(store, "commits").await;
    for (name, pace, durability) in [
        (
            "piece, first after quiet",
            Pace::Floor,
            Durability::Committed,
        ),
        ("event, now", Pace::Now, Durability::Committed),
        ("event, now, sync soon", Pace::Now, Durability::SyncSoon),
        ("event, now, synced", Pace::Now, Durability::Synced),
    ] {
        let mut times = Vec::new();
        for _ in 0..300 {
            let kind = match pace {
                Pace::Floor => log.piece("word "),
                Pace::Now => EventKind::Cleared,
            };
            let began = Instant::now();
            log.append(kind, None, pace, durability).await;
            times.push(began.elapsed());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        print(name, &mut times);
    }
    let mut times = Vec::new();
    for round in 0..300 {
        let kind = EventKind::TurnStarted {
            text: format!("please look at file number {round} and say what it is about"),
            images: Vec::new(),
            token: None,
            client: None,
        };
        let row = session("commits");
        let began = Instant::now();
        log.append(kind, Some(row), Pace::Now, Durability::SyncSoon)
            .await;
        times.push(began.elapsed());
    }
    print("prompt with row and search, now, sync soon", &mut times);
}

/// As an actor does it: what came while the last commit ran is the next piece.
async fn stream(store: &Store) {
    let mut log = Log::new(store, "stream").await;
    let (began, cpu) = (Instant::now(), processor());
    let (mut done, mut commits) = (0, 0);
    while done < 5000 {
        // A delta each 9.6 us, as a fast model would bring them.
        let due = ((began.elapsed().as_nanos() / 9600) as usize).min(5000);
        if due == done {
            tokio::task::yield_now().await;
            continue;
        }
        let kind = log.piece(&"token ".repeat(due - done));
        log.append(kind, None, Pace::Floor, Durability::Committed)
            .await;
        done = due;
        commits += 1;
    }
    println!(
        "5,000 deltas over 48 ms: {:?}, {commits} appends, {:?} of processor (this loop spins)",
        began.elapsed(),
        processor() - cpu
    );
}

async fn many_streams(store: &Store) {
    let (began, cpu) = (Instant::now(), processor());
    let streams = (0..20).map(|number| async move {
        let mut log = Log::new(store, &format!("stream-{number}")).await;
        for _ in 0..250 {
            let kind = log.piece("token ");
            log.append(kind, None, Pace::Floor, Durability::Committed)
                .await;
        }
    });
    futures_util::future::join_all(streams).await;
    println!(
        "20 sessions, 250 pieces each, one after the other: {:?}, {:?} of processor",
        began.elapsed(),
        processor() - cpu
    );
}

async fn fold(store: &Store) {
    let mut log = Log::new(store, "fold").await;
    for _ in 0..10 {
        let entries = (0..50)
            .map(|_| {
                let kind = log.piece("token ");
                log.next(kind)
            })
            .collect();
        store
            .append(
                &log.session,
                entries,
                None,
                Pace::Now,
                Durability::Committed,
            )
            .await
            .expect("an append");
    }
    store.fold(&log.session, "m1");
    // An append waits until the fold is done: the writer does one thing at a time.
    let began = Instant::now();
    while store.read(&log.session, 0, 10).await.expect("a read").len() > 1 {
        tokio::task::yield_now().await;
    }
    println!(
        "fold of 500 pieces, seen by a reader: {:?}",
        began.elapsed()
    );
}

async fn make_sessions(store: &Store) {
    let began = Instant::now();
    let makes = (0..10_000).map(|number| {
        let mut row = session(&format!("listed-{number}"));
        row.updated_at = (number * 7919) % 10_007;
        store.create(row)
    });
    for made in futures_util::future::join_all(makes).await {
        made.expect("a session is made");
    }
    println!("10,000 sessions made: {:?}", began.elapsed());
}

async fn lists(store: &Store) {
    for (name, limit) in [("newest 50 of 10,000", 50), ("all 10,000", 0)] {
        timed(name, 50, || async move {
            let query = ListQuery {
                limit,
                ..ListQuery::default()
            };
            store.list(query).await.expect("a list");
        })
        .await;
    }
    timed("search over what is there", 50, || async {
        store.search("file number 7*", 20).await.expect("hits");
    })
    .await;
    timed("a row", 300, || async {
        store
            .row(&SessionId::from("listed-77"))
            .await
            .expect("a row");
    })
    .await;
}

/// A session and what has been appended to it.
struct Log<'a> {
    store: &'a Store,
    session: SessionId,
    seq: u64,
    chars: u64,
}

impl<'a> Log<'a> {
    async fn new(store: &'a Store, name: &str) -> Self {
        store
            .create(session(name))
            .await
            .expect("a session is made");
        Self {
            store,
            session: SessionId::from(name),
            seq: 0,
            chars: 0,
        }
    }

    fn piece(&mut self, text: &str) -> EventKind {
        let offset = self.chars;
        self.chars += text.len() as u64;
        EventKind::Saying {
            message: MessageId::from("m1"),
            offset,
            text: text.into(),
        }
    }

    fn next(&mut self, kind: EventKind) -> Entry {
        self.seq += 1;
        Entry::new(Event {
            session: self.session.clone(),
            seq: self.seq,
            first_seq: None,
            at: self.seq,
            turn: Some(format!("{}.t1", self.session).into()),
            kind,
        })
    }

    async fn append(
        &mut self,
        kind: EventKind,
        row: Option<SessionRow>,
        pace: Pace,
        durability: Durability,
    ) {
        let entry = self.next(kind);
        self.store
            .append(&self.session, vec![entry], row, pace, durability)
            .await
            .expect("an append");
    }
}

fn session(name: &str) -> SessionRow {
    SessionRow {
        id: SessionId::from(name),
        title: format!("title of {name}"),
        cwd: "/home/someone/project".into(),
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
        settings: format!("{{\"env\":{{\"PATH\":\"{}\"}}}}", "/usr/bin:".repeat(40)),
    }
}

async fn timed<F: Future<Output = ()>>(name: &str, rounds: usize, mut work: impl FnMut() -> F) {
    let mut times = Vec::new();
    let cpu = processor();
    for _ in 0..rounds {
        let began = Instant::now();
        work().await;
        times.push(began.elapsed());
    }
    let each = (processor() - cpu) / rounds as u32;
    print(&format!("{name} ({each:?} of processor)"), &mut times);
}

fn print(name: &str, times: &mut [Duration]) {
    times.sort();
    println!(
        "{name}: median {:?}, p99 {:?}",
        times[times.len() / 2],
        times[times.len() * 99 / 100]
    );
}

fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
