//! Providers against real model servers with a model made on the spot: the loop that reads a file and answers, and a
//! conversation that is handed from each to the next.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::gguf;
use harness::sandbox::Sandbox;
use harness::servers::Servers;
use serde_json::{Value, json};

/// A daemon whose providers are those servers.
fn daemon(servers: &Servers, api: &str) -> TestDaemon {
    let mut sandbox = Sandbox::new();
    let v1 = format!("{}/v1", servers.llama);
    sandbox.set("OPENAI_BASE_URL", &v1);
    sandbox.set("OPENAI_WIRE_API", api);
    sandbox.set("LLAMA_SERVER_BASE_URL", &v1);
    // Without the version, as Anthropic's own tools have it.
    sandbox.set("ANTHROPIC_BASE_URL", &servers.llama);
    sandbox.set("OLLAMA_HOST", &servers.ollama);
    let daemon = TestDaemon::start_in(sandbox);
    daemon.write("README.md", "# the file of the test\n");
    daemon
}

fn reads_and_answers(client: &mut TestClient, session: &str) {
    let events = client.turn(session, "read README.md");
    let call = events.one("doing");
    assert_eq!(
        (&call["name"], &call["arguments"]),
        (&json!("read"), &json!({"path": "README.md"}))
    );
    let result = &events.one("done")["result"];
    assert!(
        result["content"]
            .as_str()
            .unwrap()
            .contains("the file of the test"),
        "{result}"
    );
    assert_eq!(events.last()["reply"], gguf::AFTER, "{}", events.last());
    let usage = events.of("usage");
    assert!(
        usage.iter().all(|usage| usage["output"].as_u64() > Some(0)),
        "{usage:?}"
    );
}

fn session(daemon: &TestDaemon, client: &mut TestClient, provider: &str, model: &str) -> String {
    client.session_with(json!({"cwd": daemon.work(), "provider": provider, "model": model}))
}

#[test]
fn each_provider_reads_a_file_and_answers_with_a_real_server() {
    let Some(servers) = Servers::start("each_provider_reads_a_file_and_answers_with_a_real_server")
    else {
        return;
    };
    for (provider, api) in [
        ("openai", "chat"),
        ("openai", "responses"),
        ("anthropic", ""),
        ("ollama", ""),
        ("llama-server", ""),
    ] {
        let daemon = daemon(&servers, api);
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, provider, "fixture");
        reads_and_answers(&mut client, &session);
        let plain = client.turn(&session, "and now?");
        assert!(
            !plain.last()["reply"].as_str().unwrap().is_empty(),
            "{provider} {api}"
        );
        assert_eq!(
            plain.last()["status"],
            "completed",
            "{provider} {api}: {}",
            plain.last()
        );
    }
}

#[test]
fn conversation_goes_from_each_provider_to_each_with_real_servers() {
    let Some(servers) =
        Servers::start("conversation_goes_from_each_provider_to_each_with_real_servers")
    else {
        return;
    };
    let daemon = daemon(&servers, "responses");
    let model = daemon.path("model.gguf");
    gguf::write_gguf(&model, gguf::Weight::Light);
    let model = model.to_str().unwrap().to_owned();
    let mut client = daemon.client();
    let all = ["openai", "anthropic", "ollama", "llama-server", "llama"];
    let session = session(&daemon, &mut client, "openai", "fixture");
    for (at, from) in all.into_iter().enumerate() {
        // There and back again: every pair in both directions, once.
        let others = all[at + 1..].iter();
        let way = others.flat_map(|to| [*to, from]);
        for provider in [from].into_iter().chain(way) {
            let named = if provider == "llama" {
                &model
            } else {
                "fixture"
            };
            let switch = json!({"session": session, "name": provider, "model": named});
            client.call("provider/switch", switch);
            reads_and_answers(&mut client, &session);
        }
        // The fixture reads every byte as a token.
        client.call("session/clear", json!({"session": session}));
    }
}

#[test]
fn real_servers_list_their_models() {
    let Some(servers) = Servers::start("real_servers_list_their_models") else {
        return;
    };
    let daemon = daemon(&servers, "chat");
    let mut client = daemon.client();
    for provider in ["openai", "anthropic", "ollama", "llama-server"] {
        let models = client.call("provider/models", json!({"name": provider}));
        let models: Vec<&Value> = models.as_array().unwrap().iter().collect();
        assert_eq!(models.len(), 1, "{provider}: {models:?}");
    }
}
