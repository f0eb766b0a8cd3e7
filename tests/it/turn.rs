//! Turns: one at a time, the queue, steering, cancelling, tokens, limits, failures.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::model::{Answer, FakeModel, Step};
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_turn_tells_its_whole_story_in_order() {
    let daemon = TestDaemon::start();
    daemon.write("note.txt", "seventeen camels\n");
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let turn = "think hm\nsay looking\ndo read {\"path\": \"note.txt\"}\nsay found";
    let events = client.turn(&session, turn);
    let told: Vec<&str> = events
        .outline()
        .into_iter()
        .filter(|kind| {
            !matches!(
                *kind,
                "usage" | "said" | "round" | "round_started" | "tool_output"
            )
        })
        .collect();
    assert_eq!(told[0], "turn_started");
    let order = [
        "thinking",
        "saying",
        "doing",
        "call_started",
        "done",
        "saying",
        "turn_ended",
    ];
    let mut rest = told.iter();
    for kind in order {
        assert!(
            rest.any(|told| *told == kind),
            "{kind} in its place in {told:?}"
        );
    }
    let done = events.one("done");
    assert_eq!(done["result"]["ok"], true, "{done}");
    assert!(
        done["result"]["content"]
            .as_str()
            .unwrap()
            .contains("seventeen camels")
    );
    assert_eq!(events.last()["status"], "completed");
    let turn = &events.0[0]["turn"];
    assert!(events.0.iter().all(|event| &event["turn"] == turn));
}

#[test]
fn a_second_prompt_is_refused_with_the_running_turns_id() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let turn = client.start(&session, "wait 60000")["turn"].clone();
    let fault = client.fault("turn/start", json!({"session": session, "text": "say no"}));
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32003, &json!("busy")),
        "{fault}"
    );
    assert_eq!(fault.data["turn"], turn);
    assert_eq!(
        client.call("session/get", json!({"session": session}))["state"],
        "running"
    );
    cancel(&mut client, &session);
}

#[test]
fn queued_prompts_run_in_order_after_the_turn() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "say zero\nwait 1500");
    let queued: Vec<Value> = (1..=10)
        .map(|number| {
            client.call(
                "turn/start",
                json!({"session": session, "text": format!("say {number}"), "queue": true}),
            )["queued"]
                .clone()
        })
        .collect();
    assert!(queued.iter().all(Value::is_string), "{queued:?}");
    let removed = client.call(
        "queue/remove",
        json!({"session": session, "queued": queued[4]}),
    );
    assert!(removed["seq"].is_u64());
    let mut replies = Vec::new();
    while replies.len() < 10 {
        replies.push(
            client.until_ended().last()["reply"]
                .as_str()
                .unwrap()
                .trim()
                .to_owned(),
        );
    }
    assert_eq!(
        replies,
        ["zero", "1", "2", "3", "4", "6", "7", "8", "9", "10"]
    );
    assert_eq!(
        client.call("queue/list", json!({"session": session})),
        json!([])
    );
}

#[test]
fn the_queue_can_be_seen_and_survives_a_crash_untouched() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.start(&session, "wait 60000");
    for text in ["say one", "say two"] {
        client.call(
            "turn/start",
            json!({"session": session, "text": text, "queue": true}),
        );
    }
    let before = client.call("queue/list", json!({"session": session}));
    assert_eq!(before[1]["text"], "say two");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(
        client.call("queue/list", json!({"session": session})),
        before
    );
    let session_now = client.call("session/get", json!({"session": session}));
    assert_eq!(session_now["queue"], before);
    assert_ne!(
        session_now["state"], "running",
        "queued prompts wait for a person to say go on"
    );
}

#[test]
fn steering_reaches_the_model_at_its_next_round_trip_and_before_the_queue() {
    let model = FakeModel::start([
        Answer::call("c1", "execute", "{\"command\": \"true\"}", 1),
        Answer::text(["done"]),
    ]);
    let (daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    client.start(&session, "go");
    let approval = client.until_type("approval_asked").last()["approval"].clone();
    client.call(
        "turn/start",
        json!({"session": session, "text": "the queued one", "queue": true}),
    );
    client.call(
        "turn/steer",
        json!({"session": session, "text": "rather the red one"}),
    );
    client.answer(&approval, "allow").unwrap();
    client.until_ended();
    client.until_ended();
    let requests = model.requests();
    let users = |request: &Value| -> Vec<String> {
        let messages = request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message["role"] == "user");
        messages
            .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(users(&requests[0]), ["go"]);
    assert!(
        users(&requests[1]).concat().contains("rather the red one"),
        "{}",
        requests[1]
    );
    assert!(!users(&requests[1]).concat().contains("the queued one"));
    assert!(users(&requests[2]).concat().contains("the queued one"));
    drop(daemon);
}

#[test]
fn a_cancelled_turn_ends_at_once_and_keeps_what_was_said() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "say the beginning\nwait 60000\nsay the end");
    client.until_type("saying");
    let start = Instant::now();
    client.call("turn/cancel", json!({"session": session}));
    let events = client.until_ended();
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(events.last()["status"], "cancelled");
    assert_eq!(client.history(&session).said().trim(), "the beginning");
    assert_eq!(
        client.turn(&session, "say on").last()["status"],
        "completed"
    );
}

/// Its command takes a moment to die, so that what follows a cancel comes before the turn's end.
const SLOW_TO_END: &str = r#"do execute {"command": "trap '' TERM; sleep 60"}"#;

#[test]
fn a_prompt_queued_behind_a_cancelled_turn_goes_before_those_that_waited() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let queue = |client: &mut TestClient, text: &str| {
        let queued = json!({"session": session, "text": text, "queue": true});
        client.send("turn/start", queued)
    };
    client.start(&session, SLOW_TO_END);
    client.until_type("call_started");
    queue(&mut client, "say earlier");
    client.until_type("queued");
    client.send("turn/cancel", json!({"session": session}));
    let id = queue(&mut client, "say now");
    let answer = client.response(id).expect("it is taken");
    assert!(answer.get("queued").is_some(), "{answer}");
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    assert_eq!(client.until_ended().said().trim(), "now");
    assert_eq!(client.until_ended().said().trim(), "earlier");
}

#[test]
fn a_turn_asked_for_behind_a_cancel_begins_when_the_cancelled_one_has_ended() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, SLOW_TO_END);
    client.until_type("call_started");
    client.send("turn/cancel", json!({"session": session}));
    let next = client.send(
        "turn/start",
        json!({"session": session, "text": "say next"}),
    );
    let busy = client.send(
        "turn/start",
        json!({"session": session, "text": "say more"}),
    );
    let fault = client.response(busy).expect_err("one at a time");
    assert_eq!(fault.code, -32003, "{fault}");
    let begun = client.response(next).expect("it begins");
    assert!(begun.get("turn").is_some(), "{begun}");
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "cancelled");
    assert_eq!(client.until_ended().said().trim(), "next");
}

#[test]
fn a_cancel_of_a_turn_that_has_ended_leaves_the_next_one_alone() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let first = client.turn(&session, "say first").last()["turn"].clone();
    let seen = client.history(&session).newest();
    client.attach(&session, Some(seen));
    client.start(&session, "wait 300\nsay second");
    let late = json!({"session": session, "turn": first});
    assert_eq!(client.call("turn/cancel", late), json!({}));
    assert_eq!(client.until_ended().last()["status"], "completed");
    let third = client.start(&session, "wait 60000")["turn"].clone();
    let meant = json!({"session": session, "turn": third});
    assert_eq!(client.call("turn/cancel", meant), json!({"turn": third}));
    assert_eq!(client.until_ended().last()["status"], "cancelled");
}

#[test]
fn cancelling_where_nothing_runs_is_no_error() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    assert_eq!(
        client
            .call("turn/cancel", json!({"session": session}))
            .get("turn"),
        None
    );
}

#[test]
fn a_repeated_token_is_the_same_turn() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let params = json!({"session": session, "text": "say once", "token": "abc"});
    let ids: Vec<u64> = (0..5)
        .map(|_| client.send("turn/start", params.clone()))
        .collect();
    let answers: Vec<Value> = ids.iter().map(|id| client.response(*id).unwrap()).collect();
    assert!(
        answers.iter().all(|answer| answer == &answers[0]),
        "{answers:?}"
    );
    client.call("turn/wait", json!({"turn": answers[0]["turn"]}));
    assert_eq!(
        client.call("turn/start", params.clone())["turn"],
        answers[0]["turn"],
        "after its end too"
    );
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(
        client.call("turn/start", params)["turn"],
        answers[0]["turn"],
        "after a crash too"
    );
    assert_eq!(client.history(&session).of("turn_started").len(), 1);
}

#[test]
fn waiting_answers_after_all_notifications_of_the_turn() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for _ in 0..20 {
        let subscription = client.attach(&session, None);
        let turn = client.start(&session, "say a\ndo list {}\nsay b")["turn"].clone();
        let id = client.send("turn/wait", json!({"turn": turn}));
        let mut last = Value::Null;
        let answer = loop {
            let line = client.next_line();
            if line["id"] == id {
                break line;
            }
            last = line["params"]["result"].clone();
        };
        assert_eq!(
            last["type"], "turn_ended",
            "the event comes before the answer"
        );
        assert_eq!(answer["result"]["seq"], last["seq"]);
        assert_eq!(answer["result"]["status"], "completed");
        client.call("session/detach", json!({"subscription": subscription}));
    }
}

#[test]
fn waiting_for_a_turn_that_ended_long_ago_answers_at_once() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(&session, "say hello");
    let turn = events.0[0]["turn"].clone();
    daemon.kill9();
    daemon.restart();
    let ended = daemon.client().call("turn/wait", json!({"turn": turn}));
    assert_eq!(
        (&ended["status"], ended["reply"].as_str().unwrap().trim()),
        (&json!("completed"), "hello")
    );
    let fault = daemon
        .client()
        .fault("turn/wait", json!({"turn": format!("{session}.t99")}));
    assert_eq!(fault.code, -32002, "{fault}");
}

#[test]
fn a_providers_failure_ends_the_turn_with_its_message_and_keeps_what_was_said() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(&session, "say half\nfail the line broke");
    assert_eq!(events.last()["status"], "failed");
    assert_eq!(events.last()["reply"], "Error: the line broke");
    let session_now = client.call("session/get", json!({"session": session}));
    assert_eq!(session_now["state"], "failed");
    assert!(
        session_now["reason"]
            .as_str()
            .unwrap()
            .contains("the line broke"),
        "{session_now}"
    );
    assert_eq!(
        client.turn(&session, "say on").last()["status"],
        "completed"
    );
    assert_eq!(
        client.call("session/get", json!({"session": session}))["state"],
        "idle"
    );
}

#[test]
fn a_reply_without_end_is_broken_off_at_its_limit_and_what_was_said_is_kept() {
    let endless = (0..200).fold(Answer::open(), |answer, _| answer.say(&"word ".repeat(20)));
    let model = FakeModel::start([endless.step(Step::Stall)]);
    let mut sandbox = Sandbox::new();
    std::fs::write(
        sandbox.path("config").join("config.toml"),
        "[turn]\nmax_reply_bytes = 1000\n",
    )
    .unwrap();
    sandbox.set("OPENAI_BASE_URL", model.base_url());
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "openai", "model": "m"}));
    let events = client.turn(&session, "go on for ever");
    let last = events.last();
    assert_eq!(last["status"], "failed", "{last}");
    let reply = last["reply"].as_str().unwrap();
    assert!(reply.contains("longer than 1000 bytes"), "{reply}");
    assert_eq!(events.said(), "word ".repeat(200));
}

#[test]
fn a_turn_stops_after_its_last_allowed_round_trip() {
    let daemon = TestDaemon::start();
    for number in 0..101 {
        daemon.write(&format!("d{number}/x"), "");
    }
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let script: String = (0..101)
        .map(|number| format!("do list {{\"path\": \"d{number}\"}}\n"))
        .collect();
    let events = client.turn(&session, &script);
    assert_eq!(events.last()["status"], "max_rounds");
    assert_eq!(events.last()["reply"], "stopped after 100 rounds");
    assert_eq!(events.of("done").len(), 100);
}

#[test]
fn the_same_failing_call_again_and_again_stops_the_turn() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(&session, &"do read {\"path\": \"missing\"}\n".repeat(20));
    assert_eq!(events.of("done").len(), 6, "{:?}", events.types());
    assert_ne!(events.last()["status"], "completed");
    assert!(
        events.last()["reply"].as_str().unwrap().contains("read"),
        "{}",
        events.last()
    );
}

#[test]
fn many_sessions_work_at_once() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let sessions: Vec<String> = (0..20).map(|_| client.session(&daemon.work())).collect();
    let start = Instant::now();
    let turns: Vec<Value> = sessions
        .iter()
        .map(|session| client.start(session, "say a\nwait 500\nsay b")["turn"].clone())
        .collect();
    for turn in turns {
        assert_eq!(
            client.call("turn/wait", json!({"turn": turn}))["status"],
            "completed"
        );
    }
    assert!(
        start.elapsed() < Duration::from_secs(5),
        "one after the other: {:?}",
        start.elapsed()
    );
}

fn cancel(client: &mut TestClient, session: &str) {
    client.call("turn/cancel", json!({"session": session}));
}
