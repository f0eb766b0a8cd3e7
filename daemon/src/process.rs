//! Children: spawning them under a supervisor that leaves no descendant behind. The only place that spawns.
//! Must never know tools, sessions or the protocol's meaning.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
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

/// Runs it with stdout and stderr merged in order into `output`. When it returns, no descendant is left.
pub async fn run(
    spawn: Spawn,
    cancel: &CancellationToken,
    output: &mut (dyn FnMut(&[u8]) + Send),
) -> Exit {
    let _ = (spawn, cancel, output);
    unimplemented!()
}
