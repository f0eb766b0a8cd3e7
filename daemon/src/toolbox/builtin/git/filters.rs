//! Filters that a repository configures for itself: commands that git runs over files when it only compares them.
//! Must never touch those of the user's own settings, such as for large files.

use crate::process::{self, Exit, Spawn};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const TIMEOUT: Duration = Duration::from_secs(10);
/// More than any repository has for honest reasons.
const LONGEST: usize = 64 * 1024;
/// What takes a filter away: one without a command does nothing, and then it must not be required.
const NONE: [(&str, &str); 4] = [
    ("clean", ""),
    ("smudge", ""),
    ("process", ""),
    ("required", "false"),
];

/// Settings for `-c` that take the repository's own filters away. The error is for the model.
pub(super) async fn disarmed(
    env: &BTreeMap<String, String>,
    cwd: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<String>, String> {
    let mut settings = Vec::new();
    for filter in of_repository(env, cwd, cancel).await? {
        // There `-c` would end the name, and the filter stay.
        if filter.contains('=') {
            return Err(format!(
                "the repository configures {filter:?}, which cannot be turned off: run git by execute, if that is wanted"
            ));
        }
        settings.extend(NONE.map(|(what, value)| format!("{filter}.{what}={value}")));
    }
    Ok(settings)
}

/// The filters as `filter.NAME`.
async fn of_repository(
    env: &BTreeMap<String, String>,
    cwd: &Path,
    cancel: &CancellationToken,
) -> Result<BTreeSet<String>, String> {
    let args = [
        "config",
        "--show-scope",
        "--name-only",
        "-z",
        "--get-regexp",
        r"^filter\..*\.(clean|smudge|process)$",
    ];
    let spawn = Spawn {
        program: "git".into(),
        args: args.iter().map(Into::into).collect(),
        cwd: cwd.to_owned(),
        env: env.clone(),
        stdin: None,
        timeout: Some(TIMEOUT),
    };
    let mut output = Vec::new();
    let mut keep = |bytes: &[u8]| {
        let room = (LONGEST + 1).saturating_sub(output.len());
        output.extend_from_slice(&bytes[..bytes.len().min(room)]);
    };
    match process::run(spawn, cancel, &mut keep).await {
        Exit::Code(0) if output.len() <= LONGEST => named(&output),
        Exit::Code(0) => Err("the repository configures too many filters to look at".to_owned()),
        // None matches.
        Exit::Code(1) => Ok(BTreeSet::new()),
        // Where its settings cannot be read the command itself says so.
        Exit::Code(_) if output.starts_with(b"fatal:") || output.starts_with(b"error:") => {
            Err(String::from_utf8_lossy(&output).trim_end().to_owned())
        }
        Exit::Code(code) => Err(format!("git config ended with {code}")),
        Exit::NotStarted(why) => Err(why),
        Exit::Cancelled => Err("cancelled".to_owned()),
        Exit::Signal(_) | Exit::TimedOut => Err("git config did not end".to_owned()),
    }
}

/// From pairs of scope and name.
fn named(output: &[u8]) -> Result<BTreeSet<String>, String> {
    let mut words = output.split(|byte| *byte == 0).map(std::str::from_utf8);
    let mut filters = BTreeSet::new();
    while let (Some(scope), Some(name)) = (words.next(), words.next()) {
        let unreadable = |_| "the repository configures a filter whose name is no text".to_owned();
        let (scope, name) = (scope.map_err(unreadable)?, name.map_err(unreadable)?);
        if scope != "system" && scope != "global" {
            filters.extend(name.rsplit_once('.').map(|(filter, _)| filter.to_owned()));
        }
    }
    Ok(filters)
}
