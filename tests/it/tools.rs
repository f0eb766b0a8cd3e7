//! Tools as a session sees them: results, streaming, caps, environment, and that no process outlives its call.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::procfs::{alive, marked};
use harness::sandbox::Sandbox;
use harness::wait::until_true;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A number of seconds to sleep that no other test and no other run of this one uses: how its processes are found.
fn unique(number: u32) -> String {
    format!("7{}{number}", std::process::id())
}

/// Every way to run away that a shell knows: the background, a session of its own, deaf to SIGTERM, and both twice over.
fn runaways(mark: &str) -> String {
    format!(
        "sleep {mark} & setsid sleep {mark} & (trap '' TERM HUP INT; sleep {mark}; sleep {mark}) & \
         setsid sh -c \"trap '' TERM; (setsid sleep {mark} &); sleep {mark}\" & \
         nohup sleep {mark} >/dev/null 2>&1 & echo started; trap '' TERM; sleep {mark}"
    )
}

#[test]
fn a_cancelled_call_leaves_no_process_whatever_it_did() {
    let daemon = TestDaemon::allowing();
    let (mut client, session) = running(&daemon, &unique(101));
    let pids = marked(&unique(101));
    assert!(pids.len() >= 5, "{pids:?}");
    let start = Instant::now();
    client.call("turn/cancel", json!({"session": session}));
    let events = client.until_ended();
    let took = start.elapsed();
    assert_eq!(events.last()["status"], "cancelled");
    let left: Vec<u32> = pids.into_iter().filter(|pid| alive(*pid)).collect();
    assert!(
        left.is_empty() && marked(&unique(101)).is_empty(),
        "left: {left:?}"
    );
    // 200 ms is the promise; the rest is for a machine that does other things as well.
    assert!(took < Duration::from_millis(800), "{took:?}");
}

#[test]
fn no_process_outlives_a_daemon_that_was_killed() {
    let mut daemon = TestDaemon::allowing();
    let _turn = running(&daemon, &unique(102));
    assert!(marked(&unique(102)).len() >= 5);
    daemon.kill9();
    until_true("the children to be gone", Duration::from_secs(3), || {
        marked(&unique(102)).is_empty()
    });
}

#[test]
fn no_process_outlives_a_daemon_that_was_stopped() {
    let mut daemon = TestDaemon::allowing();
    let _turn = running(&daemon, &unique(103));
    daemon
        .client()
        .call("daemon/shutdown", json!({"grace_ms": 0}));
    daemon.wait_exit();
    // At once: whoever stops a daemon looks for what is left as soon as it is gone.
    assert_eq!(marked(&unique(103)), Vec::<u32>::new());
}

#[test]
fn what_a_finished_command_left_behind_is_gone_with_it() {
    let daemon = TestDaemon::allowing();
    let result = run(
        &daemon,
        "execute",
        json!({"command": format!("setsid sleep {} & echo done", unique(104))}),
    );
    assert_eq!(
        result,
        json!({"exit_status": 0, "content": "done\n", "ok": true})
    );
    assert_eq!(marked(&unique(104)), Vec::<u32>::new());
}

#[test]
fn a_timeout_is_an_error_and_says_so() {
    let daemon = TestDaemon::allowing();
    let result = run(
        &daemon,
        "execute",
        json!({"command": format!("echo before; sleep {}", unique(105)), "timeout": 1}),
    );
    assert_eq!(result["ok"], false, "{result}");
    assert!(
        result["error"].as_str().unwrap().contains("time"),
        "{result}"
    );
    assert_eq!(marked(&unique(105)), Vec::<u32>::new());
}

#[test]
fn a_non_zero_exit_is_a_result_and_a_signal_is_an_error() {
    let daemon = TestDaemon::allowing();
    let result = run(
        &daemon,
        "execute",
        json!({"command": "echo out; echo err >&2; exit 3"}),
    );
    assert_eq!(
        result,
        json!({"exit_status": 3, "content": "out\nerr\n", "ok": true})
    );
    let result = run(&daemon, "execute", json!({"command": "kill -SEGV $$"}));
    assert_eq!(result["ok"], false, "{result}");
}

#[test]
fn output_streams_while_the_command_runs() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "do execute {\"command\": \"echo early; while [ ! -e go ]; do sleep 0.02; done; echo late\"}\nsay done");
    let events = client.until_type("tool_output");
    assert_eq!(events.last()["text"], "early\n");
    daemon.write("go", "");
    let rest = client.until_ended();
    assert_eq!(rest.one("done")["result"]["content"], "early\nlate\n");
}

#[test]
fn long_output_is_cut_in_the_middle_and_kept_whole_in_a_file_that_can_be_read() {
    let daemon = TestDaemon::allowing();
    let command = "i=0; while [ $i -lt 20000 ]; do echo line-$i; i=$((i+1)); done";
    let result = run(&daemon, "execute", json!({"command": command}));
    let content = result["content"].as_str().unwrap();
    assert!(content.len() < 40 * 1024, "{}", content.len());
    assert!(
        content.starts_with("line-0\n") && content.trim_end().ends_with("line-19999"),
        "head and tail"
    );
    let path =
        content.split(|letter: char| letter.is_whitespace() || "()[],;\"'`".contains(letter));
    let path = path
        .filter(|word| word.starts_with('/'))
        .map(|word| word.trim_end_matches(['.', ':']))
        .find(|path| std::path::Path::new(path).is_file());
    let path = path.unwrap_or_else(|| {
        panic!(
            "no file is named in:\n{}",
            &content[content.len() / 2 - 300..content.len() / 2 + 300]
        )
    });
    assert!(
        std::fs::read_to_string(path)
            .unwrap()
            .contains("\nline-10000\n")
    );
    let read = run(
        &daemon,
        "read",
        json!({"path": path, "offset": 10_000, "limit": 3}),
    );
    assert!(
        read["content"].as_str().unwrap().contains("line-10000"),
        "{read}"
    );
}

#[test]
fn bytes_that_are_no_text_do_not_break_anything() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(&session, "do execute {\"command\": \"printf '\\\\377\\\\000\\\\303'; printf '\\\\303'; sleep 0.1; printf '\\\\274 end'\"}\nsay done");
    let result = &events.one("done")["result"];
    assert_eq!(result["ok"], true, "{result}");
    assert!(
        result["content"].as_str().unwrap().ends_with("ü end"),
        "{result}"
    );
    std::fs::write(daemon.work().join("blob"), [0, 159, 146, 150, 0, 1]).unwrap();
    let result = run(&daemon, "read", json!({"path": "blob"}));
    assert!(result["ok"].is_boolean(), "{result}");
}

#[test]
fn tools_see_the_clients_environment_and_no_secret() {
    let mut sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    sandbox.set("OPENAI_API_KEY", "secret-one");
    sandbox.set("ANTHROPIC_API_KEY", "secret-two");
    sandbox.set("DWELL_TOKEN", "secret-three");
    sandbox.set("OF_THE_DAEMON", "leaked");
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let path = std::env::var("PATH").unwrap();
    let env = json!({"PATH": path, "LANG": "de_DE.UTF-8", "HOME": daemon.path("home"), "OPENAI_API_KEY": "secret-four", "DWELL_TOKEN": "secret-five"});
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "script", "env": env}));
    let result = client.call("tool/run", json!({"session": session, "name": "execute", "arguments": {"command": "env; cat /proc/$PPID/environ | tr '\\0' '\\n'"}}));
    let content = result["content"].as_str().unwrap();
    assert!(content.contains("LANG=de_DE.UTF-8"), "{content}");
    for word in ["secret-", "OF_THE_DAEMON"] {
        assert!(!content.contains(word), "{word} in:\n{content}");
    }
    let shown = client.call("session/get", json!({"session": session}))["env"].clone();
    assert_eq!(shown["LANG"], "de_DE.UTF-8");
    assert!(!shown.to_string().contains("secret-"), "{shown}");
}

#[test]
fn a_daemon_started_with_almost_no_environment_works_for_a_client_that_has_one() {
    let mut sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    let bin = sandbox.path("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("my-own-tool"), "#!/bin/sh\necho found\n").unwrap();
    harness::sandbox::set_mode(&bin.join("my-own-tool"), 0o755);
    sandbox.set("PATH", "/usr/bin:/bin");
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let env = json!({"PATH": format!("{}:/usr/bin:/bin", bin.display())});
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "script", "env": env}));
    let result = client.call(
        "tool/run",
        json!({"session": session, "name": "execute", "arguments": {"command": "my-own-tool"}}),
    );
    assert_eq!(result["content"], "found\n", "{result}");
    let nowhere = json!({"PATH": bin});
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "script", "env": nowhere}));
    let missing = client.call(
        "tool/run",
        json!({"session": session, "name": "git", "arguments": {"command": "status"}}),
    );
    let error = missing["error"].as_str().unwrap_or_default();
    assert!(
        error.contains("git") && error.contains(bin.to_str().unwrap()),
        "what is missing is named with the PATH that was searched: {missing}"
    );
}

#[test]
fn an_unknown_tool_names_those_there_are() {
    let daemon = TestDaemon::allowing();
    let result = run(&daemon, "raed", json!({}));
    let error = result["error"].as_str().unwrap();
    assert!(
        error.starts_with("unknown tool: \"raed\". Available: "),
        "{error}"
    );
    assert_eq!(result["ok"], false);
}

#[test]
fn arguments_that_do_not_fit_reach_no_tool() {
    let daemon = TestDaemon::allowing();
    let result = run(&daemon, "read", json!({"path": 7}));
    assert_eq!(
        result["error"], "value at `/path` is not a string",
        "{result}"
    );
    let result = run(&daemon, "read", json!({}));
    assert_eq!(
        result["error"], "object at root is missing required properties: path",
        "{result}"
    );
    let result = run(&daemon, "read", json!("{\"path\": \"note\"}"));
    assert!(
        result["error"].as_str().unwrap().contains("note"),
        "a string that holds an object is that object: {result}"
    );
}

#[test]
fn files_are_written_edited_found_and_listed() {
    let daemon = TestDaemon::allowing();
    let result = run(
        &daemon,
        "write",
        json!({"path": "a/b/c.txt", "content": "one two\n"}),
    );
    assert_eq!(
        (&result["bytes"], &result["ok"]),
        (&json!(8), &json!(true)),
        "{result}"
    );
    let result = run(
        &daemon,
        "edit",
        json!({"path": "a/b/c.txt", "old": "two", "new": "three"}),
    );
    assert_eq!(result["ok"], true, "{result}");
    assert_eq!(daemon.read("a/b/c.txt"), "one three\n");
    let result = run(
        &daemon,
        "edit",
        json!({"path": "a/b/c.txt", "old": "e", "new": "x"}),
    );
    assert!(
        result["error"].as_str().unwrap().contains('3'),
        "it says how many matches: {result}"
    );
    assert_eq!(daemon.read("a/b/c.txt"), "one three\n");
    assert!(
        run(&daemon, "grep", json!({"pattern": "thr.e"}))
            .to_string()
            .contains("a/b/c.txt")
    );
    assert!(
        run(&daemon, "glob", json!({"pattern": "**/*.txt"}))
            .to_string()
            .contains("a/b/c.txt")
    );
    assert!(
        run(&daemon, "list", json!({"path": "a"}))
            .to_string()
            .contains('b')
    );
}

#[test]
fn the_list_of_tools_shows_what_a_model_sees() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let listed = client.call("tool/list", json!({"session": session}));
    let tools = listed["tools"].as_array().unwrap();
    let named = |name: &str| {
        tools
            .iter()
            .find(|tool| tool["function"]["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
    };
    for name in [
        "execute", "read", "write", "edit", "list", "glob", "grep", "git", "fetch", "todo",
    ] {
        assert_eq!(named(name)["function"]["parameters"]["type"], "object");
    }
    assert_eq!(named("execute")["aliases"], json!(["bash", "exec", "sh"]));
    assert_eq!(
        (&named("execute")["approval"], &named("read")["approval"]),
        (&json!("ask"), &json!("allow"))
    );
    assert_eq!(named("read")["source"], "builtin");
}

fn run(daemon: &TestDaemon, name: &str, arguments: Value) -> Value {
    let mut client = daemon.client();
    let env = json!({"PATH": std::env::var("PATH").unwrap(), "HOME": daemon.path("home")});
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "script", "env": env}));
    client.call(
        "tool/run",
        json!({"session": session, "name": name, "arguments": arguments}),
    )
}

/// A turn whose tool has started every kind of runaway.
fn running(daemon: &TestDaemon, mark: &str) -> (TestClient, String) {
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(
        &session,
        &format!(
            "do execute {}\nsay done",
            json!({"command": runaways(mark)})
        ),
    );
    client.until_type("tool_output");
    until_true("the runaways to run", Duration::from_secs(10), || {
        marked(mark).len() >= 6
    });
    (client, session)
}

/// The approval of the next question, answered with yes.
fn allow(client: &mut TestClient) {
    let asked = client.until_type("approval_asked");
    let approval = asked.last()["approval"].clone();
    client.answer(&approval, "allow").unwrap();
}

fn buffer_text() -> Value {
    json!([{"name": "buffer_text", "description": "text", "params": {"line": {"type": "integer"}},
            "required": ["line"], "aliases": ["buffer"]}])
}

#[test]
fn a_clients_tool_is_called_by_the_model_and_run_by_the_client() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.call(
        "tool/provide",
        json!({"session": session, "tools": buffer_text()}),
    );
    let list = client.call("tool/list", json!({"session": session}));
    let shown = list["tools"].as_array().unwrap().iter();
    let shown = shown
        .clone()
        .find(|tool| tool["function"]["name"] == "buffer_text");
    assert_eq!(shown.unwrap()["source"], "client");

    client.attach(&session, None);
    client.start(&session, "do buffer {\"line\": 7}\nsay read");
    allow(&mut client);
    let asked = client.take("the call", |line| line["method"] == "tool_asked");
    let asked = &asked["params"];
    assert_eq!(
        (&asked["name"], &asked["arguments"]),
        (&json!("buffer_text"), &json!({"line": 7}))
    );
    assert_eq!(asked["session"], session.as_str());
    let mut other = daemon.client();
    let answer = json!({"call": asked["call"], "result": {"content": "text"}});
    assert_eq!(
        other.fault("tool/answer", answer.clone()).code,
        -32002,
        "it was not asked"
    );
    client.call("tool/answer", answer.clone());
    let events = client.until_ended();
    assert_eq!(
        events.one("done")["result"],
        json!({"content": "text", "ok": true})
    );
    assert_eq!(client.fault("tool/answer", answer).code, -32002, "once");

    // What does not fit never reaches the client.
    let wrong = client.call(
        "tool/run",
        json!({"session": session, "name": "buffer_text"}),
    );
    assert_eq!(wrong["ok"], false);
}

#[test]
fn a_clients_tools_go_with_its_connection() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let mut offering = daemon.client();
    offering.call(
        "tool/provide",
        json!({"session": session, "tools": buffer_text()}),
    );
    client.attach(&session, None);
    client.start(&session, "do buffer_text {\"line\": 7}\nsay on");
    allow(&mut client);
    offering.take("the call", |line| line["method"] == "tool_asked");
    drop(offering);
    let events = client.until_ended();
    let result = &events.one("done")["result"];
    assert!(
        result["error"].as_str().unwrap().contains("has gone"),
        "{result}"
    );
    assert_eq!(events.last()["status"], "completed");
    let list = client.call("tool/list", json!({"session": session}));
    assert!(!list.to_string().contains("buffer_text"), "{list}");
    client.start(&session, "do buffer_text {\"line\": 7}\nsay on");
    let none = client.until_ended();
    let error = none.one("done")["result"]["error"].clone();
    assert!(
        error.as_str().unwrap().starts_with("unknown tool"),
        "{error}"
    );
}

#[test]
fn a_cancel_ends_a_call_that_a_client_runs() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.call(
        "tool/provide",
        json!({"session": session, "tools": buffer_text()}),
    );
    client.attach(&session, None);
    client.start(&session, "do buffer_text {\"line\": 7}\nsay on");
    allow(&mut client);
    client.take("the call", |line| line["method"] == "tool_asked");
    client.call("turn/cancel", json!({"session": session}));
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    // Nothing offered any more: the place is taken by what is offered last.
    client.call("tool/provide", json!({"session": session, "tools": []}));
    let list = client.call("tool/list", json!({"session": session}));
    assert!(!list.to_string().contains("buffer_text"), "{list}");
}
