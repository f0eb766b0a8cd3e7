//! Turns: what the daemon adds to a round trip, to a long stream and to a tool call; the price of a sync.

use super::figure::{Report, Target, median, ms, p99};
use harness::binaries::Binaries;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::http::RawHttp;
use harness::model::{Answer, FakeModel};
use harness::procfs::cpu;
use harness::sandbox::Sandbox;
use serde_json::json;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

const ROUNDS: usize = 300;
const STREAMS: usize = 15;
const TOKENS: usize = 5000;

/// A sync of a file that has grown by a page, where the store would lie.
pub(super) fn disk_sync(_: &Binaries, report: &mut Report) {
    let sandbox = Sandbox::new();
    let mut file = File::create(sandbox.path("data").join("sync")).unwrap();
    let times = (0..ROUNDS).map(|_| {
        file.write_all(&[7; 4096]).unwrap();
        timed(|| file.sync_data().unwrap())
    });
    let times: Vec<Duration> = times.collect();
    report.line(
        "fdatasync of 4 KiB, median",
        ms(median(times.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "fdatasync of 4 KiB, p99",
        ms(p99(times)),
        "ms",
        Target::None,
    );
}

pub(super) fn one_token(binaries: &Binaries, report: &mut Report) {
    let model = FakeModel::start([Answer::tokens(1, 1)]);
    let mut bench = Bench::start(binaries, &model);
    let (raw, turns) = bench.alternately(ROUNDS);
    report.line(
        "one token: raw HTTP, median",
        ms(median(raw.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "one token: turn, median",
        ms(median(turns.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "one token: turn, p99",
        ms(p99(turns.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "one token: turn over raw, median",
        ms(median(turns)) - ms(median(raw)),
        "ms",
        Target::AtMost(0.6),
    );
}

pub(super) fn tool_call(binaries: &Binaries, report: &mut Report) {
    let model = FakeModel::start([]);
    let mut bench = Bench::start(binaries, &model);
    let call = || Answer::call("c1", "execute", "{\"command\": \"true\"}", 2);
    let mut raw = Vec::new();
    let mut turns = Vec::new();
    for _ in 0..ROUNDS {
        model.set([call(), Answer::tokens(1, 1), Answer::tokens(1, 1)]);
        raw.push(timed(|| {
            bench.http.post("/v1/chat/completions", "{}").unwrap();
            bench.http.post("/v1/chat/completions", "{}").unwrap();
        }));
        model.set([call(), Answer::tokens(1, 1), Answer::tokens(1, 1)]);
        turns.push(bench.turn());
    }
    report.line(
        "tool call: two raw round trips, median",
        ms(median(raw.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "tool call: turn, median",
        ms(median(turns.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "tool call: turn, p99",
        ms(p99(turns.clone())),
        "ms",
        Target::None,
    );
    report.line(
        "tool call: turn over raw, median",
        ms(median(turns)) - ms(median(raw)),
        "ms",
        Target::AtMost(4.0),
    );
}

pub(super) fn five_thousand_tokens(binaries: &Binaries, report: &mut Report) {
    for batch in [1, 64] {
        let model = FakeModel::start([Answer::tokens(TOKENS, batch)]);
        let mut bench = Bench::start(binaries, &model);
        bench.alternately(2);
        let pid = bench.daemon.pid();
        let (mut raw, mut turns, mut used) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..STREAMS {
            raw.push(bench.raw());
            let before = cpu(pid);
            turns.push(bench.turn());
            used.push(cpu(pid) - before);
        }
        let name = |what: &str| format!("{TOKENS} tokens, {batch} a write: {what}");
        report.line(&name("raw"), ms(median(raw.clone())), "ms", Target::None);
        report.line(&name("turn"), ms(median(turns.clone())), "ms", Target::None);
        let ratio = median(turns).as_secs_f64() / median(raw).as_secs_f64();
        report.line(&name("ratio"), ratio, "x", Target::AtMost(1.4));
        report.line(
            &name("daemon CPU"),
            ms(median(used)),
            "ms",
            Target::AtMost(20.0),
        );
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A daemon, a client attached to a session of the model, and the raw way beside them.
struct Bench {
    http: RawHttp,
    client: TestClient,
    session: String,
    // Last, so that it goes last.
    daemon: TestDaemon,
}

impl Bench {
    fn start(binaries: &Binaries, model: &FakeModel) -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.set("OPENAI_BASE_URL", model.base_url());
        sandbox.set("OPENAI_API_KEY", "none");
        sandbox.permissions(&json!({"execute": "allow"}));
        let mut daemon = TestDaemon::stopped(sandbox, &binaries.daemon);
        daemon.restart();
        let mut client = daemon.client();
        let session = client
            .session_with(json!({"cwd": daemon.work(), "provider": "openai", "model": "fake"}));
        client.attach(&session, None);
        Self {
            http: RawHttp::connect(model.address()).unwrap(),
            client,
            session,
            daemon,
        }
    }

    /// The raw way and a turn in turns, so that both see the same machine.
    fn alternately(&mut self, rounds: usize) -> (Vec<Duration>, Vec<Duration>) {
        (0..rounds).map(|_| (self.raw(), self.turn())).unzip()
    }

    /// A whole answer of the model over a connection that is kept.
    fn raw(&mut self) -> Duration {
        timed(|| drop(self.http.post("/v1/chat/completions", "{}").unwrap()))
    }

    /// From the request to the event that ends the turn. The conversation is forgotten before, so that every turn is
    /// like the first.
    fn turn(&mut self) -> Duration {
        self.client
            .call("session/clear", json!({"session": self.session}));
        self.client.until_type("cleared");
        let start = Instant::now();
        self.client
            .send("turn/start", json!({"session": self.session, "text": "go"}));
        let events = self.client.until_ended();
        let took = start.elapsed();
        assert_eq!(events.last()["status"], "completed", "{}", events.last());
        let told = events.of("usage").len();
        assert!(told >= 1, "the whole stream was read");
        if events.said().len() > 100 {
            let expected: String = (0..TOKENS).map(|number| format!("w{number} ")).collect();
            assert_eq!(events.said(), expected, "no token is dropped");
        }
        took
    }
}
