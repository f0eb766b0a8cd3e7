//! Children: spawning them under a supervisor that leaves no descendant behind. The only place that spawns.
//! Must never know tools, sessions or the protocol's meaning.

mod child;
mod descendants;
mod hold;
mod launch;
pub mod mask;
pub mod nursery;
mod supervisor;
#[cfg(test)]
mod tests;
mod wire;

use child::Child;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// A child to run to its end.
#[derive(Clone, Debug)]
pub struct Spawn {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; nothing of the daemon's own is added.
    pub env: BTreeMap<String, String>,
    /// Bytes for standard input; none is an empty one.
    pub stdin: Option<Vec<u8>>,
    pub timeout: Option<Duration>,
}

/// How it ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    TimedOut,
    Cancelled,
    /// It never ran: the message names the program and the PATH that was searched.
    NotStarted(String),
}

/// Takes a child's output as it comes. While a piece is being taken nothing more is read, so a slow taker slows the child.
pub trait Sink: Send {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// Runs it with stdout and stderr merged in order into `output`. When it returns, no descendant is left; when its
/// future is dropped, they are killed too.
pub async fn run(
    spawn: Spawn,
    cancel: &CancellationToken,
    output: &mut (dyn FnMut(&[u8]) + Send),
) -> Exit {
    run_into(spawn, cancel, &mut Now(output)).await
}

/// As `run`, with a sink that may wait.
pub async fn run_into(spawn: Spawn, cancel: &CancellationToken, output: &mut dyn Sink) -> Exit {
    if cancel.is_cancelled() {
        return Exit::Cancelled;
    }
    let timeout = spawn.timeout;
    match Child::start(&spawn) {
        Ok(child) => child.finish(timeout, cancel, output).await,
        Err(error) => Exit::NotStarted(format!(
            "cannot start {}: {error}",
            spawn.program.to_string_lossy()
        )),
    }
}

/// Starts a child that is spoken with. `stdin` and `timeout` of the spawn do not count.
pub fn open(spawn: &Spawn) -> std::io::Result<(Running, Pipes)> {
    let (child, pipes) = Child::open(spawn)?;
    Ok((Running(child), pipes))
}

/// A child that is spoken with. When it is dropped, the child and all its descendants are killed.
pub struct Running(Child);

impl Running {
    /// Waits for its end, which a cancel brings about. No descendant is left then.
    pub async fn ended(self, cancel: &CancellationToken) -> Exit {
        self.0.finish(None, cancel, &mut Now(&mut |_| {})).await
    }
}

/// The daemon's ends of a child's pipes.
pub struct Pipes {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub stderr: pipe::Receiver,
}

/// Waits until nothing of any call is left, and lets go of what is kept for further ones. For the end of the daemon, when
/// its runtime is gone.
pub fn close() {
    hold::close();
}

struct Now<'f>(&'f mut (dyn FnMut(&[u8]) + Send));

impl Sink for Now<'_> {
    fn take<'a>(&'a mut self, bytes: &'a [u8]) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        (self.0)(bytes);
        Box::pin(std::future::ready(()))
    }
}
