//! `git`: some of its commands, with arguments that no shell reads. Never lets an option run another program.

mod ask;
mod filters;
mod place;

use super::arguments::{self, Arguments};
use super::{environment, execute};
use crate::process::Spawn;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(120);

/// What may be run, and what it does to the world.
const COMMANDS: &[(&str, Does)] = &[
    ("status", Does::Read),
    ("diff", Does::Read),
    ("log", Does::Read),
    ("show", Does::Read),
    ("blame", Does::Read),
    ("branch", Does::ReadWithoutNames),
    ("add", Does::Change),
    ("commit", Does::Change),
    ("checkout", Does::Change),
    ("switch", Does::Change),
    ("restore", Does::Change),
    ("reset", Does::Change),
    ("stash", Does::Change),
];

#[derive(Clone, Copy, PartialEq)]
enum Does {
    Read,
    /// Lists; makes or removes what is named.
    ReadWithoutNames,
    Change,
}

/// Options that run a program or write a file of the caller's choice, from commands that only read.
const REFUSED: &[&str] = &[
    "--ext-diff",
    "--textconv",
    "--output",
    "--show-signature",
    "--open-files-in-pager",
];

/// Options that read outside the repository, or run a program by way of a format.
const SUSPECT: &[&str] = &[
    // In a submodule git runs itself, by the submodule's settings.
    "--submodule",
    "--ignore-submodules",
    "--recurse-submodules",
    "--no-index",
    "--contents",
    "--ignore-revs-file",
    "--pathspec-from-file",
];

/// Settings of the repository that would run programs when it is only looked at, or wait for a person.
const SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.pager=cat",
    "log.showSignature=false",
    "diff.submodule=short",
    "status.submoduleSummary=false",
    "submodule.recurse=false",
    "color.ui=false",
    "advice.detachedHead=false",
];

/// Further ones where nothing is to change: programs that a format may ask for, and hooks.
const LOOKING: &[&str] = &[
    "core.hooksPath=/dev/null",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    // The first line of a file that is no list of commits would be told.
    "blame.ignoreRevsFile=",
    "format.pretty=medium",
];

/// Nothing may wait for a person, and nothing is fetched behind the caller's back.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "true"),
    ("GIT_SEQUENCE_EDITOR", "true"),
    ("GIT_ASKPASS", "true"),
    ("SSH_ASKPASS", "true"),
    ("GIT_MERGE_AUTOEDIT", "no"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
];

pub(super) fn tool() -> Tool {
    Tool::new(
        "git",
        "Run git in the session's directory: status, diff, log, show, blame, branch, add, commit, checkout, switch, \
         restore, reset, stash. Give a commit its message with -m.",
    )
    .param("command", json!({"type": "string", "description": "The git command, such as `log`"}))
    .param("args", json!({"type": "array", "items": {"type": "string"}, "description": "Its arguments, one each, as they are: no shell reads them"}))
    .required("command")
    .access_by(access)
    .words(&["command", "args"])
    .handler(git)
}

fn words(arguments: &Arguments) -> Vec<&str> {
    let list = arguments.get("args").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

fn does(command: &str) -> Option<Does> {
    COMMANDS
        .iter()
        .find(|(name, _)| *name == command)
        .map(|(_, does)| *does)
}

fn access(arguments: &Arguments) -> Access {
    let words = words(arguments);
    let is_suspect = |word: &&str| {
        SUSPECT.iter().any(|option| may_mean(word, option))
            || word.contains("%G")
            || is_outside(word)
    };
    match does(arguments::text(arguments, "command")) {
        Some(Does::Read) if !words.iter().any(is_suspect) => Access::Read,
        Some(Does::ReadWithoutNames) if words.iter().all(is_listing) => Access::Read,
        _ => Access::Execute,
    }
}

/// `git diff` compares any two files of the system when one lies outside the repository.
fn is_outside(word: &str) -> bool {
    word.starts_with(['/', '~']) || word.split('/').any(|part| part == "..")
}

/// Options of `git branch` that make it list.
fn is_listing(word: &&str) -> bool {
    [
        "-a",
        "-r",
        "--all",
        "--remotes",
        "--list",
        "-l",
        "--show-current",
    ]
    .contains(word)
}

/// Git takes the beginning of a long option for all of it.
fn may_mean(word: &str, option: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    // An option of its own that another begins with.
    name != "--text" && name.len() > 2 && name.starts_with("--") && option.starts_with(name)
}

fn refused<'w>(command: &str, words: &[&'w str]) -> Option<&'w str> {
    if does(command) == Some(Does::Change) {
        return None;
    }
    let mut options = words.iter().take_while(|word| **word != "--").copied();
    let runs = |word: &&str| REFUSED.iter().any(|option| may_mean(word, option));
    options.find(|word| runs(word) || (command == "status" && is_verbose(word)))
}

/// With it `git status` shows a diff, by whatever program the repository names, and no option keeps it from that.
fn is_verbose(word: &str) -> bool {
    let letters = word.starts_with('-') && !word.starts_with("--") && word.contains('v');
    letters || may_mean(word, "--verbose")
}

async fn git(call: Call, arguments: Arguments) -> Outcome {
    let command = arguments::text(&arguments, "command");
    let words = words(&arguments);
    if does(command).is_none() {
        return Ok(arguments::failure(format!("not allowed: {command}")));
    }
    if let Some(word) = refused(command, &words) {
        return Ok(arguments::failure(format!("not allowed: {word}")));
    }
    let looks = does(command) != Some(Does::Change);
    let mut env = environment::of(&call);
    env.extend(
        ENVIRONMENT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    env.remove("GIT_EXTERNAL_DIFF");
    if looks {
        // Also what a repository would have fetched for it, by whatever program.
        env.insert("GIT_ALLOW_PROTOCOL".to_owned(), "none".to_owned());
    }
    let filters = match before(command, &env, &call).await {
        Ok(filters) => filters,
        Err(why) => return Ok(arguments::failure(why)),
    };
    let looking = LOOKING.iter().filter(|_| looks);
    let settings = SETTINGS.iter().chain(looking).copied();
    let settings = settings.chain(filters.iter().map(String::as_str));
    let args = settings
        .flat_map(|setting| ["-c", setting])
        .chain(["--no-pager", command])
        .chain(plain(command).iter().copied())
        .chain(words);
    let spawn = Spawn {
        program: "git".into(),
        args: args.map(Into::into).collect(),
        cwd: call.cwd.clone(),
        env,
        stdin: None,
        timeout: Some(TIMEOUT),
    };
    Ok(execute::run(&call, spawn).await)
}

/// What has to be seen to before a look at a repository that anybody may have made: settings that take its filters away.
async fn before(
    command: &str,
    env: &BTreeMap<String, String>,
    call: &Call,
) -> Result<Vec<String>, String> {
    // Where a person says where the repository is, it is there.
    let is_told = ["GIT_DIR", "GIT_WORK_TREE"]
        .iter()
        .any(|name| env.contains_key(*name));
    if does(command) != Some(Does::Change) && !is_told {
        place::check(env, &call.cwd, &call.cancel).await?;
    }
    match compares(command) {
        true => filters::disarmed(env, &call.cwd, &call.cancel).await,
        false => Ok(Vec::new()),
    }
}

/// Whether it looks at files outside the store, which filters may stand before.
fn compares(command: &str) -> bool {
    matches!(command, "status" | "diff" | "blame")
}

/// Options that keep the repository's settings from running programs. A setting for submodules would give way to what a
/// repository says of each of its own.
fn plain(command: &str) -> &'static [&'static str] {
    match command {
        "diff" | "log" | "show" => &[
            "--no-ext-diff",
            "--no-textconv",
            "--ignore-submodules=dirty",
        ],
        "status" => &["--ignore-submodules=dirty"],
        "blame" => &["--no-textconv"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests;
