//! Plugins as people write them: what they add, who may stop what, and what becomes of one that misbehaves.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::procfs;
use harness::sandbox::{Sandbox, set_mode};
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const WC_PYTHON: &str = include_str!("../fixtures/plugins/wc.py");
const WC_JAVASCRIPT: &str = include_str!("../fixtures/plugins/wc.mjs");
const ECHO_PYTHON: &str = include_str!("../fixtures/plugins/echo.py");
const ECHO_JAVASCRIPT: &str = include_str!("../fixtures/plugins/echo.mjs");

/// Puts a plugin of the user's there.
fn put(sandbox: &Sandbox, name: &str, text: &str) -> PathBuf {
    let folder = sandbox.path("home").join(".agents/plugins");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// A plugin that runs this for each request; `$id`, `$method` and `$line` are set.
fn bash(setup: &str, answer: &str) -> String {
    format!(
        r#"while IFS= read -r line; do
  id=$(jq -r '.id // empty' <<<"$line"); method=$(jq -r '.method // empty' <<<"$line")
  reply() {{ printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$1"; }}
  case $method in
    plugin/setup) reply '{setup}' ;;
    plugin/cancel) ;;
    *) {answer} ;;
  esac
done
"#
    )
}

const GUARD: &str = r#"{"hooks": [{"id": "guard", "point": "before", "tool": "read"}]}"#;

fn daemon_with(plugins: &[(&str, &str)], config: &str) -> TestDaemon {
    let sandbox = Sandbox::new();
    for (name, text) in plugins {
        put(&sandbox, name, text);
    }
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    sandbox.permissions(&json!({"wc": "allow", "execute": "allow", "who": "allow"}));
    TestDaemon::start_in(sandbox)
}

fn session(daemon: &TestDaemon) -> (TestClient, String) {
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    (client, session)
}

fn run(client: &mut TestClient, session: &str, name: &str, arguments: &Value) -> Value {
    let params = json!({"session": session, "name": name, "arguments": arguments});
    client.call("tool/run", params)
}

fn read(client: &mut TestClient, session: &str) -> Value {
    run(client, session, "read", &json!({"path": "a.txt"}))
}

fn command(client: &mut TestClient, session: &str, line: &str) -> Value {
    client.call("command/run", json!({"session": session, "line": line}))
}

fn words(client: &mut TestClient, session: &str, line: &str) -> Vec<String> {
    let params = json!({"session": session, "line": line});
    let found = client.call("command/complete", params);
    let candidates = found["candidates"].as_array().unwrap();
    let texts = candidates.iter().map(|one| one["text"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

/// Processes of the sandbox whose command line has this in it.
fn processes(sandbox: &Sandbox, name: &str) -> Vec<u32> {
    let mark = sandbox.path("home").to_str().unwrap().to_owned();
    let named = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(name)
    };
    procfs::marked(&mark).into_iter().filter(named).collect()
}

#[test]
fn example_is_short_and_does_all_that_it_should_in_each_language() {
    for (name, text) in [("wc.py", WC_PYTHON), ("wc.mjs", WC_JAVASCRIPT)] {
        assert!(text.lines().count() <= 25, "{name}");
        let daemon = daemon_with(&[(name, text)], "");
        daemon.write("a.txt", "one two\nthree\n");
        let (mut client, session) = session(&daemon);
        let expected = json!({"lines": 2, "words": 3, "bytes": 14, "ok": true});
        let path = json!({"path": "a.txt"});
        assert_eq!(run(&mut client, &session, "wc", &path), expected, "{name}");
        assert_eq!(run(&mut client, &session, "count", &path), expected);
        let missing = run(&mut client, &session, "wc", &json!({"path": "nope"}));
        assert_eq!(missing, json!({"error": "not found: nope", "ok": false}));
        let invalid = run(&mut client, &session, "wc", &json!({"path": 1}));
        assert_eq!(
            invalid,
            json!({"error": "value at `/path` is not a string", "ok": false})
        );

        let rm = json!({"command": "rm a.txt"});
        let refused = run(&mut client, &session, "execute", &rm);
        let expected =
            json!({"error": "refusing to run rm", "name": "execute", "args": rm, "ok": false});
        assert_eq!(refused, expected);
        assert_eq!(daemon.read("a.txt").len(), 14);
        let fine = run(
            &mut client,
            &session,
            "execute",
            &json!({"command": "true"}),
        );
        assert_eq!(fine["ok"], true);

        assert_eq!(words(&mut client, &session, "/w"), ["/wc"]);
        assert_eq!(words(&mut client, &session, "/wc a"), ["a.txt"]);
        assert_eq!(words(&mut client, &session, "/wc b"), Vec::<String>::new());
        client.attach(&session, None);
        let ran = command(&mut client, &session, "/wc a.txt");
        assert_eq!(
            (&ran["ran"], ran.get("error")),
            (&json!(true), None),
            "{ran}"
        );
        let events = client.until_type("command_output");
        let said = events.last()["text"].as_str().unwrap();
        assert!(said.contains("14"), "{said}");
        let tools = client.call("tool/list", json!({"session": session}));
        let wc = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["function"]["name"] == "wc");
        assert_eq!(wc.unwrap()["source"], "plugin wc");
    }
}

#[test]
fn provider_of_a_plugin_answers_by_name_and_replaces_a_built_in_one_in_its_directory() {
    for (name, text) in [("echo.py", ECHO_PYTHON), ("echo.mjs", ECHO_JAVASCRIPT)] {
        let daemon = daemon_with(&[(name, text)], "");
        let ask = ["ask", "-p", "echo", "--model", "parrot", "hello there"];
        assert_eq!(Dwell::new(&daemon).args(ask).ok(), "parrot: hello there\n");
        let other = text.replace("\"echo\"", "\"stub\"");
        assert_ne!(other, text);
        put(&daemon, name, &other);
        let ask = ["ask", "-p", "stub", "again"];
        assert_eq!(Dwell::new(&daemon).args(ask).ok(), "again\n", "{name}");
        let unknown = Dwell::new(&daemon).args(["ask", "-p", "nope", "x"]).run();
        assert!(unknown.stderr.contains("unknown provider: \"nope\""));
    }
}

#[test]
fn providers_of_a_directorys_plugins_are_listed_there_and_nowhere_else() {
    let daemon = TestDaemon::start();
    let other = daemon.work().join("other");
    let own = other.join(".agents/plugins");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("echo.py"), ECHO_PYTHON).unwrap();
    let mut client = daemon.client();
    let answer = json!({"cwd": other, "allow": true});
    assert_eq!(client.call("trust/answer", answer)["state"], "trusted");
    let session = client.session(&other);
    let names = |params: Value| -> Vec<String> {
        let listed = daemon.client().call("provider/list", params);
        let all = listed.as_array().unwrap().iter();
        all.map(|one| one["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let has = |params: Value| names(params).iter().any(|name| name == "echo");
    assert!(has(json!({"cwd": other})));
    assert!(!has(json!({"cwd": daemon.work()})) && !has(json!({})));
    client.call("session/delete", json!({"session": session}));
    assert!(has(json!({"cwd": other})), "nobody has to work there");
    let shown = Dwell::new(&daemon).args(["providers"]).ok();
    assert!(
        !shown.contains("echo") && shown.contains("script"),
        "{shown}"
    );
}

#[test]
fn hooks_run_global_first_then_the_tools_own_across_plugins_in_the_order_of_files() {
    let plugin = |name: &str| {
        format!(
            "import dwell\n@dwell.setup\ndef all(session):\n  \
             session.toolbox.before('read')(lambda args: note('before read'))\n  \
             session.toolbox.before()(lambda args, tool_name: note('before ' + tool_name + '!'))\n  \
             session.toolbox.after('read')(lambda args, result: note('after read ' + str('ok' in result)))\n  \
             session.toolbox.after()(lambda args, result: note('after all'))\n\
             def note(text): open('log', 'a').write('{name} ' + text + '\\n')\n"
        )
    };
    let daemon = daemon_with(&[("b.py", &plugin("b")), ("a.py", &plugin("a"))], "");
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(read(&mut client, &session)["ok"], true);
    let expected = "a before read!\nb before read!\na before read\nb before read\n\
                    a after all\nb after all\na after read False\nb after read False\n";
    assert_eq!(daemon.read("log"), expected);
}

#[test]
fn hook_that_is_killed_in_its_middle_refuses_by_name_and_the_next_call_has_a_new_process() {
    let answer =
        r#"echo $$ > pid; if [ -e once ]; then reply null; else touch once; sleep 60 & wait; fi"#;
    let daemon = daemon_with(&[("guard.sh", &bash(GUARD, answer))], "");
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let params = json!({"session": session, "name": "read", "arguments": {"path": "a.txt"}});
    let call = client.send("tool/run", params);
    until_true("the hook runs", SOON, || {
        daemon.read("once").is_empty() && daemon.work().join("once").exists()
    });
    let pid = daemon.read("pid").trim().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let refused = client.response(call).unwrap();
    assert_eq!(refused["error"], "the plugin guard was killed by signal 9");
    assert_eq!(refused["ok"], false);
    assert_eq!(read(&mut client, &session)["ok"], true);
}

#[test]
fn hook_that_misses_its_deadline_refuses_and_its_late_answer_harms_nobody() {
    let answer = r#"if [ -e once ]; then reply null; else touch once; while [ ! -e go ]; do sleep 0.02; done; reply null; fi"#;
    let daemon = daemon_with(
        &[("slow.sh", &bash(GUARD, answer))],
        "[plugin]\nhook_ms = 300\n",
    );
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let refused = read(&mut client, &session);
    let error = refused["error"].as_str().unwrap();
    assert!(
        error.starts_with("the plugin slow did not answer within 0.3 s"),
        "{error}"
    );
    daemon.write("go", "");
    until_true("the plugin answers again", SOON, || {
        read(&mut client, &session)["ok"] == true
    });
    assert_eq!(client.turn(&session, "say on").said(), "on");
}

#[test]
fn plugin_that_prints_garbage_is_told_and_leaves_the_others_and_the_session_alone() {
    let tool = r#"{"tools": [{"name": "who", "description": "Who"}]}"#;
    let daemon = daemon_with(
        &[
            ("bad.sh", "read -r _; echo this is no JSON; sleep 60\n"),
            ("broken.py", "import nothing_of_that_name\n"),
            ("flood.sh", "yes | tr -d '\\n'\n"),
            ("talks.sh", &bash(tool, "echo oops")),
            ("wc.py", WC_PYTHON),
        ],
        "",
    );
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(
        run(&mut client, &session, "wc", &json!({"path": "a.txt"}))["ok"],
        true
    );
    let talks = run(&mut client, &session, "who", &json!({}));
    let why = "the plugin talks wrote to its stdout what is no JSON-RPC message";
    assert_eq!(talks["error"], why);
    let tools = client.call("tool/list", json!({"session": session}));
    let problems = tools["problems"].to_string();
    for part in [
        "the plugin bad wrote to its stdout what is no JSON-RPC message",
        "the plugin broken ended with exit status 1",
        "nothing_of_that_name",
        "the plugin flood wrote a line that is too long",
        why,
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    assert_eq!(client.turn(&session, "say on").said(), "on");
}

#[test]
fn all_sessions_of_a_directory_share_one_process() {
    let daemon = daemon_with(&[("wc.py", WC_PYTHON)], "");
    let mut client = daemon.client();
    let sessions: Vec<String> = (0..50).map(|_| client.session(&daemon.work())).collect();
    daemon.write("a.txt", "x");
    for session in &sessions {
        assert_eq!(
            run(&mut client, session, "wc", &json!({"path": "a.txt"}))["ok"],
            true
        );
    }
    assert_eq!(processes(&daemon, "wc.py").len(), 1);
}

#[test]
fn plugins_of_a_directory_count_only_when_it_is_trusted_and_not_after_they_changed() {
    let daemon = daemon_with(&[], "");
    let path = daemon.write(".agents/plugins/wc.py", WC_PYTHON);
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let ran = |client: &mut TestClient| {
        run(client, &session, "wc", &json!({"path": "a.txt"}))["ok"] == true
    };
    assert!(!ran(&mut client));
    assert!(processes(&daemon, "wc.py").is_empty());
    let yes = json!({"cwd": daemon.work(), "allow": true});
    client.call("trust/answer", yes.clone());
    assert!(ran(&mut client));
    fs::write(&path, format!("{WC_PYTHON}\n# changed\n")).unwrap();
    assert!(!ran(&mut client));
    until_true("the process is gone", SOON, || {
        processes(&daemon, "wc.py").is_empty()
    });
    client.call("trust/answer", yes);
    assert!(ran(&mut client));
}

#[test]
fn reload_reads_the_files_anew_and_a_broken_one_keeps_the_rest() {
    let tool = |name: &str| {
        format!(r#"{{"tools": [{{"name": "{name}"}}], "providers": [{{"name": "own"}}]}}"#)
    };
    let helper = r#"reply "$(cat answer)""#;
    let first = format!("here=1\n{}", bash(&tool("who"), helper));
    let daemon = daemon_with(&[("wc.py", WC_PYTHON), ("who.sh", &first)], "");
    daemon.write("answer", r#"{"text": "one"}"#);
    let (mut client, session) = session(&daemon);
    assert_eq!(run(&mut client, &session, "who", &json!({}))["text"], "one");
    let before = processes(&daemon, "who.sh");
    assert_eq!(
        command(&mut client, &session, "/reload")["output"],
        "reloaded"
    );
    assert_eq!(run(&mut client, &session, "who", &json!({}))["text"], "one");
    let after = processes(&daemon, "who.sh");
    assert!(
        before.iter().all(|pid| !after.contains(pid)),
        "{before:?} {after:?}"
    );
    client.call("daemon/reload", json!({}));
    assert_eq!(run(&mut client, &session, "who", &json!({}))["ok"], true);

    put(&daemon, "who.sh", "echo broken >&2; exit 3\n");
    let reload = command(&mut client, &session, "/reload");
    let output = reload["output"].as_str().unwrap();
    assert_eq!(
        output,
        "reloaded, but for:\nthe plugin who ended with exit status 3: broken"
    );
    daemon.write("a.txt", "x");
    assert_eq!(
        run(&mut client, &session, "wc", &json!({"path": "a.txt"}))["ok"],
        true
    );
    let gone = run(&mut client, &session, "who", &json!({}));
    assert!(
        gone["error"]
            .as_str()
            .unwrap()
            .starts_with("unknown tool: \"who\"")
    );
}

#[test]
fn command_can_print_change_the_conversation_switch_the_provider_and_run_a_turn() {
    let plugin = r#"
import dwell
@dwell.setup
def all(session):
    @session.commands.register("all", completions=["one", "two"])
    def all(rest):
        print("printed", rest)
        reply = session.turn("say from a command")
        session.replace([{"role": "user", "content": "say kept"}])
        session.provider = "stub"
        return f"reply {reply}"
"#;
    let daemon = daemon_with(&[("all.py", plugin)], "");
    let (mut client, session) = session(&daemon);
    assert_eq!(words(&mut client, &session, "/all t"), ["two"]);
    client.attach(&session, None);
    let ran = command(&mut client, &session, "/all  two words ");
    assert_eq!(ran["output"], "reply from a command", "{ran}");
    let events = client.until_type("provider_switched");
    let said: Vec<_> = events
        .0
        .iter()
        .filter(|one| one["type"] == "command_output")
        .collect();
    assert_eq!(said[0]["text"], "printed  two words ");
    let context = command(&mut client, &session, "/context json")["output"].to_string();
    assert!(
        context.contains("say kept") && !context.contains("from a command"),
        "{context}"
    );
    let none = command(&mut client, &session, "/all");
    assert!(
        none["output"].as_str().unwrap().starts_with("reply "),
        "{none}"
    );
    let list = client.call("command/list", json!({"session": session}));
    assert!(list.to_string().contains("\"/all\""));
}

#[test]
fn executable_in_any_language_is_a_plugin_and_may_follow_a_session() {
    let plugin = r#"#!/usr/bin/env python3
import json, sys
def send(**message): print(json.dumps(dict(message, jsonrpc="2.0")), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "plugin/setup":
        send(id=message["id"], result={"commands": [{"name": "follow"}]})
    elif message.get("method") == "plugin/command":
        asked = message["id"]
        send(id="a", method="session/attach", params={"session": message["params"]["session"]})
    elif message.get("id") == "a":
        send(id=asked, result={"output": "following"})
    elif message.get("method") == "session/event":
        event = message["params"]["result"]
        open("events", "a").write(event["type"] + "\n")
"#;
    let sandbox = Sandbox::new();
    let path = put(&sandbox, "follow", plugin);
    set_mode(&path, 0o755);
    let daemon = TestDaemon::start_in(sandbox);
    let (mut client, session) = session(&daemon);
    assert_eq!(
        command(&mut client, &session, "/follow")["output"],
        "following"
    );
    client.turn(&session, "say hello");
    until_true("the plugin saw the turn", SOON, || {
        daemon.read("events").contains("turn_ended")
    });
}

#[test]
fn plugin_of_the_documentation_needs_no_sdk() {
    let page = include_str!("../../daemon/docs/plugins.md");
    let python = page
        .split("```python\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    assert_eq!(python, WC_PYTHON);
    let text = page
        .split("```bash\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let daemon = daemon_with(&[("upper.sh", text)], "");
    let (mut client, session) = session(&daemon);
    let asked = json!({"session": session, "name": "upper", "arguments": {"text": "loud"}});
    client.attach(&session, None);
    let call = client.send("tool/run", asked);
    let events = client.until_type("approval_asked");
    client.answer(&events.last()["approval"], "allow").unwrap();
    assert_eq!(
        client.response(call).unwrap(),
        json!({"text": "LOUD", "ok": true})
    );
    let refused = run(
        &mut client,
        &session,
        "execute",
        &json!({"command": "rm x"}),
    );
    assert_eq!(refused["error"], "refusing to run rm");
    assert_eq!(
        run(
            &mut client,
            &session,
            "execute",
            &json!({"command": "true"})
        )["ok"],
        true
    );
    command(&mut client, &session, "/upper say it");
    assert_eq!(client.until_type("command_output").last()["text"], "SAY IT");
    assert_eq!(words(&mut client, &session, "/upper hello"), ["hello"]);
}

#[test]
fn reload_takes_what_can_count_at_once_and_names_what_waits() {
    let daemon = daemon_with(&[], "");
    let (mut client, session) = session(&daemon);
    let path = daemon.path("config").join("config.toml");
    let script = "do list {}\ndo list {}\nsay done";
    assert_eq!(client.turn(&session, script).last()["status"], "completed");
    fs::write(&path, "[turn]\nmax_rounds = 1\n[limits]\ncalls = 9\n").unwrap();
    let reloaded = client.call("daemon/reload", json!({}));
    let waits = "[limits] of config.toml has changed, which counts from the daemon's next start on";
    assert_eq!(reloaded["waiting"], json!([waits]));
    assert_eq!(client.turn(&session, script).last()["status"], "max_rounds");
    let output = command(&mut client, &session, "/reload")["output"].to_string();
    assert!(output.contains("[limits] of config.toml"), "{output}");
    fs::write(&path, "").unwrap();
    assert_eq!(
        command(&mut client, &session, "/reload")["output"],
        "reloaded"
    );
    assert_eq!(client.turn(&session, script).last()["status"], "completed");
}

#[test]
fn provider_of_a_directory_that_is_not_trusted_is_told_how_to_get() {
    let daemon = daemon_with(&[], "");
    daemon.write(".agents/plugins/echo.py", ECHO_PYTHON);
    let ask = ["ask", "-p", "echo", "--model", "parrot", "hello there"];
    let refused = Dwell::new(&daemon).args(ask).run();
    let said = refused.stderr;
    assert!(
        said.contains("unknown provider: \"echo\"") && said.contains("dwell trust yes"),
        "{said}"
    );
    Dwell::new(&daemon).args(["trust", "yes"]).ok();
    assert_eq!(Dwell::new(&daemon).args(ask).ok(), "parrot: hello there\n");
}

#[test]
fn provider_of_the_documentation_needs_no_sdk() {
    let page = include_str!("../../daemon/docs/plugins.md");
    let text = page.split("```bash\n").nth(2).unwrap();
    let text = text.split("```").next().unwrap();
    let daemon = daemon_with(&[("parrot.sh", text)], "");
    let ask = ["ask", "-p", "parrot", "hello there"];
    assert_eq!(Dwell::new(&daemon).args(ask).ok(), "hello there\n");
}

#[test]
fn guard_that_cannot_be_set_up_refuses_every_call_by_name_and_another_broken_plugin_does_not() {
    let guard = "import nothing_of_that_name\nsession.toolbox.before('execute')\n";
    let daemon = daemon_with(
        &[
            ("broken.py", "import nothing_of_that_name\n"),
            ("wc.py", WC_PYTHON),
        ],
        "",
    );
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let path = json!({"path": "a.txt"});
    assert_eq!(run(&mut client, &session, "wc", &path)["ok"], true);
    let file = put(&daemon, "guard.py", guard);
    let refused = read(&mut client, &session);
    let error = refused["error"].as_str().unwrap();
    for part in [
        "the plugin guard ended with exit status 1",
        "may guard calls",
        "on_failure",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert_eq!(run(&mut client, &session, "wc", &path)["ok"], false);
    assert_eq!(words(&mut client, &session, "/w"), ["/wc"]);
    assert_eq!(client.turn(&session, "say on").said(), "on");
    fs::rename(&file, file.with_file_name("_guard.py")).unwrap();
    put(&daemon, "broken.py", "");
    assert_eq!(read(&mut client, &session)["ok"], true);

    let daemon = daemon_with(
        &[("guard.py", guard)],
        "[plugin]\non_failure = \"ignore\"\n",
    );
    daemon.write("a.txt", "x");
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    assert_eq!(read(&mut client, &session)["ok"], true);
}

#[test]
fn names_that_nobody_can_use_are_told_and_a_hook_that_cannot_be_read_refuses() {
    let setup = r#"{"tools": [{"name": "a b"}, {"name": "who"}], "commands": [{"name": "x y"}, {"name": "fine"}], "providers": [{"name": "no good"}]}"#;
    let daemon = daemon_with(&[("odd.sh", &bash(setup, r#"reply '{"text": "me"}'"#))], "");
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(run(&mut client, &session, "who", &json!({}))["text"], "me");
    let tools = client.call("tool/list", json!({"session": session}));
    let problems = tools["problems"].to_string();
    for part in [
        "the plugin odd: its tool",
        "a b",
        "its command",
        "its provider",
    ] {
        assert!(problems.contains(part), "{part}: {problems}");
    }
    assert_eq!(words(&mut client, &session, "/fi"), ["/fine"]);
    let hook = r#"{"hooks": [{"id": "h", "point": "befor"}]}"#;
    put(&daemon, "odd.sh", &bash(hook, "reply null"));
    let error = read(&mut client, &session)["error"].to_string();
    assert!(
        error.contains("the plugin odd: its hook") && error.contains("befor"),
        "{error}"
    );
}

#[test]
fn call_that_a_plugin_makes_in_its_tool_or_hook_is_a_child_and_recursion_ends() {
    let plugin = r#"
import dwell
@dwell.setup
def all(session):
    @session.toolbox.add("who", "Who", {"again": {"type": "boolean"}})
    def who(args):
        return {"inner": session.toolbox.run("who" if args.get("again") else "list", {"again": True} if args.get("again") else {})}
    @session.toolbox.before("glob")
    def loop(args):
        result = session.toolbox.run("glob", {"pattern": "*"})
        if "error" in result: raise Exception(result["error"])
    @session.commands.register("who")
    def command(rest):
        return str(session.toolbox.run("list")["ok"])
"#;
    let daemon = daemon_with(&[("who.py", plugin)], "");
    let (mut client, session) = session(&daemon);
    let events = client.turn(&session, "do who {}");
    let doing = events.of("doing");
    assert_eq!(doing.len(), 2, "{doing:?}");
    assert_eq!(
        (&doing[1]["name"], &doing[1]["parent"]),
        (&json!("list"), &doing[0]["call"])
    );
    let deep = run(&mut client, &session, "who", &json!({"again": true})).to_string();
    assert!(deep.contains("deep"), "{deep}");
    let looped = run(&mut client, &session, "glob", &json!({"pattern": "*"}))["error"].to_string();
    assert!(looped.contains("deep"), "{looped}");
    assert_eq!(command(&mut client, &session, "/who")["output"], "True");
    let log = client.history(&session);
    assert_eq!(log.of("doing").last().unwrap()["parent"], Value::Null);
}

fn toml_hook(point: &str, tool: &str, command: &str, more: &str) -> String {
    format!(
        "[[hooks]]\npoint = \"{point}\"\ntool = \"{tool}\"\ncommand = '''{command}'''\n{more}\n"
    )
}

#[test]
fn shell_hook_passes_blocks_or_warns_by_its_exit_status() {
    let config = [
        toml_hook("before", "read", "cat > seen; echo noise; exit 0", ""),
        toml_hook("before", "execute", "echo not this one >&2; exit 2", ""),
        toml_hook("after", "list", "jq -e '.result | has(\"error\")' >&2", ""),
        toml_hook("before", "glob", "exec sleep 60", "timeout_ms = 200"),
    ];
    let daemon = daemon_with(&[], &config.concat());
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(read(&mut client, &session)["ok"], true);
    let seen: Value = serde_json::from_str(&daemon.read("seen")).unwrap();
    assert_eq!(
        (&seen["point"], &seen["tool"], &seen["arguments"]["path"]),
        (&json!("before"), &json!("read"), &json!("a.txt"))
    );
    let blocked = run(
        &mut client,
        &session,
        "execute",
        &json!({"command": "touch made"}),
    );
    assert_eq!(blocked["error"], "not this one");
    assert!(!daemon.work().join("made").exists());
    client.attach(&session, None);
    assert_eq!(run(&mut client, &session, "list", &json!({}))["ok"], true);
    let warned = client.until_type("notice");
    let text = warned.last()["text"].as_str().unwrap();
    assert!(text.contains("ended with exit status 1: false"), "{text}");
    let late = run(&mut client, &session, "glob", &json!({"pattern": "*"}));
    let error = late["error"].as_str().unwrap();
    assert!(error.ends_with("did not end within 0.2 s"), "{error}");
    until_true("nothing of it is left", SOON, || {
        processes(&daemon, "sleep").is_empty()
    });
}

#[test]
fn directorys_hooks_count_when_it_is_trusted_and_a_file_that_cannot_be_read_refuses() {
    let daemon = daemon_with(&[], "");
    let hook = toml_hook(
        "before",
        "read",
        "echo the directory says no >&2; exit 2",
        "",
    );
    let path = daemon.write(".agents/config.toml", &hook);
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(read(&mut client, &session)["ok"], true);
    let yes = json!({"cwd": daemon.work(), "allow": true});
    let trust = client.call("trust/answer", yes.clone());
    assert_eq!(trust["files"][0]["path"], ".agents/config.toml");
    assert_eq!(
        read(&mut client, &session)["error"],
        "the directory says no"
    );
    fs::write(&path, "[[hook]]\n").unwrap();
    client.call("trust/answer", yes);
    let error = read(&mut client, &session)["error"].to_string();
    assert!(error.contains("cannot use .agents/config.toml"), "{error}");
}

#[test]
fn what_a_plugin_gives_is_cut_for_models_and_kept_and_half_a_character_is_no_end() {
    let setup = r#"{"tools": [{"name": "long"}, {"name": "both"}, {"name": "wide"}, {"name": "half"}],
        "hooks": [{"id": "h", "point": "before", "tool": "read"}]}"#;
    let answer = r#"case $line in
      *plugin/hook*) printf '{"id":%s,"error":{"message":"%s"}}\n' "$id" "$(printf '%090000d' 0)" ;;
      *'"half"'*) reply '{"text": "cut \ud83c"}' ;;
      *'"wide"'*) reply "[$(printf '%0900000d' 0 | sed 's/0/[],/g')0]" ;;
      *'"both"'*) reply "{\"a\": \"$(printf '%090000d' 0)\", \"b\": \"$(printf '%090000d' 0)\"}" ;;
      *) reply "{\"n\": 1, \"text\": \"$(printf '%090000d' 0)end\"}" ;;
    esac"#;
    let daemon = daemon_with(&[("big.sh", &bash(&setup.replace('\n', " "), answer))], "");
    let allow = json!({"long": "allow", "both": "allow", "wide": "allow", "half": "allow"});
    daemon.permissions(&allow);
    let (mut client, session) = session(&daemon);
    let mut gives = |name: &str| run(&mut client, &session, name, &json!({"path": "a.txt"}));
    let half = gives("half");
    assert_eq!(
        (&half["text"], &half["ok"]),
        (&json!("cut \u{fffd}"), &json!(true))
    );
    let long = gives("long");
    let text = long["text"].as_str().unwrap();
    assert!(
        text.len() < 40_000 && text.ends_with("end"),
        "{}",
        text.len()
    );
    assert_eq!((&long["n"], &long["ok"]), (&json!(1), &json!(true)));
    let place = text.split("bytes cut here; ").nth(1).unwrap();
    assert!(place.contains(".txt"), "{}", &place[..place.len().min(200)]);
    let both = gives("both");
    assert!(both["content"].as_str().unwrap().len() < 40_000);
    let wide = gives("wide")["error"].to_string();
    assert!(
        wide.contains("gave no object for wide") && wide.len() < 500,
        "{wide}"
    );
    let refused = gives("read")["error"].to_string();
    assert!(
        refused.ends_with("bytes more]\"") && refused.len() < 10_000,
        "{}",
        refused.len()
    );
}

#[test]
fn guard_that_was_there_a_moment_ago_refuses_when_its_file_is_half_saved() {
    let daemon = daemon_with(&[("guard.sh", &bash(GUARD, "reply null"))], "");
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    assert_eq!(passes(&mut client, &session), Ok(()));
    for text in ["exit 1", ""] {
        let file = put(&daemon, "guard.sh", text);
        let refused = passes(&mut client, &session).unwrap_err();
        assert!(refused.contains("may guard calls"), "{refused}");
        fs::remove_file(file).unwrap();
        assert_eq!(passes(&mut client, &session), Ok(()), "it was taken away");
        put(&daemon, "guard.sh", &bash(GUARD, "reply null"));
        assert_eq!(passes(&mut client, &session), Ok(()));
    }
}

#[test]
fn hook_that_no_call_reaches_is_told() {
    let config = [
        toml_hook("before", "bash", "exit 2", ""),
        toml_hook("after", "Execute", "exit 2", ""),
        toml_hook("before", "read", "exit 0", ""),
    ];
    let daemon = daemon_with(&[], &config.concat());
    daemon
        .permissions(&json!({"exceute": "deny", "b__*": "ask", "bash": "deny", "far__x": "deny"}));
    let (mut client, session) = session(&daemon);
    let listed = client.call("tool/list", json!({"session": session}));
    let problems: Vec<_> = listed["problems"].as_array().unwrap().iter().collect();
    let expected = [
        "the after-hook \"exit 2\" never runs: \"Execute\" is the name of no tool here",
        "the before-hook \"exit 2\" never runs: \"bash\" is another name of execute: hooks go by the real one",
        "the rule for \"b__*\" in permissions.json guards nothing: no tool here is called so",
        "the rule for \"exceute\" in permissions.json guards nothing: no tool here is called so",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn handler_that_exits_or_gives_no_json_fails_its_call_alone() {
    let text = r#"import dwell, sys
@dwell.setup
def s(session):
    @session.toolbox.add("leave", "d", {})
    def leave(args): sys.exit(3)
    @session.toolbox.add("nan", "d", {})
    def nan(args): return {"mean": float("nan")}
    @session.toolbox.add("pid", "d", {})
    def pid(args):
        import os
        return {"pid": os.getpid()}
"#;
    let daemon = daemon_with(&[("odd.py", text)], "");
    daemon.permissions(&json!({"leave": "allow", "nan": "allow", "pid": "allow"}));
    let (mut client, session) = session(&daemon);
    let mut gives = |name: &str| run(&mut client, &session, name, &json!({}));
    let pid = gives("pid")["pid"].clone();
    assert_eq!(gives("leave")["error"], "it ended by sys.exit(3)");
    let nan = gives("nan")["error"].to_string();
    assert!(nan.contains("not JSON compliant"), "{nan}");
    assert_eq!(gives("pid")["pid"], pid);
}

#[test]
fn plugin_that_works_is_not_killed_for_a_hook_that_it_does_not_answer_meanwhile() {
    let setup = r#"{"tools": [{"name": "slow"}], "hooks": [{"id": "guard", "point": "before", "tool": "read"}]}"#;
    let answer = r#"case $method in
      plugin/tool) touch begun; while [ ! -e go ]; do sleep 0.02; done; reply '{"done": true}' ;;
      *) reply null ;;
    esac"#;
    let daemon = daemon_with(
        &[("one.sh", &bash(setup, answer))],
        "[plugin]\nhook_ms = 300\n",
    );
    daemon.permissions(&json!({"slow": "allow"}));
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let mut other = daemon.client();
    let params = json!({"session": session, "name": "slow", "arguments": {}});
    let slow = other.send("tool/run", params);
    until_true("it works", SOON, || daemon.work().join("begun").exists());
    let refused = passes(&mut client, &session).unwrap_err();
    assert!(refused.ends_with("it works on something else"), "{refused}");
    daemon.write("go", "");
    assert_eq!(other.response(slow).unwrap()["done"], true);
    assert_eq!(passes(&mut client, &session), Ok(()));
}

/// Whether a call runs, or why not.
fn passes(client: &mut TestClient, session: &str) -> Result<(), String> {
    let result = read(client, session);
    match result["ok"] == true {
        true => Ok(()),
        false => Err(result["error"].as_str().unwrap().to_owned()),
    }
}

#[test]
fn guards_of_a_directory_are_not_lost_by_changing_files_beside_them_nor_by_taking_them_away() {
    let hook = toml_hook("before", "execute", "exit 2", "");
    let plugin = bash(
        r#"{"hooks": [{"id": "guard", "point": "before", "tool": "execute"}]}"#,
        "reply null",
    );
    let guards = [
        (".agents/config.toml", hook.as_str(), true),
        (".agents/plugins/guard.sh", plugin.as_str(), true),
        (".agents/plugins/wc.sh", "# adds tools alone", false),
    ];
    for (name, text, guards) in guards {
        let daemon = daemon_with(&[], "");
        let path = daemon.write(name, text);
        daemon.write("a.txt", "x");
        let (mut client, session) = session(&daemon);
        let answer = |allow: bool| {
            let params = json!({"cwd": daemon.work(), "allow": allow});
            daemon.client().call("trust/answer", params)
        };
        answer(true);
        assert_eq!(passes(&mut client, &session), Ok(()), "{name}");
        let mut is_refused = || {
            let refused = passes(&mut client, &session).err();
            assert_eq!(refused.is_some(), guards, "{name}: {refused:?}");
            assert!(refused.is_none_or(|why| why.contains("dwell trust yes")));
        };
        let junk = daemon.write(".agents/junk", "x");
        is_refused();
        fs::remove_file(junk).unwrap();
        fs::write(&path, "").unwrap();
        is_refused();
        fs::remove_dir_all(daemon.work().join(".agents")).unwrap();
        is_refused();
        answer(false);
        assert_eq!(passes(&mut client, &session), Ok(()), "{name}");
    }
}

#[test]
fn guard_that_lost_its_executable_bit_refuses_by_name() {
    let guard = format!("#!/bin/bash\n{}", bash(GUARD, "reply null"));
    let daemon = daemon_with(&[("guard", &guard)], "");
    daemon.write("a.txt", "x");
    let (mut client, session) = session(&daemon);
    let refused = passes(&mut client, &session).unwrap_err();
    assert!(
        refused.contains("plugins/guard is not executable"),
        "{refused}"
    );
    let listed = client.call("tool/list", json!({"session": session}));
    assert!(listed["problems"].to_string().contains("is not executable"));
    let path = daemon.path("home").join(".agents/plugins/guard");
    set_mode(&path, 0o755);
    assert_eq!(passes(&mut client, &session), Ok(()));
}

#[test]
fn plugins_end_with_the_daemon_also_those_that_ignore_that_their_input_ended() {
    let stubborn = "trap '' TERM\nread -r line; id=$(jq .id <<<\"$line\")\n\
                    printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"$id\"\n\
                    while :; do sleep 60; done\n";
    let mut daemon = daemon_with(&[("stubborn.sh", stubborn), ("wc.py", WC_PYTHON)], "");
    let (client, _) = session(&daemon);
    assert_eq!(processes(&daemon, "stubborn.sh").len(), 1);
    assert_eq!(processes(&daemon, "wc.py").len(), 1);
    drop(client);
    daemon.term();
    let left = || processes(&daemon, "/.agents/plugins/");
    until_true("nothing of them is left", SOON, || left().is_empty());
}

#[test]
fn reload_reads_the_hooks_anew_and_a_slip_in_the_file_keeps_those_that_were() {
    let says = |what: &str| toml_hook("before", "read", &format!("echo {what} >&2; exit 2"), "");
    let daemon = daemon_with(&[], &says("one"));
    daemon.write("a.txt", "x");
    let path = daemon.path("config").join("config.toml");
    let (mut client, session) = session(&daemon);
    assert_eq!(read(&mut client, &session)["error"], "one");
    fs::write(&path, says("two")).unwrap();
    assert_eq!(read(&mut client, &session)["error"], "one");
    client.call("daemon/reload", json!({}));
    assert_eq!(read(&mut client, &session)["error"], "two");
    fs::write(&path, "[[hook]]\n").unwrap();
    let fault = client.fault("daemon/reload", json!({}));
    assert!(fault.message.contains("config.toml"), "{fault}");
    let output = command(&mut client, &session, "/reload")["output"].to_string();
    assert!(
        output.contains("reloaded, but for:") && output.contains("config.toml"),
        "{output}"
    );
    assert_eq!(read(&mut client, &session)["error"], "two");
    fs::write(&path, "").unwrap();
    assert_eq!(
        command(&mut client, &session, "/reload")["output"],
        "reloaded"
    );
    assert_eq!(read(&mut client, &session)["ok"], true);
}

#[test]
fn what_a_slash_command_needs_allowed_is_denied_where_nobody_can_be_asked() {
    let daemon = daemon_with(&[("wc.py", WC_PYTHON)], "");
    daemon.permissions(&json!({"wc": "ask"}));
    daemon.write("a.txt", "one\n");
    let (mut client, session) = session(&daemon);
    let ran = harness::dwell::Dwell::new(&daemon)
        .args(["attach", &session])
        .stdin("/wc a.txt\nsay and on\n")
        .run();
    assert!(ran.stdout.contains("and on"), "{ran:?}");
    assert!(
        ran.stdout.contains("there is no terminal to ask on"),
        "{ran:?}"
    );
    let waiting = client.call("approval/list", json!({"session": session}));
    assert_eq!(waiting, json!([]), "{ran:?}");
}
