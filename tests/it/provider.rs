//! The chat-completions provider against a server that misbehaves; what the model is sent.

use harness::daemon::TestDaemon;
use harness::events::Events;
use harness::model::{Answer, FakeModel, Step};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[test]
fn a_reply_streams_and_usage_is_told() {
    let model = FakeModel::start([Answer::text(["Hel", "lo ", "wörld"])]);
    let events = play(&model);
    assert_eq!(events.said(), "Hello wörld");
    assert_eq!(events.last()["reply"], "Hello wörld");
    let usage = events.one("usage");
    assert_eq!((&usage["input"], &usage["output"]), (&json!(7), &json!(3)));
    let request = &model.requests()[0];
    assert_eq!(
        (&request["model"], &request["stream"]),
        (&json!("fake"), &json!(true))
    );
    let messages = request["messages"].as_array().unwrap();
    assert_eq!(messages[0]["role"], "system");
    assert!(
        messages[0]["content"]
            .as_str()
            .unwrap()
            .starts_with("You are a terminal coding agent.")
    );
    assert_eq!(
        (&messages[1]["role"], &messages[1]["content"]),
        (&json!("user"), &json!("go"))
    );
    assert!(
        request["tools"]
            .as_array()
            .unwrap()
            .iter()
            .any(|tool| tool["function"]["name"] == "read")
    );
}

#[test]
fn calls_split_over_chunks_and_several_in_one_are_run_in_order() {
    let two = Answer::open()
        .call_piece(0, "a", "read", "{\"path\": \"öne.txt\"}", 7)
        .call_piece(1, "b", "read", "{\"path\": \"two.txt\"}", 1)
        .finish("tool_calls");
    let model = FakeModel::start([two, Answer::text(["done"])]);
    let (daemon, mut client, session) = TestDaemon::with_model(&model);
    daemon.write("öne.txt", "first\n");
    daemon.write("two.txt", "second\n");
    let events = client.turn(&session, "go");
    let contents: Vec<&str> = events
        .of("done")
        .iter()
        .map(|done| done["result"]["content"].as_str().unwrap())
        .collect();
    assert!(
        contents[0].contains("first") && contents[1].contains("second"),
        "{contents:?}"
    );
    let messages = model.requests()[1]["messages"].as_array().unwrap().clone();
    let (calls, results) = (&messages[2], &messages[3..]);
    assert_eq!(calls["tool_calls"][0]["id"], "a");
    assert_eq!(calls["tool_calls"][1]["function"]["name"], "read");
    assert_eq!(results[0]["tool_call_id"], "a");
    assert_eq!(results[1]["tool_call_id"], "b");
    assert!(
        results[0]["content"]
            .as_str()
            .unwrap()
            .contains("\"ok\":true"),
        "{}",
        results[0]
    );
}

#[test]
fn any_cut_of_the_bytes_and_any_line_end_give_the_same_text() {
    let whole = || Answer::text(["grüße 🦀 ", "and ", "more"]);
    for (what, answer) in [
        ("bytes one by one", whole().rewritten(1, |text| text)),
        ("three by three", whole().rewritten(3, |text| text)),
        (
            "CRLF",
            whole().rewritten(5, |text| text.replace('\n', "\r\n")),
        ),
        (
            "comments in between",
            whole().rewritten(4096, |text| text.replace("data:", ": hello\n\ndata:")),
        ),
        ("all in one write", whole().rewritten(1 << 20, |text| text)),
    ] {
        assert_eq!(
            play(&FakeModel::start([answer])).said(),
            "grüße 🦀 and more",
            "{what}"
        );
    }
}

#[test]
fn a_stream_that_breaks_off_is_tried_again_and_the_draft_is_withdrawn() {
    for (what, broken) in [
        ("cut", Answer::open().say("half a ").step(Step::Cut)),
        ("no end mark", Answer::open().say("half a ")),
    ] {
        let model = FakeModel::start([broken, Answer::text(["a whole one"])]);
        let events = play(&model);
        assert_eq!(
            events.last()["status"],
            "completed",
            "{what}: {:?}",
            events.last()
        );
        assert_eq!(events.last()["reply"], "a whole one", "{what}");
        assert_eq!(events.one("retrying")["attempt"], 2);
        let withdrawn = &events.one("unsaid")["message"];
        let half = events.of("saying")[0];
        assert_eq!(
            (&half["message"], &half["text"]),
            (withdrawn, &json!("half a ")),
            "{what}"
        );
    }
}

#[test]
fn only_what_may_pass_is_tried_again() {
    for (status, tries) in [
        (429, 2),
        (500, 2),
        (503, 2),
        (408, 2),
        (400, 1),
        (401, 1),
        (404, 1),
    ] {
        let model = FakeModel::start([
            Answer::status(status, "the server's own words"),
            Answer::text(["fine"]),
        ]);
        let events = play(&model);
        assert_eq!(model.requests().len(), tries, "{status}");
        if tries == 1 {
            assert_eq!(events.last()["status"], "failed", "{status}");
            let reply = events.last()["reply"].as_str().unwrap();
            assert!(
                reply.starts_with("Error: ") && reply.contains("the server's own words"),
                "{status}: {reply}"
            );
        } else {
            assert_eq!(events.last()["reply"], "fine", "{status}");
        }
    }
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept_and_nonsense_is_none() {
    let model = FakeModel::start([
        Answer::status(429, "slow down").header("retry-after", "1"),
        Answer::text(["fine"]),
    ]);
    let start = Instant::now();
    let events = play(&model);
    assert_eq!(events.last()["reply"], "fine");
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(events.one("retrying")["after_ms"].as_u64().unwrap() >= 1000);
    let model = FakeModel::start([
        Answer::status(429, "slow down").header("retry-after", "banana"),
        Answer::text(["fine"]),
    ]);
    assert!(play(&model).one("retrying")["after_ms"].as_u64().unwrap() < 10_000);
}

#[test]
fn a_retry_can_be_cancelled() {
    let model = FakeModel::start([Answer::status(429, "slow down").header("retry-after", "30")]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    client.start(&session, "go");
    client.until_type("retrying");
    let start = Instant::now();
    client.call("turn/cancel", json!({"session": session}));
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    assert!(start.elapsed() < Duration::from_secs(3));
}

#[test]
fn an_error_inside_a_good_stream_shows_the_providers_own_message() {
    let error = "data: {\"error\": {\"message\": \"the model is on fire\", \"type\": \"invalid_request_error\"}}\n\n";
    let model = FakeModel::start([Answer::open().say("half").bytes(error)]);
    let events = play(&model);
    assert_eq!(events.last()["status"], "failed");
    assert!(
        events.last()["reply"]
            .as_str()
            .unwrap()
            .contains("the model is on fire"),
        "{}",
        events.last()
    );
}

#[test]
fn a_page_is_no_stream() {
    let model = FakeModel::start([Answer::html()]);
    let events = play(&model);
    assert_eq!(events.last()["status"], "failed");
    let reply = events.last()["reply"].as_str().unwrap();
    assert!(reply.contains("web page"), "{reply}");
}

#[test]
fn a_line_that_is_no_json_is_an_error_not_a_crash() {
    let model = FakeModel::start([Answer::open()
        .say("half")
        .bytes("data: {\"choices\": [{\n\n")
        .finish("stop")]);
    let events = play(&model);
    assert_eq!(events.last()["status"], "failed", "{}", events.last());
}

#[test]
fn a_stalled_stream_can_be_cancelled_at_once_comments_or_not() {
    for step in [Step::Stall, Step::StallWithComments] {
        let model = FakeModel::start([Answer::open().say("begun ").step(step.clone())]);
        let (_daemon, mut client, session) = TestDaemon::with_model(&model);
        client.attach(&session, None);
        client.start(&session, "go");
        client.until_type("saying");
        let start = Instant::now();
        client.call("turn/cancel", json!({"session": session}));
        assert_eq!(
            client.until_ended().last()["status"],
            "cancelled",
            "{step:?}"
        );
        assert!(start.elapsed() < Duration::from_secs(2), "{step:?}");
        assert_eq!(client.history(&session).said(), "begun ");
    }
}

#[test]
fn the_conversation_stays_valid_after_every_kind_of_end() {
    let model = FakeModel::start([
        Answer::call("a", "execute", "{\"command\": \"true\"}", 2),
        Answer::status(400, "no"),
        Answer::open().say("half").step(Step::Stall),
        Answer::text(["fine"]),
    ]);
    let (mut daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    client.start(&session, "one");
    client.until_type("approval_asked");
    client.call("turn/cancel", json!({"session": session}));
    client.until_ended();
    client.start(&session, "two");
    client.until_ended();
    client.start(&session, "three");
    client.until_type("saying");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    assert_eq!(client.turn(&session, "four").last()["reply"], "fine");
    for request in model.requests() {
        assert_valid(request["messages"].as_array().unwrap());
    }
    let last = model.requests().last().unwrap().to_string();
    assert!(last.contains("half"), "the partial text is kept: {last}");
    assert!(
        !last.contains("Error: "),
        "an error's reply is not sent to a model: {last}"
    );
}

/// What every vendor demands of a conversation.
#[track_caller]
fn assert_valid(messages: &[Value]) {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap();
        assert!(
            role == "tool" || open.is_empty(),
            "calls without results before {message}"
        );
        match role {
            "system" => assert_eq!(at, 0),
            "user" => assert_ne!(
                messages[at - 1]["role"],
                "user",
                "two users in a row: {messages:#?}"
            ),
            "assistant" => {
                let calls = message["tool_calls"]
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default();
                let text = message["content"].as_str().unwrap_or_default();
                assert!(
                    !calls.is_empty() || !text.is_empty(),
                    "an empty assistant message: {messages:#?}"
                );
                open = calls
                    .iter()
                    .map(|call| call["id"].as_str().unwrap())
                    .collect();
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap();
                let place = open
                    .iter()
                    .position(|call| *call == id)
                    .expect("a result has its call");
                open.remove(place);
            }
            other => panic!("role {other}"),
        }
    }
    assert!(
        open.is_empty() && messages.last().unwrap()["role"] != "assistant",
        "{messages:#?}"
    );
}

#[test]
fn switching_the_provider_keeps_the_conversation() {
    let model = FakeModel::start([Answer::text(["from the model"])]);
    let (daemon, mut client, _) = TestDaemon::with_model(&model);
    let session = client.session(&daemon.work());
    client.turn(&session, "say from the script");
    client.call(
        "provider/switch",
        json!({"session": session, "name": "openai", "model": "fake"}),
    );
    assert_eq!(client.turn(&session, "and now?").said(), "from the model");
    let sent = model.requests()[0]["messages"].to_string();
    assert!(
        sent.contains("from the script") && sent.contains("and now?"),
        "{sent}"
    );
    assert_eq!(
        client.call("session/get", json!({"session": session}))["provider"],
        "openai"
    );
}

#[test]
fn the_nearest_agents_file_is_read_anew_for_every_round_trip() {
    let model = FakeModel::start([Answer::text(["one"]), Answer::text(["two"])]);
    let (daemon, mut client, session) = TestDaemon::with_model(&model);
    daemon.write("AGENTS.md", "Speak like a pirate.");
    client.turn(&session, "go");
    daemon.write("AGENTS.md", "Speak like a judge.");
    client.turn(&session, "go on");
    let system = |at: usize| {
        model.requests()[at]["messages"][0]["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        system(0).starts_with("You are a terminal coding agent.\n\nSpeak like a pirate."),
        "{}",
        system(0)
    );
    assert!(
        system(1).starts_with("You are a terminal coding agent.\n\nSpeak like a judge."),
        "{}",
        system(1)
    );
    assert!(
        !client
            .history(&session)
            .0
            .iter()
            .any(|event| event.to_string().contains("pirate"))
    );
}

#[test]
fn the_stub_thinks_speaks_calls_and_is_done() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "stub"}));
    let events = client.turn(&session, "anything");
    assert!(!events.of("thinking").is_empty());
    assert_eq!(events.said(), "let me check.done.");
    assert_eq!(events.last()["reply"], "done.");
    assert_eq!(events.one("doing")["arguments"], json!({}));
}

#[test]
fn a_key_shows_nowhere() {
    let model = FakeModel::start([
        Answer::status(401, "bad key the-key-of-the-test"),
        Answer::text(["fine"]),
    ]);
    let (mut daemon, mut client, session) = TestDaemon::with_model(&model);
    client.turn(&session, "go");
    daemon.term();
    assert!(
        !daemon.log().contains("the-key-of-the-test"),
        "{}",
        daemon.log()
    );
}

fn play(model: &FakeModel) -> Events {
    let (_daemon, mut client, session) = TestDaemon::with_model(model);
    client.turn(&session, "go")
}
