//! `dwell acp` as an editor sees it: over standard streams, with editors' own libraries, and beside other clients.

use harness::binaries::binaries;
use harness::clients::{Clients, run};
use harness::daemon::TestDaemon;
use harness::editor::{Editor, words};
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::process::Command;

fn kinds(updates: &[Value]) -> Vec<&str> {
    let kind = |update: &'_ Value| {
        update["sessionUpdate"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let mut kinds: Vec<&str> = Vec::new();
    for update in updates {
        let kind = kind(update);
        if kinds.last() != Some(&kind.as_str()) {
            kinds.push(update["sessionUpdate"].as_str().unwrap());
        }
    }
    kinds
}

#[test]
fn no_version_but_the_one_spoken_is_ever_answered() {
    let daemon = TestDaemon::start();
    for version in [0, 1, 2, 65_535] {
        let mut editor = Editor::launch(&daemon, &[]);
        let hello = editor.call("initialize", json!({"protocolVersion": version}));
        assert_eq!(hello["protocolVersion"], 1);
        assert_eq!(hello["agentInfo"]["name"], "dwell");
        let capabilities = &hello["agentCapabilities"];
        assert_eq!(capabilities["loadSession"], true);
        assert_eq!(capabilities["mcpCapabilities"]["http"], true);
        assert_eq!(capabilities["promptCapabilities"]["image"], true);
        for name in ["list", "delete", "resume", "close"] {
            assert!(
                capabilities["sessionCapabilities"][name].is_object(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_turn_shows_thoughts_words_calls_and_plans_before_it_is_answered() {
    let daemon = TestDaemon::allowing();
    daemon.write("a.txt", "one\n");
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let prompt = [
        "think hm",
        "say grün 😀",
        r#"do edit {"path": "a.txt", "old": "one", "new": "two"}"#,
        r#"do todo {"items": [{"text": "a", "status": "done"}, {"text": "b"}]}"#,
        r#"do execute {"command": "echo out"}"#,
        "say done",
    ];
    let (stop, updates) = editor.turn(&session, &prompt.join("\n"));
    assert_eq!(stop, "end_turn");
    assert_eq!(words(&updates, "agent_thought_chunk"), "hm");
    assert_eq!(words(&updates, "agent_message_chunk"), "grün 😀done");
    assert_eq!(daemon.read("a.txt"), "two\n");

    let of = |kind: &str| -> Vec<&Value> {
        updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    };
    let calls = of("tool_call");
    let shown: Vec<&Value> = calls.iter().map(|call| &call["kind"]).collect();
    assert_eq!(shown, ["edit", "think", "execute"]);
    assert_eq!(calls[2]["title"], "echo out");
    let path = json!(daemon.work().join("a.txt"));
    assert_eq!(calls[0]["locations"][0]["path"], path);
    let diff = json!({"type": "diff", "path": path, "oldText": "one", "newText": "two"});
    assert_eq!(calls[0]["content"][0], diff);

    let of_edit: Vec<&Value> = of("tool_call_update")
        .into_iter()
        .filter(|update| update["toolCallId"] == calls[0]["toolCallId"])
        .collect();
    let statuses: Vec<&Value> = of_edit.iter().map(|update| &update["status"]).collect();
    assert_eq!(statuses, ["in_progress", "completed"]);
    assert_eq!(
        of_edit[1]["content"][0], diff,
        "the change stays to be seen"
    );
    assert_eq!(of_edit[1]["rawOutput"]["ok"], true);

    let plan = of("plan");
    assert_eq!(plan[0]["entries"][0]["status"], "completed");
    assert_eq!(plan[0]["entries"][1]["status"], "pending");
}

#[test]
fn servers_of_the_editor_are_its_sessions_alone_until_it_is_closed() {
    let sandbox = Sandbox::new();
    sandbox
        .permissions(&json!({"near__echo": "allow", "near__variable": "allow", "task": "allow"}));
    let mut daemon = TestDaemon::start_in(sandbox);
    let script = harness::binaries::root().join("tests/fixtures/mcp/server.py");
    let server = json!({
        "name": "near", "command": "python3", "args": [script, "", daemon.path("home")],
        "env": [{"name": "KEY", "value": "of ${HOME}"}],
    });
    let asked = json!({"cwd": daemon.work(), "mcpServers": [server]});
    let mut editor = Editor::start(&daemon);
    let made = editor.call("session/new", asked.clone());
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let runs = |daemon: &TestDaemon, session: &str, name: &str, arguments: Value| {
        let params = json!({"session": session, "name": name, "arguments": arguments});
        daemon.client().call("tool/run", params)
    };
    let says = json!({"text": "hi"});
    let prompt = r#"do near__echo {"text": "in a turn"}"#;
    let (stop, updates) = editor.turn(&session, &format!("{prompt}\nsay done"));
    assert_eq!(stop, "end_turn");
    assert!(
        updates
            .iter()
            .any(|one| one["rawOutput"]["content"] == "in a turn"),
        "{updates:?}"
    );
    let key = runs(&daemon, &session, "near__variable", json!({"name": "KEY"}));
    assert_eq!(
        key["content"], "of ${HOME}",
        "what an editor says is what is meant"
    );
    let other = daemon.client().session(&daemon.work());
    let unknown = runs(&daemon, &other, "near__echo", says.clone());
    assert!(
        unknown["error"]
            .as_str()
            .unwrap()
            .starts_with("unknown tool"),
        "{unknown}"
    );
    let running = || -> usize {
        let mark = daemon.path("home").to_str().unwrap().to_owned();
        let is_it = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("server.py")
        };
        harness::procfs::marked(&mark)
            .into_iter()
            .filter(is_it)
            .count()
    };
    assert_eq!(running(), 1);
    // The session has them also where nobody names them again.
    drop(editor);
    daemon.kill9();
    daemon.restart();
    assert_eq!(
        runs(&daemon, &session, "near__echo", says.clone())["content"],
        "hi"
    );
    let mut editor = Editor::start(&daemon);
    let mut load = asked;
    load["sessionId"] = json!(session);
    editor.call("session/resume", load);
    assert_eq!(
        runs(&daemon, &session, "near__echo", says.clone())["content"],
        "hi"
    );
    editor.call("session/close", json!({"sessionId": session}));
    assert!(runs(&daemon, &session, "near__echo", says)["error"].is_string());
    let running = || {
        let mark = daemon.path("home").to_str().unwrap().to_owned();
        harness::procfs::marked(&mark).into_iter().any(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("server.py")
        })
    };
    harness::wait::until_true("it has ended", harness::wait::SOON, || !running());
}

#[test]
fn questions_are_asked_and_the_answer_decides() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for (option, runs) in [("no", false), ("once", true), ("session", true)] {
        let id = editor.prompt(&session, "do execute {\"command\": \"echo ran\"}\nsay end");
        let asked = editor.asked("session/request_permission");
        assert_eq!(asked["params"]["sessionId"], session.as_str());
        assert_eq!(
            asked["params"]["toolCall"]["rawInput"]["command"],
            "echo ran"
        );
        let options = asked["params"]["options"].as_array().unwrap();
        let words: Vec<&Value> = options.iter().map(|option| &option["name"]).collect();
        assert_eq!(
            words,
            [
                "Allow",
                "Allow for this session",
                "Always allow echo ran",
                "Deny"
            ]
        );
        let chosen = json!({"outcome": {"outcome": "selected", "optionId": option}});
        editor.answer(&asked, chosen);
        let done = editor.wait("the call's end", |line| {
            let update = &line["params"]["update"];
            update["status"] == "completed" || update["status"] == "failed"
        });
        let status = &done["params"]["update"]["status"];
        assert_eq!(
            status,
            if runs { "completed" } else { "failed" },
            "{option}"
        );
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    }
    // Granted for the session: nobody is asked again.
    let before = editor.log.len();
    editor.turn(&session, "do execute {\"command\": \"echo ran\"}");
    let asked = |line: &&Value| line["method"] == "session/request_permission";
    assert_eq!(editor.log[before..].iter().find(asked), None);
}

#[test]
fn the_answer_of_another_client_takes_the_question_back() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let id = editor.prompt(&session, "do execute {\"command\": \"echo ran\"}\nsay end");
    let asked = editor.asked("session/request_permission");
    let mut other = daemon.client();
    let waiting = other.call("approval/list", json!({"session": session}));
    other.answer(&waiting[0]["approval"], "allow").unwrap();
    let back = editor.asked("$/cancel_request");
    assert_eq!(back["params"]["requestId"], asked["id"]);
    // It crosses ours, and does nothing any more.
    editor.answer(
        &asked,
        json!({"outcome": {"outcome": "selected", "optionId": "no"}}),
    );
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
}

#[test]
fn neither_a_cancelled_question_nor_a_closed_editor_is_a_yes() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    editor.prompt(
        &session,
        "do execute {\"command\": \"echo ran > ran\"}\nsay end",
    );
    let asked = editor.asked("session/request_permission");
    editor.answer(&asked, json!({"outcome": {"outcome": "cancelled"}}));
    assert!(editor.quit().unwrap().success());
    let mut other = daemon.client();
    let state = other.call("session/get", json!({"session": session}));
    assert_eq!(state["state"], "waiting", "it waits for somebody else");
    assert_eq!(daemon.read("ran"), "");

    // An editor that opens the session again is asked again.
    let mut editor = Editor::start(&daemon);
    let open = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
    editor.call("session/load", open);
    let asked = editor.asked("session/request_permission");
    editor.answer(
        &asked,
        json!({"outcome": {"outcome": "selected", "optionId": "once"}}),
    );
    editor.wait("the end", |line| {
        line["params"]["update"]["content"]["text"] == "end"
    });
    assert_eq!(daemon.read("ran"), "ran\n");
}

#[test]
fn modes_answer_for_the_person() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for (mode, ok) in [("allow", true), ("deny", false)] {
        editor.call(
            "session/set_mode",
            json!({"sessionId": session, "modeId": mode}),
        );
        assert_eq!(editor.update("current_mode_update")["currentModeId"], mode);
        let (stop, updates) = editor.turn(&session, "do execute {\"command\": \"true\"}");
        assert_eq!(stop, "end_turn");
        let status = if ok { "completed" } else { "failed" };
        assert!(
            updates.iter().any(|update| update["status"] == status),
            "{mode}: {updates:#?}"
        );
    }
    let unknown = json!({"sessionId": session, "modeId": "yolo"});
    let id = editor.send("session/set_mode", unknown);
    assert_eq!(editor.response(id).unwrap_err()["code"], -32602);
}

#[test]
fn a_cancel_right_behind_its_prompt_ends_the_turn() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for _ in 0..20 {
        let id = editor.prompt(&session, "wait 60000\nsay never");
        editor.notify("session/cancel", json!({"sessionId": session}));
        assert_eq!(editor.response(id).unwrap()["stopReason"], "cancelled");
    }
    // One that waits behind another, and is taken back by its request's id: the other goes on.
    let first = editor.prompt(&session, "say on\nwait 60000");
    editor.update("agent_message_chunk");
    let second = editor.prompt(&session, "say never");
    editor.notify("$/cancel_request", json!({"requestId": second}));
    assert_eq!(editor.response(second).unwrap()["stopReason"], "cancelled");
    let now = daemon
        .client()
        .call("session/get", json!({"session": session}));
    assert_eq!(now["state"], "running");
    // As libraries for language servers spell it.
    editor.notify("$/cancelRequest", json!({"id": first}));
    assert_eq!(editor.response(first).unwrap()["stopReason"], "cancelled");
    let (stop, _) = editor.turn(&session, "say still here");
    assert_eq!(stop, "end_turn");
}

#[test]
fn a_prompt_behind_a_cancel_or_behind_a_turn_that_fails_is_played() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for round in 0..10 {
        let first = editor.prompt(&session, "say x\nwait 60000");
        // Also where nothing has begun when the cancel comes.
        if round % 2 == 0 {
            editor.update("agent_message_chunk");
        }
        editor.notify("session/cancel", json!({"sessionId": session}));
        let second = editor.prompt(&session, "say y");
        assert_eq!(editor.response(first).unwrap()["stopReason"], "cancelled");
        assert_eq!(editor.response(second).unwrap()["stopReason"], "end_turn");
    }
    let mut other = daemon.client();
    other.attach(&session, None);
    for end in ["wait 300\nfail broken", "wait 60000"] {
        let first = editor.prompt(&session, &format!("say begun\n{end}"));
        editor.update("agent_message_chunk");
        let second = editor.prompt(&session, "say behind");
        other.until_type("queued");
        if end == "wait 60000" {
            other.call("turn/cancel", json!({"session": session}));
        }
        let _ = editor.response(first);
        assert_eq!(editor.response(second).unwrap()["stopReason"], "end_turn");
    }
}

#[test]
fn a_session_that_is_opened_again_goes_on_with_its_prompt() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let open = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
    for method in ["session/load", "session/resume"] {
        let id = editor.prompt(&session, "say one\nwait 400\nsay two");
        editor.update("agent_message_chunk");
        let before = editor.log.len();
        editor.call(method, open.clone());
        assert_eq!(
            editor.response(id).unwrap()["stopReason"],
            "end_turn",
            "{method}"
        );
        let words = words(&editor.updates(before), "agent_message_chunk");
        assert!(words.ends_with("two"), "{method}: {words}");
    }
    let elsewhere = json!({"sessionId": session, "cwd": "rel", "mcpServers": []});
    let id = editor.send("session/load", elsewhere);
    assert_eq!(editor.response(id).unwrap_err()["code"], -32602);
}

#[test]
fn a_title_that_a_session_takes_from_its_first_prompt_is_told() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    editor.turn(&session, "say hello");
    let told = editor.updates(0);
    let told = told
        .iter()
        .find(|update| update["sessionUpdate"] == "session_info_update");
    assert_eq!(told.unwrap()["title"], "say hello");
    let mut cwd = daemon.work().into_os_string();
    cwd.push("/");
    let listed = editor.call("session/list", json!({"cwd": cwd.to_str().unwrap()}));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
}

#[test]
fn loading_replays_all_before_it_answers_and_resuming_nothing() {
    let daemon = TestDaemon::allowing();
    daemon.write("a.txt", "one\n");
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    editor.turn(
        &session,
        "think hm\nsay one\ndo read {\"path\": \"a.txt\"}\nsay two",
    );
    assert!(editor.quit().unwrap().success());

    let open = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
    let mut editor = Editor::start(&daemon);
    let before = editor.log.len();
    editor.call("session/load", open.clone());
    let updates = editor.updates(before);
    let expected = [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
        "tool_call",
        "tool_call_update",
        "agent_message_chunk",
    ];
    assert_eq!(kinds(&updates), expected);
    assert_eq!(words(&updates, "agent_message_chunk"), "onetwo");

    let mut editor = Editor::start(&daemon);
    let before = editor.log.len();
    editor.call("session/resume", open);
    let (_, updates) = editor.turn(&session, "say three");
    assert_eq!(words(&updates, "agent_message_chunk"), "three");
    assert_eq!(words(&editor.updates(before), "user_message_chunk"), "");
}

#[test]
fn a_terminal_at_the_same_session_and_the_editor_see_each_other() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let mut other = daemon.client();
    other.attach(&session, None);
    editor.turn(&session, "say from the editor");
    assert_eq!(other.until_ended().said(), "from the editor");
    other.start(&session, "say from the terminal");
    let asked = editor.update("user_message_chunk");
    assert_eq!(asked["content"]["text"], "say from the terminal");
    assert_eq!(
        editor.update("agent_message_chunk")["content"]["text"],
        "from the terminal"
    );
    other.until_ended();

    // A prompt behind the terminal's turn waits for it and is answered with its own end.
    other.start(&session, "wait 300\nsay first");
    let id = editor.prompt(&session, "say second");
    assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    assert_eq!(
        words(&editor.updates(0), "agent_message_chunk")
            .matches("second")
            .count(),
        1
    );
}

#[test]
fn the_session_goes_on_when_the_editor_ends() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    editor.prompt(&session, "say one\nwait 200\nsay two");
    editor.update("agent_message_chunk");
    let mut other = daemon.client();
    other.attach(&session, Some(0));
    assert!(editor.quit().unwrap().success());
    let events = other.until_ended();
    assert_eq!(events.said(), "onetwo");
    assert_eq!(events.last()["status"], "completed");
}

#[test]
fn slash_commands_are_prompts() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let commands = editor.update("available_commands_update");
    let names: Vec<&Value> = commands["availableCommands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|command| &command["name"])
        .collect();
    assert!(names.contains(&&json!("help")), "{names:?}");
    let (stop, updates) = editor.turn(&session, "/help");
    assert_eq!(stop, "end_turn");
    assert!(words(&updates, "agent_message_chunk").contains("/tools"));
    let (_, updates) = editor.turn(&session, "/rename a fine name");
    let info: Vec<&Value> = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "session_info_update")
        .collect();
    assert_eq!(info[0]["title"], "a fine name", "told before the answer");
    let (_, updates) = editor.turn(&session, "/nonsense");
    assert!(words(&updates, "agent_message_chunk").contains("/help"));
    // A command whose work is a turn ends with that turn.
    let (stop, updates) = editor.turn(&session, "/init");
    assert_eq!(stop, "end_turn");
    assert!(
        updates
            .iter()
            .any(|update| update["sessionUpdate"] == "tool_call"),
        "{updates:#?}"
    );
    // What only looks like one is text.
    let (_, updates) = editor.turn(&session, "/a/b");
    assert!(
        words(&updates, "agent_message_chunk").contains("README.md"),
        "the model was asked: {updates:#?}"
    );
}

#[test]
fn provider_and_model_are_options_and_only_providers_that_answer_are_offered() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let asked = json!({"cwd": daemon.work(), "mcpServers": []});
    let made = editor.call("session/new", asked);
    let session = made["sessionId"].clone();
    let option = |options: &Value, id: &str| -> Value {
        let all = options.as_array().unwrap().iter();
        all.clone()
            .find(|option| option["id"] == id)
            .unwrap()
            .clone()
    };
    let provider = option(&made["configOptions"], "provider");
    assert_eq!(provider["currentValue"], "script");
    let offered: Vec<&Value> = provider["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["value"])
        .collect();
    assert!(offered.contains(&&json!("stub")), "{offered:?}");
    assert!(
        !offered.contains(&&json!("anthropic")),
        "it has no key: {offered:?}"
    );

    let set = |id: &str, value: &str| json!({"sessionId": session, "configId": id, "value": value});
    let result = editor.call("session/set_config_option", set("provider", "stub"));
    assert_eq!(
        option(&result["configOptions"], "provider")["currentValue"],
        "stub"
    );
    let told = editor.update("config_option_update");
    assert_eq!(
        option(&told["configOptions"], "provider")["currentValue"],
        "stub"
    );
    let result = editor.call("session/set_config_option", set("mode", "allow"));
    assert_eq!(
        option(&result["configOptions"], "mode")["currentValue"],
        "allow"
    );
    for (id, value) in [("provider", "nobody"), ("nonsense", "x"), ("mode", "yolo")] {
        let id = editor.send("session/set_config_option", set(id, value));
        assert!(editor.response(id).is_err());
    }
    // What somebody else switches is told too.
    let mut other = daemon.client();
    other.call(
        "provider/switch",
        json!({"session": session, "name": "script"}),
    );
    let told = editor.update("config_option_update");
    assert_eq!(
        option(&told["configOptions"], "provider")["currentValue"],
        "script"
    );
}

#[test]
fn sessions_are_listed_closed_and_deleted() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let (one, two) = (editor.session(&daemon), editor.session(&daemon));
    editor.turn(&one, "say hello");
    let listed = |editor: &mut Editor, params: Value| -> Vec<Value> {
        let list = editor.call("session/list", params);
        list["sessions"].as_array().unwrap().clone()
    };
    let all = listed(&mut editor, json!({"cwd": daemon.work()}));
    assert_eq!(all.len(), 2);
    let first = all
        .iter()
        .find(|session| session["sessionId"] == one.as_str())
        .unwrap();
    assert_eq!(first["title"], "say hello");
    assert!(first["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(
        listed(&mut editor, json!({"cwd": "/no/such/place"})),
        [] as [Value; 0]
    );

    let running = editor.prompt(&two, "wait 60000");
    editor.call("session/close", json!({"sessionId": two}));
    assert_eq!(editor.response(running).unwrap()["stopReason"], "cancelled");
    let id = editor.prompt(&two, "say x");
    assert_eq!(editor.response(id).unwrap_err()["code"], -32002);
    for _ in 0..2 {
        editor.call("session/delete", json!({"sessionId": two}));
    }
    assert_eq!(listed(&mut editor, json!({})).len(), 1);
}

#[test]
fn a_failed_turn_is_an_error_in_the_providers_own_words() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let id = editor.prompt(&session, "say half\nfail no more credit");
    let error = editor.response(id).unwrap_err();
    assert_eq!(error["code"], -32603);
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .contains("no more credit"),
        "{error}"
    );
    let (stop, _) = editor.turn(&session, "say on");
    assert_eq!(stop, "end_turn");
}

#[test]
fn nonsense_is_refused_and_harms_nothing() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    for (line, code) in [
        ("{", -32700),
        ("[]", -32600),
        ("7", -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"no/such"}"#, -32601),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"session/new","params":{"cwd":"relative","mcpServers":[]}}"#,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"session/new","params":[1]}"#,
            -32602,
        ),
    ] {
        editor.line(line);
        let said = editor.wait(line, |line| line["error"].is_object());
        assert_eq!(
            (&said["error"]["code"], &said["id"]),
            (&json!(code), &Value::Null),
            "{line}"
        );
    }
    // Whitespace, answers that nobody waits for, notifications that nobody knows: silence.
    editor.line("  ");
    editor.raw(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    editor.notify("_nobody/knows", json!({}));
    editor.notify("session/cancel", json!({"sessionId": "no-such"}));
    let session = editor.session(&daemon);
    let (stop, _) = editor.turn(&session, "say fine");
    assert_eq!(stop, "end_turn");
    assert_eq!(
        editor
            .log
            .iter()
            .filter(|line| line["error"].is_object())
            .count(),
        8
    );
}

#[test]
fn what_was_asked_before_the_end_of_input_is_answered() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::launch(&daemon, &[]);
    let id = editor.send("initialize", json!({"protocolVersion": 1}));
    assert!(editor.quit().unwrap().success());
    assert_eq!(editor.log.iter().filter(|line| line["id"] == id).count(), 1);
}

#[test]
fn a_daemon_that_dies_costs_the_editor_the_turn_and_not_the_session() {
    let mut daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let id = editor.prompt(&session, "say half\nwait 60000");
    editor.update("agent_message_chunk");
    daemon.kill9();
    daemon.restart();
    let error = editor.response(id).unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains("daemon"),
        "{error}"
    );
    let (stop, updates) = editor.turn(&session, "say back");
    assert_eq!(
        (stop, words(&updates, "agent_message_chunk")),
        (json!("end_turn"), "back".to_owned())
    );
}

#[test]
fn a_prompt_that_finds_no_daemon_fails_and_the_next_one_is_answered() {
    let mut daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let (session, other) = (editor.session(&daemon), editor.session(&daemon));
    editor.turn(&session, "say one");
    daemon.term();
    let id = editor.prompt(&session, "say lost");
    let error = editor.response(id).unwrap_err();
    assert!(
        error["message"].as_str().unwrap().contains("stopped"),
        "{error}"
    );
    daemon.restart();
    for (session, word) in [(&session, "back"), (&other, "other"), (&session, "again")] {
        let (stop, updates) = editor.turn(session, &format!("say {word}"));
        assert_eq!(
            (stop, words(&updates, "agent_message_chunk")),
            (json!("end_turn"), word.to_owned())
        );
    }
}

#[test]
fn a_message_that_is_too_long_is_refused_to_whoever_sent_it() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let id = editor.prompt(&session, &"x".repeat(17 << 20));
    assert_eq!(editor.response(id).unwrap_err()["code"], -32600);
    assert_eq!(editor.turn(&session, "say on").0, "end_turn");
}

#[test]
fn a_file_that_is_written_over_is_shown_as_it_was() {
    let daemon = TestDaemon::start();
    daemon.write("old.txt", "precious\n");
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let id = editor.prompt(
        &session,
        "do write {\"path\": \"old.txt\", \"content\": \"new\\n\"}\nsay written",
    );
    let asked = editor.asked("session/request_permission");
    let call = &asked["params"]["toolCall"];
    assert_eq!(call["title"], "write old.txt");
    let old = |content: &Value| content[0]["oldText"].clone();
    assert_eq!(old(&call["content"]), "precious\n");
    let why = call["content"][1]["content"]["text"].as_str().unwrap();
    assert!(!why.is_empty(), "the reason stands beside it");
    let chosen = json!({"outcome": {"outcome": "selected", "optionId": "once"}});
    editor.answer(&asked, chosen);
    editor.response(id).unwrap();
    let updates = editor.updates(0);
    let calls = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == "tool_call" || update["status"] == "completed");
    let shown: Vec<Value> = calls.map(|update| old(&update["content"])).collect();
    assert_eq!(shown, ["precious\n", "precious\n"]);
    assert_eq!(daemon.read("old.txt"), "new\n");
}

#[test]
fn an_image_reaches_the_session() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    let prompt = json!([{"type": "text", "text": "say seen"},
                        {"type": "image", "mimeType": "image/png", "data": "aGk="}]);
    editor.call(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    let events = daemon.client().history(&session);
    let images = json!([{"mime_type": "image/png", "data": "aGk="}]);
    assert_eq!(events.one("turn_started")["images"], images);
}

#[test]
fn files_of_an_untrusted_directory_are_spoken_of() {
    let daemon = TestDaemon::start();
    daemon.write(".agents/permissions.json", "{\"execute\": \"allow\"}");
    let mut editor = Editor::start(&daemon);
    editor.session(&daemon);
    let told = editor.update("agent_thought_chunk");
    let told = told["content"]["text"].as_str().unwrap();
    assert!(
        told.contains("dwell trust") && told.contains("permissions.json"),
        "{told}"
    );
}

/// A daemon in which the scenario of the real clients runs: one call that is asked for.
fn scene() -> TestDaemon {
    let daemon = TestDaemon::start_in(Sandbox::new());
    daemon.write("a.txt", "one\n");
    daemon
}

#[test]
fn the_typescript_sdk_drives_a_session() {
    let name = "the_typescript_sdk_drives_a_session";
    let Some(clients) = Clients::find(name, "node_modules/@agentclientprotocol/sdk") else {
        return;
    };
    let daemon = scene();
    let mut command = Command::new("node");
    command
        .arg(clients.program(&daemon, "acp.mjs"))
        .arg(&binaries().client);
    let said = run(&daemon, command).well();
    assert!(said.contains("scenario passed"), "{said}");
}

#[test]
fn the_python_sdk_drives_a_session() {
    let name = "the_python_sdk_drives_a_session";
    let Some(clients) = Clients::find(name, "py/bin/python") else {
        return;
    };
    let daemon = scene();
    let mut command = Command::new(clients.binary("py/bin/python"));
    command
        .arg(clients.program(&daemon, "acp_sdk.py"))
        .arg(&binaries().client);
    let said = run(&daemon, command).well();
    assert!(said.contains("scenario passed"), "{said}");
}

#[test]
fn acpx_plays_a_turn_whose_call_it_allows() {
    let name = "acpx_plays_a_turn_whose_call_it_allows";
    let Some(clients) = Clients::find(name, "node_modules/.bin/acpx") else {
        return;
    };
    let daemon = scene();
    let acpx = |arguments: &[&str]| {
        let mut command = Command::new(clients.binary("node_modules/.bin/acpx"));
        let agent = format!("{} acp -p script", binaries().client.display());
        command
            .args(["--agent", &agent, "--approve-all"])
            .args(arguments);
        run(&daemon, command).well()
    };
    let said = acpx(&[
        "--format",
        "text",
        "exec",
        "do execute {\"command\": \"echo ran > ran\"}\nsay grün 😀",
    ]);
    assert!(said.contains("grün 😀"), "{said}");
    assert_eq!(daemon.read("ran"), "ran\n");
}
