//! `git` as a shell's command: which of its commands and options run others or destroy what was not stored.
//! Must never let a setting on the command line pass: by one, git runs anything.

use super::lex::Word;
use super::options::{Found, Row, may_be_option};

/// Before the command: settings and programs of the caller's choice, or another repository with settings of its own.
const GLOBAL: Row = Row {
    names: &[],
    runs: &["-c", "--config-env", "--exec-path"],
    changes: &["-C", "--git-dir", "--work-tree", "--namespace"],
};

/// Commands that run others by their nature, or change what git will run.
const RUN: &[&str] = &[
    "config",
    "difftool",
    "mergetool",
    "filter-branch",
    "filter-repo",
    "send-email",
    "imap-send",
    "instaweb",
    "web--browse",
    "daemon",
    "shell",
    "hook",
    "credential",
    "for-each-repo",
    "upload-pack",
    "receive-pack",
    "fast-import",
    "p4",
    "svn",
];

const COMMANDS: &[Row] = &[
    Row {
        names: &["push"],
        runs: &["--receive-pack", "--exec"],
        changes: &[
            "-f",
            "-d",
            "--force",
            "--force-with-lease",
            "--delete",
            "--mirror",
            "--prune",
        ],
    },
    Row {
        names: &[
            "fetch",
            "pull",
            "ls-remote",
            "fetch-pack",
            "send-pack",
            "remote",
        ],
        runs: &["--upload-pack", "--receive-pack", "--exec"],
        changes: &["-f", "--force", "-p", "--prune"],
    },
    Row {
        names: &["clone", "init"],
        runs: &["-u", "-c", "--upload-pack", "--config", "--template"],
        changes: &[],
    },
    Row {
        names: &["rebase"],
        runs: &["-x", "--exec", "-i", "--interactive"],
        changes: &[],
    },
    Row {
        names: &["grep"],
        runs: &["-O", "--open-files-in-pager"],
        changes: &[],
    },
    Row {
        names: &[
            "diff",
            "log",
            "show",
            "diff-tree",
            "diff-index",
            "diff-files",
        ],
        runs: &["--ext-diff", "--textconv"],
        changes: &["--output"],
    },
    Row {
        names: &["format-patch", "reflog"],
        runs: &["--ext-diff", "--textconv"],
        changes: &["-o", "--output", "--output-directory", "expire", "delete"],
    },
    Row {
        names: &["archive"],
        runs: &["--exec", "--remote"],
        changes: &["-o", "--output"],
    },
    Row {
        names: &["bisect"],
        runs: &["run", "visualize", "view"],
        changes: &[],
    },
    Row {
        names: &["submodule"],
        runs: &["foreach", "add", "update"],
        changes: &["deinit"],
    },
    Row {
        names: &["reset"],
        runs: &[],
        changes: &["--hard", "--merge"],
    },
    Row {
        names: &["clean"],
        runs: &[],
        changes: &["-f", "-x", "-X", "-d", "--force"],
    },
    Row {
        names: &["branch"],
        runs: &["--edit-description"],
        changes: &[
            "-d", "-D", "-f", "-m", "-M", "-C", "--delete", "--force", "--move",
        ],
    },
    Row {
        names: &["tag"],
        runs: &[],
        changes: &["-d", "-f", "--delete", "--force"],
    },
    Row {
        names: &["checkout", "switch", "restore"],
        runs: &[],
        changes: &[
            "-f",
            "-B",
            "-C",
            "--force",
            "--discard-changes",
            "--force-create",
        ],
    },
    Row {
        names: &["stash"],
        runs: &[],
        changes: &["drop", "clear"],
    },
    Row {
        names: &["worktree", "update-ref", "gc", "prune", "replace", "notes"],
        runs: &[],
        changes: &["-f", "-d", "--force", "--prune", "--delete", "remove"],
    },
];

pub(super) fn look(words: &[Word]) -> Found {
    let global = words
        .iter()
        .take_while(|word| word.plain.starts_with('-'))
        .count();
    // `-C DIR` has its value as a word of its own; `-c` runs, whatever follows.
    let valued = words[..global].last().is_some_and(|word| {
        ["-C", "--git-dir", "--work-tree", "--namespace"].contains(&word.plain.as_str())
    });
    let mut found = GLOBAL.look(&words[..global]);
    let rest = &words[(global + usize::from(valued)).min(words.len())..];
    let Some(command) = rest.first() else {
        return found;
    };
    if command.plain.starts_with('-') {
        // More options behind a value: look at all of it again from there.
        let more = look(rest);
        found.runs |= more.runs;
        found.changes.extend(more.changes);
        return found;
    }
    found.runs |= may_be_option(command) || RUN.contains(&command.plain.as_str());
    if let Some(row) = COMMANDS
        .iter()
        .find(|row| row.names.contains(&command.plain.as_str()))
    {
        let of_command = row.look(&rest[1..]);
        found.runs |= of_command.runs;
        found.changes.extend(of_command.changes);
    }
    // `+main` forces without an option.
    if command.plain == "push" {
        let forced = rest[1..]
            .iter()
            .filter(|word| word.plain.starts_with(['+', ':']));
        found.changes.extend(forced.map(|word| word.plain.clone()));
    }
    found
}
