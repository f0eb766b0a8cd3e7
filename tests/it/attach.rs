//! Attaching: many clients, late clients, cursors, roles, detaching.

use harness::daemon::TestDaemon;
use harness::events::Events;
use serde_json::json;
use std::time::Duration;

/// A turn of many pieces that takes a while.
fn long_script(pieces: usize) -> String {
    let lines = (0..pieces).map(|number| format!("say w{number} \nwait 2\n"));
    format!("think first a thought\n{}", lines.collect::<String>())
}

#[test]
fn two_clients_see_the_same_stream() {
    let daemon = TestDaemon::start();
    let (mut one, mut two) = (daemon.client(), daemon.client());
    let session = one.session(&daemon.work());
    one.attach(&session, None);
    two.attach(&session, None);
    one.start(
        &session,
        &format!("{}do list {{}}\nsay done", long_script(50)),
    );
    let (one, two) = (one.until_ended(), two.until_ended());
    assert_eq!(one.0, two.0);
    one.assert_consecutive(one.0[0]["seq"].as_u64().unwrap() - 1);
}

#[test]
fn two_clients_get_every_one_of_five_thousand_pieces() {
    let daemon = TestDaemon::start();
    let (mut one, mut two) = (daemon.client(), daemon.client());
    let session = one.session(&daemon.work());
    one.attach(&session, None);
    two.attach(&session, None);
    let script: String = (0..5_000)
        .map(|number| format!("say w{number} \n"))
        .collect();
    one.start(&session, &script);
    let wanted: String = (0..5_000).map(|number| format!("w{number} ")).collect();
    for mut client in [one, two] {
        let events = client.until_ended();
        assert_eq!(events.said().trim_end(), wanted.trim_end());
        events.assert_consecutive(events.0[0]["seq"].as_u64().unwrap() - 1);
    }
}

#[test]
fn a_late_client_in_mid_message_sees_all_of_it_once() {
    let daemon = TestDaemon::start();
    let mut early = daemon.client();
    let session = early.session(&daemon.work());
    early.attach(&session, None);
    early.start(&session, &long_script(100));
    early.until_type("saying");
    let mut late = daemon.client();
    late.attach(&session, Some(0));
    let seen = late.until_ended();
    seen.assert_consecutive(0);
    let expected: String = (0..100).map(|number| format!("w{number} ")).collect();
    assert_eq!(seen.said().replace('\n', ""), expected);
    assert_eq!(seen.last()["reply"], json!(seen.said()));
    assert_eq!(seen.texts(), late_history(&daemon, &session));
}

fn late_history(daemon: &TestDaemon, session: &str) -> std::collections::BTreeMap<String, String> {
    daemon.client().history(session).texts()
}

#[test]
fn every_cursor_gives_exactly_the_rest() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let live = client.turn(
        &session,
        &format!("{}do list {{}}\nsay done", long_script(20)),
    );
    let whole = client.history(&session);
    let newest = whole.newest();
    for cursor in 0..newest {
        let mut client = daemon.client();
        client.attach(&session, Some(cursor));
        let rest = client.events_until("the newest event", |event| event["seq"] == newest);
        rest.assert_consecutive(cursor);
        // What a client had up to the cursor, and the rest, are the whole.
        let had = live
            .0
            .iter()
            .filter(|event| event["seq"].as_u64().unwrap() <= cursor);
        let both = Events(had.chain(&rest.0).cloned().collect());
        assert_eq!(both.texts(), whole.texts(), "cursor {cursor}");
    }
}

#[test]
fn a_cursor_beyond_the_newest_event_is_an_error_that_names_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let newest = client.turn(&session, "say hello").newest();
    let fault = client.fault(
        "session/attach",
        json!({"session": session, "after": newest + 1}),
    );
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32006, &json!("cursor_beyond")),
        "{fault}"
    );
    assert_eq!(fault.data["newest"], newest);
    client.attach(&session, Some(newest));
}

#[test]
fn a_detached_client_hears_nothing_more() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let subscription = client.attach(&session, None);
    client.call("session/detach", json!({"subscription": subscription}));
    let turn = client.start(&session, "say hello")["turn"].clone();
    client.send("turn/wait", json!({"turn": turn}));
    let line = client.next_line();
    assert_eq!(line["result"]["status"], "completed", "{line}");
}

#[test]
fn a_client_hears_only_the_sessions_it_attached_to() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (mine, other) = (
        client.session(&daemon.work()),
        client.session(&daemon.work()),
    );
    client.attach(&mine, None);
    let turn = client.start(&other, "say elsewhere")["turn"].clone();
    client.call("turn/wait", json!({"turn": turn}));
    client.start(&mine, "say here");
    let events = client.until_ended();
    assert!(events.0.iter().all(|event| event["session"] == json!(mine)));
}

#[test]
fn one_connection_may_attach_to_many_sessions() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let sessions: Vec<String> = (0..5).map(|_| client.session(&daemon.work())).collect();
    for session in &sessions {
        client.attach(session, None);
    }
    for session in &sessions {
        client.start(session, &long_script(10));
    }
    let mut events = Events::default();
    while events.of("turn_ended").len() < sessions.len() {
        events.0.push(client.event());
    }
    for session in &sessions {
        let own = events
            .0
            .iter()
            .filter(|event| event["session"] == json!(session))
            .cloned();
        let own = Events(own.collect());
        own.assert_consecutive(own.0[0]["seq"].as_u64().unwrap() - 1);
        assert!(
            own.said().ends_with("w9 ") || own.said().ends_with("w9 \n"),
            "{}",
            own.said()
        );
    }
}

#[test]
fn a_turn_goes_on_with_nobody_attached() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let turn = client.start(&session, &long_script(50))["turn"].clone();
    client.until_type("saying");
    drop(client);
    let mut later = daemon.client();
    assert_eq!(
        later.call("turn/wait", json!({"turn": turn}))["status"],
        "completed"
    );
    let log = later.history(&session);
    log.assert_consecutive(0);
    assert!(log.said().contains("w0 ") && log.said().contains("w49 "));
}

#[test]
fn a_cursor_holds_over_a_crash() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let cursor = client.turn(&session, "say before").newest();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.attach(&session, Some(cursor));
    client.start(&session, "say after");
    let rest = client.until_ended();
    rest.assert_consecutive(cursor);
    assert_eq!(rest.said(), "after");
}

#[test]
fn an_observer_sees_and_may_not_act() {
    let daemon = TestDaemon::start();
    let (mut person, mut observer) = (daemon.client(), daemon.client());
    let session = person.session(&daemon.work());
    observer.call(
        "session/attach",
        json!({"session": session, "role": "observer"}),
    );
    person.start(&session, "do execute {\"command\": \"true\"}\nsay done");
    let asked = observer.until_type("approval_asked");
    let approval = asked.last()["approval"].clone();
    let refused = [
        ("turn/start", json!({"session": session, "text": "say no"})),
        ("turn/steer", json!({"session": session, "text": "no"})),
        ("turn/cancel", json!({"session": session})),
        (
            "approval/answer",
            json!({"approval": approval, "answer": "allow"}),
        ),
        ("session/rename", json!({"session": session, "title": "no"})),
        ("session/archive", json!({"session": session})),
        ("session/delete", json!({"session": session})),
        ("session/clear", json!({"session": session})),
        (
            "session/replace",
            json!({"session": session, "messages": []}),
        ),
        ("session/say", json!({"session": session, "text": "no"})),
        ("queue/remove", json!({"session": session, "queued": "q1"})),
        ("command/run", json!({"session": session, "line": "/clear"})),
        ("tool/run", json!({"session": session, "name": "list"})),
        (
            "provider/switch",
            json!({"session": session, "name": "stub"}),
        ),
    ];
    for (method, params) in refused {
        let fault = observer.fault(method, params);
        assert_eq!(
            (fault.code, &fault.data["kind"]),
            (-32005, &json!("not_allowed")),
            "{method}: {fault}"
        );
    }
    person.answer(&approval, "allow").unwrap();
    assert_eq!(observer.until_ended().last()["status"], "completed");
    observer.call("session/get", json!({"session": session}));
    let own = observer.call("session/fork", json!({"session": session}))["id"].clone();
    observer.call("session/rename", json!({"session": own, "title": "mine"}));
    observer.attach(&session, None);
    observer.call(
        "session/rename",
        json!({"session": session, "title": "ours"}),
    );
}

#[test]
fn the_number_of_attached_clients_is_what_it_is() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let mut others: Vec<_> = (0..3).map(|_| daemon.client()).collect();
    for other in &mut others {
        other.attach(&session, None);
    }
    let count = |client: &mut harness::client::TestClient| {
        client.call("session/get", json!({"session": session}))["clients"].clone()
    };
    assert_eq!(count(&mut client), 3);
    drop(others);
    harness::wait::until_true("the count to fall", Duration::from_secs(10), || {
        count(&mut client) == 0
    });
}

#[test]
fn a_watcher_hears_of_every_session() {
    let daemon = TestDaemon::start();
    let (mut client, mut watcher) = (daemon.client(), daemon.client());
    watcher.call("daemon/watch", json!({}));
    let session = client.session(&daemon.work());
    client.turn(&session, "wait 20\nsay hello");
    client.call("session/delete", json!({"session": session}));
    let mut states = Vec::new();
    loop {
        let line = watcher.take("a change", |line| line["method"] == "daemon/change");
        let change = &line["params"]["result"];
        match change["type"].as_str() {
            Some("session") => states.push(change["session"]["state"].as_str().unwrap().to_owned()),
            Some("deleted") => break assert_eq!(change["session"], json!(session)),
            other => panic!("{other:?}"),
        }
    }
    states.dedup();
    assert!(states.contains(&"running".to_owned()), "{states:?}");
    assert_eq!(
        states.last().map(String::as_str),
        Some("idle"),
        "{states:?}"
    );
}
