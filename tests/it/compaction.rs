//! Automatic compaction: when a conversation gives way to a summary, and what becomes of it when that fails.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::model::{Answer, FakeModel};
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;

/// The model's window in tokens; the share at which it is full is the usual one.
const WINDOW: u64 = 10_000;
const FULL: u64 = 8_500;

fn start(model: &FakeModel, more: &str) -> (TestDaemon, TestClient, String) {
    let sandbox = Sandbox::new();
    let config = format!("[provider.openai]\nwindow = {WINDOW}\n{more}");
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    TestDaemon::with_model_in(sandbox, model)
}

fn says(text: &str, input: u64) -> Answer {
    Answer::open().say(text).finish_costing("stop", input, 10)
}

fn reads(id: &str, input: u64) -> Answer {
    Answer::open()
        .call_piece(0, id, "read", r#"{"path": "a.txt"}"#, 1)
        .finish_costing("tool_calls", input, 10)
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().unwrap()
}

fn is_summary(request: &Value) -> bool {
    let last = messages(request).last().unwrap();
    last["content"]
        .as_str()
        .unwrap_or_default()
        .starts_with("Sum up this conversation")
}

/// The texts of what people said, as the model saw them.
fn words(request: &Value) -> Vec<String> {
    let users = messages(request).iter().filter(|one| one["role"] == "user");
    users
        .map(|one| one["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn full_conversation_is_summed_up_before_the_next_prompt_which_stays_as_it_was_said() {
    let model = FakeModel::start([
        says("blue", FULL),
        says("Blue was chosen.", FULL),
        says("as said", 100),
    ]);
    let (_daemon, mut client, session) = start(&model, "");
    client.turn(&session, "which colour?");
    let events = client.turn(&session, "go on");
    assert_eq!(events.said(), "as said");
    let kinds = events.types();
    let notice = kinds.iter().position(|kind| *kind == "notice").unwrap();
    let compacted = kinds.iter().position(|kind| *kind == "compacted").unwrap();
    assert!(notice < compacted, "{kinds:?}");

    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    assert!(is_summary(&requests[1]));
    assert_eq!(words(&requests[1])[0], "which colour?");
    assert!(!words(&requests[1]).concat().contains("go on"));
    assert_eq!(words(&requests[2]), ["Blue was chosen.\n\ngo on"]);
    let log = client.history(&session);
    assert_eq!(log.of("turn_started")[0]["text"], "which colour?");
}

#[test]
fn full_conversation_is_summed_up_in_the_middle_of_a_turn_and_no_call_loses_its_result() {
    let model = FakeModel::start([
        reads("one", 100),
        reads("two", FULL),
        says("Read it twice.", FULL),
        reads("three", 300),
        says("done", 400),
    ]);
    let (daemon, mut client, session) = start(&model, "");
    daemon.write("a.txt", "the text");
    assert_eq!(client.turn(&session, "read a lot").said(), "done");
    let requests = model.requests();
    assert!(is_summary(&requests[2]) && requests[2].to_string().contains("the text"));
    assert_eq!(words(&requests[3]), ["read a lot\n\nRead it twice."]);
    assert_eq!(messages(&requests[3]).len(), 2, "{}", requests[3]);
    let last = messages(&requests[4]);
    assert_eq!(
        (&last[2]["role"], &last[3]["role"]),
        (&json!("assistant"), &json!("tool"))
    );
    assert_eq!(client.history(&session).of("done").len(), 3);
}

#[test]
fn summary_that_fails_loses_nothing_and_is_said_and_not_asked_for_again_in_the_turn() {
    let model = FakeModel::start([
        says("blue", FULL),
        Answer::status(400, "no summaries here"),
        reads("one", FULL),
        says("as said", FULL),
        says("", FULL),
        says("still here", FULL),
    ]);
    let (daemon, mut client, session) = start(&model, "");
    daemon.write("a.txt", "the text");
    client.turn(&session, "which colour?");
    let events = client.turn(&session, "go on");
    assert_eq!(events.said(), "as said");
    let notices = events.of("notice");
    let told = notices.last().unwrap()["text"].as_str().unwrap();
    assert!(
        told.starts_with("the conversation could not be summed up and stays as it is: ")
            && told.contains("no summaries here"),
        "{told}"
    );
    assert_eq!(words(&model.requests()[2]), ["which colour?", "go on"]);
    let events = client.turn(&session, "and now?");
    assert_eq!(events.said(), "still here");
    assert!(
        events
            .of("notice")
            .last()
            .unwrap()
            .to_string()
            .contains("gave no summary")
    );
    assert!(events.of("compacted").is_empty());
    assert_eq!(
        words(&model.requests()[5]),
        ["which colour?", "go on", "and now?"]
    );
}

#[test]
fn summary_that_a_person_asked_for_and_did_not_get_leaves_nothing_behind() {
    let model = FakeModel::start([
        says("blue", 10),
        Answer::status(400, "no summaries here"),
        says(" ", 10),
        says("as said", 10),
    ]);
    let (_daemon, mut client, session) = start(&model, "");
    client.turn(&session, "which colour?");
    for _ in 0..2 {
        let line = json!({"session": session, "line": "/compact"});
        let ran = client.call("command/run", line);
        assert!(ran["error"].is_string(), "{ran}");
    }
    assert_eq!(client.turn(&session, "go on").said(), "as said");
    assert_eq!(words(&model.requests()[3]), ["which colour?", "go on"]);
}

#[test]
fn summary_that_makes_no_room_is_not_asked_for_over_and_over() {
    let model = FakeModel::start([
        says("blue", FULL),
        says("Blue was chosen.", FULL),
        reads("one", FULL),
        reads("two", FULL),
        says("as said", FULL),
        says("yes", FULL),
    ]);
    let (daemon, mut client, session) = start(&model, "");
    daemon.write("a.txt", "the text");
    client.turn(&session, "which colour?");
    assert_eq!(client.turn(&session, "go on").said(), "as said");
    assert_eq!(client.turn(&session, "well?").said(), "yes");
    let asked = model
        .requests()
        .iter()
        .filter(|one| is_summary(one))
        .count();
    assert_eq!(asked, 1);
}

#[test]
fn conversation_that_the_server_refuses_as_too_long_is_summed_up_once_and_sent_again() {
    let refused = || Answer::status(400, "the maximum context length is 9 tokens");
    let model = FakeModel::start([
        says("blue", 100),
        refused(),
        says("Blue was chosen.", 100),
        says("as said", 100),
        refused(),
        says("Still blue.", 100),
        refused(),
    ]);
    let (_daemon, mut client, session) = start(&model, "");
    client.turn(&session, &format!("which colour? {}", "x".repeat(3_000)));
    assert_eq!(client.turn(&session, "go on").said(), "as said");
    let requests = model.requests();
    assert!(is_summary(&requests[2]) && requests[2].to_string().contains("bytes left out"));
    assert_eq!(words(&requests[3]), ["Blue was chosen.\n\ngo on"]);
    let events = client.turn(&session, "and now?");
    let end = events.last();
    assert_eq!(end["status"], "failed");
    assert!(
        end["reply"]
            .as_str()
            .unwrap()
            .contains("maximum context length"),
        "{end}"
    );
    assert_eq!(model.requests().len(), 7);
}

#[test]
fn nothing_is_summed_up_where_the_settings_say_never_or_the_window_is_not_known() {
    let answers = || [says("blue", FULL), says("as said", FULL)];
    let model = FakeModel::start(answers());
    let (_daemon, mut client, session) = start(&model, "[history]\ncompact_at_percent = 0\n");
    client.turn(&session, "which colour?");
    assert_eq!(client.turn(&session, "go on").said(), "as said");
    let other = FakeModel::start(answers());
    let (_daemon, mut client, session) = TestDaemon::with_model(&other);
    client.turn(&session, "which colour?");
    assert_eq!(client.turn(&session, "go on").said(), "as said");
}

#[test]
fn daemon_that_dies_while_the_model_sums_up_keeps_the_conversation() {
    let model = FakeModel::start([
        says("blue", FULL),
        Answer::open()
            .say("Blue w")
            .step(harness::model::Step::Stall),
    ]);
    let (mut daemon, mut client, session) = start(&model, "");
    client.turn(&session, "which colour?");
    client.attach(&session, None);
    client.call("turn/start", json!({"session": session, "text": "go on"}));
    client.until_type("notice");
    daemon.kill9();
    model.set([says("Blue was chosen.", FULL), says("as said", 100)]);
    daemon.restart();
    let mut client = daemon.client();
    let log = client.history(&session);
    assert_eq!(log.last()["status"], "interrupted");
    assert!(log.of("compacted").is_empty());
    assert_eq!(client.turn(&session, "once more").said(), "as said");
}
