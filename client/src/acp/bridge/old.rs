//! What a file holds that a call is about to write over. Must never guess: a change that is shown wrong is worse than none.

use crate::acp::convert::call::{self, Old};
use crate::link::Link;
use serde_json::Value;
use std::path::Path;

/// Bytes of a file that is shown beside what is to be written in its place.
const SHOWN: u64 = 256 << 10;

/// The text before the call, which has not run or has only just begun.
pub(super) fn of(link: &Link, tool: &str, arguments: &Value, cwd: &Path) -> Old {
    let path = call::written(tool, arguments, cwd);
    match path.filter(|_| link.place().remote.is_none()) {
        Some(path) => read(&path),
        None => Old::Unknown,
    }
}

fn read(path: &Path) -> Old {
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Old::None,
        Ok(found) if found.is_file() && found.len() <= SHOWN => {
            std::fs::read_to_string(path).map_or(Old::Unknown, Old::Text)
        }
        _ => Old::Unknown,
    }
}
