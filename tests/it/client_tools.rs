//! Tools that a client offers and runs itself: what may be offered, how it fails, and how it hears that it is not waited for.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use serde_json::{Value, json};

/// A daemon, a client that offers a tool and follows its session, and the session.
fn offering() -> (TestDaemon, TestClient, String) {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    // As a language writes nothing that has no word for an empty object.
    let tools = json!([{"name": "buffer_text", "params": []}]);
    client.call("tool/provide", json!({"session": session, "tools": tools}));
    client.attach(&session, None);
    (daemon, client, session)
}

/// The call that the client is asked to run, once it is allowed.
fn asked(client: &mut TestClient) -> Value {
    let question = client.until_type("approval_asked");
    let approval = question.last()["approval"].clone();
    client.answer(&approval, "allow").unwrap();
    let line = client.take("the call", |line| line["method"] == "tool_asked");
    line["params"]["call"].clone()
}

#[test]
fn a_tool_that_no_vendor_would_take_is_refused() {
    let (_daemon, mut client, session) = offering();
    let long = "x".repeat(65);
    for name in ["a b", "ünï", "a.b", &long] {
        let tools = json!([{"name": name}]);
        let fault = client.fault("tool/provide", json!({"session": session, "tools": tools}));
        assert_eq!(fault.code, -32602, "{fault}");
        assert!(fault.message.contains("letters"), "{fault}");
    }
    let twice = json!([{"name": "buf"}, {"name": "buf"}]);
    let many: Vec<Value> = (0..129)
        .map(|at| json!({"name": format!("t{at}")}))
        .collect();
    let wordy = json!([{"name": "a", "description": "x".repeat(100_000)}]);
    for (tools, why) in [
        (twice, "two of"),
        (json!(many), "128"),
        (wordy, "description"),
    ] {
        let fault = client.fault("tool/provide", json!({"session": session, "tools": tools}));
        assert!(
            fault.code == -32602 && fault.message.contains(why),
            "{fault}"
        );
    }
    // What was offered before is still there.
    let list = client
        .call("tool/list", json!({"session": session}))
        .to_string();
    assert!(
        list.contains("buffer_text") && !list.contains("\"buf\""),
        "{list}"
    );
}

#[test]
fn each_way_to_answer_is_understood() {
    let (_daemon, mut client, session) = offering();
    let ways = [
        (
            json!({"error": "no buffer"}),
            json!({"error": "no buffer", "ok": false}),
        ),
        (
            json!({"result": {"error": "no"}}),
            json!({"error": "no", "ok": false}),
        ),
        (
            json!({"result": {"ok": false}}),
            json!({"error": "the tool failed, and does not say why", "ok": false}),
        ),
        (json!({"result": []}), json!({"ok": true})),
        (json!({"result": null}), json!({"ok": true})),
        (json!({"result": {"n": 1}}), json!({"n": 1, "ok": true})),
    ];
    for (mut answer, expected) in ways {
        client.start(&session, "do buffer_text {}\nsay read");
        answer["call"] = asked(&mut client);
        client.call("tool/answer", answer.clone());
        let done = client.until_ended();
        // A failure names the tool and its arguments besides.
        let result = &done.one("done")["result"];
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&result[name], value, "{answer} {result}");
        }
    }
}

#[test]
fn a_client_hears_that_nobody_waits_for_its_call() {
    let (daemon, mut client, session) = offering();
    client.start(&session, "do buffer_text {}\nsay read");
    let call = asked(&mut client);
    daemon
        .client()
        .call("turn/cancel", json!({"session": session}));
    let told = client.take("the end of the wait", |line| {
        line["method"] == "tool_cancelled"
    });
    assert_eq!(told["params"], json!({"session": session, "call": call}));
    // One that was answered is over.
    client.until_ended();
    client.start(&session, "do buffer_text {}\nsay read");
    let call = asked(&mut client);
    client.call("tool/answer", json!({"call": call, "result": {}}));
    client.until_ended();
    client.call("tool/provide", json!({"session": session, "tools": []}));
    let rest = client.drain_within(std::time::Duration::from_millis(1));
    assert!(
        !json!(rest).to_string().contains("tool_cancelled"),
        "{rest:?}"
    );
}

#[test]
fn a_tool_that_was_taken_back_while_its_question_waited_is_not_asked_for() {
    let (_daemon, mut client, session) = offering();
    client.start(&session, "do buffer_text {}\nsay read");
    let question = client.until_type("approval_asked");
    client.call("tool/provide", json!({"session": session, "tools": []}));
    let approval = question.last()["approval"].clone();
    client.answer(&approval, "allow").unwrap();
    let done = client.until_type("done").last()["result"].clone();
    let why = done["error"].as_str().unwrap_or_default();
    assert!(why.ends_with("offers buffer_text no more"), "{done}");
    assert_eq!(client.until_ended().said().trim(), "read");
}

#[test]
fn a_picture_that_is_none_is_refused() {
    let (_daemon, mut client, session) = offering();
    for (kind, data) in [
        ("image/png", "!!!!"),
        ("image/png", ""),
        ("image/svg+xml", "aGk="),
    ] {
        let images = json!([{"mime_type": kind, "data": data}]);
        let turn = json!({"session": session, "text": "say seen", "images": images});
        assert_eq!(
            client.fault("turn/start", turn).code,
            -32602,
            "{kind} {data}"
        );
    }
}
