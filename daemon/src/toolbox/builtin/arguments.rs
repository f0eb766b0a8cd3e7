//! Arguments as handlers take them, and the objects they give back. Types were checked by the gate already.

use crate::toolbox::tool::Call;
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};
use tokio_util::sync::CancellationToken;

pub(super) type Arguments = Map<String, Value>;

/// The text of a parameter; an absent one is empty.
pub(super) fn text<'a>(arguments: &'a Arguments, name: &str) -> &'a str {
    optional_text(arguments, name).unwrap_or_default()
}

pub(super) fn optional_text<'a>(arguments: &'a Arguments, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A count; models write whole numbers as `3.0` too.
pub(super) fn count(arguments: &Arguments, name: &str) -> Option<usize> {
    let value = arguments.get(name)?;
    let whole = value
        .as_u64()
        .or_else(|| value.as_f64().map(|number| number as u64));
    whole.and_then(|number| usize::try_from(number).ok())
}

pub(super) fn flag(arguments: &Arguments, name: &str) -> bool {
    arguments
        .get(name)
        .and_then(Value::as_bool)
        .unwrap_or(false)
}

/// A path as the model wrote it: `~` is the session's home, all else is relative to the session's directory.
pub(super) fn path(call: &Call, written: &str) -> PathBuf {
    let home = call.env.get("HOME").filter(|home| !home.is_empty());
    let path = match (written.strip_prefix('~'), home) {
        (Some(""), Some(home)) => PathBuf::from(home),
        (Some(rest), Some(home)) if rest.starts_with('/') => Path::new(home).join(&rest[1..]),
        _ => call.cwd.join(written),
    };
    path.components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

/// A failure that the model can do something about.
pub(super) fn failure(message: impl Into<String>) -> Map<String, Value> {
    Map::from_iter([("error".to_owned(), Value::String(message.into()))])
}

/// Runs what reads or writes files on a thread of its own, with a token that is cancelled with the call and when nobody
/// waits any more.
pub(super) async fn blocking<T: Send + 'static>(
    call: &Call,
    work: impl FnOnce(&CancellationToken) -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let cancel = call.cancel.child_token();
    let seen = cancel.clone();
    let _guard = cancel.drop_guard();
    match tokio::task::spawn_blocking(move || work(&seen)).await {
        Ok(outcome) => outcome,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => Err("cancelled".to_owned()),
    }
}
