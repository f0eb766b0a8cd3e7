//! A source that is a URL: bytes go behind what is there already, over lost connections too. Must never trust a server:
//! what came counts only when its sum is right.

use super::super::ModelError;
use super::super::file::failed;
use super::{Job, part};
use futures_util::StreamExt;
use protocol::provider::{ModelProgress, PullStep};
use reqwest::header::{CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode, Url};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::timeout;

const CONNECT: Duration = Duration::from_secs(15);
/// How long no byte may come.
const IDLE: Duration = Duration::from_secs(60);
/// How often a lost connection is made anew without one more byte having come.
const TRIES: u32 = 4;
/// How often is told how far it is.
const TELL: Duration = Duration::from_millis(100);
/// Pieces between the network and the disk; past it the network waits.
const PIECES: usize = 16;

/// Why the bytes ended.
enum Broken {
    /// Trying again may help.
    Lost(String),
    Refused(String),
    Disk(ModelError),
}

/// Leaves the file as the part.
pub(super) async fn fetch<F>(job: &Arc<Job<F>>, url: &str) -> Result<(), ModelError>
where
    F: Fn(ModelProgress) + Send + Sync + 'static,
{
    let url = Url::parse(url).map_err(|error| failure(url, &error.to_string()))?;
    let host = host(&url);
    let client = client(&url).await.map_err(|why| failure(&host, &why))?;
    let mut tries = 0;
    loop {
        let had = length(job);
        if had == job.entry.size {
            return Ok(());
        }
        let why = match more(job, &client, &url, had).await {
            Ok(()) => return Ok(()),
            Err(Broken::Disk(error)) => return Err(error),
            Err(Broken::Refused(why)) => return Err(failure(&host, &why)),
            Err(Broken::Lost(why)) => why,
        };
        tries = if length(job) > had { 0 } else { tries + 1 };
        if tries == TRIES {
            let kept = "what came so far is kept, and pulling again goes on from there";
            return Err(failure(&host, &format!("{why}: {kept}")));
        }
        tokio::time::sleep(Duration::from_millis(250 << tries)).await;
    }
}

fn failure(host: &str, why: &str) -> ModelError {
    ModelError::Fetch {
        message: format!("{host}: {why}"),
    }
}

fn host(url: &Url) -> String {
    url.host_str().unwrap_or("?").to_owned()
}

fn length<F>(job: &Job<F>) -> u64 {
    part(&job.path).metadata().map_or(0, |meta| meta.len())
}

/// One connection's worth of bytes behind the first `had`.
async fn more<F>(job: &Arc<Job<F>>, client: &Client, url: &Url, had: u64) -> Result<(), Broken>
where
    F: Fn(ModelProgress) + Send + Sync + 'static,
{
    let mut request = client.get(url.clone());
    if had > 0 {
        request = request.header(RANGE, format!("bytes={had}-"));
    }
    let response = timeout(IDLE, request.send()).await;
    let response = response.map_err(|_| silent())?;
    let response = response.map_err(|error| Broken::Lost(cause(&error)))?;
    let start = start(&response, had)?;
    let (pieces, queue) = mpsc::channel(PIECES);
    let path = part(&job.path);
    let writing = tokio::task::spawn_blocking(move || write(&path, start, queue));
    let received = receive(job, response, start, pieces).await;
    match writing.await {
        Ok(Ok(())) => received,
        Ok(Err(error)) => Err(Broken::Disk(error)),
        Err(error) => Err(Broken::Refused(error.to_string())),
    }
}

fn silent() -> Broken {
    Broken::Lost(format!("no byte came for {} s", IDLE.as_secs()))
}

/// Where the answer's bytes belong.
fn start(response: &Response, had: u64) -> Result<u64, Broken> {
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let range = response.headers().get(CONTENT_RANGE);
            let range = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes "));
            let start: Option<u64> = range.and_then(|range| range.split('-').next()?.parse().ok());
            match start {
                Some(start) if start == had => Ok(had),
                _ => Err(Broken::Refused(
                    "it sent another part than was asked for".to_owned(),
                )),
            }
        }
        StatusCode::OK => Ok(0),
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(Broken::Lost(format!("it answered {status}")))
        }
        status => Err(Broken::Refused(format!("it answered {status}"))),
    }
}

async fn receive<F>(
    job: &Arc<Job<F>>,
    response: Response,
    start: u64,
    pieces: mpsc::Sender<Vec<u8>>,
) -> Result<(), Broken>
where
    F: Fn(ModelProgress) + Send + Sync + 'static,
{
    let size = job.entry.size;
    let host = host(response.url());
    let mut stream = response.bytes_stream();
    let mut done = start;
    let mut told = Instant::now();
    job.tell(PullStep::Fetching, done, Some(size), Some(&host));
    while done < size {
        let piece = match timeout(IDLE, stream.next()).await {
            Err(_) => return Err(silent()),
            Ok(None) => {
                return Err(Broken::Lost(format!(
                    "it ended after {done} of {size} bytes"
                )));
            }
            Ok(Some(Err(error))) => return Err(Broken::Lost(cause(&error))),
            Ok(Some(Ok(piece))) => piece,
        };
        // What a server sends beyond the size is of no file that is wanted.
        let rest = usize::try_from(size - done).unwrap_or(usize::MAX);
        let piece = piece[..piece.len().min(rest)].to_vec();
        done += piece.len() as u64;
        if pieces.send(piece).await.is_err() {
            // The writer says why.
            return Ok(());
        }
        if told.elapsed() >= TELL || done == size {
            told = Instant::now();
            job.tell(PullStep::Fetching, done, Some(size), Some(&host));
        }
    }
    Ok(())
}

fn write(path: &Path, start: u64, mut queue: mpsc::Receiver<Vec<u8>>) -> Result<(), ModelError> {
    let failed = |error: io::Error| failed("write", path, &error);
    let file = File::options().create(true).append(true).open(path);
    let mut file = file.map_err(failed)?;
    file.set_len(start).map_err(failed)?;
    while let Some(piece) = queue.blocking_recv() {
        file.write_all(&piece).map_err(failed)?;
    }
    file.sync_data().map_err(failed)
}

/// Made for each pull: pulls are rare, and certificates are memory.
async fn client(url: &Url) -> Result<Client, String> {
    static CRYPTO: Once = Once::new();
    // Whoever chose first is as good.
    CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .connect_timeout(CONNECT)
        .redirect(reqwest::redirect::Policy::limited(5))
        .user_agent(concat!("dwell/", env!("CARGO_PKG_VERSION")));
    match url.scheme() {
        "https" => {}
        // Only a catalogue of one's own has such; the sum is pinned all the same.
        "http" => {
            let tls = rustls::ClientConfig::builder()
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            builder = builder.no_proxy().tls_backend_preconfigured(tls);
        }
        other => return Err(format!("{other} is no way to fetch a model")),
    }
    let built = tokio::task::spawn_blocking(move || builder.build()).await;
    let built = built.map_err(|error| error.to_string())?;
    built.map_err(|error| cause(&error))
}

/// The innermost cause: the library's own texts repeat the URL and say little else.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
