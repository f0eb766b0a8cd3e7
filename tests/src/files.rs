//! A file server on loopback that knows ranges, breaks off when it is told to, and counts what it was asked.
//! Must never be reachable from another machine.

use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// The server; it stops when dropped.
#[derive(Debug)]
pub struct FileServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    bytes: Vec<u8>,
    /// How many bytes each answer gives before it breaks off; the last counts for all that follow.
    cuts: Mutex<Vec<Option<usize>>>,
    /// Where each request began.
    asked: Mutex<Vec<usize>>,
    /// Answers wait here while it is closed.
    gate: (Mutex<bool>, Condvar),
    stopping: AtomicBool,
}

impl FileServer {
    /// One file, under any path.
    pub fn start(bytes: Vec<u8>) -> Self {
        Self::cutting(bytes, Vec::new())
    }

    /// The first answers break off after so many bytes.
    pub fn cutting(bytes: Vec<u8>, cuts: Vec<usize>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            bytes,
            cuts: Mutex::new(cuts.into_iter().map(Some).collect()),
            asked: Mutex::default(),
            gate: (Mutex::new(true), Condvar::new()),
            stopping: AtomicBool::new(false),
        });
        let theirs = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if theirs.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let theirs = Arc::clone(&theirs);
                // A client that goes away in mid-answer is an error here and no news.
                thread::spawn(move || drop(serve(stream, &theirs)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}/model.gguf", self.address)
    }

    /// Where each request so far began in the file.
    pub fn asked(&self) -> Vec<usize> {
        lock(&self.shared.asked).clone()
    }

    /// Holds all answers back after their first bytes, or lets them go on.
    pub fn set_open(&self, open: bool) {
        *lock(&self.shared.gate.0) = open;
        self.shared.gate.1.notify_all();
    }
}

impl Drop for FileServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        self.set_open(true);
        let _ = TcpStream::connect(self.address);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut from = None;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim().to_ascii_lowercase();
        if let Some(range) = line.strip_prefix("range: bytes=") {
            from = range
                .split('-')
                .next()
                .and_then(|from| from.parse::<usize>().ok());
        }
        if line.is_empty() {
            break;
        }
    }
    let start = from.unwrap_or(0).min(shared.bytes.len());
    lock(&shared.asked).push(start);
    let body = &shared.bytes[start..];
    let total = shared.bytes.len();
    let head = match from {
        Some(_) => format!(
            "HTTP/1.1 206 Partial Content\r\ncontent-range: bytes {start}-{}/{total}\r\n",
            total.saturating_sub(1)
        ),
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    let stream = reader.get_mut();
    let head = format!(
        "{head}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    let cut = {
        let mut cuts = lock(&shared.cuts);
        if cuts.is_empty() {
            None
        } else {
            cuts.remove(0)
        }
    };
    let body = &body[..cut.unwrap_or(body.len()).min(body.len())];
    let (first, rest) = body.split_at(body.len().min(1000));
    stream.write_all(first)?;
    let (open, opened) = &shared.gate;
    drop(
        opened
            .wait_while(lock(open), |open| !*open)
            .unwrap_or_else(PoisonError::into_inner),
    );
    stream.write_all(rest)
}
