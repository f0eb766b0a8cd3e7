//! Local models as a session sees them: the daemon starts `dwell-local`, uses it, and outlives it.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::gguf::{self, Weight};
use harness::procfs;
use harness::sandbox::Sandbox;
use harness::wait::{SOON, until, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// A daemon whose sandbox has a model, with a session that talks to it.
fn with_model(weight: Weight, config: &str) -> (TestDaemon, TestClient, String) {
    let mut sandbox = Sandbox::new();
    let model = sandbox.path("model.gguf");
    gguf::write_gguf(&model, weight);
    sandbox.set("CANDLE_MODEL", model);
    sandbox.set("DWELL_LOCAL_THREADS", "1");
    sandbox.write("README.md", "# the sandbox\n");
    std::fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "candle"}));
    (daemon, client, session)
}

/// The process with the model, if there is one.
fn engine(sandbox: &Sandbox) -> Result<u32, String> {
    let mark = sandbox.path("home");
    let is_engine = |pid: &u32| {
        std::fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name.trim() == "dwell-local")
    };
    let found = procfs::marked(mark.to_str().unwrap())
        .into_iter()
        .find(is_engine);
    found.ok_or_else(|| "no dwell-local runs".to_owned())
}

#[test]
fn a_local_model_reads_a_file_and_answers() {
    let (_daemon, mut client, session) = with_model(Weight::Light, "");
    let events = client.turn(&session, "read README.md");
    let done = events.one("done");
    assert!(
        done["result"]["content"]
            .as_str()
            .unwrap()
            .contains("# the sandbox"),
        "{done}"
    );
    assert_eq!(events.last()["status"], "completed");
    assert_eq!(events.last()["reply"], gguf::AFTER);
    let usage = events.of("usage");
    assert!(usage[1]["cached"].as_u64() > Some(0), "{usage:?}");
    assert_eq!(client.turn(&session, "hi").last()["reply"], gguf::TEXT);
}

#[test]
fn each_local_provider_works_in_one_session_after_the_other() {
    let mut sandbox = Sandbox::new();
    let light = sandbox.path("light.gguf");
    gguf::write_gguf(&light, Weight::Light);
    for (name, variable, bytes) in [
        ("old.bin", "GGML_MODEL", gguf::ggjt()),
        (
            "stories.bin",
            "LLAMA2_MODEL",
            gguf::llama2(gguf::Llama2::V0),
        ),
        ("words.bin", "LLAMA2_TOKENIZER", gguf::llama2_tokenizer()),
    ] {
        let path = sandbox.path(name);
        std::fs::write(&path, bytes).unwrap();
        sandbox.set(variable, path);
    }
    sandbox.set("CANDLE_MODEL", &light);
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session =
        client.session_with(json!({"cwd": daemon.work(), "provider": "llama", "model": light}));
    assert_eq!(client.turn(&session, "hi").last()["reply"], gguf::TEXT);
    for (name, reply) in [
        ("ggml", gguf::GGJT_TEXT),
        ("llama2", gguf::LLAMA2_TEXT),
        ("candle", gguf::TEXT),
    ] {
        client.call("provider/switch", json!({"session": session, "name": name}));
        assert_eq!(client.turn(&session, "hi").last()["reply"], reply, "{name}");
    }
}

#[test]
fn a_cancelled_turn_stops_the_engine() {
    let (daemon, mut client, session) = with_model(Weight::Heavy, "");
    client.attach(&session, None);
    client.start(&session, "go on endlessly");
    client.until_type("saying");
    client.call("turn/cancel", json!({"session": session}));
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    let pid = engine(&daemon).unwrap();
    // It computes no more: soon a look finds no processor time used since the one before.
    let mut before = procfs::cpu(pid);
    until_true("the engine to rest", SOON, || {
        let now = procfs::cpu(pid);
        let rests = now == before;
        before = now;
        rests
    });
    client.start(&session, "hi");
    assert_eq!(client.until_ended().last()["reply"], gguf::TEXT);
}

#[test]
fn an_engine_that_dies_takes_neither_the_daemon_nor_the_session_along() {
    let (daemon, mut client, session) = with_model(Weight::Heavy, "");
    client.attach(&session, None);
    client.start(&session, "go on endlessly");
    client.until_type("saying");
    let pid = engine(&daemon).unwrap();
    let number = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(number, Signal::KILL).unwrap();
    // Tried again in a new process, or failed: in either case it is told, and the next turn works.
    client.events_until("the death to be told", |event| {
        event["type"] == "retrying" || event["type"] == "turn_ended"
    });
    let state = client.call("session/get", json!({"session": session}))["state"].clone();
    if state == "running" {
        client.call("turn/cancel", json!({"session": session}));
        client.until_ended();
    }
    client.start(&session, "hi");
    assert_eq!(client.until_ended().last()["reply"], gguf::TEXT);
    let next = until("another engine", SOON, || engine(&daemon));
    assert_ne!(next, pid);
}

#[test]
fn an_idle_engine_is_stopped_and_comes_back() {
    let config = "[provider]\nchild_stop_after_ms = 100\n";
    let (daemon, mut client, session) = with_model(Weight::Light, config);
    assert_eq!(client.turn(&session, "hi").last()["reply"], gguf::TEXT);
    until_true("the engine to be stopped", SOON, || {
        engine(&daemon).is_err()
    });
    assert_eq!(client.turn(&session, "hi").last()["reply"], gguf::TEXT);
}

#[test]
fn a_file_that_is_no_model_is_refused_with_its_name() {
    let mut sandbox = Sandbox::new();
    let model = sandbox.path("broken.gguf");
    std::fs::write(&model, b"GGUF and nothing else").unwrap();
    sandbox.set("CANDLE_MODEL", model);
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let fault = client.fault(
        "session/create",
        json!({"cwd": daemon.work(), "provider": "candle"}),
    );
    assert!(fault.message.contains("broken.gguf"), "{fault}");
}
