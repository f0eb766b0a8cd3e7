//! The files that a daemon reads, as the daemon's own program judges them: also where none can start. Must never read one
//! itself, since only the daemon knows what it takes.

use super::check::{Check, State};
use serde::Deserialize;
use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the look may take: a directory may lie on a slow disk.
const LIMIT: Duration = Duration::from_secs(10);

/// The pause between two looks whether it is over.
const PAUSE: Duration = Duration::from_millis(10);

/// What `dwelld --check` says of one file.
#[derive(Debug, Deserialize)]
struct Fault {
    state: String,
    what: String,
    hint: Option<String>,
}

/// What is wrong in them, or one check that says that nothing is.
pub(super) async fn checks() -> Vec<Check> {
    // That there is none has its own check.
    let Some(program) = crate::connect::daemon_program() else {
        return Vec::new();
    };
    match look(&program).await {
        Ok(Some((code, lines))) => read(&lines, code),
        Ok(None) => {
            let what = "looking at config.toml, the store and .agents takes too long";
            vec![Check::new(State::Bad, what).hint("does a disk not answer?")]
        }
        Err(error) => {
            let what = format!("cannot run {}: {error}", program.display());
            vec![Check::new(State::Bad, what)]
        }
    }
}

/// How the look ended and what it found; none if it did not end. What it prints fits into a pipe.
async fn look(program: &Path) -> io::Result<Option<(Option<i32>, String)>> {
    #[expect(clippy::disallowed_methods, reason = "its end is waited for below")]
    let mut command = Command::new(program);
    let mut child = command
        .arg("--check")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let until = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        tokio::time::sleep(PAUSE).await;
    };
    let mut lines = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut lines)?;
    }
    Ok(Some((status.code(), lines)))
}

fn read(lines: &str, code: Option<i32>) -> Vec<Check> {
    let mut checks: Vec<Check> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(Fault::told)
        .collect();
    match (checks.is_empty(), code) {
        (true, Some(0)) => checks.push(Check::good(
            "config.toml, the store, permissions and mcp.json can be read",
        )),
        (true, _) => checks.push(
            Check::new(
                State::Doubtful,
                "this dwelld cannot look at its files by itself",
            )
            .hint("install dwell and dwelld from one release"),
        ),
        (false, _) => {}
    }
    checks
}

impl Fault {
    fn told(self) -> Check {
        let state = match self.state.as_str() {
            "warning" => State::Doubtful,
            _ => State::Bad,
        };
        let check = Check::new(state, self.what);
        match self.hint {
            Some(hint) => check.hint(hint),
            None => check,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_told_and_silence_only_of_a_success_is_good() {
        let line = r#"{"state":"wrong","what":"cannot use config.toml","hint":"mend it"}"#;
        let expected = Check::new(State::Bad, "cannot use config.toml").hint("mend it");
        assert_eq!(read(line, Some(1)), [expected]);
        assert_eq!(read("", Some(0))[0].state, State::Good);
        assert_eq!(read("", Some(2))[0].state, State::Doubtful);
    }
}
