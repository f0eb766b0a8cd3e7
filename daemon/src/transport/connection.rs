//! One connection: reading frames, writing the one queue, and ending without keeping anybody waiting.
//! Must never hold a buffer while idle, nor wait for a client longer than the limits say.

use super::Service;
use super::context::Context;
use super::dispatch::Dispatcher;
use super::request::{WireId, error_response, id_in_head};
use crate::memory::Activity;
use protocol::error::{ErrorKind, RpcError};
use protocol::framing::{Decoder, FrameError, Style, encode};
use protocol::surrogate;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Bytes taken from the socket at once; on the stack, so an idle connection has none.
const READ: usize = 16 << 10;
/// Queued messages are joined up to this size and written with one system call.
const WRITE: usize = 64 << 10;
/// How often a client that closed its half is looked at: it may have died while calls are in flight.
const HALF_CLOSED_CHECK: Duration = Duration::from_secs(1);
/// How long a client that announced a frame over the limit may take to send the beginning, where its id stands.
const ANNOUNCED: Duration = Duration::from_millis(500);
/// How long a client that was told why it is cut off may take to read that.
const LINGER: Duration = Duration::from_secs(2);

/// A connected client.
pub struct Connection {
    pub stream: UnixStream,
    pub context: Arc<Context>,
    /// The other end of the context's queue.
    pub queue: mpsc::Receiver<Box<RawValue>>,
    pub service: Service,
    /// Where calls run.
    pub tasks: TaskTracker,
    /// Told to deliver what is queued and end.
    pub stop: CancellationToken,
}

/// Why a connection ended.
#[derive(Debug)]
enum End {
    /// The client closed its half.
    Closed,
    /// The daemon stops.
    Stopped,
    /// Nobody can say where the next frame begins.
    Lost(String),
    /// The socket failed, or the client did not read.
    Failed(io::Error),
}

impl Connection {
    /// Serves it to its end.
    pub async fn run(self) {
        let Self {
            stream,
            context,
            mut queue,
            service,
            tasks,
            stop,
        } = self;
        let limits = service.limits;
        let activity = service.activity.clone();
        let chosen = Chosen::default();
        let finish = CancellationToken::new();
        let dispatcher = Dispatcher::new(service, Arc::clone(&context), tasks);

        let reading = async {
            let mut decoder = Decoder::new(limits.frame);
            let end = tokio::select! {
                end = read(&stream, &mut decoder, &dispatcher, &context, &chosen, &activity) => end,
                () = stop.cancelled() => End::Stopped,
            };
            drop(decoder);
            settle(&end, &stream, &dispatcher, &stop, limits.drain).await;
            finish.cancel();
            end
        };
        let writing = write(&stream, &mut queue, &chosen, limits.unread, &finish);
        tokio::pin!(reading, writing);
        let end = tokio::select! {
            written = &mut writing => match written {
                Ok(()) => End::Closed,
                Err(error) => End::Failed(error),
            },
            end = &mut reading => match writing.await {
                Ok(()) => end,
                Err(error) => End::Failed(error),
            },
        };
        report(&end, &context);
        if let End::Lost(_) = end {
            linger(&stream).await;
        }
    }
}

/// The connection's framing, once its first byte was read.
#[derive(Default)]
struct Chosen(AtomicU8);

impl Chosen {
    fn set(&self, style: Option<Style>) {
        let code = match style {
            None => 0,
            Some(Style::Lines) => 1,
            Some(Style::Headers) => 2,
        };
        self.0.store(code, Ordering::Relaxed);
    }

    /// Before anything was read, an answer (to garbage, say) is a line.
    fn get(&self) -> Style {
        match self.0.load(Ordering::Relaxed) {
            2 => Style::Headers,
            _ => Style::Lines,
        }
    }
}

async fn read(
    stream: &UnixStream,
    decoder: &mut Decoder,
    dispatcher: &Dispatcher,
    context: &Context,
    chosen: &Chosen,
    activity: &Activity,
) -> End {
    let mut announced = None;
    loop {
        match readable(stream, decoder, &mut announced).await {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                chosen.set(decoder.style());
                if let Some(error) = decoder.refuse()
                    && let Some(end) = refuse(error, context).await
                {
                    return end;
                }
                continue;
            }
            Err(error) => return End::Failed(error),
        }
        let open = match fill(stream, decoder) {
            Ok(0) => false,
            Ok(_) => {
                activity.stir();
                true
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => return End::Failed(error),
        };
        loop {
            let next = if open {
                decoder.next_frame()
            } else {
                decoder.finish()
            };
            match next {
                Ok(Some(frame)) => {
                    chosen.set(decoder.style());
                    dispatcher.handle(&surrogate::mend(&frame)).await;
                }
                Ok(None) => break,
                Err(error) => {
                    if let FrameError::TooLong { .. } = error {
                        chosen.set(decoder.style());
                    }
                    if let Some(end) = refuse(error, context).await {
                        return end;
                    }
                }
            }
        }
        if !open {
            return End::Closed;
        }
    }
}

/// Waits for bytes; but where a frame over the limit is announced, only for a moment, for its id. Then the error is
/// `TimedOut`.
async fn readable(
    stream: &UnixStream,
    decoder: &Decoder,
    announced: &mut Option<Instant>,
) -> io::Result<()> {
    if !decoder.awaits_head() {
        *announced = None;
        return stream.readable().await;
    }
    let until = *announced.get_or_insert_with(|| Instant::now() + ANNOUNCED);
    timeout_at(until, stream.readable()).await?
}

/// Reads what is there, once. A function of its own so that the buffer is on the stack and not in the task.
fn fill(stream: &UnixStream, decoder: &mut Decoder) -> io::Result<usize> {
    let mut buffer = [0; READ];
    let count = stream.try_read(&mut buffer)?;
    decoder.push(&buffer[..count]);
    Ok(count)
}

/// Answers what is no frame; `Some` when the connection cannot go on.
async fn refuse(error: FrameError, context: &Context) -> Option<End> {
    match error {
        FrameError::TooLong { limit, head } => {
            let id = id_in_head(&head);
            let why = format!("a frame over the limit of {limit} bytes");
            let error = RpcError::new(ErrorKind::InvalidRequest, why.clone());
            let answer = error_response(id.as_ref().unwrap_or(&WireId::null()), error);
            context.send(answer).await;
            // Whose call it was cannot be said, so its caller would wait for ever.
            id.is_none().then_some(End::Lost(why))
        }
        FrameError::Lost(why) => {
            let error = RpcError::new(ErrorKind::Parse, why.clone());
            context.send(error_response(&WireId::null(), error)).await;
            Some(End::Lost(why))
        }
    }
}

/// Lets calls in flight end, so that a script which sends its calls and closes its half gets every answer.
async fn settle(
    end: &End,
    stream: &UnixStream,
    dispatcher: &Dispatcher,
    stop: &CancellationToken,
    drain: Duration,
) {
    match end {
        End::Failed(_) | End::Lost(_) => {}
        End::Stopped => {
            let _ = timeout(drain, dispatcher.settled()).await;
        }
        End::Closed => {
            tokio::select! {
                () = dispatcher.settled() => {}
                () = dead(stream) => {}
                () = stop.cancelled() => {
                    let _ = timeout(drain, dispatcher.settled()).await;
                }
            }
        }
    }
}

/// Resolves when the client, which has closed its half, is gone altogether.
async fn dead(stream: &UnixStream) {
    loop {
        match stream.ready(Interest::READABLE | Interest::WRITABLE).await {
            Ok(ready) if !ready.is_write_closed() => sleep(HALF_CLOSED_CHECK).await,
            _ => return,
        }
    }
}

/// Writes what is queued until told to finish; then what is left.
async fn write(
    stream: &UnixStream,
    queue: &mut mpsc::Receiver<Box<RawValue>>,
    chosen: &Chosen,
    unread: Duration,
    finish: &CancellationToken,
) -> io::Result<()> {
    let mut finishing = false;
    loop {
        let first = tokio::select! {
            biased;
            () = finish.cancelled(), if !finishing => {
                queue.close();
                finishing = true;
                continue;
            }
            message = queue.recv() => message,
        };
        let Some(first) = first else { return Ok(()) };
        let style = chosen.get();
        let mut bytes = Vec::new();
        encode(style, first.get().as_bytes(), &mut bytes);
        while bytes.len() < WRITE
            && let Ok(next) = queue.try_recv()
        {
            encode(style, next.get().as_bytes(), &mut bytes);
        }
        write_all(stream, &bytes, unread).await?;
    }
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8], unread: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                timeout(unread, stream.writable())
                    .await
                    .map_err(|_| does_not_read(unread))??;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn does_not_read(unread: Duration) -> io::Error {
    let why = format!("the client left output unread for {unread:?}");
    io::Error::new(io::ErrorKind::TimedOut, why)
}

fn report(end: &End, context: &Context) {
    let (connection, client) = (context.id().0, context.name());
    match end {
        End::Closed | End::Stopped => tracing::debug!(connection, client, "connection closed"),
        End::Lost(why) => {
            tracing::warn!(connection, client, why, "connection cut: not our protocol")
        }
        End::Failed(error) if error.kind() == io::ErrorKind::TimedOut => {
            tracing::warn!(connection, client, %error, "connection cut");
        }
        End::Failed(error) => tracing::debug!(connection, client, %error, "connection broke"),
    }
}

/// Throws away what a client still sends, so that closing does not take from it the answer it has not read yet.
pub async fn linger(stream: &UnixStream) {
    let _ = rustix::net::shutdown(stream, rustix::net::Shutdown::Write);
    let until = Instant::now() + LINGER;
    let drained = async {
        let mut buffer = vec![0; READ];
        while stream.readable().await.is_ok() {
            match stream.try_read(&mut buffer) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    };
    let _ = timeout_at(until, drained).await;
}
