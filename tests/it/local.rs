//! Local models: each provider with a file made on the spot, over the wire of `dwell-local` and through the daemon.

mod damaged;
mod through_the_daemon;

use harness::gguf::{self, Weight};
use harness::local::Local;
use harness::procfs;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A file of the sandbox, as an argument.
fn file(sandbox: &Sandbox, name: &str, bytes: &[u8]) -> String {
    let path: PathBuf = sandbox.path(name);
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

fn user(text: &str) -> Value {
    json!([
        {"role": "system", "content": "You are a terminal coding agent."},
        {"role": "user", "content": text},
    ])
}

fn read_tool() -> Value {
    let parameters =
        json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    json!([{"type": "function", "function": {"name": "read", "description": "Read file", "parameters": parameters}}])
}

/// `dwell-local` with an instance of `candle` that has a GGUF file.
fn candle(sandbox: &Sandbox, weight: Weight) -> (Local, String) {
    let model = file(sandbox, "model.gguf", &gguf::gguf(weight));
    let mut local = Local::start(&[("CANDLE_MODEL", &model)]);
    let instance = local.build("candle", None).expect("a model");
    (local, instance)
}

#[test]
fn each_provider_answers_with_its_kind_of_file() {
    let sandbox = Sandbox::new();
    let light = file(&sandbox, "light.gguf", &gguf::gguf(Weight::Light));
    let ggjt = file(&sandbox, "old.bin", &gguf::ggjt());
    file(&sandbox, "tokenizer.bin", &gguf::llama2_tokenizer());
    let layouts = [gguf::Llama2::V0, gguf::Llama2::V1, gguf::Llama2::V2];
    let checkpoints =
        layouts.map(|layout| file(&sandbox, &format!("{layout:?}.bin"), &gguf::llama2(layout)));
    let llama2 = |index: usize| json!({"LLAMA2_MODEL": checkpoints[index]});
    for (name, model, env, text) in [
        (
            "candle",
            json!(null),
            json!({"CANDLE_MODEL": light}),
            gguf::TEXT,
        ),
        ("llama", json!(light), json!({}), gguf::TEXT),
        (
            "ggml",
            json!(null),
            json!({"GGML_MODEL": light}),
            gguf::TEXT,
        ),
        (
            "ggml",
            json!(null),
            json!({"GGML_MODEL": ggjt}),
            gguf::GGJT_TEXT,
        ),
        ("llama2", json!(null), llama2(0), gguf::LLAMA2_TEXT),
        ("llama2", json!(null), llama2(1), gguf::LLAMA2_TEXT),
        ("llama2", json!(null), llama2(2), gguf::LLAMA2_TEXT),
    ] {
        let mut local = Local::start(&[]);
        let build = json!({"name": name, "model": model, "env": env});
        let built = local.call("provider/build", build).expect("a model");
        let instance = built["instance"].as_str().unwrap();
        let answer = local.fetch(instance, &user("hi"), &json!([]));
        assert_eq!(answer.text, text, "{name} {env}");
        assert!(local.close(), "{name} ends with its input");
    }
}

#[test]
fn four_providers_are_offered_and_others_refused() {
    let mut local = Local::start(&[]);
    let setup = local.call("plugin/setup", json!({})).unwrap();
    let names: Vec<&Value> = setup["providers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["name"])
        .collect();
    assert_eq!(names, ["candle", "llama", "ggml", "llama2"]);
    let why = local.build("other", None).expect_err("no such provider");
    assert!(why.contains("\"other\""), "{why}");
    let why = local
        .call("provider/unheard", json!({}))
        .expect_err("no such method");
    assert!(why.contains("provider/unheard"), "{why}");
}

#[test]
fn nonsense_on_its_input_is_passed_over_or_answered() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    for bytes in [
        &b"no json at all\n"[..],
        b"\n",
        b"[]\n",
        b"{\"jsonrpc\": \"2.0\"}\n",
        b"\xff\xfe\n",
        b"{\"method\": \"provider/cancel\", \"params\": {\"id\": \"x\"}}\n",
        b"{\"method\": \"provider/release\", \"params\": 3}\n",
    ] {
        local.write_raw(bytes);
    }
    for (method, params) in [
        ("provider/fetch", json!({"instance": instance})),
        (
            "provider/fetch",
            json!({"instance": "other", "messages": [], "tools": []}),
        ),
        ("provider/build", json!(null)),
    ] {
        assert!(local.call(method, params).is_err(), "{method}");
    }
    for messages in [
        json!([3, null, {}]),
        json!([{"role": "user", "content": null}]),
    ] {
        let id = local.ask(&instance, &messages, &json!([null, {"function": 7}]));
        // Whatever it makes of them, it answers, and goes on.
        let _ = local.finish(id);
    }
    let answer = local.fetch(&instance, &user("hi"), &json!([]));
    assert_eq!(answer.text, gguf::TEXT);
}

#[test]
fn a_provider_without_a_model_says_what_to_do() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    let mut local = Local::start(&[("HOME", home.to_str().unwrap())]);
    for (name, model, hints) in [
        ("candle", None, ["CANDLE_MODEL", "dwell model pull"]),
        ("llama", None, ["--model", "dwell model pull"]),
        (
            "llama",
            Some("qwen2.5-coder:0.5b"),
            ["qwen2.5-coder:0.5b", "dwell model pull qwen2.5-coder:0.5b"],
        ),
        ("llama", Some("model.gguf"), ["model.gguf", "whole path"]),
        ("ggml", None, ["GGML_MODEL", "GGUF"]),
        ("llama2", None, ["LLAMA2_MODEL", "LLAMA2_TOKENIZER"]),
    ] {
        let why = local.build(name, model).expect_err("no model");
        assert!(hints.iter().all(|hint| why.contains(hint)), "{name}: {why}");
    }
}

#[test]
fn a_call_is_made_and_its_result_answered() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    let asked = local.fetch(&instance, &user("read README.md"), &read_tool());
    assert_eq!((asked.text.as_str(), asked.calls.len()), ("", 1));
    assert_eq!(
        asked.calls[0],
        ("read".to_owned(), json!({"path": "README.md"}))
    );
    let mut messages = user("read README.md");
    let call = json!({"id": "c1", "name": "read", "arguments": {"path": "README.md"}});
    let more = [
        json!({"role": "assistant", "content": "", "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "{\"content\": \"# x\", \"ok\": true}"}),
    ];
    messages.as_array_mut().unwrap().extend(more);
    let answer = local.fetch(&instance, &messages, &read_tool());
    assert_eq!((answer.text.as_str(), answer.calls.len()), (gguf::AFTER, 0));
    // What both round trips have in common was read once.
    let cached = answer.usage["cached"].as_u64().unwrap();
    assert!(
        cached + 1 >= asked.usage["input"].as_u64().unwrap(),
        "{:?}",
        answer.usage
    );
}

#[test]
fn what_two_conversations_share_is_read_once() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    let ask = |local: &mut Local, text: &str| {
        let answer = local.fetch(&instance, &user(text), &read_tool());
        let count = |name: &str| answer.usage[name].as_u64().unwrap();
        assert_eq!(answer.text, gguf::TEXT);
        (count("input"), count("cached"))
    };
    let (whole, cached) = ask(&mut local, &"a".repeat(390));
    assert_eq!(cached, 0);
    // Another conversation, of which the long one has the beginning.
    let (input, cached) = ask(&mut local, "b");
    assert!(cached > 100 && cached < input, "{cached} of {input}");
    // And the long one is still there.
    assert_eq!(ask(&mut local, &"a".repeat(390)), (whole, whole - 1));
}

#[test]
fn control_tokens_in_what_somebody_wrote_are_words() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    let plain = local.fetch(&instance, &user("0123456789"), &json!([]));
    let tricky = local.fetch(&instance, &user("<|end|>"), &json!([]));
    let input = |answer: &harness::local::Answer| answer.usage["input"].as_u64().unwrap();
    // Every byte is a token here: seven letters, and the mark of three bytes that keeps them apart.
    assert_eq!(input(&tricky), input(&plain));
}

#[test]
fn a_cancel_stops_a_round_trip_within_a_tenth_of_a_second() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Heavy);
    // On a busy machine one look may come late; none of several may be early by chance.
    let mut times = Vec::new();
    for _ in 0..5 {
        let id = local.ask(&instance, &user("go on endlessly"), &json!([]));
        assert_eq!(local.line()["params"]["type"], "saying");
        let (time, result) = local.cancel(id);
        assert_eq!(result, Err("cancelled".to_owned()));
        times.push(time);
    }
    let best = times.iter().min().unwrap();
    assert!(*best < Duration::from_millis(100), "{times:?}");
    assert_eq!(
        local.fetch(&instance, &user("hi"), &json!([])).text,
        gguf::TEXT
    );
}

#[test]
fn what_waits_behind_a_long_answer_can_be_cancelled() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Heavy);
    let first = local.ask(&instance, &user("go on endlessly"), &json!([]));
    assert_eq!(local.line()["params"]["fetch"], first);
    let second = local.ask(&instance, &user("hi"), &json!([]));
    local.notify("provider/cancel", json!({"id": second}));
    local.notify("provider/cancel", json!({"id": first}));
    assert_eq!(local.finish(first).0, Err("cancelled".to_owned()));
    let (result, answer) = local.finish(second);
    assert_eq!(
        (result, answer.text.as_str()),
        (Err("cancelled".to_owned()), "")
    );
}

#[test]
fn the_end_of_its_input_ends_it_in_mid_answer() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Heavy);
    local.ask(&instance, &user("go on endlessly"), &json!([]));
    assert_eq!(local.line()["params"]["type"], "saying");
    assert!(local.close());
}

#[test]
fn an_answer_without_end_is_ended() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    let answer = local.fetch(&instance, &user("go on endlessly"), &json!([]));
    assert_eq!(answer.usage["output"], 512);
    assert!(answer.text.starts_with("tick tock tick"), "{}", answer.text);
}

#[test]
fn a_conversation_that_is_too_long_says_what_to_do() {
    let sandbox = Sandbox::new();
    let model = file(&sandbox, "old.bin", &gguf::ggjt());
    let mut local = Local::start(&[("GGML_MODEL", &model)]);
    let instance = local.build("ggml", None).unwrap();
    let id = local.ask(&instance, &user(&"x".repeat(3000)), &json!([]));
    let why = local
        .finish(id)
        .0
        .expect_err("3,000 letters are 3,000 tokens there");
    assert!(
        ["2048", "/compact", "/provider"]
            .iter()
            .all(|hint| why.contains(hint)),
        "{why}"
    );
}

#[test]
fn a_file_that_was_replaced_is_read_anew() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    assert_eq!(
        local.fetch(&instance, &user("hi"), &json!([])).text,
        gguf::TEXT
    );
    std::fs::write(sandbox.path("model.gguf"), b"GGUF").unwrap();
    let id = local.ask(&instance, &user("hi"), &json!([]));
    let why = local.finish(id).0.expect_err("the file is damaged now");
    assert!(why.contains("model.gguf"), "{why}");
}

#[test]
fn the_small_model_is_fast_and_small() {
    let sandbox = Sandbox::new();
    let (mut local, instance) = candle(&sandbox, Weight::Light);
    let turn = |local: &mut Local| {
        let start = Instant::now();
        local.fetch(&instance, &user("read README.md"), &read_tool());
        start.elapsed()
    };
    // The best of some: what is promised is the engine's time, not that of a busy machine.
    let best = (0..8).map(|_| turn(&mut local)).min().unwrap();
    let resident = procfs::resident(local.pid());
    eprintln!(
        "a turn of the small model: {best:?}, {} KiB",
        resident / 1024
    );
    assert!(best < Duration::from_millis(50), "{best:?}");
    assert!(resident < 20 << 20, "{resident} bytes");
}

#[test]
fn a_requantised_copy_says_the_same() {
    let sandbox = Sandbox::new();
    let from = file(&sandbox, "from.gguf", &gguf::gguf(Weight::Light));
    let to = sandbox.path("to.gguf");
    let to = to.to_str().unwrap();
    let run = |from: &str, to: &str| {
        let mut command = std::process::Command::new(&harness::binaries::binaries().local);
        command.args(["requantise", from, to]).output().unwrap()
    };
    assert!(run(&from, to).status.success());
    let mut local = Local::start(&[("CANDLE_MODEL", to)]);
    let instance = local.build("candle", None).unwrap();
    assert_eq!(
        local.fetch(&instance, &user("hi"), &json!([])).text,
        gguf::TEXT
    );
    let failed = run("/no/such.gguf", to);
    assert!(!failed.status.success());
    assert!(String::from_utf8_lossy(&failed.stderr).contains("/no/such.gguf"));
}
