//! Slash commands through the socket: what is one, what each says, and what completes.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::model::{Answer, FakeModel};
use serde_json::{Value, json};

fn run(client: &mut TestClient, session: &str, line: &str) -> Value {
    client.call("command/run", json!({"session": session, "line": line}))
}

/// What a command printed for its caller.
fn output(client: &mut TestClient, session: &str, line: &str) -> String {
    let result = run(client, session, line);
    assert_eq!(result["ran"], true, "{line}: {result}");
    assert_eq!(result["error"], Value::Null, "{line}");
    result["output"].as_str().unwrap().to_owned()
}

fn completions(client: &mut TestClient, session: &str, line: &str) -> Vec<String> {
    let found = client.call(
        "command/complete",
        json!({"session": session, "line": line}),
    );
    let candidates = found["candidates"].as_array().unwrap();
    let texts = candidates.iter().map(|one| one["text"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

#[test]
fn every_command_is_listed_with_its_slash_and_by_help() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let list = client.call("command/list", json!({"session": session}));
    let help = output(&mut client, &session, "/help");
    for command in list.as_array().unwrap() {
        let name = command["name"].as_str().unwrap();
        assert!(name.starts_with('/') && help.contains(name), "{name}");
        assert_ne!(command["description"], "");
    }
    for name in [
        "/help",
        "/tools",
        "/context",
        "/provider",
        "/clear",
        "/sessions",
    ] {
        assert!(help.contains(name), "{help}");
    }
}

#[test]
fn unknown_command_is_answered_with_all_names_and_a_pasted_path_is_text() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let unknown = run(&mut client, &session, "/nope 1");
    assert_eq!(unknown["ran"], false);
    let error = unknown["error"].as_str().unwrap();
    assert!(
        error.starts_with("unknown command: \"/nope\". Available: /help, /tools, "),
        "{error}"
    );
    let path = run(&mut client, &session, "/usr/bin/env is missing");
    assert_eq!(path["ran"], false);
    assert!(path["error"].as_str().unwrap().contains("text"));
    let fault = client.fault(
        "command/run",
        json!({"session": "no-such-one", "line": "/help"}),
    );
    assert_eq!(fault.code, -32002);
}

#[test]
fn failing_command_gives_its_message_and_the_session_goes_on() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let failed = run(&mut client, &session, "/provider nope");
    assert_eq!(failed["ran"], true);
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.starts_with("unknown provider: \"nope\". Available: stub, "),
        "{error}"
    );
    assert_eq!(client.turn(&session, "say on").said(), "on");
}

#[test]
fn informing_commands_tell_their_caller_and_leave_no_event() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "usage 7 5 3\nsay hello there");
    let before = client.history(&session).newest();

    assert!(output(&mut client, &session, "/tools").contains("execute"));
    let read = output(&mut client, &session, "/tools read");
    assert!(read.contains("path") && read.contains("required"), "{read}");
    assert!(output(&mut client, &session, "/context").contains("hello there"));
    let json = output(&mut client, &session, "/context json");
    let messages: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(messages[0]["role"], "system");
    let last = output(
        &mut client,
        &session,
        &format!("/context {}", messages.len()),
    );
    assert!(last.contains("hello there"), "{last}");
    assert!(output(&mut client, &session, "/provider").contains("* script"));
    assert!(output(&mut client, &session, "/sessions").contains(&session));
    assert!(output(&mut client, &session, "/permissions").contains("execute"));
    let usage = output(&mut client, &session, "/usage");
    assert!(
        usage.contains("tokens in") && usage.contains('7'),
        "{usage}"
    );
    assert!(output(&mut client, &session, "/export").contains("hello there"));

    assert_eq!(client.history(&session).newest(), before);
}

#[test]
fn changing_commands_are_told_to_everybody_by_their_events_alone() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "say before");
    client.attach(&session, None);
    assert_eq!(output(&mut client, &session, "/rename a new title"), "");
    assert_eq!(client.until_type("renamed").last()["title"], "a new title");
    assert_eq!(output(&mut client, &session, "/provider stub"), "");
    assert_eq!(
        client.until_type("provider_switched").last()["name"],
        "stub"
    );
    assert_eq!(output(&mut client, &session, "/clear"), "");
    client.until_type("cleared");
    assert!(!output(&mut client, &session, "/context json").contains("before"));
    let params = json!({"session": session, "line": "/fork "});
    let offered = client.call("command/complete", params)["candidates"].clone();
    assert_eq!(offered, json!([]), "nothing stands before the first prompt");
    let fork = output(&mut client, &session, "/fork 2");
    assert!(fork.starts_with("forked as "), "{fork}");
}

#[test]
fn switch_keeps_the_conversation_and_takes_the_new_providers_default_model() {
    let model = FakeModel::start([Answer::text(["fine"]), Answer::text(["fine"])]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    output(&mut client, &session, "/provider script");
    client.turn(&session, "say kept in mind");
    output(&mut client, &session, "/provider openai");
    client.turn(&session, "and now?");
    let request = model.requests().pop().unwrap();
    assert!(request["messages"].to_string().contains("kept in mind"));
    assert_ne!(request["model"], Value::Null);
    output(&mut client, &session, "/model another");
    client.turn(&session, "and now?");
    assert_eq!(model.requests().pop().unwrap()["model"], "another");
}

#[test]
fn names_arguments_and_files_complete() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    std::fs::create_dir(daemon.work().join("source")).unwrap();
    std::fs::write(daemon.work().join("source/main.rs"), "").unwrap();
    assert_eq!(completions(&mut client, &session, "/to"), ["/tools"]);
    assert_eq!(
        completions(&mut client, &session, "/provider scr"),
        ["script"]
    );
    assert_eq!(
        completions(&mut client, &session, "/tools exe"),
        ["execute"]
    );
    assert_eq!(
        completions(&mut client, &session, "look at @sou"),
        ["@source/"]
    );
    assert_eq!(
        completions(&mut client, &session, "look at source/"),
        ["source/main.rs"]
    );
    assert_eq!(
        completions(&mut client, &session, "/nothing x"),
        Vec::<String>::new()
    );
}

#[test]
fn compact_goes_on_with_the_models_summary_and_a_turn_that_fails_changes_nothing() {
    let model = FakeModel::start([
        Answer::text(["it is blue"]),
        Answer::text(["Blue was", " chosen."]),
        Answer::text(["as said"]),
        Answer::status(400, "too long"),
    ]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    let nothing = run(&mut client, &session, "/compact");
    assert_eq!(nothing["error"], "there is nothing to sum up yet");
    client.turn(&session, "which colour?");
    client.attach(&session, None);
    assert_eq!(output(&mut client, &session, "/compact"), "");
    assert_eq!(
        client.until_type("compacted").last()["summary"],
        "Blue was chosen."
    );
    client.turn(&session, "go on");
    let request = model.requests().pop().unwrap()["messages"].to_string();
    assert!(request.contains("Blue was chosen."), "{request}");
    assert!(
        !request.contains("which colour?") && !request.contains("Sum up"),
        "{request}"
    );

    let failed = run(&mut client, &session, "/compact");
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("there is no summary: Error: "), "{error}");
    let context = output(&mut client, &session, "/context json");
    assert!(
        context.contains("Blue was chosen.") && context.contains("as said"),
        "{context}"
    );
}

#[test]
fn init_starts_a_turn_for_everybody_to_see() {
    let model = FakeModel::start([Answer::text(["written"])]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    assert_eq!(output(&mut client, &session, "/init"), "");
    assert_eq!(client.until_ended().said(), "written");
    assert!(
        model.requests()[0]["messages"]
            .to_string()
            .contains("AGENTS.md")
    );
}

#[test]
fn skills_stand_in_the_prompt_by_name_and_are_read_by_the_tool() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    assert!(output(&mut client, &session, "/skills").starts_with("no skills"));
    let run_skill = |client: &mut TestClient, name: &str| {
        let params = json!({"session": session, "name": "skill", "arguments": {"name": name}});
        client.call("tool/run", params)
    };
    assert!(
        run_skill(&mut client, "pdf")["error"]
            .to_string()
            .contains("unknown tool")
    );
    daemon.write(
        ".agents/skills/pdf/SKILL.md",
        "---\nname: pdf\ndescription: Reads forms\n---\n# PDF\nUse pdftotext.\n",
    );
    let folder = daemon.path("home").join(".agents/skills");
    for (name, about) in [("pdf", "another"), ("tidy", "Sweeps up")] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
        let text = format!("---\nname: {name}\ndescription: {about}\n---\nbody");
        std::fs::write(folder.join(name).join("SKILL.md"), text).unwrap();
    }
    let listed = output(&mut client, &session, "/skills");
    assert!(
        listed.starts_with("pdf   Reads forms  ") && listed.contains("tidy  Sweeps up"),
        "{listed}"
    );
    let prompt = output(&mut client, &session, "/context json");
    assert!(
        prompt.contains("- pdf: Reads forms\\n- tidy: Sweeps up"),
        "{prompt}"
    );
    assert!(!prompt.contains("pdftotext"));
    let read = run_skill(&mut client, "pdf");
    assert_eq!(read["content"], "# PDF\nUse pdftotext.");
    assert_eq!(
        read["directory"],
        json!(daemon.work().join(".agents/skills/pdf"))
    );
    let unknown = run_skill(&mut client, "x");
    assert_eq!(
        unknown["error"],
        "unknown skill: \"x\". Available: pdf, tidy."
    );
}

#[test]
fn a_session_is_forked_before_a_prompt_that_is_chosen_by_its_words() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for prompt in ["say one", "say two", "\nsay three\nsay more"] {
        client.turn(&session, prompt);
    }
    let params = json!({"session": session, "line": "/fork "});
    let offered = client.call("command/complete", params)["candidates"].clone();
    let words: Vec<&Value> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["description"])
        .collect();
    assert_eq!(words, ["before: say three", "before: say two"]);
    let line = format!("/fork {}", offered[1]["text"].as_str().unwrap());
    let fork = output(&mut client, &session, &line);
    let fork = fork
        .split_whitespace()
        .nth(2)
        .unwrap()
        .trim_end_matches(':');
    let prompts: Vec<Value> = client
        .history(fork)
        .of("turn_started")
        .iter()
        .map(|event| event["text"].clone())
        .collect();
    assert_eq!(prompts, ["say one"]);
}
