//! The provider against a server on loopback that writes exactly the bytes a test gives it.

use super::super::registry::{BuildOptions, ProviderConfig, Providers};
use super::super::sse::{Event, Parser};
use super::super::testing::{
    self, Asked, Say, chunk, doing, head, plain, saying, serve, sse, user,
};
use super::super::{ErrorClass, Provider, ProviderError, ProviderEvent};
use super::*;
use reqwest::Url;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;

/// Short for a test, long for a loaded machine.
const IDLE: Duration = Duration::from_millis(300);
const KEY: &str = "sk-secret-0123456789";

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn delta(delta: Value) -> String {
    event(
        &json!({"id": "x", "object": "chat.completion.chunk", "choices": [
        {"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]}),
    )
}

fn finish(reason: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

fn calls(deltas: &[Value]) -> String {
    let deltas = deltas.iter().map(|call| delta(json!({"tool_calls": call})));
    deltas.collect::<String>() + &finish("tool_calls") + "data: [DONE]\n\n"
}

/// What the bytes mean, without a network.
fn read(pieces: &[&[u8]]) -> Result<Vec<ProviderEvent>, ProviderError> {
    let url = Url::parse("http://127.0.0.1:1/v1").unwrap();
    let peer = Peer::new(&url, IDLE);
    let mut events = Vec::new();
    let mut answer: Box<dyn Answer> = Box::new(answer::Completion::new(&peer, Reasoning::Hidden));
    let mut emit = |event| events.push(event);
    let mut parser = Parser::default();
    let mut each = |event: Event<'_>| answer.event(&event, &mut emit).map(drop);
    for piece in pieces {
        parser.feed(piece, &mut each)?;
    }
    parser.finish(&mut each)?;
    answer.end(&mut emit)?;
    Ok(events)
}

fn meaning(stream: &str) -> Vec<ProviderEvent> {
    read(&[stream.as_bytes()]).unwrap()
}

fn providers(url: &str) -> Providers {
    let url = url.to_owned();
    Providers::new(ProviderConfig {
        env: Arc::new(move |name| match name {
            "OPENAI_BASE_URL" => Some(url.clone()),
            "OPENAI_API_KEY" => Some(KEY.to_owned()),
            "DWELL_IDLE_TIMEOUT_MS" => Some(IDLE.as_millis().to_string()),
            _ => None,
        }),
        ..ProviderConfig::default()
    })
}

async fn openai(url: &str) -> Arc<dyn Provider> {
    let options = BuildOptions::default();
    providers(url).build("openai", options).await.unwrap()
}

async fn ask(provider: &dyn Provider) -> Asked {
    testing::ask(provider, &[user("hello")]).await
}

async fn answered(answer: Vec<Say>) -> Asked {
    let server = serve(vec![answer]).await;
    ask(&*openai(&server.url).await).await
}

async fn failed(answer: Vec<Say>) -> ProviderError {
    answered(answer).await.1.unwrap_err()
}

#[test]
fn stream_cut_at_any_byte_means_the_same() {
    let call =
        json!([{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{\"path\":"}}]);
    let rest = json!([{"index": 0, "function": {"arguments": "\"ä😀\"}"}}]);
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5,
        "prompt_tokens_details": {"cached_tokens": 3}}});
    let stream = String::new()
        + ": hello\r\n\r\n"
        + &delta(json!({"role": "assistant", "content": ""})).replace('\n', "\r\n")
        + &delta(json!({"reasoning_content": "hm 🤔"}))
        + &delta(json!({"content": "€é😀"}))
        + ": keep-alive\n\n"
        + &delta(json!({"tool_calls": call}))
        + &delta(json!({"tool_calls": rest}))
        + &finish("tool_calls")
        + &event(&usage)
        + "data: [DONE]";
    let expected = [
        ProviderEvent::Thinking("hm 🤔".to_owned()),
        saying("€é😀"),
        doing(Some("c1"), "read", json!({"path": "ä😀"})),
        ProviderEvent::Usage {
            input: 7,
            output: 5,
            cached: 3,
        },
    ];
    let bytes = stream.as_bytes();
    for cut in 0..=bytes.len() {
        assert_eq!(
            read(&[&bytes[..cut], &bytes[cut..]]).unwrap(),
            expected,
            "cut at {cut}"
        );
    }
}

#[test]
fn calls_are_put_together_by_their_index() {
    let stream = calls(&[
        json!([{"index": 0, "id": "a", "function": {"name": "one", "arguments": ""}},
               {"index": 1, "id": "b", "function": {"name": "two"}}]),
        json!([{"index": 1, "function": {"arguments": "{\"n\":"}}]),
        json!([{"index": 0, "function": {"arguments": "{\"n\":1"}},
               {"index": 1, "function": {"arguments": "2}"}}]),
        json!([{"index": 0, "function": {"arguments": "}"}}]),
    ]);
    let expected = [
        doing(Some("a"), "one", json!({"n": 1})),
        doing(Some("b"), "two", json!({"n": 2})),
    ];
    assert_eq!(meaning(&stream), expected);
}

#[test]
fn calls_without_an_index_or_an_id_are_told_apart_all_the_same() {
    let whole = |id: Option<&str>, name: &str, index: Option<u32>| json!([{"index": index, "id": id, "function": {"name": name, "arguments": "{}"}}]);
    let same_index = calls(&[
        whole(Some("a"), "one", Some(0)),
        whole(Some("b"), "two", Some(0)),
    ]);
    let no_index = calls(&[whole(Some("a"), "one", None), whole(Some("b"), "two", None)]);
    let expected = [
        doing(Some("a"), "one", json!({})),
        doing(Some("b"), "two", json!({})),
    ];
    assert_eq!(meaning(&same_index), expected);
    assert_eq!(meaning(&no_index), expected);

    let nothing = calls(&[whole(None, "one", None), whole(Some(""), "two", None)]);
    let expected = [doing(None, "one", json!({})), doing(None, "two", json!({}))];
    assert_eq!(meaning(&nothing), expected);
}

#[test]
fn arguments_are_the_json_that_came_or_the_text_itself() {
    let argument = |arguments: Value| {
        let call =
            json!([{"index": 0, "id": "a", "function": {"name": "t", "arguments": arguments}}]);
        match meaning(&calls(&[call])).remove(0) {
            ProviderEvent::Doing { arguments, .. } => arguments,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(argument(json!("")), json!({}));
    assert_eq!(argument(Value::Null), json!({}));
    assert_eq!(argument(json!("{\"a\": tru")), json!("{\"a\": tru"));
    assert_eq!(argument(json!("[1]")), json!([1]));
    assert_eq!(argument(json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn odd_shapes_of_compatible_servers_are_read() {
    let stream = String::new()
        + &delta(json!({"content": [{"type": "text", "text": "a"}], "tool_calls": null}))
        + &delta(json!({"content": null, "reasoning": "hm"}))
        + &delta(json!({"function_call": {"name": "old", "arguments": "{}"}}))
        + &event(&json!({"choices": [{"index": 1, "delta": {"content": "another choice"}}]}))
        + &event(&json!({"choices": [{"delta": null, "finish_reason": ""}]}))
        + &event(&json!({"type": "ping"}))
        + "data:\n\n"
        + &event(&json!({"choices": null, "usage": {"prompt_tokens": 1.0}}))
        + "data:[DONE]\n\n";
    let expected = [
        saying("a"),
        ProviderEvent::Thinking("hm".to_owned()),
        doing(None, "old", json!({})),
        ProviderEvent::Usage {
            input: 1,
            output: 0,
            cached: 0,
        },
    ];
    assert_eq!(meaning(&stream), expected);
}

#[test]
fn error_in_the_stream_keeps_the_vendors_message() {
    let overloaded =
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let quota =
        json!({"error": {"message": "No credit", "type": "insufficient_quota", "code": null}});
    let bare = json!({"object": "error", "message": "out of memory", "code": 500});
    let cases = [
        (
            format!("event: error\ndata: {overloaded}\n\n"),
            "Overloaded",
            true,
        ),
        (event(&quota), "No credit", false),
        (event(&bare), "out of memory", true),
        (
            "event: error\ndata: gone away\n\n".to_owned(),
            "gone away",
            false,
        ),
        (event(&json!({"error": "bad"})), "bad", false),
    ];
    for (stream, message, retryable) in cases {
        let stream = delta(json!({"content": "a"})) + &stream;
        let error = read(&[stream.as_bytes()]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Reported { retryable }, "{error}");
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn what_is_no_json_is_an_error_and_not_lost_text() {
    for line in [
        &b"data: {\"broken\": tru\n\n"[..],
        b"data: \x00\xff\xfe\n\n",
    ] {
        assert_eq!(read(&[line]).unwrap_err().class, ErrorClass::Dropped);
    }
}

#[test]
fn answer_that_was_cut_by_a_limit_or_filter_is_told_as_that() {
    let cut = json!([{"index": 0, "id": "a", "function": {"name": "write", "arguments": "{\"x\": \"lon"}}]);
    let cut = delta(json!({"tool_calls": cut})) + &finish("length");
    let cases = [
        (cut, "cut a tool call off"),
        (finish("length"), "before it answered"),
        (
            delta(json!({"content": "a"})) + &finish("content_filter"),
            "content filter",
        ),
    ];
    for (stream, message) in cases {
        let error = read(&[stream.as_bytes()]).unwrap_err();
        assert_eq!(error.class, ErrorClass::Fatal);
        assert!(error.message.contains(message), "{error}");
    }
    let text = delta(json!({"content": "a"})) + &finish("length");
    assert_eq!(meaning(&text), [saying("a")]);
}

#[tokio::test]
async fn end_mark_may_be_done_or_a_finish_reason_but_not_neither() {
    let said = delta(json!({"content": "a"}));
    for end in [
        format!("{}data: [DONE]\n\n", finish("stop")),
        "data: [DONE]".to_owned(),
        finish("stop"),
    ] {
        let (events, ended) = answered(sse(&format!("{said}{end}"))).await;
        assert_eq!((events, ended), (vec![saying("a")], Ok(())), "{end}");
    }
    let (events, ended) = answered(sse(&said)).await;
    let error = ended.unwrap_err();
    assert_eq!(
        (events, error.class),
        (vec![saying("a")], ErrorClass::Dropped)
    );
    assert!(error.message.contains("without an end mark"));
}

#[tokio::test]
async fn broken_connection_is_dropped_unless_the_answer_was_whole() {
    let said = delta(json!({"content": "a"}));
    for end in [Say::Close, Say::Abort] {
        let cut = vec![head("text/event-stream"), chunk(&said), end.clone()];
        let (events, ended) = answered(cut).await;
        assert_eq!(events, [saying("a")]);
        assert_eq!(ended.unwrap_err().class, ErrorClass::Dropped);
        let whole = said.clone() + &finish("stop");
        let whole = vec![head("text/event-stream"), chunk(&whole), end];
        assert_eq!(answered(whole).await.1, Ok(()));
    }
    assert_eq!(failed(vec![Say::Abort]).await.class, ErrorClass::Dropped);
}

#[tokio::test]
async fn silence_is_a_stall_though_comments_keep_coming() {
    let said = delta(json!({"content": "a"}));
    let ping = Say::Again(b"e\r\n: keep-alive\n\n\r\n".to_vec(), IDLE / 10);
    let silent = vec![head("text/event-stream"), chunk(&said), Say::Silence];
    let pinged = vec![head("text/event-stream"), chunk(&said), ping];
    for answer in [silent, pinged, vec![Say::Silence]] {
        let error = failed(answer).await;
        assert_eq!(error.class, ErrorClass::Stalled);
        assert!(error.message.contains("no data for 0.3 s"), "{error}");
    }
}

#[tokio::test]
async fn refusal_has_the_vendors_message_and_pause() {
    let body = json!({"error": {"message": "slow down", "type": "rate_limit_error"}}).to_string();
    let error = failed(plain("429 Too Many Requests", "Retry-After: 2\r\n", &body)).await;
    let class = ErrorClass::Status {
        code: 429,
        retry_after_ms: Some(2000),
    };
    assert_eq!(error.class, class);
    assert!(
        error
            .message
            .ends_with("answered 429 Too Many Requests: slow down (rate_limit_error)")
    );

    let page = failed(plain("502 Bad Gateway", "", "<html><body>oh</body></html>")).await;
    assert!(
        page.message
            .ends_with("answered 502 Bad Gateway: a web page"),
        "{page}"
    );
}

#[tokio::test]
async fn key_is_in_no_message() {
    let body = json!({"error": {"message": format!("Incorrect API key provided: {KEY}")}});
    let error = failed(plain("401 Unauthorized", "", &body.to_string())).await;
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    assert!(
        error.message.contains("Incorrect API key provided: ***"),
        "{error}"
    );
    assert!(!format!("{:?}", providers("http://127.0.0.1:1")).contains(KEY));
}

#[tokio::test]
async fn web_page_is_no_answer_and_an_answer_need_not_be_a_stream() {
    let page = failed(plain(
        "200 OK",
        "Content-Type: text/html\r\n",
        "<html></html>",
    ))
    .await;
    assert_eq!(page.class, ErrorClass::Fatal);
    assert!(page.message.contains("web page"));

    let whole = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"},
        "finish_reason": "stop"}]});
    let whole = plain(
        "200 OK",
        "Content-Type: application/json\r\n",
        &whole.to_string(),
    );
    assert_eq!(answered(whole).await, (vec![saying("a")], Ok(())));
    let stream = delta(json!({"content": "a"})) + &finish("stop");
    let stream = plain("200 OK", "Content-Type: application/json\r\n", &stream);
    assert_eq!(answered(stream).await, (vec![saying("a")], Ok(())));
    let error = json!({"error": {"message": "no such model"}}).to_string();
    let error = failed(plain(
        "200 OK",
        "Content-Type: application/json\r\n",
        &error,
    ))
    .await;
    assert!(error.message.contains("no such model"));
}

#[tokio::test]
async fn connection_is_used_again_and_the_request_is_what_the_vendor_expects() {
    let server = serve(vec![sse(&(finish("stop") + "data: [DONE]\n\n"))]).await;
    let provider = openai(&server.url).await;
    for _ in 0..3 {
        ask(&*provider).await.1.unwrap();
    }
    let seen = server.seen();
    assert_eq!((seen.len(), server.connections()), (3, 1));
    let (head, body) = seen[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1"));
    assert!(head.contains(&format!("authorization: Bearer {KEY}")));
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["model"], super::super::preset::model_of("openai"));
    assert_eq!(
        body["messages"],
        json!([{"role": "user", "content": "hello"}])
    );
}

#[tokio::test]
async fn nobody_listening_is_told_with_host_and_port() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let url = format!("http://user:password@{address}/v1?token=hidden");
    let error = ask(&*openai(&url).await).await.1.unwrap_err();
    assert_eq!(error.class, ErrorClass::Dropped);
    assert!(
        error
            .message
            .contains(&format!("cannot connect to {address}: ")),
        "{error}"
    );
    assert!(!error.message.contains("password") && !error.message.contains("hidden"));
}

#[tokio::test]
async fn models_are_listed_with_their_windows() {
    let list = json!({"object": "list", "data": [
        {"id": "gpt-4o-mini", "object": "model"}, {"id": "local", "max_model_len": 4096}]});
    let server = serve(vec![plain("200 OK", "", &list.to_string())]).await;
    let models = openai(&server.url).await.models().await.unwrap();
    let models: Vec<_> = models
        .iter()
        .map(|one| (one.name.as_str(), one.window))
        .collect();
    assert_eq!(
        models,
        [("gpt-4o-mini", Some(128_000)), ("local", Some(4096))]
    );
}

#[test]
fn list_of_models_is_found_in_every_shape() {
    for (list, expected) in [
        (
            json!({"data": [{"id": "a"}], "models": [{"name": "a"}]}),
            "a",
        ),
        (
            json!([{"id": "openai/gpt-4.1", "name": "GPT", "limits": {"max_input_tokens": 9}}]),
            "openai/gpt-4.1",
        ),
        (
            json!({"result": [{"id": "0b5", "name": "@cf/some/model"}], "success": true}),
            "@cf/some/model",
        ),
        (json!({"data": [{"id": "models/gemini-x"}]}), "gemini-x"),
        (
            json!({"publisherModels": [{"name": "publishers/anthropic/models/claude-x"}]}),
            "publishers/anthropic/models/claude-x",
        ),
    ] {
        let models = models(list.to_string().as_bytes()).unwrap();
        assert_eq!((models.len(), models[0].name.as_str()), (1, expected));
    }
    assert!(models(b"{\"odd\": 1}").is_none());
}

#[tokio::test]
async fn model_is_the_options_then_the_variables() {
    let options = BuildOptions {
        host: None,
        model: Some("chosen".to_owned()),
        ..BuildOptions::default()
    };
    let providers = providers("http://127.0.0.1:1");
    let chosen = providers.build("openai", options).await.unwrap();
    assert_eq!(chosen.model(), Some("chosen"));
    let usual = providers
        .build("openai", BuildOptions::default())
        .await
        .unwrap();
    assert_eq!(
        (usual.model(), usual.window()),
        (
            Some(super::super::preset::model_of("openai")),
            Some(1_050_000)
        )
    );

    let none = Providers::new(ProviderConfig::default());
    let error = none
        .build("openai", BuildOptions::default())
        .await
        .err()
        .unwrap();
    assert!(error.to_string().contains("OPENAI_API_KEY"));
}
