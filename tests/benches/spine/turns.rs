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
use std::net::SocketAddr;
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
    let mut bench = Bench::start(binaries, Server::start([Answer::tokens(1, 1)]));
    let prompt = "[[fake tokens=1]]";
    let (raw, turns): (Vec<_>, Vec<_>) = (0..ROUNDS)
        .map(|_| (bench.raw(prompt), bench.turn(prompt)))
        .unzip();
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
    let mut bench = Bench::start(binaries, Server::start([Answer::tokens(1, 1)]));
    let (mut raw, mut turns) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bench.server.set([Answer::tokens(1, 1)]);
        raw.push(bench.raw("[[fake tokens=1]]") + bench.raw("[[fake tokens=1]]"));
        let call = Answer::call("c1", "execute", "{\"command\": \"true\"}", 2);
        bench.server.set([call, Answer::tokens(1, 1)]);
        turns.push(bench.turn("[[fake tokens=1 tool=shell tool_cmd=true]]"));
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
    for (batch, judged) in [(1, true), (64, false)] {
        let mut bench = Bench::start(binaries, Server::start([Answer::tokens(TOKENS, batch)]));
        let prompt = format!("[[fake tokens={TOKENS} batch={batch} token='w%d ']]");
        let pid = bench.daemon.pid();
        bench.turn(&prompt);
        let (mut raw, mut turns, mut used) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..STREAMS {
            raw.push(bench.raw(&prompt));
            let before = cpu(pid);
            turns.push(bench.turn(&prompt));
            used.push(cpu(pid).saturating_sub(before));
        }
        let target = |limit: f64| {
            if judged {
                Target::AtMost(limit)
            } else {
                Target::None
            }
        };
        let name = |what: &str| format!("{TOKENS} tokens, {batch} a write: {what}");
        report.line(&name("raw"), ms(median(raw.clone())), "ms", Target::None);
        report.line(&name("turn"), ms(median(turns.clone())), "ms", Target::None);
        let ratio = median(turns).as_secs_f64() / median(raw).as_secs_f64();
        report.line(&name("ratio"), ratio, "x", target(1.4));
        report.line(&name("daemon CPU"), ms(median(used)), "ms", target(20.0));
    }
}

/// The harness's own model server, or another that `DWELL_BENCH_MODEL=127.0.0.1:PORT` names. Prompts carry what such
/// a server may read (`[[fake tokens=5000]]`); the own one answers what was laid down.
enum Server {
    Own(FakeModel),
    Other(SocketAddr),
}

impl Server {
    fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        match std::env::var("DWELL_BENCH_MODEL") {
            Ok(address) => Self::Other(
                address
                    .parse()
                    .expect("DWELL_BENCH_MODEL is an address and a port"),
            ),
            Err(_) => Self::Own(FakeModel::start(answers)),
        }
    }

    fn address(&self) -> SocketAddr {
        match self {
            Self::Own(model) => model.address(),
            Self::Other(address) => *address,
        }
    }

    fn set(&self, answers: impl IntoIterator<Item = Answer>) {
        if let Self::Own(model) = self {
            model.set(answers);
        }
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A daemon, a client attached to a session of the model, and the raw way beside them.
struct Bench {
    server: Server,
    http: RawHttp,
    client: TestClient,
    session: String,
    // Last, so that it goes last.
    daemon: TestDaemon,
}

impl Bench {
    fn start(binaries: &Binaries, server: Server) -> Self {
        let mut sandbox = Sandbox::new();
        sandbox.set("OPENAI_BASE_URL", format!("http://{}/v1", server.address()));
        sandbox.set("OPENAI_API_KEY", "none");
        sandbox.permissions(&json!({"execute": "allow"}));
        let mut daemon = TestDaemon::stopped(sandbox, &binaries.daemon);
        daemon.restart();
        let mut client = daemon.client();
        let session = client
            .session_with(json!({"cwd": daemon.work(), "provider": "openai", "model": "fake"}));
        client.attach(&session, None);
        Self {
            http: RawHttp::connect(server.address()).unwrap(),
            server,
            client,
            session,
            daemon,
        }
    }

    /// A whole answer of the model over a connection that is kept.
    fn raw(&mut self, prompt: &str) -> Duration {
        let body = json!({"model": "fake", "stream": true, "messages": [{"role": "user", "content": prompt}]}).to_string();
        timed(|| drop(self.http.post("/v1/chat/completions", &body).unwrap()))
    }

    /// From the request to the event that ends the turn. The conversation is forgotten before, so that every turn is
    /// like the first.
    fn turn(&mut self, prompt: &str) -> Duration {
        self.client
            .call("session/clear", json!({"session": self.session}));
        self.client.until_type("cleared");
        let start = Instant::now();
        self.client.send(
            "turn/start",
            json!({"session": self.session, "text": prompt}),
        );
        let events = self.client.until_ended();
        let took = start.elapsed();
        assert_eq!(events.last()["status"], "completed", "{}", events.last());
        if prompt.contains("token='w%d '") {
            let tokens: Vec<String> = events.said().split(' ').map(str::to_owned).collect();
            assert!(tokens.len() > TOKENS, "{} tokens", tokens.len());
            for pair in tokens[..TOKENS].windows(2) {
                let number = |token: &str| token[1..].parse::<usize>().unwrap();
                assert_eq!(
                    number(&pair[0]) + 1,
                    number(&pair[1]),
                    "no token is dropped"
                );
            }
        }
        took
    }
}
