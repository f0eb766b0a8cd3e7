//! A server on loopback that writes exactly the bytes a test gives it, and small words for what providers tell.

use super::{Message, Provider, ProviderError, ProviderEvent, Request};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) fn saying(text: &str) -> ProviderEvent {
    ProviderEvent::Saying(text.to_owned())
}

pub(super) fn thinking(text: &str) -> ProviderEvent {
    ProviderEvent::Thinking(text.to_owned())
}

pub(super) fn doing(id: Option<&str>, name: &str, arguments: Value) -> ProviderEvent {
    ProviderEvent::Doing {
        id: id.map(str::to_owned),
        name: name.to_owned(),
        arguments,
    }
}

pub(super) fn user(text: &str) -> Message {
    Message::User {
        content: text.to_owned(),
        images: Vec::new(),
    }
}

/// One round trip: all that was told before it ended, and how it ended.
pub(super) type Asked = (Vec<ProviderEvent>, Result<(), ProviderError>);

pub(super) async fn ask(provider: &dyn Provider, messages: &[Message]) -> Asked {
    let request = Request {
        messages,
        tools: &[],
    };
    let mut events = Vec::new();
    let ended = provider
        .fetch(request, &mut |event| events.push(event))
        .await;
    (events, ended)
}

/// A server that answers each request on its connections with the next of the answers, the last one again and again.
pub(super) struct Server {
    pub(super) url: String,
    /// Head and body of each request, in order, and how many connections there were.
    seen: Arc<Mutex<(Vec<String>, usize)>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    /// Head and body of each request so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().0.clone()
    }

    /// How many connections there were.
    pub(super) fn connections(&self) -> usize {
        self.seen.lock().unwrap().1
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
pub(super) enum Say {
    Bytes(Vec<u8>),
    /// These bytes every so often, for ever.
    Again(Vec<u8>, Duration),
    Silence,
    Close,
    Abort,
}

pub(super) fn head(content_type: &str) -> Say {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    Say::Bytes(head.into())
}

pub(super) fn chunk(body: &str) -> Say {
    Say::Bytes(format!("{:x}\r\n{body}\r\n", body.len()).into())
}

pub(super) fn last() -> Say {
    Say::Bytes(b"0\r\n\r\n".to_vec())
}

pub(super) fn sse(body: &str) -> Vec<Say> {
    vec![head("text/event-stream"), chunk(body), last()]
}

pub(super) fn plain(status: &str, headers: &str, body: &str) -> Vec<Say> {
    let length = body.len();
    let answer = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}");
    vec![Say::Bytes(answer.into())]
}

pub(super) async fn serve(answers: Vec<Vec<Say>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new((Vec::new(), 0)));
    let next = Arc::new(Mutex::new(answers));
    let task = tokio::spawn({
        let seen = seen.clone();
        async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                seen.lock().unwrap().1 += 1;
                connections.spawn(speak(stream, seen.clone(), next.clone()));
            }
        }
    });
    Server { url, seen, task }
}

async fn speak(
    mut stream: TcpStream,
    seen: Arc<Mutex<(Vec<String>, usize)>>,
    next: Arc<Mutex<Vec<Vec<Say>>>>,
) {
    while let Some(request) = hear(&mut stream).await {
        seen.lock().unwrap().0.push(request);
        let answer = {
            let mut next = next.lock().unwrap();
            match next.len() {
                1 => next[0].clone(),
                _ => next.remove(0),
            }
        };
        for say in answer {
            match say {
                Say::Bytes(bytes) => stream.write_all(&bytes).await.unwrap(),
                Say::Again(bytes, pause) => {
                    while stream.write_all(&bytes).await.is_ok() {
                        tokio::time::sleep(pause).await;
                    }
                    return;
                }
                Say::Silence => std::future::pending().await,
                Say::Close => return,
                Say::Abort => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
            }
        }
    }
}

async fn hear(stream: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length.split_once("content-length: ");
            let length = length.map_or("0", |(_, rest)| rest.lines().next().unwrap());
            if body.len() >= length.parse().unwrap() {
                return Some(text);
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
