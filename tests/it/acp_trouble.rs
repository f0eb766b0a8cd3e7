//! `dwell acp` where not all is well: no daemon, a link that drops, prompts and ids of strange kinds, servers that are late.

use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::editor::{Editor, words};
use harness::sandbox::Sandbox;
use harness::ssh::{remote_dwell, stand_in};
use harness::wait::{SOON, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

/// `dwell acp` by this program in a sandbox.
fn agent(sandbox: &Sandbox, program: &Path) -> Command {
    let mut command = Command::new(program);
    sandbox.apply(&mut command);
    command.arg("acp").env("DWELL_PROVIDER", "script");
    command
}

/// Every request is told why there is no daemon, and so is whoever looks at the end.
#[track_caller]
fn tells(command: Command, words: &[&str]) {
    let mut editor = Editor::of(command);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let new = json!({"cwd": "/", "mcpServers": []});
    for (method, params) in [("initialize", hello), ("session/new", new)] {
        let id = editor.send(method, params);
        let error = editor.response(id).unwrap_err();
        let message = error["message"].as_str().unwrap();
        for word in words {
            assert!(message.contains(word), "{method}: {message}");
        }
    }
    assert_eq!(editor.quit().unwrap().code(), Some(3));
}

#[test]
fn an_editor_is_told_why_no_daemon_can_be_started() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("config").join("config.toml"), "nonsense = [").unwrap();
    tells(agent(&sandbox, &binaries().client), &["config.toml"]);

    let alone = sandbox.path("dwell");
    fs::copy(&binaries().client, &alone).unwrap();
    let mut command = agent(&sandbox, &alone);
    command.env("PATH", "/nowhere");
    tells(
        command,
        &["cannot start dwelld", "dwelld belongs beside dwell"],
    );

    let sandbox = Sandbox::new();
    let mut command = agent(&sandbox, &binaries().client);
    command.env("DWELL_SOCKET", sandbox.write("file", "").join("d.sock"));
    tells(command, &["d.sock"]);

    let mut command = agent(&sandbox, &binaries().client);
    command.env("DWELL_STATE_DIR", "not/absolute");
    tells(command, &["DWELL_STATE_DIR"]);
}

#[test]
fn an_editor_is_told_when_the_link_to_the_other_machine_drops_and_when_it_is_back() {
    let there = TestDaemon::start();
    let mut sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let (down, script) = (sandbox.path("down"), fs::read_to_string(&ssh).unwrap());
    let gate = format!(
        "#!/bin/sh\nif [ -e '{}' ]; then echo 'no route' >&2; exit 255; fi\n",
        down.display()
    );
    fs::write(&ssh, script.replacen("#!/bin/sh\n", &gate, 1)).unwrap();
    sandbox.set("DWELL_SSH", &ssh);
    sandbox.set("DWELL_REMOTE", remote_dwell());
    let mut command = Command::new(&binaries().client);
    sandbox.apply(&mut command);
    let host = format!("box:{}", there.work().display());
    command.args(["--host", &host, "acp", "-p", "script"]);
    let mut editor = Editor::of(command);
    let notices = json!({"session": {"notices": {}}});
    editor.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": notices}),
    );
    let session = editor.session(&there);
    editor.turn(&session, "say one");
    // A turn that runs, one that is sent meanwhile, and the network away between them.
    let running = editor.prompt(&session, "say begun \nwait 1000\nsay ended");
    editor.update("agent_message_chunk");
    fs::write(&down, "").unwrap();
    let log = fs::read_to_string(sandbox.path("ssh.log")).unwrap();
    let pid = log.lines().last().unwrap().split(' ').next().unwrap();
    kill_process(Pid::from_raw(pid.parse().unwrap()).unwrap(), Signal::KILL).unwrap();
    let told = |editor: &mut Editor, words: &str| {
        let line = editor.wait(words, |line| {
            line["params"]["update"].to_string().contains(words)
        });
        assert_eq!(line["params"]["sessionId"], session.as_str());
        assert_eq!(
            line["params"]["update"]["sessionUpdate"], "notice",
            "{line}"
        );
    };
    told(&mut editor, "the connection to the daemon on box is lost");
    let meanwhile = editor.prompt(&session, "say meanwhile");
    let mut other = there.client();
    other.attach(&session, Some(0));
    other.until_ended();
    fs::remove_file(&down).unwrap();
    told(&mut editor, "the connection to the daemon on box is back");
    for id in [running, meanwhile] {
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    }
    assert_eq!(
        words(&editor.updates(0), "agent_message_chunk"),
        "onebegun endedmeanwhile"
    );
    let listed = other.call("session/history", json!({"session": session}));
    let begun = listed["events"].as_array().unwrap().iter();
    assert_eq!(
        begun
            .filter(|event| event["type"] == "turn_started")
            .count(),
        3
    );
}

#[test]
fn a_block_of_an_unknown_kind_costs_the_prompt_nothing_else() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::launch(&daemon, &["-p", "stub"]);
    editor.call("initialize", json!({"protocolVersion": 1}));
    let session = editor.session(&daemon);
    let strange = [
        json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}),
        json!({"type": "hologram", "uri": "file:///h"}),
        json!({"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "aGk=", "mimeType": "application/zip"}}),
        json!({"type": "resource", "resource": {"uri": "x:y", "shape": "new"}}),
        json!({"type": "image", "data": "aGk=", "mimeType": "image/svg+xml"}),
        json!({"text": "no type"}),
    ];
    let send = |editor: &mut Editor, blocks: Vec<Value>| {
        let id = editor.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": blocks}),
        );
        editor.response(id)
    };
    for block in &strange {
        let before = editor.log.len();
        let blocks = vec![block.clone(), json!({"type": "text", "text": "heard"})];
        assert_eq!(
            send(&mut editor, blocks).unwrap()["stopReason"],
            "end_turn",
            "{block}"
        );
        let updates = editor.updates(before);
        let told = words(&updates, "agent_thought_chunk");
        assert!(told.contains("a block "), "{block}: {told}");
        let error = send(&mut editor, vec![block.clone()]).unwrap_err();
        assert_eq!(error["code"], -32602, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("text, pictures, links"), "{message}");
    }
    let history = daemon
        .client()
        .call("session/history", json!({"session": session}));
    let asked = history["events"].as_array().unwrap().iter();
    let asked: Vec<_> = asked
        .filter(|event| event["type"] == "turn_started")
        .collect();
    assert_eq!(asked.len(), strange.len());
    for one in &asked {
        assert!(
            one["text"].as_str().unwrap().starts_with("heard\n"),
            "{one}"
        );
    }
    let zip = asked[2]["text"].as_str().unwrap();
    assert!(
        zip.contains("application/zip at /a.bin"),
        "the model knows: {zip}"
    );
    let id = editor.send(
        "session/prompt",
        json!({"sessionId": session, "prompt": "text"}),
    );
    assert_eq!(editor.response(id).unwrap_err()["code"], -32602);
}

#[test]
fn an_id_comes_back_as_it_was_written() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let list = |id: &str| {
        format!(r#"{{"id":{id},"jsonrpc":"2.0","method":"session/list","params":{{"id":0}}}}"#)
    };
    let prompt = |id: &str| {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "say hi"}]});
        format!(r#"{{"jsonrpc":"2.0","method":"session/prompt","params":{params},"id":{id}}}"#)
    };
    for id in [
        "1234567890123456789012345678901",
        "-9223372036854775809",
        "1.50",
        "null",
        r#""""#,
        r#""1""#,
        r#""grün 😀""#,
    ] {
        for line in [list(id), prompt(id)] {
            editor.line(&line);
            let answer = editor.wait(id, |line| line.get("result").is_some());
            assert_eq!(answer["id"].to_string(), id);
        }
    }
    for id in ["true", "[1]", "{}"] {
        editor.line(&list(id));
        let answer = editor.wait(id, |line| line.get("error").is_some());
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(-32600), &Value::Null)
        );
    }
}

#[test]
fn providers_of_a_trusted_directorys_plugins_can_be_chosen_there() {
    let daemon = TestDaemon::start();
    let own = daemon.work().join("own");
    fs::create_dir_all(own.join(".agents/plugins")).unwrap();
    let echo = include_str!("../fixtures/plugins/echo.py");
    let models = "    def models(self):\n        return [{\"name\": \"parrot\"}]\n\n    def fetch";
    let echo = echo.replace("    def fetch", models);
    fs::write(own.join(".agents/plugins/echo.py"), echo).unwrap();
    let mut editor = Editor::start(&daemon);
    let open = |editor: &mut Editor, cwd: &Path| {
        let made = editor.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let options = made["configOptions"].as_array().unwrap();
        let provider = options.iter().find(|one| one["id"] == "provider").unwrap();
        let all = provider["options"].as_array().unwrap().iter();
        let offered = all.clone().any(|one| one["value"] == "echo");
        (made["sessionId"].as_str().unwrap().to_owned(), offered)
    };
    assert!(!open(&mut editor, &own).1, "nobody has trusted it");
    daemon
        .client()
        .call("trust/answer", json!({"cwd": own, "allow": true}));
    let (session, offered) = open(&mut editor, &own);
    assert!(offered);
    assert!(!open(&mut editor, &daemon.work()).1, "it is not there");
    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let now = editor.call("session/set_config_option", set("provider", "echo"));
    let models = now["configOptions"].as_array().unwrap().iter();
    let models = models.clone().find(|one| one["id"] == "model").unwrap();
    assert!(models["options"].to_string().contains("parrot"), "{models}");
    editor.call("session/set_config_option", set("model", "parrot"));
    let (_, updates) = editor.turn(&session, "hello");
    assert_eq!(words(&updates, "agent_message_chunk"), "parrot: hello");
}

#[test]
fn a_server_of_the_editor_that_starts_slowly_is_there_with_the_first_prompt() {
    let sandbox = Sandbox::new();
    sandbox.permissions(&json!({"near__echo": "allow"}));
    let config = "[mcp]\nwait_ms = 50\n";
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    let script = harness::binaries::root().join("tests/fixtures/mcp/server.py");
    let server = json!({
        "name": "near", "command": "python3", "args": [script, "late"],
        "env": [{"name": "LATE", "value": "1.5"}],
    });
    let mut editor = Editor::start(&daemon);
    let made = editor.call(
        "session/new",
        json!({"cwd": daemon.work(), "mcpServers": [server]}),
    );
    let session = made["sessionId"].as_str().unwrap();
    let (stop, updates) = editor.turn(session, "do near__echo {\"text\": \"in time\"}\nsay end");
    assert_eq!(stop, "end_turn");
    let came = |one: &Value| one["rawOutput"]["content"] == "in time";
    assert!(updates.iter().any(came), "{updates:?}");
}

#[test]
fn a_turn_that_waits_for_a_server_can_be_cancelled() {
    let daemon = TestDaemon::start();
    let script = harness::binaries::root().join("tests/fixtures/mcp/server.py");
    let server = json!({"name": "near", "command": "python3", "args": [script, "hang"], "env": []});
    let mut editor = Editor::start(&daemon);
    let made = editor.call(
        "session/new",
        json!({"cwd": daemon.work(), "mcpServers": [server]}),
    );
    let session = made["sessionId"].as_str().unwrap();
    let id = editor.prompt(session, "say never");
    let mut other = daemon.client();
    until_true("it runs", SOON, || {
        other.call("session/get", json!({"session": session}))["state"] == "running"
    });
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.response(id).unwrap()["stopReason"], "cancelled");
}

#[test]
fn a_mode_that_answers_does_so_where_a_question_waits_already() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for (mode, status) in [("allow", "completed"), ("deny", "failed")] {
        let set = |mode: &str| json!({"sessionId": session, "modeId": mode});
        editor.call("session/set_mode", set("ask"));
        let id = editor.prompt(&session, "do execute {\"command\": \"true\"}");
        let asked = editor.asked("session/request_permission");
        let before = editor.log.len();
        editor.call("session/set_mode", set(mode));
        let back = editor.asked("$/cancel_request");
        assert_eq!(back["params"]["requestId"], asked["id"]);
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
        let updates = editor.updates(before);
        assert!(
            updates.iter().any(|one| one["status"] == status),
            "{updates:?}"
        );
        // Editors that show options are told of the mode too.
        let told = updates
            .iter()
            .rfind(|one| one["sessionUpdate"] == "config_option_update");
        let mut options = told.unwrap()["configOptions"].as_array().unwrap().iter();
        let shown = options.find(|one| one["id"] == "mode").unwrap();
        assert_eq!(shown["currentValue"], mode);
    }
}

#[test]
fn an_answer_that_is_none_is_told_and_one_that_was_not_offered_is_a_no() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for answer in [
        json!({}),
        Value::Null,
        json!({"outcome": {"outcome": "selected", "optionId": 7}}),
    ] {
        let id = editor.prompt(&session, "do execute {\"command\": \"true\"}");
        let asked = editor.asked("session/request_permission");
        editor.answer(&asked, answer);
        let told = editor.update("agent_thought_chunk").to_string();
        assert!(
            told.contains("whether execute may run cannot be read"),
            "{told}"
        );
        // As one request or the other: some editors send the notification with an id.
        let cancel = editor.send("session/cancel", json!({"sessionId": session}));
        assert_eq!(editor.response(id).unwrap()["stopReason"], "cancelled");
        editor.response(cancel).unwrap();
    }
    let id = editor.prompt(&session, "do execute {\"command\": \"true\"}");
    let asked = editor.asked("session/request_permission");
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yolo"}});
    editor.answer(&asked, outcome);
    let ended = editor.wait("the call's end", |line| {
        line["params"]["update"].to_string().contains("yolo")
    });
    assert_eq!(ended["params"]["update"]["status"], "failed");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
}

#[test]
fn a_session_that_is_closed_or_deleted_answers_its_prompts_first() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    for method in ["session/close", "session/delete"] {
        let session = editor.session(&daemon);
        let prompts = ["say on\nwait 60000", "say never"];
        let prompts = prompts.map(|prompt| editor.prompt(&session, prompt));
        editor.update("agent_message_chunk");
        let before = editor.log.len();
        let closed = editor.send(method, json!({"sessionId": session}));
        editor.response(closed).unwrap();
        let answers = editor.log[before..]
            .iter()
            .filter_map(|line| line["id"].as_u64());
        let mut answers: Vec<u64> = answers.collect();
        assert_eq!(answers.pop(), Some(closed));
        answers.sort_unstable();
        assert_eq!(answers, prompts, "{method}");
        for id in prompts {
            assert_eq!(editor.response(id).unwrap()["stopReason"], "cancelled");
        }
    }
}

#[test]
fn a_slash_command_that_takes_long_is_cancelled_as_a_turn_is() {
    let daemon = TestDaemon::start();
    let plugins = daemon.path("home").join(".agents/plugins");
    fs::create_dir_all(&plugins).unwrap();
    let nap = r#"
import dwell, time


@dwell.setup
def nap(session):
    @session.commands.register("nap")
    def nap(args):
        open(args, "w").close()
        time.sleep(600)
"#;
    fs::write(plugins.join("nap.py"), nap).unwrap();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let cancels = [
        ("session/cancel", json!({"sessionId": session})),
        ("$/cancel_request", json!({"requestId": 0})),
        ("$/cancelRequest", json!({"id": 0})),
    ];
    for (at, (method, mut params)) in cancels.into_iter().enumerate() {
        let mark = daemon.work().join(format!("mark{at}"));
        let id = editor.prompt(&session, &format!("/nap {}", mark.display()));
        until_true("it naps", SOON, || mark.exists());
        for name in ["requestId", "id"] {
            if params.get(name).is_some() {
                params[name] = json!(id);
            }
        }
        editor.notify(method, params);
        assert_eq!(
            editor.response(id).unwrap()["stopReason"],
            "cancelled",
            "{method}"
        );
    }
    assert_eq!(editor.turn(&session, "say on").0, "end_turn");
}

#[test]
fn an_editor_is_told_of_its_servers_that_do_not_start_and_of_those_of_one_name() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let server = |name: &str, command: &str| json!({"name": name, "command": command, "args": [], "env": []});
    let servers = [
        server("bad", "/nope/x"),
        server("ed", "/nope/first"),
        server("ed", "/nope/second"),
    ];
    editor.call(
        "session/new",
        json!({"cwd": daemon.work(), "mcpServers": servers}),
    );
    for words in [
        "several MCP servers of the editor are called \\\"ed\\\"",
        "/nope/x",
        "/nope/second",
    ] {
        editor.wait(words, |line| {
            line["params"]["update"].to_string().contains(words)
        });
    }
}
