//! `argc` for scripts that the daemon runs: this very program under that name. It prints the assignments of one call for
//! the script's `eval`. Must never print a word of a model's that is not quoted.

mod assign;
mod guard;
mod other;
mod quote;

use serde_json::{Map, Value};
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Names the file that holds the call, for the script that it is about.
pub(super) const CALL: &str = "DWELL_TOOL_CALL";

/// Names the folder of the call, for guards that run in it.
pub(super) const GUARD: &str = "DWELL_TOOL_GUARD_DIR";

/// What guards are started as.
pub(super) const GUARD_NAME: &str = "dwell-guard";

/// Does what `argc` does, or a guard, and never returns, if that is the name that this process was started by. Call it before
/// anything else.
pub fn main_if_asked() {
    let name = std::env::args_os().next().unwrap_or_default();
    match Path::new(&name).file_name().and_then(OsStr::to_str) {
        Some("argc") => std::process::exit(main()),
        Some(GUARD_NAME) => {
            let args = std::env::args_os().map(|arg| arg.to_string_lossy().into_owned());
            std::process::exit(guard::main(&args.collect::<Vec<_>>()))
        }
        _ => {}
    }
}

fn main() -> i32 {
    let args: Result<Vec<_>, _> = std::env::args_os()
        .map(std::ffi::OsString::into_string)
        .collect();
    let Ok(args) = args else {
        return say(&failing("an argument is not UTF-8"));
    };
    match own(&args) {
        Some(text) => say(&text),
        None => other::main(&args),
    }
}

/// The assignments, when it is the script of the call that asks.
fn own(args: &[String]) -> Option<String> {
    let [_, asked, script, ..] = args else {
        return None;
    };
    if asked != "--argc-eval" {
        return None;
    }
    let call = std::fs::read_to_string(std::env::var_os(CALL)?).ok()?;
    let call: Value = serde_json::from_str(&call).ok()?;
    if call["script"].as_str() != Some(script) {
        return None;
    }
    let call = Call {
        script: PathBuf::from(script),
        source: PathBuf::from(call["source"].as_str().unwrap_or(script)),
        function: call["function"].as_str().unwrap_or_default().to_owned(),
        arguments: call["arguments"].as_object().cloned().unwrap_or_default(),
        words: args[3..].to_vec(),
    };
    Some(assign::lines(&call).unwrap_or_else(|why| failing(&why)))
}

/// One call of a script.
struct Call {
    script: PathBuf,
    /// Where its text is read.
    source: PathBuf,
    function: String,
    arguments: Map<String, Value>,
    words: Vec<String>,
}

fn say(text: &str) -> i32 {
    let written = std::io::stdout().write_all(text.as_bytes());
    i32::from(written.is_err())
}

/// Lines that end the script with a message.
fn failing(why: &str) -> String {
    let message = quote::quote(&format!("error: {why}"));
    format!("command printf '%s\\n' {message} >&2\nexit 1\n")
}
