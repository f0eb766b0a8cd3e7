//! The script as a child: fed, listened to on both its outputs, and ended when its time is over.

use crate::process::Sink;
use crate::process::{self, Exit, Pipes, Spawn};
use crate::toolbox::builtin::capture::Capture;
use crate::toolbox::tool::Call;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// What is kept of the complaints; the end says most.
const COMPLAINTS: usize = 16 * 1024;
/// What is read at most once everything that writes is dead.
const REST: usize = 1024 * 1024;

pub(super) struct Ended {
    pub(super) exit: Exit,
    /// What it printed, capped.
    pub(super) stdout: String,
    pub(super) stderr: String,
}

pub(super) async fn run(spawn: &Spawn, limit: Duration, call: &Call) -> Ended {
    let (running, pipes) = match process::open(spawn) {
        Ok(opened) => opened,
        Err(error) => {
            let program = spawn.program.to_string_lossy();
            return Ended {
                exit: Exit::NotStarted(format!("cannot start {program}: {error}")),
                stdout: String::new(),
                stderr: String::new(),
            };
        }
    };
    let Pipes {
        stdin,
        mut stdout,
        mut stderr,
    } = pipes;
    let mut printed = Capture::new(call);
    let mut complaints = Complaints::new(call);
    // Ours, so that the end of its time can be told from a cancel.
    let stop = call.cancel.child_token();
    let mut over = false;
    {
        let ended = running.ended(&stop);
        let feeding = feed(stdin, spawn.stdin.as_deref().unwrap_or_default());
        let time = tokio::time::sleep(limit);
        tokio::pin!(ended, feeding, time);
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
                    complaints.take(&complained);
                    complained.clear();
                }
                () = &mut feeding, if !fed => fed = true,
                exit = &mut ended => break exit,
                () = &mut time, if !over => {
                    over = true;
                    stop.cancel();
                }
            }
        };
        rest(&stdout, &mut said);
        printed.take(&said).await;
        rest(&stderr, &mut complained);
        complaints.take(&complained);
        let exit = match exit {
            Exit::Cancelled if over && !call.cancel.is_cancelled() => Exit::TimedOut,
            exit => exit,
        };
        Ended {
            exit,
            stdout: printed.finish().await,
            stderr: complaints.text(),
        }
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

/// The end of what it said on its standard error; people see it as it comes.
struct Complaints<'c> {
    call: &'c Call,
    tail: VecDeque<u8>,
    cut: bool,
    shown: usize,
}

impl<'c> Complaints<'c> {
    fn new(call: &'c Call) -> Self {
        Self {
            call,
            tail: VecDeque::new(),
            cut: false,
            shown: 0,
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.shown < COMPLAINTS {
            self.shown += bytes.len();
            let text = String::from_utf8_lossy(bytes);
            self.call.port.output(&self.call.call, &text);
        }
        self.tail.extend(bytes);
        let surplus = self.tail.len().saturating_sub(COMPLAINTS);
        self.cut |= surplus > 0;
        self.tail.drain(..surplus);
    }

    fn text(self) -> String {
        let tail = Vec::from(self.tail);
        let text = String::from_utf8_lossy(&tail);
        if self.cut {
            format!("[the beginning is cut]\n{text}")
        } else {
            text.into_owned()
        }
    }
}
