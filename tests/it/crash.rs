//! `kill -9` of the daemon: whatever a client had received is in the store, and nothing runs twice.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::events::Events;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How often the daemon is killed.
const KILLS: u64 = 50;

#[test]
fn nothing_received_is_lost_and_no_tool_runs_twice_when_killed_at_any_point() {
    let mut daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let whole = timed(&mut client, &session, "warm-up");
    let mut random = Random(0x5EED);
    let mut interrupted = 0;
    for round in 0..KILLS {
        let mut client = daemon.client();
        let mut second = daemon.client();
        let cursor = client.call("session/get", json!({"session": session}))["seq"]
            .as_u64()
            .unwrap();
        client.attach(&session, Some(cursor));
        second.attach(&session, Some(cursor));
        client.send(
            "turn/start",
            json!({"session": session, "text": script(&format!("round-{round}"))}),
        );
        harness::wait::elapse(whole.mul_f64(random.fraction() * 1.1));
        daemon.kill9();
        let received = [received(&mut client), received(&mut second)];
        daemon.restart();
        let mut client = daemon.client();
        let log = client.history(&session);
        for received in &received {
            assert_kept(received, &log, cursor, round);
        }
        assert_settled(&mut client, &session, &log, round);
        let ran = daemon.read(&format!("round-{round}"));
        assert!(
            ran.is_empty() || ran == "ran\n",
            "round {round}: the tool ran more than once: {ran:?}"
        );
        let last = log.of("turn_ended");
        interrupted += usize::from(last.last().unwrap()["status"] == "interrupted");
    }
    assert!(
        interrupted > 5,
        "only {interrupted} of {KILLS} kills fell into a turn"
    );
    let mut client = daemon.client();
    assert_eq!(
        client.turn(&session, "say still here").said().trim(),
        "still here"
    );
    client.history(&session).assert_consecutive(0);
}

#[test]
fn a_call_in_progress_becomes_a_failed_result_and_the_turn_says_interrupted() {
    let mut daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(
        &session,
        "say before\ndo execute {\"command\": \"echo begun; sleep 600\"}\nsay after",
    );
    client.until_type("tool_output");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let now = client.call("session/get", json!({"session": session}));
    assert_eq!(now["state"], "failed");
    assert!(
        now["reason"].as_str().unwrap().contains("interrupted"),
        "{now}"
    );
    let log = client.history(&session);
    let result = &log.one("done")["result"];
    assert_eq!(
        result["error"],
        "interrupted: the daemon stopped; outcome unknown"
    );
    assert_eq!(result["ok"], false);
    assert_eq!(log.last()["status"], "interrupted");
    assert!(
        log.texts().values().any(|text| text.contains("begun")),
        "the tool's output is kept"
    );
    assert!(log.said().contains("before"), "the partial text is kept");
}

/// Calls that only look are stored together, those that may change something before they begin.
#[test]
fn a_program_killed_at_any_point_has_told_of_every_call_that_changed_something() {
    let mut daemon = TestDaemon::allowing();
    daemon.write("a.txt", "alpha\n");
    let mut random = Random(0xC0DE);
    let mut cut = 0;
    for round in 0..12 {
        let mut client = daemon.client();
        let toolbox = json!({"code": {"of": "builtin", "limits": {"calls": 1000}}});
        let session = client
            .session_with(json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox}));
        client.attach(&session, None);
        let mark = format!("mark-{round}");
        let code = format!(
            "for (let i = 0; i < 100; i++) {{
                for (let n = 0; n < 5; n++) await tools.read({{path: 'a.txt'}});
                await tools.execute({{command: `echo ${{i}} >> {mark}`}});
            }}"
        );
        client.start(&session, &format!("do run_code {}", json!({"code": code})));
        let seen = client.until_type("call_started");
        let cursor = seen.last()["seq"].as_u64().unwrap();
        harness::wait::elapse(Duration::from_millis(400).mul_f64(random.fraction()));
        daemon.kill9();
        let received = received(&mut client);
        daemon.restart();
        let mut client = daemon.client();
        let log = client.history(&session);
        assert_kept(&received, &log, cursor, round);
        assert_settled(&mut client, &session, &log, round);
        log.assert_consecutive(0);
        let started = log.of("call_started");
        let began = |call: &Value| started.iter().any(|started| started["call"] == *call);
        let told: Vec<String> = log
            .of("doing")
            .iter()
            .filter(|doing| doing["name"] == "execute" && began(&doing["call"]))
            .map(|doing| doing["arguments"]["command"].as_str().unwrap().to_owned())
            .collect();
        let ran = daemon.read(&mark);
        for line in ran.lines() {
            let of = format!("echo {line} >> {mark}");
            assert_eq!(
                told.iter().filter(|told| **told == of).count(),
                1,
                "round {round}: {of}"
            );
            assert_eq!(ran.lines().filter(|other| *other == line).count(), 1);
        }
        let ended = log
            .of("done")
            .into_iter()
            .rfind(|done| done["result"].get("calls").is_some());
        let ended = &ended.expect("the program ended")["result"];
        let listed = ended["calls"].as_array().unwrap();
        let wrote = listed
            .iter()
            .filter(|made| made["tool"] == "execute")
            .count();
        assert!(wrote >= ran.lines().count(), "round {round}: {ended}");
        cut += usize::from(ended["code"] == "cancelled");
    }
    assert!(cut > 3, "only {cut} kills fell into a program");
}

#[test]
fn sessions_are_listed_as_what_they_are_after_a_crash_before_anybody_opens_them() {
    let mut daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.start(&session, "wait 60000");
    daemon.kill9();
    daemon.restart();
    let listed = daemon.client().call("session/list", json!({}));
    assert_ne!(listed["sessions"][0]["state"], "running", "{listed}");
}

#[test]
fn two_terminals_that_come_back_after_a_crash_are_in_one_session() {
    let mut daemon = TestDaemon::allowing();
    let session = daemon.client().session(&daemon.work());
    daemon.kill9();
    daemon.restart();
    let (mut one, mut two) = (daemon.client(), daemon.client());
    one.attach(&session, None);
    two.attach(&session, None);
    one.start(&session, "say one voice");
    assert_eq!(one.until_ended().0, two.until_ended().0);
    assert_eq!(
        one.call("session/list", json!({}))["sessions"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// Thinks, speaks, runs a tool that leaves a line in `mark`, speaks again; about 60 ms.
fn script(mark: &str) -> String {
    let words = |from: usize| -> String {
        (from..from + 12)
            .map(|number| format!("say {mark} wörd-{number} \nwait 1\n"))
            .collect()
    };
    let call =
        json!({"command": format!("echo ran >> {mark}; echo printed; sleep 0.01; echo more")});
    format!(
        "think about {mark}\n{}do execute {call}\n{}",
        words(0),
        words(12)
    )
}

fn timed(client: &mut TestClient, session: &str, mark: &str) -> Duration {
    let start = Instant::now();
    let events = client.turn(session, &script(mark));
    assert_eq!(events.last()["status"], "completed", "{:?}", events.last());
    start.elapsed()
}

/// Every event that had arrived when the daemon was gone.
fn received(client: &mut TestClient) -> Events {
    let lines = client.drain().into_iter();
    Events(
        lines
            .filter(|line| line["method"] == "session/event")
            .map(|line| line["params"]["result"].clone())
            .collect(),
    )
}

fn assert_kept(received: &Events, log: &Events, cursor: u64, round: u64) {
    received.assert_consecutive(cursor);
    let kept = log.texts();
    for (key, text) in received.texts() {
        let kept = kept
            .get(&key)
            .unwrap_or_else(|| panic!("round {round}: {key} is lost: {text:?}"));
        assert!(
            kept.starts_with(&text),
            "round {round}: {key} had {text:?} and is {kept:?}"
        );
    }
    let by_number: BTreeMap<u64, &Value> = log
        .0
        .iter()
        .map(|event| (event["seq"].as_u64().unwrap(), event))
        .collect();
    let pieces = ["saying", "thinking", "tool_output"];
    for event in received
        .0
        .iter()
        .filter(|event| !pieces.contains(&event["type"].as_str().unwrap()))
    {
        let seq = event["seq"].as_u64().unwrap();
        assert_eq!(by_number.get(&seq), Some(&event), "round {round}");
    }
}

/// No turn runs, every call has its one result.
fn assert_settled(client: &mut TestClient, session: &str, log: &Events, round: u64) {
    let state = client.call("session/get", json!({"session": session}))["state"].clone();
    assert!(
        state == "idle" || state == "failed",
        "round {round}: {state}"
    );
    log.assert_consecutive(0);
    for doing in log.of("doing") {
        let results = log
            .of("done")
            .iter()
            .filter(|done| done["call"] == doing["call"])
            .count();
        assert_eq!(results, 1, "round {round}: {doing}");
    }
    assert_eq!(
        log.of("turn_started").len(),
        log.of("turn_ended").len(),
        "round {round}"
    );
}

/// A small generator with a fixed seed, so that a failure can be had again.
struct Random(u64);

impl Random {
    fn fraction(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 33).unwrap()) / f64::from(1u32 << 31)
    }
}
