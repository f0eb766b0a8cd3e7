//! Programs: what a session pays for one, its events and their syncs included, and how soon one without end is gone.

use super::figure::{Report, Target, median, ms};
use harness::binaries::Binaries;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::procfs::descendants;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ROUNDS: usize = 50;
/// What a program without end may have, in milliseconds.
const WALL: u64 = 500;

/// One that heeds the engine's interrupts, and one that does not.
const RUNAWAYS: [&str; 2] = ["for (;;) {}", "new Array(2 ** 31).join('')"];

struct Bench {
    daemon: TestDaemon,
    client: TestClient,
    session: String,
}

impl Bench {
    fn start(binaries: &Binaries) -> Self {
        let sandbox = Sandbox::new();
        sandbox.permissions(&json!({"execute": "allow"}));
        let mut daemon = TestDaemon::stopped(sandbox, &binaries.daemon);
        daemon.restart();
        let mut client = daemon.client();
        let session = client.session(&daemon.work());
        let mut bench = Self {
            daemon,
            client,
            session,
        };
        // The first child of a daemon starts its nursery.
        bench.run("return 1", &json!({}));
        bench
    }

    fn run(&mut self, code: &str, limits: &Value) -> (Duration, Value) {
        let params = json!({
            "session": self.session, "name": "run_code", "arguments": {"code": code},
            "toolbox": {"code": {"of": "default", "limits": limits}},
        });
        let begun = Instant::now();
        let result = self.client.call("tool/run", params);
        (begun.elapsed(), result)
    }

    fn median(&mut self, rounds: usize, code: &str) -> f64 {
        let mut times = Vec::new();
        for _ in 0..rounds {
            let (took, result) = self.run(code, &json!({"calls": 1000}));
            assert_eq!(result["ok"], true, "{result}");
            times.push(took);
        }
        ms(median(times))
    }
}

pub(super) fn programs(binaries: &Binaries, report: &mut Report) {
    let mut bench = Bench::start(binaries);
    let empty = bench.median(ROUNDS, "return 1");
    report.line("empty program, median", empty, "ms", Target::AtMost(10.0));
    let sleeps =
        "await Promise.all(Array.from({length: 10}, () => tools.execute({command: 'sleep 0.1'})))";
    let took = bench.median(10, sleeps);
    report.line(
        "10 calls of 100 ms at once, median",
        took,
        "ms",
        Target::AtMost(130.0),
    );
    let each = "for (let i = 0; i < 1000; i++) await tools.todo({})";
    let took = bench.median(5, each);
    report.line(
        "1,000 calls, each synced, one by one",
        took,
        "ms",
        Target::AtMost(100.0),
    );
    let at_once = "await Promise.all(Array.from({length: 1000}, () => tools.todo({})))";
    let took = bench.median(5, at_once);
    report.line(
        "1,000 calls, each synced, 16 at once",
        took,
        "ms",
        Target::None,
    );
    for code in RUNAWAYS {
        let (took, result) = bench.run(code, &json!({"wall_ms": WALL}));
        assert_eq!(result["code"], "timeout", "{result}");
        let pids = descendants(bench.daemon.pid());
        let runs = |pid: &u32| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| name.trim() == "dwell-code")
        };
        assert!(!pids.iter().any(runs), "a process is left");
        let limit = ms(Duration::from_millis(WALL + 300));
        report.line(
            &format!("dead: {code}"),
            ms(took),
            "ms",
            Target::AtMost(limit),
        );
    }
}
