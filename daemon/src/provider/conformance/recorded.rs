//! Streams as vendors document them, from `tests/fixtures/providers`: what each means is told beside it.

use super::super::anthropic::{Host, Messages};
use super::super::openai::{Chat, Quirks, Reasoning};
use super::super::settings::Named;
use super::super::vendor::Dialect;
use super::super::{ProviderEvent, ollama, responses};
use super::{Flow, IDLE, Parser, Peer};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/providers")
}

fn dialect(provider: &str) -> Box<dyn Dialect> {
    let chat = |reasoning| -> Box<dyn Dialect> {
        Box::new(Chat {
            quirks: Quirks {
                reasoning,
                ..Quirks::NONE
            },
        })
    };
    let messages = |host| -> Box<dyn Dialect> {
        Box::new(Messages {
            host,
            ..Messages::new(&Named::default())
        })
    };
    match provider {
        "anthropic" => messages(Host::Anthropic),
        "vertex" => messages(Host::Vertex),
        "responses" => Box::new(responses::Responses { thinking: None }),
        "ollama" => Box::new(ollama::Ollama { thinking: None }),
        "deepseek" => chat(Reasoning::Content),
        "gemini" => chat(Reasoning::ThoughtSignatures),
        "openrouter" => chat(Reasoning::Details),
        _ => chat(Reasoning::Hidden),
    }
}

/// The events in the form of the files: pieces of text joined, signed blocks too.
fn meaning(dialect: &dyn Dialect, pieces: &[&[u8]]) -> Value {
    let url = reqwest::Url::parse("http://127.0.0.1:1/v1").unwrap();
    let peer = Peer::new(&url, IDLE);
    let mut events: Vec<Value> = Vec::new();
    let mut emit = |event| add(&mut events, event);
    let mut answer = dialect.answer(&peer);
    let mut parser = Parser::new(dialect.framing());
    let mut each = |event: super::Event<'_>| match answer.flow() {
        Flow::Ended => Ok(()),
        Flow::Open | Flow::Tail => answer.event(&event, &mut emit).map(drop),
    };
    let fed = pieces
        .iter()
        .try_for_each(|piece| parser.feed(piece, &mut each));
    let read = fed.and_then(|()| parser.finish(&mut each));
    let whole = read.and_then(|()| match answer.flow() {
        Flow::Open => Err(peer.ended_early()),
        Flow::Tail | Flow::Ended => answer.end(&mut emit),
    });
    if let Err(error) = whole {
        events.push(json!({"error": error.message, "class": format!("{:?}", error.class)}));
    }
    Value::Array(events)
}

fn add(events: &mut Vec<Value>, event: ProviderEvent) {
    let (kind, text) = match event {
        ProviderEvent::Saying(text) => ("saying", text),
        ProviderEvent::Thinking(text) => ("thinking", text),
        ProviderEvent::Doing {
            id,
            name,
            arguments,
        } => {
            events.push(json!({"doing": name, "id": id, "arguments": arguments}));
            return;
        }
        ProviderEvent::Usage {
            input,
            output,
            cached,
        } => {
            events.push(json!({"usage": [input, output, cached]}));
            return;
        }
        ProviderEvent::Signed(block) => {
            events.push(json!({"signed": block}));
            return;
        }
    };
    match events.last_mut().and_then(|last| last.get_mut(kind)) {
        Some(Value::String(before)) => before.push_str(&text),
        _ => events.push(json!({kind: text})),
    }
}

#[test]
fn recorded_streams_mean_what_is_told_beside_them_at_every_cut() {
    let mut streams = 0;
    for provider in fs::read_dir(folder()).unwrap() {
        let path = provider.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let source = fs::read_to_string(path.join("SOURCE.md"));
        let source = source.unwrap_or_else(|_| panic!("{name} does not say where it is from"));
        for file in fs::read_dir(&path).unwrap() {
            let file = file.unwrap().path();
            if file
                .extension()
                .is_none_or(|extension| extension != "stream")
            {
                continue;
            }
            let stem = file.file_stem().unwrap().to_str().unwrap();
            assert!(
                source.contains(stem),
                "{name}/SOURCE.md says nothing of {stem}"
            );
            let bytes = fs::read(&file).unwrap();
            let expected = fs::read_to_string(file.with_extension("json")).unwrap();
            let expected: Value = serde_json::from_str(&expected).unwrap();
            let dialect = dialect(&name);
            let whole = meaning(&*dialect, &[&bytes]);
            assert_eq!(whole, expected, "{name}/{stem}: {whole:#}");
            for cut in 0..=bytes.len() {
                let events = meaning(&*dialect, &[&bytes[..cut], &bytes[cut..]]);
                assert_eq!(events, expected, "{name}/{stem} cut at {cut}");
            }
            streams += 1;
        }
    }
    assert!(streams >= 10, "only {streams} streams");
}
