//! Scripts that are edited while people work with them.

use super::{TIME, list, put, run, with_tools};
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

const BROKEN: &str = "# @describe T.\n# @nonsense\n";

fn attached(daemon: &TestDaemon, client: &mut TestClient) -> String {
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "script"}));
    client.attach(&session, None);
    session
}

fn warning(client: &mut TestClient) -> String {
    let notice = client.until_type("notice").last().clone();
    assert_eq!(notice["level"], "warning");
    notice["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_broken_edit_is_told_when_it_is_made_and_what_was_good_runs_on() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let mut client = daemon.client();
    let session = attached(&daemon, &mut client);
    list(&mut client, &session);
    put(&daemon.path("home"), "tools/time.sh", BROKEN);
    let told = warning(&mut client);
    assert!(told.contains("time.sh: line 2"), "{told}");
    let result = run(&mut client, &session, "time", &json!({}));
    assert_eq!(result["output"], "one");
    put(
        &daemon.path("home"),
        "tools/time.sh",
        &TIME.replace("one", "two"),
    );
    let result = run(&mut client, &session, "time", &json!({}));
    assert_eq!(result["output"], "two");
    // Said once: the next that is said is about something else.
    put(&daemon.path("home"), "tools/other.py", "def run(:\n");
    let told = warning(&mut client);
    assert!(told.contains("other.py: line 1"), "{told}");
    assert_eq!(list(&mut client, &session)["problems"], json!([told]));
}

#[test]
fn an_agents_own_broken_edit_is_told_too() {
    let daemon = with_tools(&[]);
    let home = daemon.path("home");
    put(&home, "agents/a/index.yaml", "instructions: You are a.\n");
    put(
        &home,
        "agents/a/tools.py",
        "def one():\n    \"\"\"One.\"\"\"\n    return 1\n",
    );
    let mut client = daemon.client();
    let params = json!({"cwd": daemon.work(), "provider": "script", "agent": "a"});
    let session = client.session_with(params);
    client.attach(&session, None);
    for _ in 0..2 {
        assert_eq!(run(&mut client, &session, "one", &json!({}))["output"], 1);
    }
    put(&home, "agents/a/tools.py", "def one(:\n");
    let told = warning(&mut client);
    assert!(told.contains("tools.py: line 1"), "{told}");
    assert_eq!(run(&mut client, &session, "one", &json!({}))["output"], 1);
}

#[test]
fn an_agent_whose_index_breaks_goes_on_as_it_was_and_never_has_more_tools() {
    let daemon = with_tools(&[("time.sh", TIME), ("other.sh", TIME)]);
    let home = daemon.path("home");
    put(&home, "agents/a/index.yaml", "instructions: You are a.\n");
    put(&home, "agents/a/tools.txt", "time.sh\n");
    let mut client = daemon.client();
    let params = json!({"cwd": daemon.work(), "provider": "script", "agent": "a"});
    let session = client.session_with(params);
    client.attach(&session, None);
    let has_time_alone = |client: &mut TestClient| {
        let listed = list(client, &session)["tools"].to_string();
        assert!(listed.contains("\"time\""), "{listed}");
        assert!(!listed.contains("\"other\""), "{listed}");
    };
    for _ in 0..2 {
        run(&mut client, &session, "time", &json!({}));
        has_time_alone(&mut client);
    }
    put(&home, "agents/a/index.yaml", "instructions: [\n");
    let told = warning(&mut client);
    assert!(
        told.contains("index.yaml") && told.contains("a goes on as it was"),
        "{told}"
    );
    has_time_alone(&mut client);
    assert_eq!(
        run(&mut client, &session, "time", &json!({}))["output"],
        "one"
    );
    // Gone, it has none of the shared ones.
    fs::remove_file(home.join(".agents/agents/a/index.yaml")).unwrap();
    let listed = list(&mut client, &session)["tools"].to_string();
    assert!(!listed.contains("\"other\""), "{listed}");
}

#[test]
fn after_a_restart_a_broken_index_is_told_and_nothing_is_lost() {
    let mut daemon = with_tools(&[("time.sh", TIME), ("other.sh", TIME)]);
    let home = daemon.path("home");
    let index = "instructions: You are {{mood}}.\nvariables:\n- name: mood\n";
    put(&home, "agents/a/index.yaml", index);
    put(
        &home,
        "agents/a/tools.py",
        "import os\ndef mood():\n    \"\"\"Mood.\"\"\"\n    return os.environ['LLM_AGENT_VAR_MOOD']\n",
    );
    put(&home, "agents/a/tools.txt", "time.sh\n");
    let mut client = daemon.client();
    let params =
        json!({"cwd": daemon.work(), "provider": "script", "agent": "a", "vars": {"mood": "calm"}});
    let session = client.session_with(params);
    assert_eq!(
        run(&mut client, &session, "time", &json!({}))["output"],
        "one"
    );
    put(&home, "agents/a/index.yaml", "instructions: [\n");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.attach(&session, None);
    let listed = list(&mut client, &session);
    assert!(
        listed["problems"].to_string().contains("index.yaml"),
        "{listed}"
    );
    for script in ["\"time\"", "\"other\""] {
        assert!(!listed["tools"].to_string().contains(script), "{listed}");
    }
    client.start(&session, "say done");
    let told = warning(&mut client);
    assert!(
        told.contains("agent a") && told.contains("index.yaml"),
        "{told}"
    );
    let ended = client.until_type("turn_ended").last().clone();
    assert_eq!(ended["reply"], "done");
    // Mended, it is who it was, with the variables that were chosen.
    put(&home, "agents/a/index.yaml", index);
    assert_eq!(
        run(&mut client, &session, "time", &json!({}))["output"],
        "one"
    );
    assert_eq!(
        run(&mut client, &session, "mood", &json!({}))["output"],
        "calm"
    );
}

#[test]
fn instructions_that_cannot_be_had_are_told() {
    let daemon = with_tools(&[]);
    let home = daemon.path("home");
    put(&home, "agents/a/index.yaml", "dynamic_instructions: true\n");
    put(
        &home,
        "agents/a/tools.sh",
        "# @cmd Say\n_instructions() { echo 'no idea' >&2; exit 3; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    );
    let mut client = daemon.client();
    let params = json!({"cwd": daemon.work(), "provider": "script", "agent": "a"});
    let session = client.session_with(params);
    client.attach(&session, None);
    client.start(&session, "say done");
    let told = warning(&mut client);
    assert!(
        told.contains("agent a") && told.contains("no idea"),
        "{told}"
    );
}

#[test]
fn a_trusted_directory_that_is_edited_says_that_it_counts_no_more() {
    let daemon = with_tools(&[]);
    put(&daemon.work(), "tools/own.sh", TIME);
    let mut client = daemon.client();
    let session = attached(&daemon, &mut client);
    client.call("trust/answer", json!({"cwd": daemon.work(), "allow": true}));
    assert_eq!(
        run(&mut client, &session, "own", &json!({}))["output"],
        "one"
    );
    put(&daemon.work(), "tools/own.sh", &TIME.replace("one", "two"));
    let told = warning(&mut client);
    assert!(told.contains("dwell trust yes"), "{told}");
}

/// A turn that waits before its call of `time`.
const WAITING: &str =
    "do execute {\"command\": \"while [ ! -e go ]; do sleep 0.02; done\"}\ndo time {}\nsay done";

#[test]
fn a_running_turn_keeps_what_it_had_and_the_next_has_what_is_new() {
    let second = "# @describe Time.\n# @option --zone! Z\nmain() { echo two; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n";
    for edit in [second, BROKEN] {
        let daemon = with_tools(&[("time.sh", TIME)]);
        let mut client = daemon.client();
        let session = attached(&daemon, &mut client);
        client.start(&session, WAITING);
        client.until_type("call_started");
        put(&daemon.path("home"), "tools/time.sh", edit);
        // Whoever asks for tools meanwhile sees the new ones.
        let listed = list(&mut client, &session).to_string();
        assert_eq!(listed.contains("zone"), edit == second);
        daemon.write("go", "");
        let done = client.until_ended();
        let done = done.of("done");
        assert_eq!(done[1]["result"]["output"], "one", "{done:?}");
        client.start(&session, "do time {\"zone\": \"x\"}\nsay done");
        let done = client.until_ended();
        let result = &done.of("done")[0]["result"];
        match edit == second {
            true => assert_eq!(result["output"], "two", "{result}"),
            false => assert_eq!(result["ok"], false, "{result}"),
        }
    }
}

#[test]
fn a_tool_that_is_removed_in_mid_turn_runs_on_until_its_end() {
    let daemon = with_tools(&[("time.sh", TIME)]);
    let mut client = daemon.client();
    let session = attached(&daemon, &mut client);
    client.start(&session, WAITING);
    client.until_type("call_started");
    fs::remove_file(daemon.path("home").join(".agents/tools/time.sh")).unwrap();
    daemon.write("go", "");
    let done = client.until_ended();
    let result = done.of("done")[1]["result"].clone();
    assert_eq!(result["output"], "one", "{result}");
}

fn inotifies(daemon: &TestDaemon) -> usize {
    let folder = fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    let targets = folder
        .flatten()
        .filter_map(|fd| fs::read_link(fd.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().contains("inotify"))
        .count()
}

fn threads(daemon: &TestDaemon) -> Vec<String> {
    let folder = fs::read_dir(format!("/proc/{}/task", daemon.pid())).unwrap();
    let names = folder
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("comm")));
    names
        .flatten()
        .filter(|name| name.contains("notify"))
        .collect()
}

#[test]
fn nothing_is_watched_but_for_sessions_with_scripts_while_they_are_awake() {
    let sandbox = Sandbox::new();
    let config = "[session]\nunload_after_ms = 100\n";
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    let before = inotifies(&daemon);
    let mut client = daemon.client();
    let session = attached(&daemon, &mut client);
    list(&mut client, &session);
    assert_eq!((inotifies(&daemon), threads(&daemon)), (before, vec![]));
    put(&daemon.path("home"), "tools/time.sh", TIME);
    // Who only asks what there is keeps nothing going.
    client.call("toolbox/list", json!({"cwd": "/"}));
    assert_eq!(inotifies(&daemon), before);
    list(&mut client, &session);
    assert_eq!(inotifies(&daemon), before + 1);
    drop(client);
    let until = Instant::now() + Duration::from_secs(20);
    while (inotifies(&daemon), threads(&daemon).len()) != (before, 0) {
        assert!(Instant::now() < until, "{:?}", threads(&daemon));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_edit_counts_where_nothing_can_be_watched() {
    // Links lead to a folder that events do not tell of.
    let daemon = with_tools(&[]);
    let far = daemon.path("far.sh");
    fs::write(&far, TIME).unwrap();
    let tools = daemon.path("home").join(".agents/tools");
    fs::create_dir_all(&tools).unwrap();
    std::os::unix::fs::symlink(&far, tools.join("time.sh")).unwrap();
    let mut client = daemon.client();
    let session = attached(&daemon, &mut client);
    let output = |client: &mut TestClient| {
        client.start(&session, "do time {}\nsay done");
        client.until_ended().of("done")[0]["result"]["output"].clone()
    };
    assert_eq!(output(&mut client), "one");
    fs::write(&far, TIME.replace("one", "two")).unwrap();
    assert_eq!(output(&mut client), Value::from("two"));
}

#[test]
fn scripts_that_are_read_anew_take_no_other_kind_of_tool_along() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    put(&home, "tools/time.sh", TIME);
    let script = harness::binaries::root().join("tests/fixtures/mcp/server.py");
    let server = json!({"command": "python3", "args": [script, "", home], "env": {"NOTES": sandbox.path("notes")}});
    put(
        &home,
        "mcp.json",
        &json!({"mcpServers": {"fake": server}}).to_string(),
    );
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let both = |client: &mut TestClient| {
        let listed = list(client, &session).to_string();
        assert!(
            listed.contains("fake__echo") && listed.contains("\"time\""),
            "{listed}"
        );
    };
    both(&mut client);
    put(&home, "tools/time.sh", BROKEN);
    both(&mut client);
    put(&home, "tools/other.sh", TIME);
    both(&mut client);
}
