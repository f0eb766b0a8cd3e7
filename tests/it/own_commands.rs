//! Commands of a person's own: the model reads what they gave with the next words to it, from anywhere, and once.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use serde_json::{Value, json};

#[test]
fn what_a_person_ran_goes_to_the_model_with_the_next_prompt_from_anywhere_once() {
    let mut daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    run(&mut client, &session, "echo one");
    run(&mut client, &session, "echo two; exit 3");
    assert_eq!(
        untold(&mut client, &session),
        json!(["echo one", "echo two; exit 3"])
    );
    drop(client);
    daemon.kill9();
    daemon.restart();
    let mut other = daemon.client();
    assert_eq!(
        untold(&mut other, &session),
        json!(["echo one", "echo two; exit 3"])
    );
    let events = other.turn(&session, "say seen");
    assert_eq!(events.last()["status"], "completed");
    assert_eq!(
        events.one("turn_started")["text"],
        "say seen",
        "a prompt is what was typed"
    );
    assert_eq!(
        users(&mut other, &session),
        [
            "I ran `echo one`:\n```\none\n```\n\nI ran `echo two; exit 3` (exit status 3):\n```\ntwo\n```\n\nsay seen"
        ]
    );
    assert_eq!(untold(&mut other, &session), Value::Null);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.turn(&session, "say again");
    assert_eq!(users(&mut client, &session)[1], "say again");
    assert_eq!(
        client.call("session/get", json!({"session": session}))["title"],
        "say seen"
    );
}

#[test]
fn a_prompt_that_is_cancelled_keeps_what_went_along_with_it() {
    let mut sandbox = harness::sandbox::Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    let script = sandbox.write("script", "wait 600000\n");
    sandbox.set("DWELL_SCRIPT", script);
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    run(&mut client, &session, "echo one");
    client.attach(&session, None);
    for prompt in ["first", "second"] {
        client.start(&session, prompt);
        client.until_type("round_started");
        assert_eq!(untold(&mut client, &session), Value::Null);
        client.call("turn/cancel", json!({"session": session}));
        assert_eq!(client.until_ended().last()["status"], "cancelled");
    }
    let all = users(&mut client, &session).join("\n");
    assert_eq!(all.matches("I ran `echo one`").count(), 1, "{all}");
    assert!(
        all.find("I ran").unwrap() < all.find("first").unwrap(),
        "{all}"
    );
}

#[test]
fn what_runs_while_a_turn_does_goes_along_with_a_steering_word() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(
        &session,
        "wait 300\ndo execute {\"command\": \"true\"}\nsay end",
    );
    client.until_type("round_started");
    run(&mut client, &session, "echo meanwhile");
    client.call(
        "turn/steer",
        json!({"session": session, "text": "look at that"}),
    );
    client.until_ended();
    let all = users(&mut client, &session);
    assert!(
        all[1].starts_with("I ran `echo meanwhile`") && all[1].ends_with("\n\nlook at that"),
        "{all:?}"
    );
    client.turn(&session, "say next");
    assert_eq!(users(&mut client, &session).last().unwrap(), "say next");
}

#[test]
fn what_the_model_is_not_to_read_it_does_not() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let params =
        json!({"session": session, "name": "execute", "arguments": {"command": "echo secret"}});
    client.call("tool/run", params);
    run(&mut client, &session, "echo cleared");
    client.call("session/clear", json!({"session": session}));
    assert_eq!(untold(&mut client, &session), Value::Null);
    client.turn(&session, "say hello");
    assert_eq!(users(&mut client, &session), ["say hello"]);
}

fn run(client: &mut TestClient, session: &str, command: &str) {
    let arguments = json!({"command": command});
    let params =
        json!({"session": session, "name": "execute", "arguments": arguments, "tell": true});
    client.call("tool/run", params);
}

fn untold(client: &mut TestClient, session: &str) -> Value {
    client.call("session/get", json!({"session": session}))["untold"].clone()
}

/// What the model reads of people.
fn users(client: &mut TestClient, session: &str) -> Vec<String> {
    let params = json!({"session": session, "line": "/context json"});
    let shown = client.call("command/run", params);
    let messages: Vec<Value> = serde_json::from_str(shown["output"].as_str().unwrap()).unwrap();
    let of_people = messages.iter().filter(|message| message["role"] == "user");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    of_people.map(text).collect()
}
