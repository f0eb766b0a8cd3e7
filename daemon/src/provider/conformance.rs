//! One suite for every provider: the same stories told in each vendor's words, whole, cut, mangled and broken off; and the
//! same conversations, which each vendor's rules must accept.

mod checker;
mod histories;
mod recorded;
mod words;

use super::openai::{Chat, Quirks, Reasoning};
use super::registry::{BuildOptions, ProviderConfig, Providers};
use super::settings::{Api, Named};
use super::sse::{Event, Framing, Parser};
use super::stream::{Flow, Peer};
use super::testing::{
    self, Asked, Say, chunk, doing, head, plain, saying, serve, sse, thinking, user,
};
use super::vendor::Dialect;
use super::{ErrorClass, Provider, ProviderError, ProviderEvent};
use crate::provider::anthropic::{Host, Messages};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use words::{Step, Stop, stream};

/// Short for a test, long for a loaded machine.
const IDLE: Duration = Duration::from_millis(300);
const KEY: &str = "sk-secret-0123456789";

/// A dialect with all that may differ in it.
struct Spoken {
    name: &'static str,
    api: Api,
    dialect: Box<dyn Dialect>,
}

fn all() -> Vec<Spoken> {
    let chat = |name, reasoning| Spoken {
        name,
        api: Api::Chat,
        dialect: Box::new(Chat {
            quirks: Quirks {
                reasoning,
                ..Quirks::NONE
            },
        }),
    };
    let messages = |name, host| Spoken {
        name,
        api: Api::Messages,
        dialect: Box::new(Messages {
            host,
            ..Messages::new(&Named::default())
        }),
    };
    vec![
        chat("chat", Reasoning::Hidden),
        chat("chat of deepseek", Reasoning::Content),
        chat("chat of openrouter", Reasoning::Details),
        chat("chat of gemini", Reasoning::ThoughtSignatures),
        messages("messages", Host::Anthropic),
        messages("messages of vertex", Host::Vertex),
        Spoken {
            name: "responses",
            api: Api::Responses,
            dialect: Box::new(super::responses::Responses { thinking: None }),
        },
        Spoken {
            name: "ollama",
            api: Api::Ollama,
            dialect: Box::new(super::ollama::Ollama { thinking: None }),
        },
    ]
}

/// What the bytes mean, without a network: as a stream that ends there.
fn read(spoken: &Spoken, pieces: &[&[u8]]) -> Result<Vec<ProviderEvent>, ProviderError> {
    let url = reqwest::Url::parse("http://127.0.0.1:1/v1").unwrap();
    let peer = Peer::new(&url, IDLE);
    let mut events = Vec::new();
    let mut answer = spoken.dialect.answer(&peer);
    let mut emit = |event| events.push(event);
    let mut parser = Parser::new(spoken.dialect.framing());
    let mut each = |event: Event<'_>| match answer.flow() {
        Flow::Ended => Ok(()),
        Flow::Open | Flow::Tail => answer.event(&event, &mut emit).map(drop),
    };
    for piece in pieces {
        parser.feed(piece, &mut each)?;
    }
    parser.finish(&mut each)?;
    if answer.flow() == Flow::Open {
        return Err(peer.ended_early());
    }
    answer.end(&mut emit)?;
    Ok(told(events))
}

/// Pieces of text joined, usage last, without signed blocks: what must be the same in every dialect.
fn told(events: Vec<ProviderEvent>) -> Vec<ProviderEvent> {
    let mut told: Vec<ProviderEvent> = Vec::new();
    let mut usage = None;
    for event in events {
        match (told.last_mut(), event) {
            (_, event @ ProviderEvent::Usage { .. }) => usage = Some(event),
            (_, ProviderEvent::Signed(_)) => {}
            (Some(ProviderEvent::Saying(last)), ProviderEvent::Saying(text))
            | (Some(ProviderEvent::Thinking(last)), ProviderEvent::Thinking(text)) => {
                last.push_str(&text);
            }
            (_, event) => told.push(event),
        }
    }
    told.extend(usage);
    told
}

const USAGE: ProviderEvent = ProviderEvent::Usage {
    input: 7,
    output: 5,
    cached: 3,
};

/// Ollama has no word for what came out of a cache.
fn usage(api: Api) -> ProviderEvent {
    match api {
        Api::Ollama => ProviderEvent::Usage {
            input: 7,
            output: 5,
            cached: 0,
        },
        Api::Chat | Api::Messages | Api::Responses => USAGE,
    }
}

fn story() -> Vec<Step<'static>> {
    vec![
        Step::Think("hm 🤔"),
        Step::Say("€é"),
        Step::Say("😀 \"quoted\" \\n"),
        Step::Call("call_1", "read"),
        Step::Piece(0, "{\"path\":"),
        Step::Piece(0, "\"ä😀\"}"),
        Step::Usage,
        Step::Stop(Stop::Calls),
    ]
}

fn meaning(api: Api) -> Vec<ProviderEvent> {
    vec![
        thinking("hm 🤔"),
        saying("€é😀 \"quoted\" \\n"),
        doing(Some("call_1"), "read", json!({"path": "ä😀"})),
        usage(api),
    ]
}

#[test]
fn stream_cut_at_every_byte_means_the_same() {
    let mut cuts = 0;
    for spoken in all() {
        let text = stream(spoken.api, &story()).concat();
        let expected = meaning(spoken.api);
        let bytes = text.as_bytes();
        for cut in 0..=bytes.len() {
            let events = read(&spoken, &[&bytes[..cut], &bytes[cut..]]).unwrap();
            assert_eq!(events, expected, "{} cut at {cut}", spoken.name);
            cuts += 1;
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&spoken, &single).unwrap(), expected, "{}", spoken.name);
    }
    assert!(cuts > 8_000, "{cuts}");
}

#[test]
fn line_ends_comments_and_a_missing_last_newline_change_nothing() {
    for spoken in all() {
        let events = stream(spoken.api, &story());
        let plain = events.concat();
        let mut ways = vec![
            plain.replace('\n', "\r\n"),
            plain.trim_end().to_owned(),
            format!("\n\n{plain}\n\n\n"),
        ];
        if spoken.dialect.framing() == Framing::Events {
            ways.push(plain.replace('\n', "\r"));
            let commented = events
                .iter()
                .map(|event| format!(": ping\n\n{event}: ping\n"));
            ways.push(commented.collect());
            ways.push(plain.replace("data: ", "data:"));
            ways.push(format!("\u{feff}id: 7\nretry: 9\n{plain}"));
        }
        for way in ways {
            let events = read(&spoken, &[way.as_bytes()]);
            assert_eq!(events, Ok(meaning(spoken.api)), "{}: {way:?}", spoken.name);
        }
    }
}

#[test]
fn call_in_forty_pieces_two_at_once_and_one_without_arguments_are_whole() {
    let arguments = json!({"text": "äöü€😀".repeat(200), "n": [1, 2, 3]}).to_string();
    let letters: Vec<char> = arguments.chars().collect();
    let pieces: Vec<String> = letters
        .chunks(letters.len().div_ceil(40))
        .map(|piece| piece.iter().collect())
        .collect();
    assert!(pieces.len() >= 39);
    for spoken in all() {
        let mut steps = vec![Step::Call("a", "one")];
        steps.extend(pieces.iter().map(|piece| Step::Piece(0, piece)));
        steps.extend([
            Step::Call("b", "two"),
            Step::Piece(1, "{\"n\":"),
            Step::Piece(1, "2}"),
            Step::Call("c", "three"),
            Step::Stop(Stop::Calls),
        ]);
        let text = stream(spoken.api, &steps).concat();
        let expected = vec![
            doing(Some("a"), "one", serde_json::from_str(&arguments).unwrap()),
            doing(Some("b"), "two", json!({"n": 2})),
            doing(Some("c"), "three", json!({})),
        ];
        assert_eq!(
            read(&spoken, &[text.as_bytes()]),
            Ok(expected),
            "{}",
            spoken.name
        );
    }
}

#[test]
fn two_calls_at_once_are_told_apart() {
    for spoken in all() {
        let steps = [
            Step::Call("a", "one"),
            Step::Call("b", "two"),
            Step::Piece(1, "{\"n\":"),
            Step::Piece(0, "{\"n\":1"),
            Step::Piece(1, "2}"),
            Step::Piece(0, "}"),
            Step::Stop(Stop::Calls),
        ];
        let text = stream(spoken.api, &steps).concat();
        let events = read(&spoken, &[text.as_bytes()]).unwrap();
        let expected = [
            doing(Some("a"), "one", json!({"n": 1})),
            doing(Some("b"), "two", json!({"n": 2})),
        ];
        assert_eq!(events, expected, "{}", spoken.name);
    }
}

#[test]
fn call_that_the_limit_of_tokens_cut_is_none() {
    for spoken in all() {
        let steps = [
            Step::Call("a", "write"),
            Step::Piece(0, "{\"x\": \"lon"),
            Step::Usage,
            Step::Stop(Stop::Length),
        ];
        let text = stream(spoken.api, &steps).concat();
        let error = read(&spoken, &[text.as_bytes()]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Fatal, "{}: {error}", spoken.name);
        assert!(error.message.contains("output tokens"), "{error}");

        let said = [Step::Say("a"), Step::Stop(Stop::Length)];
        let text = stream(spoken.api, &said).concat();
        assert_eq!(read(&spoken, &[text.as_bytes()]), Ok(vec![saying("a")]));
        let nothing = [Step::Think("hm"), Step::Stop(Stop::Length)];
        let text = stream(spoken.api, &nothing).concat();
        let error = read(&spoken, &[text.as_bytes()]).unwrap_err();
        assert!(error.message.contains("before it answered"), "{error}");
    }
}

#[test]
fn error_in_mid_stream_keeps_the_vendors_words_and_says_whether_it_passes() {
    for spoken in all() {
        for (step, retryable) in [
            (Step::Error("Overloaded", "overloaded_error"), true),
            (Step::Error("bad tool", "invalid_request_error"), false),
        ] {
            // Ollama's errors are words alone.
            let retryable = retryable && spoken.api != Api::Ollama;
            let Step::Error(words, _) = step else {
                unreachable!("they are errors")
            };
            let text = stream(spoken.api, &[Step::Say("a"), step]).concat();
            let error = read(&spoken, &[text.as_bytes()]).unwrap_err();
            let class = ErrorClass::Reported { retryable };
            assert_eq!(error.class, class, "{}: {error}", spoken.name);
            assert!(error.message.contains(words), "{}: {error}", spoken.name);
        }
    }
}

#[test]
fn stream_without_an_end_mark_or_with_bytes_that_are_no_text_is_dropped() {
    for spoken in all() {
        let said = stream(spoken.api, &[Step::Say("a")]).concat();
        let error = read(&spoken, &[said.as_bytes()]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Dropped, "{}", spoken.name);
        assert!(error.message.contains("without an end mark"), "{error}");
        for broken in ["{\"broken\": tru", "\u{0}nothing"] {
            let line = match spoken.dialect.framing() {
                Framing::Events => format!("data: {broken}\n\n"),
                Framing::Lines => format!("{broken}\n"),
            };
            let error = read(&spoken, &[said.as_bytes(), line.as_bytes()]).unwrap_err();
            assert_eq!(error.class, ErrorClass::Dropped, "{}", spoken.name);
        }
        let mut bytes = stream(spoken.api, &[Step::Say("xyz")])
            .concat()
            .into_bytes();
        let at = bytes.windows(3).position(|part| part == b"xyz").unwrap();
        bytes[at + 1] = 0xff;
        let error = read(&spoken, &[&bytes]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Dropped, "{}", spoken.name);
    }
}

/// Those that are built in and speak over HTTP, each with what makes it talk to a server of the test's.
const NAMES: &[&str] = &[
    "anthropic",
    "openai",
    "gemini",
    "groq",
    "mistral",
    "openrouter",
    "cerebras",
    "github",
    "cloudflare",
    "deepseek",
    "ollama",
    "lmstudio",
    "vllm",
    "llama-server",
    "openai by responses",
];

fn api(name: &str) -> Api {
    match name {
        "anthropic" => Api::Messages,
        "ollama" => Api::Ollama,
        "openai by responses" => Api::Responses,
        _ => Api::Chat,
    }
}

async fn provider(name: &str, url: &str) -> Arc<dyn Provider> {
    let url = url.to_owned();
    let responses = name == "openai by responses";
    let env = move |variable: &str| match variable {
        "OPENAI_WIRE_API" => responses.then(|| "responses".to_owned()),
        "DWELL_IDLE_TIMEOUT_MS" => Some(IDLE.as_millis().to_string()),
        _ if variable.ends_with("_BASE_URL") => Some(url.clone()),
        _ if variable.ends_with("_API_KEY") => Some(KEY.to_owned()),
        _ if variable.ends_with("_MODEL") => Some("some-model".to_owned()),
        _ => None,
    };
    let config = ProviderConfig {
        env: Arc::new(env),
        ..ProviderConfig::default()
    };
    let name = name.split(' ').next().unwrap();
    let providers = Providers::new(config);
    let built = providers.build(name, BuildOptions::default());
    built.await.unwrap()
}

async fn ask(name: &str, answer: Vec<Say>) -> Asked {
    let server = serve(vec![answer]).await;
    let provider = provider(name, &server.url).await;
    let (events, ended) = testing::ask(&*provider, &[user("hello")]).await;
    (told(events), ended)
}

/// Every provider gets the answer that is written for its interface, all at once.
async fn each(answer: impl Fn(Api) -> Vec<Say>) -> Vec<(&'static str, Asked)> {
    let asked = NAMES
        .iter()
        .map(async |name| (*name, ask(name, answer(api(name))).await));
    futures_util::future::join_all(asked).await
}

#[tokio::test]
async fn every_provider_of_the_table_tells_the_story() {
    for (name, (events, ended)) in each(|api| sse(&stream(api, &story()).concat())).await {
        assert_eq!(ended, Ok(()), "{name}");
        assert_eq!(events, meaning(api(name)), "{name}");
    }
    for (name, (events, ended)) in each(|api| {
        let events = stream(
            api,
            &[Step::Say("a"), Step::Say("b"), Step::Stop(Stop::End)],
        );
        let chunks = events.iter().map(|event| chunk(event));
        [head("application/x-whatever")]
            .into_iter()
            .chain(chunks)
            .chain([super::testing::last()])
            .collect()
    })
    .await
    {
        assert_eq!((events, ended), (vec![saying("ab")], Ok(())), "{name}");
    }
}

#[tokio::test]
async fn refusals_keep_status_pause_and_words_and_hide_the_key() {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error",
        "message": format!("slow down, {KEY}")}});
    let body = body.to_string();
    for (status, code, headers, pause) in [
        (
            "429 Too Many Requests",
            429,
            "Retry-After: 2\r\n",
            Some(2_000),
        ),
        ("529 Overloaded", 529, "", None),
        ("401 Unauthorized", 401, "", None),
    ] {
        for (name, (events, ended)) in each(|_| plain(status, headers, &body)).await {
            let error = ended.unwrap_err();
            let class = ErrorClass::Status {
                code,
                retry_after_ms: pause,
            };
            assert_eq!(
                (events, error.class.clone()),
                (vec![], class),
                "{name}: {error}"
            );
            assert!(error.message.contains("slow down, ***"), "{name}: {error}");
            assert!(!format!("{error:?}").contains(KEY), "{name}");
            let hint = error.message.contains("_API_KEY");
            assert_eq!(hint, code == 401, "{name}: {error}");
        }
    }
}

#[tokio::test]
async fn page_where_an_answer_belongs_is_told_with_what_to_check() {
    let page = |_| plain("200 OK", "Content-Type: text/html\r\n", "<html></html>");
    for (name, (_, ended)) in each(page).await {
        let error = ended.unwrap_err();
        assert_eq!(error.class, ErrorClass::Fatal, "{name}");
        assert!(error.message.contains("web page"), "{name}: {error}");
        assert!(
            error.message.contains("BASE_URL") || name == "ollama",
            "{name}: {error}"
        );
    }
}

#[tokio::test]
async fn hang_is_a_stall_and_a_cut_in_mid_call_is_dropped_without_the_call() {
    let begun = |api| {
        let steps = [
            Step::Say("a"),
            Step::Call("c", "read"),
            Step::Piece(0, "{\"path\":"),
        ];
        vec![
            head("text/event-stream"),
            chunk(&stream(api, &steps).concat()),
        ]
    };
    for (last, class) in [
        (Say::Silence, ErrorClass::Stalled),
        (Say::Close, ErrorClass::Dropped),
        (Say::Abort, ErrorClass::Dropped),
    ] {
        let answer = |api| {
            let mut answer = begun(api);
            answer.push(last.clone());
            answer
        };
        for (name, (events, ended)) in each(answer).await {
            let error = ended.unwrap_err();
            assert_eq!(
                (events, error.class.clone()),
                (vec![saying("a")], class.clone()),
                "{name}: {error}"
            );
        }
    }
    let ended = |api| {
        let mut answer = begun(api);
        answer.push(super::testing::last());
        answer
    };
    for (name, (_, ended)) in each(ended).await {
        assert_eq!(ended.unwrap_err().class, ErrorClass::Dropped, "{name}");
    }
}

#[tokio::test]
async fn models_are_listed_by_every_provider() {
    let openai = json!({"object": "list", "data": [{"id": "m", "context_length": 4096}]});
    let ollama = json!({"models": [{"name": "m", "size": 9}]});
    for name in NAMES {
        let body = if *name == "ollama" { &ollama } else { &openai };
        let server = serve(vec![plain("200 OK", "", &body.to_string())]).await;
        let models = provider(name, &server.url).await.models().await.unwrap();
        assert_eq!((models.len(), models[0].name.as_str()), (1, "m"), "{name}");
    }
}
