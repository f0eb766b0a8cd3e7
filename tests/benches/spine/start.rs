//! Starting: the daemon to its first answer, the client from start to exit; what the binaries weigh.

use super::figure::{Report, Target, median, mib, ms};
use harness::binaries::Binaries;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use serde_json::json;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const ROUNDS: usize = 41;

pub(super) fn daemon_start(binaries: &Binaries, report: &mut Report) {
    for (what, sessions) in [("empty store", 0), ("100 sessions", 100)] {
        let mut daemon = TestDaemon::stopped(Sandbox::new(), &binaries.daemon);
        daemon.restart();
        for _ in 0..sessions {
            let session = daemon.client().session(&daemon.work());
            daemon.client().turn(&session, "say hello");
        }
        daemon.term();
        let times = (0..ROUNDS).map(|_| {
            let start = Instant::now();
            daemon.launch();
            // Not wait_ready: its pauses would be measured.
            while UnixStream::connect(daemon.socket()).is_err() {
                std::thread::sleep(Duration::from_micros(100));
            }
            daemon.client().call("daemon/status", json!({}));
            let took = start.elapsed();
            daemon.term();
            took
        });
        let times: Vec<Duration> = times.collect();
        report.line(
            &format!("daemon start to first answer, {what}"),
            ms(median(times)),
            "ms",
            Target::AtMost(10.0),
        );
    }
}

pub(super) fn ask_warm(binaries: &Binaries, report: &mut Report) {
    let mut daemon = TestDaemon::stopped(Sandbox::new(), &binaries.daemon);
    daemon.restart();
    let ask = |args: &[&str]| {
        let times = (0..ROUNDS).map(|_| {
            let dwell = Dwell::of(&binaries.client, &daemon)
                .env("DWELL_SOCKET", daemon.socket().to_str().unwrap());
            let dwell = dwell.args(args.iter().copied());
            let start = Instant::now();
            assert_eq!(dwell.run_closely(), Some(0));
            start.elapsed()
        });
        median(times.collect())
    };
    let spawn = ask(&["--version"]);
    let asked = ask(&["ask", "-p", "script", "say hello"]);
    report.line(
        "a process that only says its version",
        ms(spawn),
        "ms",
        Target::None,
    );
    report.line(
        "dwell ask, warm, start to exit",
        ms(asked),
        "ms",
        Target::AtMost(10.0),
    );
}

pub(super) fn binary_size(binaries: &Binaries, report: &mut Report) {
    for (what, file, limit) in [
        ("release daemon", &binaries.daemon, 15.0),
        ("release client", &binaries.client, 6.0),
    ] {
        let size = std::fs::metadata(file).unwrap().len();
        report.line(what, mib(size), "MiB", Target::AtMost(limit));
    }
}
