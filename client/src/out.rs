//! Writing to the process's own streams. Must never panic when a reader has gone.

use crate::error::Failure;
use serde::Serialize;
use std::io::{self, Write};

/// A line on stdout.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    Ok(writeln!(stdout, "{text}")?)
}

/// Text on stdout as it is, out at once.
pub(crate) fn raw(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
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

/// Text on stderr as it is.
pub(crate) fn progress(text: &str) -> Result<(), Failure> {
    Ok(io::stderr().lock().write_all(text.as_bytes())?)
}
