//! `git` as a shell's command: which of its commands and options run others or destroy what was not stored.
//! Must never let a setting on the command line pass: by one, git runs anything.

use super::lex::Word;
use super::options::{Found, Row, is, may_be_option};

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

/// Git's own commands, but for those that it lets an alias take the place of. Any other word may be an alias of the
/// repository's settings, which is a command line of its author's, or a program on the path.
const OWN: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "fast-export",
    "fetch",
    "fetch-pack",
    "fmt-merge-msg",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "index-pack",
    "init",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "prune-packed",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-pack",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "worktree",
    "write-tree",
];

/// Commands that overwrite or remove what was not stored, whatever their options.
const DESTROY: &[&str] = &[
    "rm",
    "restore",
    "checkout-index",
    "read-tree",
    "update-ref",
    "symbolic-ref",
    "prune",
    "replace",
    "sparse-checkout",
];

/// What many commands take.
const ANY: Row = Row {
    names: &[],
    runs: &["--ext-diff", "--textconv"],
    changes: &["--output"],
};

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
        changes: &[
            "-f", "--force", "-p", "--prune", "rm", "remove", "prune", "set-url",
        ],
    },
    Row {
        names: &["merge", "merge-index"],
        runs: &["-s", "-a", "-o", "--strategy"],
        changes: &[],
    },
    Row {
        names: &["bundle", "fast-export", "rerere", "mv"],
        runs: &[],
        changes: &[
            "-f",
            "--force",
            "create",
            "--export-marks",
            "clear",
            "forget",
        ],
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
        // Files that are no repository's, and the program that the settings have for signatures.
        changes: &["--output", "--no-index", "--show-signature"],
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
    let name = command.plain.as_str();
    found.runs |= may_be_option(command) || RUN.contains(&name);
    if DESTROY.contains(&name) || !(OWN.contains(&name) || RUN.contains(&name)) {
        found.changes.push(name.to_owned());
    }
    let of_any = ANY.look(&rest[1..]);
    found.runs |= of_any.runs;
    if let Some(row) = COMMANDS
        .iter()
        .find(|row| row.names.contains(&command.plain.as_str()))
    {
        let of_command = row.look(&rest[1..]);
        found.runs |= of_command.runs;
        found.changes.extend(of_command.changes);
    }
    for word in of_any.changes {
        if !found.changes.contains(&word) {
            found.changes.push(word);
        }
    }
    found.changes.extend(overwrites(name, &rest[1..]));
    // `%G?` asks the same program.
    let signed = rest[1..].iter().filter(|word| word.plain.contains("%G"));
    found.changes.extend(signed.map(|word| word.plain.clone()));
    // `+main` forces without an option.
    if command.plain == "push" {
        let forced = rest[1..]
            .iter()
            .filter(|word| word.plain.starts_with(['+', ':']));
        found.changes.extend(forced.map(|word| word.plain.clone()));
    }
    found
}

/// What makes these two destroy without an option that says so.
fn overwrites(command: &str, words: &[Word]) -> Option<String> {
    let has = |options: &[&str]| {
        let one = |word: &Word| options.iter().any(|option| is(word, option));
        words.iter().any(one)
    };
    let destroys = match command {
        // A word may be a branch or a file, and only git can tell.
        "checkout" => {
            let new = has(&["-b", "--orphan"]) && !words.iter().any(|word| word.plain == "--");
            !new && words
                .iter()
                .any(|word| !word.plain.is_empty() && word.plain != "-q")
        }
        // The repository's settings may do away with the need for `-f`.
        "clean" => !has(&["-n", "--dry-run", "-f", "--force"]),
        _ => false,
    };
    destroys.then(|| command.to_owned())
}
