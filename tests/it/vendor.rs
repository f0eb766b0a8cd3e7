//! Providers of every kind through the daemon: what goes back to whom, executables, local models, and where keys are never
//! seen.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::gguf::{self, Weight};
use harness::model::{Answer, FakeModel};
use harness::sandbox::{Sandbox, set_mode};
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const SIGNATURE: &str = "signature-of-anthropic";

/// What Messages streams for these blocks.
fn messages(blocks: &[Value], stop: &str) -> Answer {
    let mut events =
        vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 1}}})];
    for (index, block) in blocks.iter().enumerate() {
        let mut start = block.clone();
        let mut deltas = Vec::new();
        match block["type"].as_str().unwrap() {
            "text" => {
                start["text"] = "".into();
                deltas.push(json!({"type": "text_delta", "text": block["text"]}));
            }
            "thinking" => {
                start["thinking"] = "".into();
                start["signature"] = "".into();
                deltas.push(json!({"type": "thinking_delta", "thinking": block["thinking"]}));
                deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            }
            _ => {
                start["input"] = json!({});
                let input = block["input"].to_string();
                deltas.push(json!({"type": "input_json_delta", "partial_json": input}));
            }
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.extend(
            deltas.into_iter().map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 2}}));
    events.push(json!({"type": "message_stop"}));
    events.iter().fold(Answer::raw(), |answer, event| {
        let name = event["type"].as_str().unwrap();
        answer.bytes(format!("event: {name}\ndata: {event}\n\n"))
    })
}

fn thought() -> Value {
    json!({"type": "thinking", "thinking": "the file will tell", "signature": SIGNATURE})
}

fn call(name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A daemon whose `anthropic` is one fake model and whose `openai` is another.
fn two(anthropic: &FakeModel, openai: &FakeModel) -> TestDaemon {
    let mut sandbox = Sandbox::new();
    sandbox.set("ANTHROPIC_BASE_URL", anthropic.base_url());
    sandbox.set("ANTHROPIC_API_KEY", "k1");
    sandbox.set("OPENAI_BASE_URL", openai.base_url());
    sandbox.set("OPENAI_API_KEY", "k2");
    TestDaemon::start_in(sandbox)
}

fn session(daemon: &TestDaemon, client: &mut TestClient, provider: &str) -> String {
    client.session_with(json!({"cwd": daemon.work(), "provider": provider}))
}

#[test]
fn signed_thinking_goes_back_in_the_same_turn_and_never_after() {
    let model = FakeModel::start([
        messages(
            &[thought(), call("read", json!({"path": "a.txt"}))],
            "tool_use",
        ),
        messages(&[text("it says hello")], "end_turn"),
        messages(&[text("you are welcome")], "end_turn"),
    ]);
    let daemon = two(&model, &model);
    daemon.write("a.txt", "hello\n");
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "anthropic");
    let events = client.turn(&session, "read a.txt");
    assert_eq!(events.said(), "it says hello");
    assert_eq!(events.of("thinking")[0]["text"], "the file will tell");
    client.turn(&session, "thanks");
    let requests = model.requests();
    let assistant = &requests[1]["messages"][1];
    assert_eq!(assistant["content"][0], thought());
    assert_eq!(assistant["content"][1]["type"], "tool_use");
    assert_eq!(
        requests[1]["messages"][2]["content"][0]["type"],
        "tool_result"
    );
    assert!(
        !requests[2].to_string().contains(SIGNATURE),
        "{}",
        requests[2]
    );
    assert!(
        requests[2].to_string().contains("toolu_1"),
        "calls stay in the conversation"
    );
}

#[test]
fn provider_that_is_switched_to_in_mid_turn_gets_no_signature_of_the_other() {
    let marks = call("execute", json!({"command": "echo ran >> ran"}));
    let anthropic = FakeModel::start([
        messages(&[thought(), marks], "tool_use"),
        messages(&[text("back again")], "end_turn"),
    ]);
    let openai = FakeModel::start([Answer::text(["done by the other"])]);
    let daemon = two(&anthropic, &openai);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "anthropic");
    client.attach(&session, None);
    client.start(&session, "go");
    let asked = client.until_type("approval_asked").last().clone();
    client.call(
        "provider/switch",
        json!({"session": session, "name": "openai"}),
    );
    client.answer(&asked["approval"], "allow").unwrap();
    let events = client.until_ended();
    assert_eq!(events.last()["reply"], "done by the other");
    let sent = openai.requests()[0].to_string();
    assert!(
        sent.contains("toolu_1") && !sent.contains(SIGNATURE),
        "{sent}"
    );
    assert!(!sent.contains("the file will tell"), "{sent}");
    client.call(
        "provider/switch",
        json!({"session": session, "name": "anthropic"}),
    );
    assert_eq!(client.turn(&session, "and you?").said(), "back again");
    let sent = anthropic.requests()[1].to_string();
    assert!(
        sent.contains("done by the other") && !sent.contains(SIGNATURE),
        "{sent}"
    );
}

#[test]
fn first_provider_with_a_key_is_chosen_and_one_that_cannot_be_built_leaves_the_old() {
    let model = FakeModel::start([messages(&[text("hi")], "end_turn")]);
    let daemon = two(&model, &model);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.call(
        "provider/switch",
        json!({"session": session, "name": "script"}),
    );
    let chosen = client.call("session/create", json!({"cwd": daemon.work()}));
    assert_eq!(chosen["provider"], "anthropic");
    let fault = client.fault(
        "provider/switch",
        json!({"session": session, "name": "mistral"}),
    );
    let expected =
        "mistral has no key: set MISTRAL_API_KEY, or MISTRAL_BASE_URL for a server that needs none";
    let told = fault.message.starts_with(expected);
    assert!(fault.code == -32010 && told, "{}", fault.message);
    let now = client.call("session/get", json!({"session": session}));
    assert_eq!(now["provider"], "script");
}

/// An executable on PATH that serves `far`: it tells its environment's key to stderr, and answers.
fn install_far(sandbox: &mut Sandbox, fetch: &str) {
    let folder = sandbox.path("bin");
    fs::create_dir(&folder).unwrap();
    let script = format!(
        r#"#!/bin/sh
echo $$ > "$HOME/far.pid"
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  case $line in
    *plugin/setup*) echo "{{\"id\":$id,\"result\":{{\"providers\":[{{\"name\":\"far\"}}]}}}}" ;;
    *provider/build*) echo "{{\"id\":$id,\"result\":{{\"instance\":\"i\",\"model\":\"far-1\"}}}}" ;;
    *provider/fetch*) {fetch} ;;
  esac
done
"#
    );
    let path = folder.join("dwell-provider-far");
    fs::write(&path, script).unwrap();
    set_mode(&path, 0o755);
    let found = std::env::var("PATH").unwrap_or_default();
    sandbox.set("PATH", format!("{}:{found}", folder.display()));
}

#[test]
fn what_an_executable_says_shows_no_key_and_a_name_that_it_takes_is_told() {
    let mut sandbox = Sandbox::new();
    install_far(&mut sandbox, "echo \"bad: $OPENAI_API_KEY\" >&2; exit 9");
    let path = sandbox.path("bin").join("dwell-provider-far");
    let script = fs::read_to_string(&path).unwrap();
    let more = r#"{\"name\":\"far\"},{\"name\":\"groq\"},{\"name\":\"two words\"}"#;
    fs::write(&path, script.replace(r#"{\"name\":\"far\"}"#, more)).unwrap();
    sandbox.set("OPENAI_API_KEY", "sk-of-the-daemon");
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "far");
    let listed = client.call("provider/list", json!({}));
    let named = |name: &str| {
        listed
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["name"] == name)
    };
    let source = &named("groq").unwrap()["source"];
    assert_eq!(source, "dwell-provider-far, replaces builtin");
    assert!(named("two words").is_none());
    let events = client.turn(&session, "hello");
    let reply = events.last()["reply"].as_str().unwrap().to_owned();
    assert!(reply.ends_with("exit status 9: bad: ***"), "{reply}");
    let log = daemon.log();
    assert!(
        log.contains("bad: ***") && log.contains("\"two words\""),
        "{log}"
    );
    assert!(!log.contains("sk-of-the-daemon"), "{log}");
}

#[test]
fn command_for_a_key_ends_with_the_client_that_wanted_it() {
    let mut sandbox = Sandbox::new();
    let config = "[provider.house]\nbase_url = 'http://127.0.0.1:9'\nmodel = 'm'\napi_key_command = 'echo $$ > $HOME/pid.new; mv $HOME/pid.new $HOME/pid; exec sleep 600'\n";
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    sandbox.unset("DWELL_PROVIDER");
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    client.send(
        "session/create",
        json!({"cwd": daemon.work(), "provider": "house"}),
    );
    let told = daemon.path("home").join("pid");
    until_true("the command runs", SOON, || told.exists());
    let process = Path::new("/proc").join(fs::read_to_string(&told).unwrap().trim());
    assert!(process.exists());
    drop(client);
    until_true("it ends with the client", SOON, || !process.exists());
}

#[test]
fn server_elsewhere_that_a_shell_names_is_spoken_of() {
    let daemon = TestDaemon::start();
    let ask = |url: &str| {
        let ask = Dwell::new(&daemon).env("OPENAI_BASE_URL", url);
        ask.args(["ask", "-p", "openai", "hi"]).run().stderr
    };
    let said = ask("http://models.invalid/v1");
    assert!(
        said.contains("OPENAI_BASE_URL of this shell names models.invalid,"),
        "{said}"
    );
    assert!(said.contains("openai has no key"), "{said}");
    let said = ask("http://127.0.0.1:9/v1");
    assert!(!said.contains("of this shell"), "{said}");
}

#[test]
fn executable_on_path_is_a_provider_and_its_crash_costs_one_turn() {
    let mut sandbox = Sandbox::new();
    install_far(
        &mut sandbox,
        r#"case $line in
      *crash*) echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"doing\",\"name\":\"list\"}}"; echo "the disk is full" >&2; exit 9 ;;
      *) echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"saying\",\"text\":\"from far\"}}"; echo "{\"id\":$id,\"result\":{}}" ;;
    esac"#,
    );
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "far");
    assert_eq!(client.turn(&session, "hello").said(), "from far");
    let listed = client.call("provider/list", json!({}));
    let far = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == "far");
    assert_eq!(far.unwrap()["source"], "executable");
    let events = client.turn(&session, "crash");
    let reply = "Error: dwell-provider-far ended with exit status 9: the disk is full";
    assert_eq!(events.last()["reply"], reply);
    client.call("session/clear", json!({"session": session}));
    assert_eq!(client.turn(&session, "hello").said(), "from far");
    let pid = fs::read_to_string(daemon.path("home").join("far.pid")).unwrap();
    let process = Path::new("/proc").join(pid.trim());
    assert!(process.exists(), "it serves the next turn too");
    daemon.term();
    until_true("it ends with the daemon", SOON, || !process.exists());
}

#[test]
fn local_model_answers_through_the_daemon_after_a_switch_from_a_vendor() {
    let model = FakeModel::start([messages(&[text("hi")], "end_turn")]);
    let daemon = two(&model, &model);
    daemon.write("README.md", "# hello\n");
    let file = daemon.path("model.gguf");
    gguf::write_gguf(&file, Weight::Light);
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, "anthropic");
    client.turn(&session, "hi");
    let local = json!({"session": session, "name": "llama", "model": file});
    client.call("provider/switch", local);
    let events = client.turn(&session, "read README.md");
    assert_eq!(events.one("doing")["name"], "read");
    assert_eq!(events.last()["reply"], gguf::AFTER);
}

/// Every file below, as bytes.
fn all_bytes(folder: &Path, into: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => all_bytes(&path, into),
            kind if kind.is_file() => {
                into.push((path.display().to_string(), fs::read(&path).unwrap()));
            }
            _ => {}
        }
    }
}

#[test]
fn keys_are_in_nothing_that_is_written_or_told_or_seen_by_a_tool() {
    const KEYS: [&str; 4] = [
        "key-of-env-1234",
        "key-of-file-1234",
        "key-of-command-1234",
        "key-of-own-1234",
    ];
    let model = FakeModel::start([]);
    let mut sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    sandbox.set("OPENAI_BASE_URL", model.base_url());
    sandbox.set("OPENAI_API_KEY", KEYS[0]);
    sandbox.set("OWN_KEY", KEYS[3]);
    sandbox.set("DWELL_LOG", "trace");
    let base = model.base_url();
    let config = format!(
        "[provider.groq]\nbase_url = '{base}'\napi_key = '{}'\n\
         [provider.mistral]\nbase_url = '{base}'\napi_key_command = 'cat command-key; echo oh >&2'\n\
         [provider.house]\nbase_url = '{base}'\nmodel = 'm'\napi_key_variable = 'OWN_KEY'\n",
        KEYS[1]
    )
    .replace("command-key", sandbox.path("command-key").to_str().unwrap());
    fs::write(sandbox.path("command-key"), format!("{}\nmore\n", KEYS[2])).unwrap();
    let file = sandbox.path("config").join("config.toml");
    fs::write(&file, config).unwrap();
    set_mode(&file, 0o600);
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let mut told = Vec::new();
    let env = json!({"PATH": std::env::var("PATH").unwrap(), "OPENAI_API_KEY": KEYS[0], "OWN_KEY": KEYS[3],
        "GROQ_API_KEY": KEYS[1], "MISTRAL_API_KEY": KEYS[2]});
    for (provider, key) in ["openai", "groq", "mistral", "house"].into_iter().zip(KEYS) {
        // Servers like to say which key was wrong.
        model.set([Answer::status(401, &format!("bad key {key}"))]);
        let made = json!({"cwd": daemon.work(), "provider": provider, "env": env});
        let session = client.session_with(made);
        let events = client.turn(&session, "go");
        assert!(
            events.last()["reply"].as_str().unwrap().contains("***"),
            "{provider}: {}",
            events.last()
        );
        let ran = client.call(
            "tool/run",
            json!({"session": session, "name": "execute",
            "arguments": {"command": "env; cat /proc/$$/environ"}}),
        );
        assert!(ran["content"].as_str().unwrap().contains("PATH="), "{ran}");
        for method in ["session/get", "session/history", "session/export"] {
            let params = json!({"session": session, "format": "json"});
            told.push(client.call(method, params).to_string());
        }
        told.push(ran.to_string());
        told.push(format!("{events:?}"));
        let fault = client.fault("provider/models", json!({"name": "openrouter"}));
        told.push(fault.message);
    }
    told.push(client.call("provider/list", json!({})).to_string());
    daemon.term();
    // The commands with the keys were sent; what the daemon wrote is below.
    let mut written = vec![("log".to_owned(), daemon.log().into_bytes())];
    for part in ["data", "state", "work", "home"] {
        all_bytes(&daemon.path(part), &mut written);
    }
    assert!(
        written
            .iter()
            .any(|(name, _)| name.ends_with("sessions.db"))
    );
    written.extend(
        told.into_iter()
            .map(|text| ("told".to_owned(), text.into_bytes())),
    );
    for key in KEYS {
        for (name, bytes) in &written {
            let found = bytes.windows(key.len()).any(|part| part == key.as_bytes());
            assert!(!found, "{key} is in {name}");
        }
    }
}

#[test]
fn config_with_a_key_that_others_may_read_is_refused_without_the_key() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("config").join("config.toml");
    fs::write(&file, "[provider.openai]\napi_key = 'very-secret-key'\n").unwrap();
    set_mode(&file, 0o644);
    let mut daemon = TestDaemon::stopped(sandbox, &harness::binaries::binaries().daemon);
    daemon.launch();
    assert_eq!(daemon.wait_exit().code(), Some(1));
    let log = daemon.log();
    assert!(
        log.contains("chmod 600") && !log.contains("very-secret-key"),
        "{log}"
    );
    fs::write(&file, "[provider.openai]\napi_key = 'very-secret-key\n").unwrap();
    daemon.launch();
    daemon.wait_exit();
    let log = daemon.log();
    assert!(
        log.contains("cannot use") && !log.contains("very-secret-key"),
        "{log}"
    );
}
