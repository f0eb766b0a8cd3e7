//! Filters that a repository configures for itself: commands that git runs over files when it only compares them.
//! Must never touch those of the user's own settings, such as for large files.

use super::ask::{Answer, ask};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio_util::sync::CancellationToken;

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
    let Answer { code, output } = ask(&args, env, cwd, cancel).await?;
    match code {
        0 => named(&output),
        // None matches.
        1 => Ok(BTreeSet::new()),
        // Where its settings cannot be read the command itself says so.
        _ if output.starts_with(b"fatal:") || output.starts_with(b"error:") => {
            Err(String::from_utf8_lossy(&output).trim_end().to_owned())
        }
        code => Err(format!("git config ended with {code}")),
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
