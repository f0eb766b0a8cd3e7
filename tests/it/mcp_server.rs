//! `dwell mcp`: what a program that speaks MCP sees of a session's tools.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::mcp::McpClient;
use harness::sandbox::Sandbox;
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};

fn daemon(permissions: &Value) -> TestDaemon {
    let sandbox = Sandbox::new();
    sandbox.permissions(permissions);
    TestDaemon::start_in(sandbox)
}

fn start(daemon: &TestDaemon, args: &[&str], capabilities: &Value) -> McpClient {
    McpClient::start(daemon, daemon.socket(), args, capabilities)
}

fn execute(command: &str) -> Value {
    json!({"name": "execute", "arguments": {"command": command}, "_meta": {"progressToken": "p"}})
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

fn sessions(client: &mut TestClient, daemon: &TestDaemon) -> Vec<Value> {
    let listed = client.call("session/list", json!({"cwd": daemon.work()}));
    listed["sessions"].as_array().unwrap().clone()
}

#[test]
fn tools_are_listed_and_run_through_the_gate() {
    let daemon = daemon(&json!({"execute": {"echo *": "allow", "rm *": "deny"}, "write": "deny"}));
    daemon.write("a.txt", "the text\n");
    let mut client = start(&daemon, &[], &json!({}));
    let listed = client.call("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    assert_eq!(find("read").unwrap()["inputSchema"]["type"], "object");
    assert!(
        find("write").is_none(),
        "what would always be refused is not offered"
    );
    let read = client.call(
        "tools/call",
        json!({"name": "read", "arguments": {"path": "a.txt"}}),
    );
    assert_eq!(
        (text(&read).contains("the text"), &read["isError"]),
        (true, &json!(false)),
        "{read}"
    );
    let echo = client.call("tools/call", execute("echo hi"));
    assert_eq!(
        echo["structuredContent"],
        json!({"exit_status": 0, "content": "hi\n"})
    );
    let progress = client.until("progress", |one| one["method"] == "notifications/progress");
    let expected = json!({"progressToken": "p", "progress": 1, "message": "hi"});
    assert_eq!(progress["params"], expected);
    let denied = client.call("tools/call", execute("rm a.txt"));
    assert_eq!(
        (text(&denied), &denied["isError"]),
        ("Permission denied: execute", &json!(true))
    );
    let invalid = client.call(
        "tools/call",
        json!({"name": "read", "arguments": {"path": 1}}),
    );
    assert_eq!(text(&invalid), "value at `/path` is not a string");
    assert_eq!(client.call("ping", json!({})), json!({}));
    let unknown = client.send("no/method", json!({}));
    let answer = client.until("an answer", |one| one["id"] == unknown);
    assert_eq!(answer["error"]["code"], -32601);
    assert!(client.end());
    // The session that was made for it is found again.
    let again = start(&daemon, &[], &json!({}));
    let made = sessions(&mut daemon.client(), &daemon);
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(again.end());
}

#[test]
fn call_ends_with_the_program_that_asked_for_it_however_that_ends() {
    for signal in ["-TERM", "-INT", "-HUP", "-KILL"] {
        let daemon = daemon(&json!({"execute": "allow"}));
        let mut client = start(&daemon, &[], &json!({}));
        client.send("tools/call", execute("echo on; sleep 300; touch made"));
        client.until("its beginning", |one| {
            one["method"] == "notifications/progress"
        });
        client.signal(signal);
        let mark = daemon.path("home").to_str().unwrap().to_owned();
        until_true("nothing of the call is left", SOON, || {
            let runs = |pid: &u32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                String::from_utf8_lossy(&line).contains("sleep")
            };
            !harness::procfs::marked(&mark).iter().any(runs)
        });
        assert!(!daemon.work().join("made").exists());
    }
}

#[test]
fn half_a_character_in_a_request_is_no_reason_to_leave_it_unanswered() {
    let daemon = daemon(&json!({}));
    daemon.write("a\u{fffd}", "found");
    let mut client = start(&daemon, &[], &json!({}));
    let line = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"read","arguments":{"path":"a\ud83c"}}}"#;
    client.line(line);
    let answer = client.until("an answer", |one| one["id"] == "x");
    assert!(answer["result"].to_string().contains("found"), "{answer}");
}

#[test]
fn question_goes_to_the_clients_person_and_only_a_yes_is_one() {
    let daemon = daemon(&json!({}));
    let mut client = start(&daemon, &[], &json!({"elicitation": {}}));
    for (answer, ran) in [
        (
            json!({"action": "accept", "content": {"allow": true}}),
            true,
        ),
        (
            json!({"action": "accept", "content": {"allow": false}}),
            false,
        ),
        (json!({"action": "accept", "content": {}}), false),
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
    ] {
        let call = client.send("tools/call", execute("echo hi"));
        let asked = client.until("a question", |one| one["method"] == "elicitation/create");
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(
            message.contains("execute") && message.contains("echo hi"),
            "{message}"
        );
        client.write(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}));
        let result = client.result(call);
        assert_eq!(result["isError"], !ran, "{answer}: {result}");
        if !ran {
            assert_eq!(
                text(&result),
                "User denied permission: execute: not allowed"
            );
        }
    }
}

#[test]
fn question_waits_for_another_client_where_nobody_can_be_asked() {
    let daemon = daemon(&json!({}));
    let mut other = daemon.client();
    let session = other.session(&daemon.work());
    let mut client = start(&daemon, &["--session", &session], &json!({}));
    let call = client.send("tools/call", execute("echo hi"));
    let progress = client.until("progress", |one| one["method"] == "notifications/progress");
    let message = progress["params"]["message"].as_str().unwrap();
    assert!(
        message.contains(&format!(" attach {session}`")),
        "{message}"
    );
    let waiting = other.call("approval/list", json!({"session": session}));
    let approval = &waiting[0]["approval"];
    other.call(
        "approval/answer",
        json!({"approval": approval, "answer": "allow", "scope": "call"}),
    );
    assert_eq!(client.result(call)["isError"], false);
}

#[test]
fn what_was_allowed_beforehand_is_not_asked() {
    let daemon = daemon(&json!({}));
    for (args, ran) in [
        (&["--yes"][..], true),
        (&["--allow", "execute"], true),
        (&["--allow", "write"], false),
    ] {
        let mut client = start(&daemon, args, &json!({"elicitation": {}}));
        let call = client.send("tools/call", execute("echo hi"));
        match ran {
            true => assert_eq!(client.result(call)["isError"], false, "{args:?}"),
            false => drop(client.until("a question", |one| one["method"] == "elicitation/create")),
        }
        assert!(client.end());
    }
}

#[test]
fn cancel_stops_that_call_alone_and_the_end_of_the_client_stops_all_of_its() {
    let daemon = daemon(&json!({"execute": "allow"}));
    let mut client = start(&daemon, &[], &json!({}));
    let wait = |name: &str| execute(&format!("echo $$ > {name}; exec sleep 600"));
    let first = client.send("tools/call", wait("first"));
    client.send("tools/call", wait("second"));
    until_true("both run", SOON, || {
        !daemon.read("first").is_empty() && !daemon.read("second").is_empty()
    });
    let alive = |name: &str| harness::procfs::alive(daemon.read(name).trim().parse().unwrap());
    client.tell("notifications/cancelled", json!({"requestId": first}));
    until_true("the first is gone", SOON, || !alive("first"));
    assert!(alive("second"));
    assert_eq!(client.call("ping", json!({})), json!({}));
    assert!(
        client.kept().iter().all(|one| one["id"] != first),
        "what is cancelled has no answer"
    );
    assert!(client.end());
    until_true("the second is gone", SOON, || !alive("second"));
}

#[test]
fn tools_that_change_are_told() {
    let daemon = daemon(&json!({"execute": "allow"}));
    let mut client = start(&daemon, &[], &json!({}));
    client.call("tools/list", json!({}));
    let script = "mkdir -p ~/.agents/tools; printf '# @describe Say\\nmain() { echo x; }\\n' > ~/.agents/tools/say.sh";
    client.call("tools/call", execute(script));
    client.until("the news", |one| {
        one["method"] == "notifications/tools/list_changed"
    });
    let listed = client.call("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "say"), "{tools:?}");
}

#[test]
fn what_is_no_message_is_answered_and_the_next_one_counts() {
    let daemon = daemon(&json!({}));
    let mut client = start(&daemon, &[], &json!({}));
    client.write(&json!("text"));
    let answer = client.until("an answer", |one| one.get("error").is_some());
    assert_eq!(answer["error"]["code"], -32600);
    client.write(&json!([{"jsonrpc": "2.0", "id": "a", "method": "ping"}]));
    let answer = client.until("an answer", |one| one["id"] == "a");
    assert_eq!(answer["result"], json!({}));
    let nameless = client.send("tools/call", json!({}));
    let answer = client.until("an answer", |one| one["id"] == nameless);
    assert_eq!(answer["error"]["code"], -32602);
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let daemon = daemon(&json!({"execute": "allow"}));
    for _ in 0..5 {
        let mut client = start(&daemon, &[], &json!({}));
        let list = client.send("tools/list", json!({}));
        let call = client.send("tools/call", execute("sleep 0.3; echo late"));
        client.close();
        assert!(client.result(list)["tools"].is_array());
        let late = client.result(call);
        assert_eq!(late["structuredContent"]["content"], "late\n", "{late}");
        assert!(client.end());
    }
}

#[test]
fn a_client_is_told_why_there_is_nothing_to_serve() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("config").join("config.toml"), "nonsense = [").unwrap();
    let mut command = std::process::Command::new(&harness::binaries::binaries().client);
    sandbox.apply(&mut command);
    command.arg("mcp").stderr(std::process::Stdio::null());
    command.stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped());
    let mut client = McpClient::of(command);
    for method in ["initialize", "tools/list"] {
        let id = client.send(method, json!({}));
        let answer = client.until("an answer", |one| one["id"] == id);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("config.toml"), "{message}");
    }
    assert_eq!(client.exit().and_then(|status| status.code()), Some(3));
}
