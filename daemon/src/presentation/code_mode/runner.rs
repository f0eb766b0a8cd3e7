//! The process of one program: confines itself, runs what it is given, says how it ended. Must never outlive its call.

use super::line::Line;
use super::wire::{Frame, Job, Kind};
use super::{confine, engine};
use std::ffi::OsStr;

/// The first argument that makes this executable a runner.
pub(super) const ARGUMENT: &str = "code-runner";
/// The longest text of a frame to it.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;

/// Becomes the runner and never returns, if that is what this process was started for.
pub fn main_if_asked() {
    if std::env::args_os().nth(1).as_deref() == Some(OsStr::new(ARGUMENT)) {
        serve();
        // SAFETY: nothing here needs exit handlers, and they would only cost time.
        unsafe { libc::_exit(0) }
    }
}

fn serve() {
    let mut line = Line::new(LARGEST);
    let Some(Frame {
        kind: Kind::Job,
        text,
        ..
    }) = line.receive()
    else {
        return;
    };
    let Ok(job) = serde_json::from_slice::<Job>(&text) else {
        return;
    };
    let confined = confine::limit(job.memory, job.cpu_ms)
        .map_err(|error| format!("the limits cannot be set: {error}"))
        .and_then(|()| confine::filter());
    let refused = confined.is_err() && !job.unfiltered;
    line.send(&Frame::new(
        Kind::Ready,
        0,
        confined.err().unwrap_or_default(),
    ));
    if !refused {
        engine::run(&job, line);
    }
}
