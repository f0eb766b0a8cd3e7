//! What reading a stream costs: `cargo bench -p dwelld --bench provider`. Prints; judges nothing.
//! The whole path of an answer is measured, from the socket to the events: the CPU time of the one thread that reads, while
//! another plays the server.

#![allow(clippy::print_stdout)]

use daemon::provider::registry::{BuildOptions, ProviderConfig, Providers};
use daemon::provider::{Message, ProviderEvent, Request};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

/// Small events of one answer, as a fast model sends them.
const EVENTS: usize = 5_000;
/// What reading them may cost.
const TARGET: Duration = Duration::from_millis(10);
/// Answers of which the best counts.
const ROUNDS: usize = 15;

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    for (name, api) in [
        ("openai", ""),
        ("openai", "responses"),
        ("anthropic", ""),
        ("ollama", ""),
    ] {
        let url = serve(body(name, api));
        let best = runtime.block_on(measure(name, api, &url));
        let verdict = if best <= TARGET { "holds" } else { "FAILS" };
        println!("{name} {api}: {EVENTS} events in {best:?} of CPU, at most {TARGET:?}: {verdict}");
    }
}

async fn measure(name: &str, api: &str, url: &str) -> Duration {
    let (url, api) = (url.to_owned(), api.to_owned());
    let config = ProviderConfig {
        env: Arc::new(move |variable| match variable {
            "OPENAI_WIRE_API" => Some(api.clone()).filter(|api| !api.is_empty()),
            _ if variable.ends_with("_BASE_URL") => Some(url.clone()),
            _ if variable.ends_with("_API_KEY") || variable.ends_with("_MODEL") => {
                Some("x".to_owned())
            }
            _ => None,
        }),
        ..ProviderConfig::default()
    };
    let providers = Providers::new(config);
    let provider = providers.build(name, BuildOptions::default()).await;
    let provider = provider.expect("it has a server");
    let messages = [Message::User {
        content: "go".to_owned(),
        images: Vec::new(),
    }];
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let (mut pieces, mut length) = (0, 0);
        let request = Request {
            messages: &messages,
            tools: &[],
        };
        let began = cpu();
        let mut count = |event: ProviderEvent| {
            if let ProviderEvent::Saying(text) = event {
                pieces += 1;
                length += text.len();
            }
        };
        let ended = provider.fetch(request, &mut count).await;
        best = best.min(cpu() - began);
        ended.expect("a whole answer");
        assert_eq!(pieces, EVENTS, "{length} bytes");
    }
    best
}

/// Of this thread.
fn cpu() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the structure is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

fn body(name: &str, api: &str) -> String {
    let event = |n: usize| {
        let word = format!("word{n} ");
        match (name, api) {
            ("anthropic", _) => format!(
                "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{word}\"}}}}\n\n"
            ),
            ("ollama", _) => format!(
                "{{\"model\":\"m\",\"created_at\":\"2026-11-01T00:00:00Z\",\"message\":{{\"role\":\"assistant\",\"content\":\"{word}\"}},\"done\":false}}\n"
            ),
            (_, "responses") => format!(
                "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{word}\",\"sequence_number\":{n}}}\n\n"
            ),
            _ => format!(
                "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1760000000,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}},\"logprobs\":null,\"finish_reason\":null}}]}}\n\n"
            ),
        }
    };
    let end = match (name, api) {
        ("anthropic", _) => "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        ("ollama", _) => "{\"model\":\"m\",\"done\":true,\"done_reason\":\"stop\"}\n",
        (_, "responses") => {
            "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}\n\n"
        }
        _ => {
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
        }
    };
    (0..EVENTS).map(event).collect::<String>() + end
}

/// Answers every request on every connection with this body, in chunks of some events.
fn serve(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            while hear(&mut reader) {
                let mut answer =
                    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
                        .to_vec();
                for part in body.as_bytes().chunks(4_096) {
                    answer.extend(format!("{:x}\r\n", part.len()).bytes());
                    answer.extend(part);
                    answer.extend(b"\r\n");
                }
                answer.extend(b"0\r\n\r\n");
                if reader.get_mut().write_all(&answer).is_err() {
                    break;
                }
            }
        }
    });
    url
}

/// Reads one request; false at the end of the connection.
fn hear(reader: &mut impl BufRead) -> bool {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return false;
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length: ") {
            length = value.parse().unwrap_or(0);
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).is_ok()
}
