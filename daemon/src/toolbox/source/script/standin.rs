//! `argc` for scripts that the daemon runs: this very program under that name. It prints the assignments of one call for
//! the script's `eval`. Must never print a word of a model's that is not quoted.

mod assign;
mod guard;
mod other;
pub(super) mod quote;

use super::run::folder::ASKED;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
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

/// Marks that a script was answered: one that nobody answered never began, whatever its exit status says.
fn mark() {
    if let Some(call) = std::env::var_os(CALL) {
        let _ = std::fs::write(PathBuf::from(call).with_file_name(ASKED), "");
    }
}

/// The assignments, when it is the script of the call that asks, with the words that it was started with.
fn own(args: &[String]) -> Option<String> {
    let [_, asked, script, words @ ..] = args else {
        return None;
    };
    if asked != "--argc-eval" {
        return None;
    }
    let file = PathBuf::from(std::env::var_os(CALL)?);
    let call: Value = serde_json::from_str(&std::fs::read_to_string(&file).ok()?).ok()?;
    let given = call["words"].as_array()?;
    if call["script"].as_str() != Some(script) || given != words {
        return None;
    }
    let source = call["source"].as_str().unwrap_or(script);
    let call = Call {
        script: PathBuf::from(script),
        function: call["function"].as_str().unwrap_or_default().to_owned(),
        arguments: call["arguments"].as_object().cloned().unwrap_or_default(),
        words: words.to_vec(),
    };
    mark();
    let text = std::fs::read_to_string(source).map_err(|error| format!("{source}: {error}"));
    let env = |name: &str| std::env::var(name).ok();
    let lines = text.and_then(|text| assign::Asked::of(&call, &text)?.lines(&env));
    Some(lines.unwrap_or_else(|why| failing(&why)))
}

/// One call of a script.
pub(super) struct Call {
    pub(super) script: PathBuf,
    pub(super) function: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) words: Vec<String>,
}

/// The assignments before anybody asks for them, where they cannot depend on what the script does until it asks.
pub(super) fn settled(call: &Call, text: &str, env: &BTreeMap<String, String>) -> Option<String> {
    let get = |name: &str| env.get(name).cloned();
    let lines = match assign::Asked::of(call, text) {
        Ok(asked) if !asked.is_settled(&get) => return None,
        Ok(asked) => asked.lines(&get),
        Err(why) => Err(why),
    };
    Some(lines.unwrap_or_else(|why| failing(&why)))
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
