//! `git`: some of its commands, with arguments that no shell reads. Never lets an option run another program.

use super::arguments::{self, Arguments};
use super::{environment, execute};
use crate::process::Spawn;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use serde_json::{Value, json};
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
    // A look into them would go by their own settings.
    "diff.ignoreSubmodules=dirty",
    "color.ui=false",
    "advice.detachedHead=false",
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
    let options = words.iter().take_while(|word| **word != "--");
    let is_read = does(command) != Some(Does::Change);
    options
        .copied()
        .find(|word| is_read && REFUSED.iter().any(|option| may_mean(word, option)))
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
    let mut env = environment::of(&call);
    env.extend(
        ENVIRONMENT
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    env.remove("GIT_EXTERNAL_DIFF");
    let settings = SETTINGS.iter().flat_map(|setting| ["-c", setting]);
    let args = settings
        .chain([command])
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

/// Options that keep the repository's settings from running programs.
fn plain(command: &str) -> &'static [&'static str] {
    match command {
        "diff" | "log" | "show" => &["--no-ext-diff", "--no-textconv"],
        "blame" => &["--no-textconv"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::Map;

    async fn run(bench: &Bench, command: &str, args: &[&str]) -> Map<String, Value> {
        bench
            .run(tool, json!({"command": command, "args": args}))
            .await
    }

    /// A repository with one commit.
    async fn repository() -> Bench {
        let mut bench = Bench::new();
        for (name, value) in [
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@b"),
            ("GIT_COMMITTER_NAME", "A"),
            ("GIT_COMMITTER_EMAIL", "a@b"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
        ] {
            bench.env.insert(name.into(), value.into());
        }
        let init = "git init -q -b main . && echo one > file";
        let result = bench.run(execute::tool, json!({"command": init})).await;
        assert_eq!(result["exit_status"], 0, "{result:?}");
        assert_eq!(run(&bench, "add", &["file"]).await["exit_status"], 0);
        let result = run(&bench, "commit", &["-q", "-m", "first; $(touch oops) `id`"]).await;
        assert_eq!(result["exit_status"], 0, "{result:?}");
        bench
    }

    #[tokio::test]
    async fn arguments_are_read_by_no_shell() {
        let bench = repository().await;
        let result = run(&bench, "log", &["--format=%s"]).await;
        assert_eq!(result["content"], "first; $(touch oops) `id`\n");
        assert!(!bench.cwd().join("oops").exists());
    }

    #[tokio::test]
    async fn other_commands_and_options_before_the_command_are_not_allowed() {
        let bench = Bench::new();
        for command in [
            "push",
            "config",
            "-c",
            "-C/",
            "log --oneline",
            "",
            "clone",
            "LOG",
        ] {
            let result = run(&bench, command, &[]).await;
            assert_eq!(result["error"], format!("not allowed: {command}"));
        }
    }

    #[tokio::test]
    async fn no_program_of_the_repository_runs_when_it_is_looked_at() {
        let bench = repository().await;
        let evil = "printf '#!/bin/sh\\ntouch oops\\ncat \"$@\"\\n' > evil && chmod +x evil && p=$PWD/evil \
             && git config diff.external $p && git config core.fsmonitor $p && git config core.pager $p \
             && git config diff.x.textconv $p && git config log.showSignature true && git config gpg.program $p \
             && echo 'file diff=x' > .gitattributes && git add .gitattributes && echo two > file && rm -f oops";
        assert_eq!(
            bench.run(execute::tool, json!({"command": evil})).await["exit_status"],
            0
        );
        let looks: [(&str, &[&str]); 7] = [
            ("status", &[]),
            ("diff", &[]),
            ("diff", &["HEAD"]),
            ("log", &["-p"]),
            ("show", &[]),
            ("blame", &["file"]),
            ("branch", &[]),
        ];
        for (command, args) in looks {
            let result = run(&bench, command, args).await;
            assert_eq!(result["exit_status"], 0, "{command} {result:?}");
            assert!(!bench.cwd().join("oops").exists(), "{command}");
        }
        for option in [
            "--ext-diff",
            "--ext-d",
            "--textconv",
            "--output=x",
            "--outp=x",
            "--show-signature",
        ] {
            assert_eq!(
                run(&bench, "log", &["-p", option]).await["error"],
                format!("not allowed: {option}")
            );
        }
        assert_eq!(
            run(&bench, "diff", &["--text", "--", "--output"]).await["exit_status"],
            0
        );
    }

    #[tokio::test]
    async fn nothing_waits_for_an_editor() {
        let bench = repository().await;
        bench.write("file", "two\n");
        let result = run(&bench, "commit", &["-a"]).await;
        assert_eq!(result["exit_status"], 1);
        assert!(
            result["content"]
                .as_str()
                .unwrap()
                .contains("empty commit message"),
            "{result:?}"
        );
    }

    #[test]
    fn only_looking_counts_as_reading() {
        let check = |command: &str, args: &[&str]| {
            access(
                json!({"command": command, "args": args})
                    .as_object()
                    .unwrap(),
            )
        };
        let reads: [(&str, &[&str]); 4] = [
            ("status", &["-s"]),
            ("diff", &["HEAD~1", "--", "src/a.rs"]),
            ("branch", &["-a"]),
            ("log", &["--oneline", "a..b"]),
        ];
        for (command, args) in reads {
            assert_eq!(check(command, args), Access::Read, "{command} {args:?}");
        }
        let others: [(&str, &[&str]); 7] = [
            ("branch", &["new"]),
            ("branch", &["-D", "x"]),
            ("commit", &[]),
            ("diff", &["--no-index", "a", "b"]),
            ("diff", &["/etc/passwd", "a"]),
            ("log", &["--format=%GG"]),
            ("show", &["../../x"]),
        ];
        for (command, args) in others {
            assert_eq!(check(command, args), Access::Execute, "{command} {args:?}");
        }
    }
}
