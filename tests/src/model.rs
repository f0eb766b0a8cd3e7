//! A model server on loopback that speaks chat completions and misbehaves on demand.
//! Must never be reachable from another machine, nor answer what the test did not lay down.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// One step of an answer's body.
#[derive(Clone, Debug)]
pub enum Step {
    /// These bytes, as one chunk of the transfer and one write.
    Bytes(Vec<u8>),
    /// A pause; cut short when the server stops.
    Wait(Duration),
    /// The connection breaks off here.
    Cut,
    /// Nothing more, and the connection stays open, until the client goes away.
    Stall,
    /// As `Stall`, with a comment every 50 ms.
    StallWithComments,
}

/// An answer to one request.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    steps: Vec<Step>,
}

impl Answer {
    /// A reply in these pieces, with usage and an end.
    pub fn text<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Self {
        pieces
            .into_iter()
            .fold(Self::open(), |answer, piece| answer.say(piece))
            .finish("stop")
    }

    /// A reply of many small pieces, many in one write when `batch` says so.
    pub fn tokens(count: usize, batch: usize) -> Self {
        let mut answer = Self::open();
        for start in (0..count).step_by(batch) {
            let events: Vec<String> = (start..count.min(start + batch))
                .map(|number| event(&delta(&json!({"content": format!("w{number} ")}))))
                .collect();
            answer = answer.bytes(events.concat());
        }
        answer.finish("stop")
    }

    /// One call, its arguments in `parts` pieces.
    pub fn call(id: &str, name: &str, arguments: &str, parts: usize) -> Self {
        Self::open()
            .call_piece(0, id, name, arguments, parts)
            .finish("tool_calls")
    }

    /// A stream that has begun.
    pub fn open() -> Self {
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        Self {
            status: 200,
            headers,
            steps: Vec::new(),
        }
        .delta(&json!({"role": "assistant", "content": ""}))
    }

    /// A stream in another interface's words: nothing has come yet.
    pub fn raw() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            steps: Vec::new(),
        }
    }

    /// Another status, with a JSON error as the body.
    pub fn status(status: u16, message: &str) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = json!({"error": {"message": message, "type": "server_error"}}).to_string();
        Self {
            status,
            headers,
            steps: vec![Step::Bytes(body.into_bytes())],
        }
    }

    /// A page where a stream was asked for.
    pub fn html() -> Self {
        let headers = vec![("content-type".to_owned(), "text/html".to_owned())];
        let body = b"<html><body>please log in</body></html>".to_vec();
        Self {
            status: 200,
            headers,
            steps: vec![Step::Bytes(body)],
        }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn say(self, text: &str) -> Self {
        self.delta(&json!({"content": text}))
    }

    /// One streamed event with a delta of any shape.
    #[must_use]
    pub fn delta(self, value: &Value) -> Self {
        self.bytes(event(&delta(value)))
    }

    /// A call's pieces at an index, for several in parallel.
    #[must_use]
    pub fn call_piece(
        self,
        index: usize,
        id: &str,
        name: &str,
        arguments: &str,
        parts: usize,
    ) -> Self {
        let start = json!({"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}});
        let letters: Vec<char> = arguments.chars().collect();
        let size = letters.len().div_ceil(parts.max(1)).max(1);
        letters.chunks(size).fold(
            self.delta(&json!({"tool_calls": [start]})),
            |answer, part| {
                let text: String = part.iter().collect();
                answer.delta(
                    &json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}),
                )
            },
        )
    }

    #[must_use]
    pub fn bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.step(Step::Bytes(bytes.into()))
    }

    #[must_use]
    pub fn step(mut self, step: Step) -> Self {
        self.steps.push(step);
        self
    }

    /// The end of a good stream.
    #[must_use]
    pub fn finish(self, reason: &str) -> Self {
        self.finish_costing(reason, 7, 3)
    }

    /// The same with other tokens.
    #[must_use]
    pub fn finish_costing(self, reason: &str, input: u64, output: u64) -> Self {
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        let total = input + output;
        let usage = json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": total}});
        self.bytes(event(&end))
            .bytes(event(&usage))
            .bytes("data: [DONE]\n\n")
    }

    /// The same stream with other bytes, such as other line ends, cut into writes of `size` bytes.
    #[must_use]
    pub fn rewritten(mut self, size: usize, change: impl Fn(String) -> String) -> Self {
        let mut all = Vec::new();
        for step in &self.steps {
            if let Step::Bytes(bytes) = step {
                all.extend_from_slice(bytes);
            }
        }
        let all = change(String::from_utf8(all).expect("a stream that is text"));
        self.steps = all
            .as_bytes()
            .chunks(size)
            .map(|part| Step::Bytes(part.to_vec()))
            .collect();
        self
    }
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn delta(value: &Value) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "fake",
           "choices": [{"index": 0, "delta": value, "finish_reason": null}]})
}

/// The server; it stops when dropped.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    requests: Mutex<Vec<Value>>,
    stopping: AtomicBool,
}

impl FakeModel {
    /// Gives these answers in order; the last one again and again.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            stopping: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &theirs));
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Other answers from now on.
    pub fn set(&self, answers: impl IntoIterator<Item = Answer>) {
        *lock(&self.shared.answers) = answers.into_iter().collect();
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        lock(&self.shared.requests).clone()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming().flatten() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let shared = Arc::clone(shared);
        // A client that goes away in mid-answer is an error here and no news.
        thread::spawn(move || drop(serve(stream, &shared)));
    }
}

/// One connection, kept alive over requests.
fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some((path, body)) = read_request(&mut reader)? {
        let stream = reader.get_mut();
        if path.ends_with("/models") {
            write_models(stream)?;
            continue;
        }
        lock(&shared.requests).push(serde_json::from_slice(&body).unwrap_or(Value::Null));
        let answer = next_answer(shared);
        if !write_answer(stream, &answer, shared)? {
            return Ok(());
        }
    }
    Ok(())
}

fn next_answer(shared: &Shared) -> Answer {
    let mut answers = lock(&shared.answers);
    if answers.len() > 1 {
        return answers.pop_front().expect("there are two");
    }
    answers
        .front()
        .cloned()
        .unwrap_or_else(|| Answer::status(500, "the test laid down no answer"))
}

fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let header = line.trim_end();
        if header.is_empty() {
            break;
        }
        if let Some((name, value)) = header.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some((path, body)))
}

fn write_models(stream: &mut TcpStream) -> io::Result<()> {
    let body = json!({"object": "list", "data": [{"id": "fake", "object": "model"}]}).to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes())
}

/// Whether the connection may be used again.
fn write_answer(stream: &mut TcpStream, answer: &Answer, shared: &Shared) -> io::Result<bool> {
    let mut out = format!(
        "HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n",
        answer.status
    );
    for (name, value) in &answer.headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    out.push_str("\r\n");
    let mut out = out.into_bytes();
    for step in &answer.steps {
        match step {
            Step::Bytes(bytes) => {
                chunk(&mut out, bytes);
                stream.write_all(&out)?;
                out.clear();
            }
            Step::Wait(time) => {
                stream.write_all(&out)?;
                out.clear();
                thread::sleep(*time);
            }
            Step::Cut => {
                stream.write_all(&out)?;
                stream.shutdown(Shutdown::Both)?;
                return Ok(false);
            }
            Step::Stall | Step::StallWithComments => {
                stream.write_all(&out)?;
                stall(stream, step, shared)?;
                return Ok(false);
            }
        }
    }
    out.extend_from_slice(b"0\r\n\r\n");
    stream.write_all(&out)?;
    Ok(true)
}

fn chunk(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Until the client goes away or the server stops.
fn stall(stream: &mut TcpStream, step: &Step, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    while !shared.stopping.load(Ordering::SeqCst) {
        if matches!(step, Step::StallWithComments) {
            let mut comment = Vec::new();
            chunk(&mut comment, b": still here\n\n");
            stream.write_all(&comment)?;
        }
        match stream.read(&mut [0; 64]) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
