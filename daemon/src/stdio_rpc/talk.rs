//! The task of one child: writes what is queued, reads what it says, learns its end.
//! Must never wait for one message's effect before it writes another.

use super::message::{Incoming, Outgoing};
use super::{Handler, Refusal, Shared};
use crate::process::{Exit, Pipes, Running};
use protocol::surrogate;
use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The longest line, so that a child which never ends one costs no more memory than this.
pub(super) const LINE: u64 = 32 * 1024 * 1024;
pub(super) const TOO_LONG: &str = "wrote a line that is too long";
/// How long what a dead child had written may take to be read.
const REST: Duration = Duration::from_secs(1);
/// How many of the child's own requests are answered at once.
const REQUESTS: usize = 64;

pub(super) async fn drive(
    running: Running,
    pipes: Pipes,
    queue: mpsc::Receiver<Vec<u8>>,
    shared: Arc<Shared>,
    handler: Arc<dyn Handler>,
) {
    let reading = listen(pipes.stdout, &shared, &handler);
    let voice = &shared.voice;
    let ears = (reading, voice.complain(pipes.stderr));
    let how = attend(running, pipes.stdin, queue, &shared.stop, ears).await;
    shared.gone(voice.end(&how));
}

/// What becomes of a child that is spoken with, until nothing of it is left. `reading` takes what it says and ends with
/// the reason why nobody listens any more, or with the end of its words; `complaining` takes its stderr.
pub(super) async fn attend(
    running: Running,
    stdin: pipe::Sender,
    queue: mpsc::Receiver<Vec<u8>>,
    stop: &CancellationToken,
    (reading, complaining): (
        impl Future<Output = Option<String>>,
        impl Future<Output = ()>,
    ),
) -> String {
    let ended = running.ended(stop);
    tokio::pin!(ended);
    tokio::pin!(reading);
    tokio::pin!(complaining);
    let (mut told, mut silent, mut deaf) = (None, false, false);
    // A child that closes a pipe is about to end, and how it does is news; but not for ever.
    let patience = tokio::time::sleep(Duration::MAX);
    tokio::pin!(patience);
    let exit = {
        let writing = write(stdin, queue);
        tokio::pin!(writing);
        loop {
            tokio::select! {
                exit = &mut ended => break exit,
                () = &mut writing, if !deaf => {
                    deaf = true;
                    patience.as_mut().reset(Instant::now() + REST);
                }
                why = &mut reading, if told.is_none() => {
                    match why {
                        Some(_) => stop.cancel(),
                        None => patience.as_mut().reset(Instant::now() + REST),
                    }
                    told = Some(why);
                }
                () = &mut complaining, if !silent => silent = true,
                () = &mut patience, if !stop.is_cancelled() => stop.cancel(),
            }
        }
    };
    let rest = async {
        if told.is_none() {
            told = Some((&mut reading).await);
        }
        if !silent {
            (&mut complaining).await;
        }
    };
    // Only a descriptor that travelled out of the child's tree keeps a pipe open.
    let _ = tokio::time::timeout(REST, rest).await;
    told.flatten().unwrap_or_else(|| end_of(&exit))
}

/// Ends when the child takes no more; it may still speak then, but nobody can ask it anything.
async fn write(mut stdin: pipe::Sender, mut queue: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = queue.recv().await {
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// Ends at the end of stdout, or with the reason why what comes is not listened to any more.
async fn listen(
    stdout: pipe::Receiver,
    shared: &Arc<Shared>,
    handler: &Arc<dyn Handler>,
) -> Option<String> {
    let mut reader = BufReader::new(stdout);
    let mut line = Vec::new();
    let mut requests = JoinSet::new();
    loop {
        let text = match read_text(&mut reader, &mut line).await {
            Ok(text) => text?,
            Err(why) => return Some(why),
        };
        match Incoming::read(text) {
            Some(message) => {
                shared.said.fetch_add(1, Ordering::Relaxed);
                take(message, shared, handler, &mut requests).await;
            }
            None => return Some("wrote to its stdout what is no JSON-RPC message".to_owned()),
        }
        while requests.try_join_next().is_some() {}
    }
}

async fn take(
    message: Incoming<'_>,
    shared: &Arc<Shared>,
    handler: &Arc<dyn Handler>,
    requests: &mut JoinSet<()>,
) {
    match message {
        Incoming::Answer { id, result } => {
            shared.answered(id, result);
        }
        Incoming::Stray => {
            tracing::warn!(
                child = shared.voice.name,
                "it answered what nobody asked it"
            );
        }
        Incoming::Notification { method, params } => handler.notified(&method, &params).await,
        Incoming::Request { id, method, params } => {
            let crowded = requests.len() >= REQUESTS;
            let asked = handler.asked(method.into_owned(), params.into_owned());
            let (id, shared) = (id.to_owned(), shared.clone());
            requests.spawn(async move {
                let answer = match crowded {
                    true => Err(overloaded()),
                    false => asked.await,
                };
                let line = Outgoing::answer(&id, &answer);
                // A child that is gone needs no answer.
                let _ = shared.outgoing.send(line).await;
            });
        }
    }
}

/// The next line that says anything, none at the end; or why what comes is not listened to any more.
pub(super) async fn read_text<'l, R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
    line: &'l mut Vec<u8>,
) -> Result<Option<&'l [u8]>, String> {
    while read_line(reader, line, LINE).await {
        if line.len() as u64 >= LINE {
            return Err(TOO_LONG.to_owned());
        }
        if !line.trim_ascii().is_empty() {
            if let Cow::Owned(mended) = surrogate::mend(line) {
                *line = mended;
            }
            return Ok(Some(line.trim_ascii()));
        }
    }
    Ok(None)
}

/// The next line, or as much of it as fits; false at the end.
pub(super) async fn read_line<R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
    line: &mut Vec<u8>,
    limit: u64,
) -> bool {
    line.clear();
    // What was large once need not be kept.
    line.shrink_to(64 * 1024);
    let read = reader.take(limit).read_until(b'\n', line).await;
    read.is_ok_and(|count| count > 0)
}

fn end_of(exit: &Exit) -> String {
    match exit {
        Exit::Code(0) | Exit::Cancelled | Exit::TimedOut => "ended".to_owned(),
        Exit::Code(code) => format!("ended with exit status {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
        Exit::NotStarted(why) => format!("did not start: {why}"),
    }
}

fn overloaded() -> Refusal {
    Refusal {
        code: Refusal::OVERLOADED,
        message: "too many requests at once".to_owned(),
        data: serde_json::Value::Null,
    }
}
