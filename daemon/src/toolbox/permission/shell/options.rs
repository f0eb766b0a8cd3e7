//! Commands that look harmless and have options that are not: what runs another command, and what destroys or writes.
//! Must never be taken for complete: it knows the common ones; what a command does by its nature is the rule's to say.

use super::lex::Word;
use super::{awk, compiler, git, known, sed};

/// What a command's words ask of it, beyond what its name says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Found {
    /// Something of it may be run as another command.
    pub(super) runs: bool,
    /// Words that make it destroy or write.
    pub(super) changes: Vec<String>,
}

/// Options by command. `-x` also stands among other letters, `--long` is known by its beginning, and one dash with more
/// than a letter, or none, is a word of its own.
pub(super) struct Row {
    pub(super) names: &'static [&'static str],
    pub(super) runs: &'static [&'static str],
    pub(super) changes: &'static [&'static str],
}

const TABLE: &[Row] = &[
    Row {
        names: &["find"],
        runs: &["-exec", "-execdir", "-ok", "-okdir"],
        changes: &["-delete", "-fprint", "-fprint0", "-fprintf", "-fls"],
    },
    Row {
        names: &["fd", "fdfind"],
        runs: &["-x", "-X", "--exec", "--exec-batch"],
        changes: &[],
    },
    Row {
        names: &["tar", "gtar", "bsdtar"],
        runs: &[
            "-I",
            "-F",
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
        ],
        changes: &[
            "-c",
            "-r",
            "-u",
            "-x",
            "-A",
            "-P",
            "--create",
            "--append",
            "--update",
            "--extract",
            "--get",
            "--catenate",
            "--concatenate",
            "--absolute-names",
            "--remove-files",
            "--delete",
            "--unlink-first",
            "--recursive-unlink",
        ],
    },
    Row {
        names: &["rsync"],
        runs: &["-e", "--rsh", "--rsync-path"],
        changes: &[
            "--delete",
            "--del",
            "--remove-source-files",
            "--remove-sent-files",
        ],
    },
    Row {
        names: &["scp", "sftp"],
        runs: &["-o", "-S", "-D", "-F", "-J"],
        changes: &[],
    },
    Row {
        names: &["sort"],
        runs: &["--compress-program"],
        changes: &["-o", "--output"],
    },
    Row {
        names: &["split", "csplit"],
        runs: &["--filter"],
        changes: &[],
    },
    Row {
        names: &["rg"],
        runs: &["--pre", "--hostname-bin"],
        changes: &[],
    },
    Row {
        names: &["curl"],
        runs: &[],
        changes: &[
            "-o",
            "-O",
            "-K",
            "-T",
            "-c",
            "-D",
            "--output",
            "--remote-name",
            "--config",
            "--upload-file",
            "--cookie-jar",
            "--dump-header",
            "--trace",
        ],
    },
    Row {
        names: &["wget"],
        runs: &["-e", "--execute", "--use-askpass"],
        changes: &[
            "-O",
            "-o",
            "-a",
            "--output-document",
            "--output-file",
            "--post-file",
            "--body-file",
        ],
    },
    Row {
        names: &["man"],
        runs: &["-P", "-H", "--pager", "--html", "-C", "--config-file"],
        changes: &[],
    },
    Row {
        names: &["zip"],
        runs: &["-TT", "--unzip-command"],
        changes: &["-m", "--move"],
    },
    Row {
        names: &["go"],
        runs: &[
            "-exec",
            "-toolexec",
            "-vettool",
            "--exec",
            "--toolexec",
            "--vettool",
        ],
        changes: &[],
    },
    Row {
        names: &["cargo"],
        runs: &["--config"],
        changes: &[],
    },
    Row {
        names: &["pytest", "py.test"],
        runs: &[
            "-p",
            "-c",
            "-o",
            "--config-file",
            "--confcutdir",
            "--override-ini",
            "--pdbcls",
            "--rootdir",
        ],
        changes: &["--basetemp", "--junit-xml", "--junitxml", "--log-file"],
    },
    Row {
        names: &["tcpdump"],
        runs: &["-z"],
        changes: &["-w"],
    },
    Row {
        names: &["sqlite3"],
        runs: &["-cmd", "-init"],
        changes: &[],
    },
    Row {
        names: &["make", "gmake", "bmake"],
        runs: &[
            "-E",
            "--eval",
            "-f",
            "-I",
            "--file",
            "--makefile",
            "--include-dir",
        ],
        changes: &["-C", "--directory"],
    },
    Row {
        names: &["ninja", "just"],
        runs: &["-f", "--justfile", "--shell", "--shell-arg", "--set"],
        changes: &["-C", "-d", "--working-directory"],
    },
    Row {
        names: &["npm", "pnpm", "yarn"],
        runs: &[
            "--script-shell",
            "--node-options",
            "--git",
            "--editor",
            "--viewer",
        ],
        changes: &["-C", "--prefix", "--dir", "--cwd"],
    },
    Row {
        names: &["rustup"],
        runs: &["run"],
        changes: &[],
    },
    Row {
        names: &["less", "more", "most", "pg"],
        runs: &["-k", "--lesskey-file", "--lesskey-src", "--lesskey-content"],
        changes: &["-o", "-O", "--log-file", "--LOG-FILE"],
    },
    Row {
        names: &["unzip"],
        runs: &[],
        changes: &["-o", "-d"],
    },
    Row {
        names: &["7z", "7za", "bsdcpio", "cpio"],
        runs: &["--rsh-command"],
        changes: &["-i", "-p", "--extract", "--pass-through"],
    },
    Row {
        names: &["yq"],
        runs: &[],
        changes: &["-i", "--inplace"],
    },
    Row {
        names: &["tree"],
        runs: &[],
        changes: &["-o"],
    },
    Row {
        names: &["xxd"],
        runs: &[],
        changes: &["-r"],
    },
];

/// Commands of package managers that run a package's program, which may be any.
const OF_PACKAGES: &[&str] = &["exec", "x", "dlx", "create", "init"];

/// Words of the shell's own that evaluate what looks like a subscript: `test -v 'a[$(x)]'`.
const EVALUATE: &[&str] = &[
    "test", "[", "printf", "read", "unset", "declare", "typeset", "local", "export", "readonly",
    "let", "getopts", "wait",
];

/// Looks at a command and its words; `run[0]` is its name.
pub(super) fn look(run: &[Word]) -> Found {
    let mut found = by_table(run);
    for word in known::unknown(run) {
        if !found.changes.contains(&word) {
            found.changes.push(word);
        }
    }
    found
}

fn by_table(run: &[Word]) -> Found {
    let (name, words) = (run[0].base(), &run[1..]);
    match name {
        "git" => return git::look(words),
        "sed" | "gsed" => return sed::look(words),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" => return awk::look(words),
        _ if EVALUATE.contains(&name) => return evaluates(words),
        _ if compiler::is_one(name) => return compiler::look(words),
        _ => {}
    }
    let Some(row) = TABLE.iter().find(|row| row.names.contains(&name)) else {
        return Found::default();
    };
    let mut found = row.look(words);
    match name {
        "tar" | "gtar" | "bsdtar" => tar(words, &mut found),
        "less" | "more" | "most" | "pg" => {
            found.runs |= words.iter().any(|word| word.plain.starts_with('+'));
        }
        "npm" | "pnpm" | "yarn" => {
            let own = words.iter().find(|word| !word.plain.starts_with('-'));
            found.runs |= own.is_some_and(|own| OF_PACKAGES.contains(&own.plain.as_str()));
        }
        // A variable may be what a recipe runs: `make CC=x`.
        "make" | "gmake" | "bmake" => {
            let set = words.iter().filter(|word| word.plain.contains('='));
            found.changes.extend(set.map(|word| word.plain.clone()));
        }
        _ => {}
    }
    // Its own commands stand among the words, and some of them run others.
    found.runs |= name == "sqlite3"
        && words
            .iter()
            .any(|word| word.plain.trim_start().starts_with('.'));
    found
}

/// The first word of `tar` is letters with or without a dash.
fn tar(words: &[Word], found: &mut Found) {
    let Some(first) = words.first().filter(|word| !word.plain.starts_with('-')) else {
        return;
    };
    found.runs |= first.plain.contains(['I', 'F']);
    if first.plain.contains(['c', 'r', 'u', 'x', 'A', 'P']) {
        found.changes.push(first.plain.clone());
    }
}

impl Row {
    /// What the words ask, by this row; a word that may turn into an option is one that runs something.
    pub(super) fn look(&self, words: &[Word]) -> Found {
        let mut found = Found::default();
        // Not even `--` ends it: `find -- x -delete` deletes, and what stands behind it elsewhere costs a question only.
        for word in words {
            found.runs |= may_be_option(word) || self.runs.iter().any(|option| is(word, option));
            if self.changes.iter().any(|option| is(word, option)) {
                found.changes.push(word.plain.clone());
            }
        }
        found
    }
}

/// What an expansion may turn into begins with a dash, if a file is called so: `tar cf x *`. A path does not.
pub(super) fn may_be_option(word: &Word) -> bool {
    match word.uncertain {
        Some(0) => !word.plain.starts_with('~'),
        // In a value it is no option's name.
        Some(at) => {
            let value = word.plain.find('=').is_some_and(|equals| equals < at);
            word.plain.starts_with('-') && !value
        }
        None => false,
    }
}

/// Whether a word is this option.
pub(super) fn is(word: &Word, option: &str) -> bool {
    let word = word.plain.as_str();
    let name = word.split('=').next().unwrap_or(word);
    match option.as_bytes() {
        // The beginning of a long option stands for all of it, but where another option is called so.
        [b'-', b'-', ..] => {
            name.len() > 2 && name.starts_with("--") && option.starts_with(name) && name != "--text"
        }
        [b'-', letter] => {
            word.starts_with('-') && !word.starts_with("--") && word.as_bytes().contains(letter)
        }
        _ => name == option,
    }
}

fn evaluates(words: &[Word]) -> Found {
    let text = |word: &Word| word.plain.contains("$(") || word.plain.contains('`');
    Found {
        runs: words.iter().any(text),
        changes: Vec::new(),
    }
}
