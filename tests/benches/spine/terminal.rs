//! The client in a terminal: from a key to its echo while a model streams, attaching to a long session, memory.

use super::figure::{Report, Target, median, mib, ms, p99};
use harness::binaries::Binaries;
use harness::daemon::TestDaemon;
use harness::procfs::resident;
use harness::pty::Pty;
use harness::sandbox::Sandbox;
use harness::wait::elapse;
use serde_json::json;
use std::process::Command;
use std::time::{Duration, Instant};

/// How many keys are pressed.
const KEYS: u32 = 200;

/// How many events the long session has.
const EVENTS: usize = 100_000;

const LIMIT: Duration = Duration::from_secs(30);

fn start(binaries: &Binaries) -> TestDaemon {
    let mut daemon = TestDaemon::stopped(Sandbox::new(), &binaries.daemon);
    daemon.restart();
    daemon
}

fn attach(binaries: &Binaries, daemon: &TestDaemon, session: &str) -> Pty {
    let mut command = Command::new(&binaries.client);
    daemon.apply(&mut command);
    command
        .env("DWELL_SOCKET", daemon.socket())
        .env("TERM", "xterm-256color")
        .args(["attach", session]);
    Pty::spawn(command)
}

/// Ten tokens every five milliseconds, with what Markdown has in it.
fn stream() -> String {
    let piece = "repeat 9 word \nline **bold** `code`\nwait 5\n";
    piece.repeat(2_000)
}

pub(super) fn key_to_echo(binaries: &Binaries, report: &mut Report) {
    let daemon = start(binaries);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let mut terminal = attach(binaries, &daemon, &session);
    terminal
        .until("script", LIMIT)
        .expect("the client is there");
    client.start(&session, &stream());
    terminal.until("word word", LIMIT).expect("the stream runs");
    let mut times = Vec::new();
    for n in 0..KEYS {
        // A character that the stream does not hold, another one each time.
        let key = char::from_u32(0x4e00 + n).unwrap().to_string();
        elapse(Duration::from_millis(7));
        terminal.until("no such text", Duration::ZERO);
        let pressed = Instant::now();
        terminal.write(&key);
        terminal.until(&key, LIMIT).expect("the key's echo");
        times.push(pressed.elapsed());
    }
    let memory = resident(terminal.pid());
    report.line(
        "key to echo at 2,000 tokens/s, median",
        ms(median(times.clone())),
        "ms",
        Target::AtMost(16.0),
    );
    report.line(
        "key to echo at 2,000 tokens/s, p99",
        ms(p99(times)),
        "ms",
        Target::AtMost(16.0),
    );
    report.line(
        "client that shows the stream, resident",
        mib(memory),
        "MiB",
        Target::AtMost(20.0),
    );
    client.call("turn/cancel", json!({"session": session}));
}

pub(super) fn attach_long(binaries: &Binaries, report: &mut Report) {
    let daemon = start(binaries);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let before = client.call("session/get", json!({"session": session}))["seq"]
        .as_u64()
        .unwrap();
    let mut asked = Vec::new();
    for n in 0..EVENTS {
        asked.push(client.send(
            "session/say",
            json!({"session": session, "text": format!("line {n}")}),
        ));
        if asked.len() == 32 {
            asked.drain(..).for_each(|id| {
                client.response(id).unwrap();
            });
        }
    }
    asked.drain(..).for_each(|id| {
        client.response(id).unwrap();
    });
    client.turn(&session, "say the last word");
    let after = client.call("session/get", json!({"session": session}))["seq"]
        .as_u64()
        .unwrap();
    assert!(after - before >= 100_000, "{after} events");
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..9 {
        let begun = Instant::now();
        let mut terminal = attach(binaries, &daemon, &session);
        terminal
            .until("the last word", LIMIT)
            .expect("the session's end");
        times.push(begun.elapsed());
        elapse(Duration::from_millis(300));
        memory = memory.max(resident(terminal.pid()));
    }
    report.line(
        "attach to 100,000 events, from exec",
        ms(median(times)),
        "ms",
        Target::AtMost(50.0),
    );
    report.line(
        "client attached to it, resident",
        mib(memory),
        "MiB",
        Target::AtMost(20.0),
    );
}
