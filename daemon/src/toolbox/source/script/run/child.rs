//! The script as a child: fed, listened to on both its outputs, and ended when its time is over.

use crate::process::{self, Exit, Pipes, Sink, Spawn};
use crate::toolbox::tool::Call;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What is kept of the complaints; the end says most.
const COMPLAINTS: usize = 16 * 1024;
/// What is read at most once everything that writes is dead.
const REST: usize = 1024 * 1024;

pub(super) struct Ended {
    pub(super) exit: Exit,
    /// False where it asked for its arguments, and nobody answered.
    pub(super) began: bool,
    /// What it printed, capped.
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// What may end it before its own end.
pub(super) struct Limit<'l> {
    pub(super) time: Duration,
    pub(super) cancel: &'l CancellationToken,
    /// Whether it waits for a person's answer.
    pub(super) asking: &'l AtomicBool,
}

/// Runs it to its end; both outputs are taken as they come.
pub(super) async fn run(
    spawn: &Spawn,
    limit: Limit<'_>,
    printed: &mut dyn Sink,
    complaints: &mut dyn Sink,
) -> Exit {
    let (running, pipes) = match process::open(spawn) {
        Ok(opened) => opened,
        Err(error) => {
            let program = spawn.program.to_string_lossy();
            return Exit::NotStarted(format!("cannot start {program}: {error}"));
        }
    };
    let Pipes {
        stdin,
        mut stdout,
        mut stderr,
    } = pipes;
    // Ours, so that the end of its time can be told from a cancel.
    let Limit {
        time,
        cancel,
        asking,
    } = limit;
    let stop = cancel.child_token();
    let mut over = false;
    let ended = running.ended(&stop);
    let feeding = feed(stdin, spawn.stdin.as_deref().unwrap_or_default());
    let end = tokio::time::sleep(time);
    tokio::pin!(ended, feeding, end);
    let (mut fed, mut said, mut complained) = (false, Vec::new(), Vec::new());
    let (mut out_open, mut err_open) = (true, true);
    let exit = loop {
        tokio::select! {
            read = stdout.read_buf(&mut said), if out_open => {
                out_open = read.is_ok_and(|count| count > 0);
                printed.take(&said).await;
                said.clear();
            }
            read = stderr.read_buf(&mut complained), if err_open => {
                err_open = read.is_ok_and(|count| count > 0);
                complaints.take(&complained).await;
                complained.clear();
            }
            () = &mut feeding, if !fed => fed = true,
            exit = &mut ended => break exit,
            () = &mut end, if !over => match asking.load(Ordering::Relaxed) {
                // A person who thinks is none of the script's time.
                true => end.as_mut().reset(Instant::now() + time),
                false => {
                    over = true;
                    stop.cancel();
                }
            },
        }
    };
    rest(&stdout, &mut said);
    printed.take(&said).await;
    rest(&stderr, &mut complained);
    complaints.take(&complained).await;
    match exit {
        Exit::Cancelled if over && !cancel.is_cancelled() => Exit::TimedOut,
        exit => exit,
    }
}

/// A script that does not read its arguments is none of our trouble.
async fn feed(mut stdin: pipe::Sender, bytes: &[u8]) {
    let _ = stdin.write_all(bytes).await;
}

/// What was written before the end. A descriptor that travelled elsewhere may keep the pipe open, so nothing is waited
/// for.
fn rest(pipe: &pipe::Receiver, into: &mut Vec<u8>) {
    let mut piece = vec![0; 64 * 1024];
    while into.len() < REST {
        match pipe.try_read(&mut piece) {
            Ok(count @ 1..) => into.extend(&piece[..count]),
            _ => return,
        }
    }
}

/// The end of what it said; people see it as it comes, where there is a call that they look at.
pub(super) struct Complaints<'c> {
    call: Option<&'c Call>,
    tail: VecDeque<u8>,
    cut: bool,
    shown: usize,
}

impl<'c> Complaints<'c> {
    pub(super) fn new(call: Option<&'c Call>) -> Self {
        Self {
            call,
            tail: VecDeque::new(),
            cut: false,
            shown: 0,
        }
    }

    pub(super) fn text(self) -> String {
        let tail = Vec::from(self.tail);
        let text = String::from_utf8_lossy(&tail);
        if self.cut {
            format!("[the beginning is cut]\n{text}")
        } else {
            text.into_owned()
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(call) = self
            .call
            .filter(|_| self.shown < COMPLAINTS && !bytes.is_empty())
        {
            self.shown += bytes.len();
            call.port
                .output(&call.call, &String::from_utf8_lossy(bytes));
        }
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(COMPLAINTS);
        self.cut |= surplus > 0;
        self.tail.drain(..surplus);
    }
}

impl Sink for Complaints<'_> {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        self.add(bytes);
        Box::pin(std::future::ready(()))
    }
}
