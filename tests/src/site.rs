//! A web site on loopback that serves what a test lays down. Must never be reachable from another machine.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// The site; it stops when dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    pages: Arc<Mutex<BTreeMap<String, Page>>>,
    stopping: Arc<AtomicBool>,
}

#[derive(Clone, Debug)]
enum Page {
    Body(Vec<u8>),
    Moved(String),
}

impl Site {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let site = Self {
            address: listener.local_addr().unwrap(),
            pages: Arc::default(),
            stopping: Arc::default(),
        };
        let (pages, stopping) = (Arc::clone(&site.pages), Arc::clone(&site.stopping));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                // Who goes away early wants no answer.
                let _ = serve(&stream, &pages);
            }
        });
        site
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `127.0.0.1:PORT`
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// This is at the path from now on.
    pub fn put(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.pages()
            .insert(path.to_owned(), Page::Body(body.into()));
    }

    /// The path redirects.
    pub fn redirect(&self, path: &str, to: &str) {
        self.pages()
            .insert(path.to_owned(), Page::Moved(to.to_owned()));
    }

    fn pages(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Page>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: &TcpStream, pages: &Mutex<BTreeMap<String, Page>>) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first)?;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let path = first.split(' ').nth(1).unwrap_or("/");
    let page = pages
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .get(path)
        .cloned();
    let (head, body) = match page {
        Some(Page::Body(body)) => ("200 OK".to_owned(), body),
        Some(Page::Moved(to)) => (format!("302 Found\r\nlocation: {to}"), Vec::new()),
        None => ("404 Not Found".to_owned(), Vec::new()),
    };
    let head = format!(
        "HTTP/1.1 {head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = stream;
    stream.write_all(head.as_bytes())?;
    stream.write_all(&body)
}
