//! A guard's question, put to the daemon instead of a terminal. Must never say yes by itself.

use super::super::run::guard::{ANSWER, ASK};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

/// The guard's exit status: 0 lets its script go on.
pub(super) fn main(args: &[String]) -> i32 {
    match asked(args) {
        Ok(true) => 0,
        Ok(false) => refuse("error: aborted: nobody allowed it"),
        Err(error) => refuse(&format!("error: aborted: nobody can be asked: {error}")),
    }
}

fn asked(args: &[String]) -> io::Result<bool> {
    let folder = std::env::var_os(super::GUARD).map(PathBuf::from);
    let folder = folder.ok_or_else(|| io::Error::other("no call is running"))?;
    let [_, script, arguments @ ..] = args else {
        return Err(io::Error::other("no guard is named"));
    };
    // One question at a time: the answers come through one pipe.
    let lock = File::create(folder.join("guard.lock"))?;
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)?;
    let id = std::process::id();
    let question = json!({
        "id": id,
        "script": script,
        "arguments": arguments,
        "cwd": std::env::current_dir()?,
    });
    let mut ask = OpenOptions::new().write(true).open(folder.join(ASK))?;
    let answers = File::open(folder.join(ANSWER))?;
    ask.write_all(format!("{question}\n").as_bytes())?;
    for line in BufReader::new(answers).lines() {
        // One that was killed may have left its answer.
        if let Some(answer) = line?.strip_prefix(&format!("{id} ")) {
            return Ok(answer == "yes");
        }
    }
    Ok(false)
}

#[allow(clippy::print_stderr)]
fn refuse(why: &str) -> i32 {
    eprintln!("{why}");
    1
}
