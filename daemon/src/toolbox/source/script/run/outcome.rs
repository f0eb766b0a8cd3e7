//! How a script ended, as the result object of its call.

use super::child::Ended;
use super::folder::Folder;
use crate::process::Exit;
use crate::toolbox::builtin::capture::{CAP, Capture};
use crate::toolbox::builtin::execute::signal_name;
use crate::toolbox::tool::Call;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// What is read of an output file; more than that nobody is shown or keeps.
const READ: u64 = 64 * 1024 * 1024;

pub(super) async fn result(
    call: &Call,
    ended: Ended,
    folder: &Folder,
    timeout: Duration,
) -> Map<String, Value> {
    let written = written(folder.output()).await;
    let said = match written.is_empty() {
        false => written,
        true => ended.stdout,
    };
    let error = match ended.exit {
        Exit::Code(0) if ended.began || !(said.is_empty() || ended.stderr.contains("argc")) => {
            return success(call, &said).await;
        }
        // Its shell does not end when argc fails inside `eval "$(argc ...)"`.
        Exit::Code(0) => {
            let mut failure = failure(&format!(
                "it never began: argc gave no answer{}",
                last(&ended.stderr).map_or(String::new(), |line| format!(": {line}"))
            ));
            failure.insert("exit_status".to_owned(), json!(0));
            failure.insert("stderr".to_owned(), ended.stderr.into());
            if !said.is_empty() {
                failure.insert("output".to_owned(), capped(call, &said).await.into());
            }
            return failure;
        }
        Exit::Code(code) => {
            let mut failure = failure(&reason(code, &ended.stderr));
            failure.insert("exit_status".to_owned(), json!(code));
            failure.insert("stderr".to_owned(), ended.stderr.into());
            if !said.is_empty() {
                failure.insert("output".to_owned(), capped(call, &said).await.into());
            }
            return failure;
        }
        Exit::NotStarted(why) => return failure(&why),
        Exit::Signal(signal) => format!("killed by {}", signal_name(signal)),
        Exit::TimedOut => format!("timed out after {} s", timeout.as_secs_f64()),
        Exit::Cancelled => "cancelled".to_owned(),
    };
    let mut failure = failure(&error);
    failure.insert("stderr".to_owned(), ended.stderr.into());
    if !said.is_empty() {
        // It had not said that it was done, so this may be half of what it meant to say.
        failure.insert("output".to_owned(), capped(call, &said).await.into());
        failure.insert("partial".to_owned(), true.into());
    }
    failure
}

fn failure(error: &str) -> Map<String, Value> {
    Map::from_iter([("error".to_owned(), error.into())])
}

/// The last thing said is most often the reason.
fn reason(code: i32, stderr: &str) -> String {
    match last(stderr) {
        Some(line) => format!("exit status {code}: {line}"),
        None => format!("exit status {code}"),
    }
}

fn last(text: &str) -> Option<&str> {
    text.lines().map(str::trim).rfind(|line| !line.is_empty())
}

async fn success(call: &Call, said: &str) -> Map<String, Value> {
    let text = said.trim_end_matches('\n');
    if text.trim().is_empty() {
        return output("(no output)".into());
    }
    if text.len() > CAP {
        return output(capped(call, said).await.into());
    }
    match serde_json::from_str(text) {
        // The result has an `ok` of its own, which says how the call ended.
        Ok(Value::Object(fields)) if fields.get("ok").is_none_or(|ok| *ok == true) => fields,
        Ok(fields @ Value::Object(_)) => output(fields),
        // A number that JSON would write in another way is not one that may be changed.
        Ok(value) if value.is_array() || value.is_boolean() || stands_as(&value, text) => {
            output(value)
        }
        _ => output(text.into()),
    }
}

fn stands_as(value: &Value, text: &str) -> bool {
    let written = value.to_string();
    written == text
}

fn output(value: Value) -> Map<String, Value> {
    Map::from_iter([("output".to_owned(), value)])
}

async fn capped(call: &Call, text: &str) -> String {
    match text.len() > CAP {
        true => Capture::silent(call).whole(text).await,
        false => text.to_owned(),
    }
}

/// The text of `LLM_OUTPUT`; a script may have put anything in its place.
pub(super) async fn written(file: std::path::PathBuf) -> String {
    let read = tokio::task::spawn_blocking(move || read(&file).unwrap_or_default()).await;
    let bytes = read.unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if file.symlink_metadata()?.is_file() {
        std::fs::File::open(file)?
            .take(READ)
            .read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
