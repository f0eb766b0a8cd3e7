//! Writing to the process's own streams. Must never panic when a reader has gone.

use crate::error::Failure;
use crate::paint::only_colours;
use crate::screen::size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};

/// A line on stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    raw(&format!("{text}\n"))
}

/// Text on stdout as it is, out at once; on a terminal without what would steer it.
pub(crate) fn raw(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    let text = for_stream(text, stdout.is_terminal());
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// Columns for text on the terminal that stdout is; none where it is something else.
pub(crate) fn columns() -> Option<usize> {
    let terminal = io::stdout().is_terminal();
    let (columns, _) = size().filter(|_| terminal)?;
    (columns > 1).then(|| columns - 1)
}

/// Whether whoever read stdout has gone, so that nothing more can be told.
pub(crate) fn is_unread() -> bool {
    let stdout = io::stdout();
    let mut polled = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec::default();
    let ready = poll(&mut polled, Some(&now));
    ready.is_ok_and(|count| count > 0)
        && polled[0]
            .revents()
            .intersects(PollFlags::ERR | PollFlags::HUP)
}

/// A value on stdout, one line of JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value)
        .map_err(|error| Failure::new(format!("cannot write the answer as JSON: {error}")))?;
    line(&text)
}

/// A line on stderr.
pub(crate) fn note(text: &str) -> Result<(), Failure> {
    progress(&format!("{text}\n"))
}

/// Text on stderr as it is; on a terminal without what would steer it.
pub(crate) fn progress(text: &str) -> Result<(), Failure> {
    let mut stderr = io::stderr().lock();
    let text = for_stream(text, stderr.is_terminal());
    Ok(stderr.write_all(text.as_bytes())?)
}

fn for_stream(text: &str, terminal: bool) -> Cow<'_, str> {
    match terminal {
        true => only_colours(text),
        false => Cow::Borrowed(text),
    }
}
