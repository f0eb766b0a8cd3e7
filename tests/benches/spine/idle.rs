//! Doing nothing: memory and processor time of a daemon that waits, of attached sessions, of stored ones.

use super::figure::{Report, Target, kib, median, mib, ms};
use harness::binaries::Binaries;
use harness::daemon::TestDaemon;
use harness::procfs::{cpu, resident};
use harness::sandbox::Sandbox;
use harness::wait::elapse;
use serde_json::json;
use std::time::{Duration, Instant};

const IDLE: Duration = Duration::from_secs(10);

fn start(binaries: &Binaries) -> TestDaemon {
    let mut daemon = TestDaemon::stopped(Sandbox::new(), &binaries.daemon);
    daemon.restart();
    daemon
}

pub(super) fn fifty_sessions(binaries: &Binaries, report: &mut Report) {
    let daemon = start(binaries);
    elapse(Duration::from_secs(1));
    report.line(
        "idle daemon, resident",
        mib(resident(daemon.pid())),
        "MiB",
        Target::AtMost(10.0),
    );
    let mut clients = Vec::new();
    for _ in 0..50 {
        let mut client = daemon.client();
        let session = client.session(&daemon.work());
        client.turn(&session, "say hello");
        client.attach(&session, None);
        clients.push(client);
    }
    elapse(Duration::from_secs(2));
    let before = cpu(daemon.pid());
    elapse(IDLE);
    let used = cpu(daemon.pid()) - before;
    report.line(
        "50 idle attached sessions, CPU in 10 s",
        ms(used),
        "ms",
        Target::AtMost(5.0),
    );
    report.line(
        "50 idle attached sessions, resident",
        mib(resident(daemon.pid())),
        "MiB",
        Target::None,
    );
}

pub(super) fn thousand_attached(binaries: &Binaries, report: &mut Report) {
    let daemon = start(binaries);
    // What the first ones cost is the daemon's own.
    let mut clients = attached(&daemon, 20);
    let before = resident(daemon.pid());
    for _ in 0..10 {
        clients.extend(attached(&daemon, 100));
    }
    elapse(Duration::from_secs(1));
    let each = (resident(daemon.pid()).saturating_sub(before)) / 1000;
    report.line(
        "1,000 idle attached sessions, each",
        kib(each),
        "KiB",
        Target::AtMost(24.0),
    );
    drop(clients);
}

/// Sessions that played one turn and are attached, over connections of 100 sessions each.
fn attached(daemon: &TestDaemon, count: usize) -> Vec<harness::client::TestClient> {
    let mut client = daemon.client();
    for _ in 0..count {
        let session = client.session(&daemon.work());
        client.turn(&session, "say hello");
        client.attach(&session, None);
    }
    vec![client]
}

pub(super) fn ten_thousand_stored(binaries: &Binaries, report: &mut Report) {
    let mut daemon = start(binaries);
    let mut client = daemon.client();
    for _ in 0..10_000 {
        client.session(&daemon.work());
    }
    daemon.term();
    daemon.restart();
    let mut client = daemon.client();
    client.call("daemon/status", json!({}));
    elapse(Duration::from_secs(1));
    report.line(
        "10,000 stored sessions, resident",
        mib(resident(daemon.pid())),
        "MiB",
        Target::AtMost(10.0),
    );
    let mut list = |limit: u32| {
        let times = (0..15).map(|_| {
            let start = Instant::now();
            let page = client.call("session/list", json!({"limit": limit}));
            assert!(!page["sessions"].as_array().unwrap().is_empty());
            start.elapsed()
        });
        median(times.collect())
    };
    let (few, page) = (list(50), list(1000));
    report.line(
        "10,000 stored sessions, the newest 50",
        ms(few),
        "ms",
        Target::AtMost(20.0),
    );
    report.line(
        "10,000 stored sessions, a page of 1,000",
        ms(page),
        "ms",
        Target::None,
    );
    let start = Instant::now();
    let mut cursor = json!(null);
    let mut count = 0;
    loop {
        let page = client.call("session/list", json!({"limit": 1000, "cursor": cursor}));
        count += page["sessions"].as_array().unwrap().len();
        match page.get("cursor") {
            Some(next) if next.is_string() => cursor = next.clone(),
            _ => break,
        }
    }
    assert_eq!(count, 10_000);
    report.line(
        "10,000 stored sessions, all of them",
        ms(start.elapsed()),
        "ms",
        Target::None,
    );
}
