//! Commands whose kind may be allowed by one pattern (`cargo test *`), and which of their further words choose among harmless
//! things. Must never call a word harmless that is in no table: an option that nobody has looked at is one that reaches further.
//!
//! Left out on purpose: what names another project or settings (`--manifest-path`, `-C`, `--userconfig`, `-c`), a program
//! (`-exec`, `--script-shell`), a file to write (`-o`, `--debug`, `--target-dir`) or to read (`-F`, `@args`), what changes
//! sources or history (`--fix`, `--amend`), and what opens an editor or a browser.

use super::lex::Word;

/// Words that a command takes.
#[derive(Clone, Copy)]
struct Set {
    /// Options that stand alone. Those of one letter may stand together.
    flags: &'static [&'static str],
    /// Options with a value: behind `=`, as the next word, or, for one letter, right behind it.
    valued: &'static [&'static str],
    words: Words,
    dashes: Dashes,
}

/// What one dash begins.
#[derive(Clone, Copy, PartialEq)]
enum Dashes {
    /// Letters, which may stand together.
    Letters,
    /// One option, as two dashes do.
    Name,
}

#[derive(Clone, Copy, PartialEq)]
enum Words {
    /// Names, which are no files.
    Names,
    /// Files, none of which lies outside by its path.
    Files,
    None,
}

struct Family {
    /// How its commands begin; `_` is any word.
    names: &'static [&'static str],
    set: Set,
    /// What may stand behind `--`.
    behind: Option<Set>,
}

const NOTHING: Set = Set {
    flags: &[],
    valued: &[],
    words: Words::None,
    dashes: Dashes::Letters,
};

const FILES: Set = Set {
    words: Words::Files,
    ..NOTHING
};

const CARGO: Set = Set {
    flags: &[
        "-r",
        "-v",
        "-q",
        "-d",
        "--release",
        "--lib",
        "--bins",
        "--tests",
        "--examples",
        "--benches",
        "--all-targets",
        "--doc",
        "--workspace",
        "--all",
        "--all-features",
        "--no-default-features",
        "--keep-going",
        "--no-fail-fast",
        "--fail-fast",
        "--no-run",
        "--no-deps",
        "--document-private-items",
        "--locked",
        "--offline",
        "--frozen",
        "--verbose",
        "--quiet",
        "--duplicates",
        "--no-capture",
        "--nocapture",
        "--ignore-rust-version",
    ],
    valued: &[
        "-p",
        "-F",
        "-j",
        "-e",
        "-i",
        "-E",
        "--bin",
        "--test",
        "--example",
        "--bench",
        "--package",
        "--exclude",
        "--features",
        "--profile",
        "--jobs",
        "--color",
        "--message-format",
        "--format-version",
        "--invert",
        "--depth",
        "--edges",
        "--prefix",
        "--charset",
        "--test-threads",
        "--retries",
        "--run-ignored",
        "--status-level",
        "--final-status-level",
    ],
    words: Words::None,
    ..NOTHING
};

const FILTERED: Set = Set {
    words: Words::Names,
    ..CARGO
};

/// What the test programs of Rust take.
const LIBTEST: Set = Set {
    flags: &[
        "-q",
        "--nocapture",
        "--no-capture",
        "--show-output",
        "--exact",
        "--ignored",
        "--include-ignored",
        "--quiet",
        "--list",
        "--test",
    ],
    valued: &["--test-threads", "--skip", "--color"],
    words: Words::Names,
    ..NOTHING
};

/// Levels of lints.
const LINTS: Set = Set {
    flags: &[],
    valued: &["-D", "-W", "-A", "-F"],
    words: Words::None,
    ..NOTHING
};

const GO: Set = Set {
    flags: &[
        "-v",
        "-race",
        "-short",
        "-json",
        "-cover",
        "-failfast",
        "-a",
        "-n",
        "-x",
        "-m",
        "-deps",
        "-test",
        "-e",
        "-u",
        "-versions",
        "-all",
        "-src",
        "-cmd",
        "-benchmem",
    ],
    valued: &[
        "-run",
        "-count",
        "-timeout",
        "-bench",
        "-benchtime",
        "-p",
        "-tags",
        "-parallel",
        "-cpu",
        "-skip",
        "-shuffle",
        "-list",
        "-covermode",
        "-f",
    ],
    words: Words::Files,
    dashes: Dashes::Name,
};

const SCRIPT: Set = Set {
    flags: &["-s", "--silent", "--if-present"],
    ..FILES
};

const PYTEST: Set = Set {
    flags: &[
        "-v",
        "-q",
        "-x",
        "-s",
        "-l",
        "--lf",
        "--last-failed",
        "--ff",
        "--failed-first",
        "--nf",
        "--new-first",
        "--sw",
        "--stepwise",
        "--co",
        "--collect-only",
        "--exitfirst",
        "--no-header",
        "--no-summary",
        "--showlocals",
        "--verbose",
        "--quiet",
        "--strict-markers",
        "--strict-config",
        "--full-trace",
        "--disable-warnings",
    ],
    valued: &[
        "-k",
        "-m",
        "-n",
        "-r",
        "--maxfail",
        "--tb",
        "--durations",
        "--color",
        "--capture",
        "--timeout",
        "--numprocesses",
        "--verbosity",
    ],
    words: Words::Files,
    ..NOTHING
};

const ADD: Set = Set {
    flags: &[
        "-A",
        "-u",
        "-N",
        "-v",
        "-n",
        "-f",
        "--all",
        "--update",
        "--intent-to-add",
        "--verbose",
        "--dry-run",
        "--force",
    ],
    ..FILES
};

const COMMIT: Set = Set {
    flags: &[
        "-a",
        "-s",
        "-q",
        "-v",
        "--all",
        "--signoff",
        "--quiet",
        "--verbose",
        "--allow-empty",
        "--dry-run",
    ],
    valued: &["-m", "--message"],
    words: Words::Files,
    ..NOTHING
};

const FAMILIES: &[Family] = &[
    family(
        &[
            "cargo build",
            "cargo check",
            "cargo doc",
            "cargo metadata",
            "cargo tree",
        ],
        CARGO,
        None,
    ),
    family(&["cargo test", "cargo bench"], FILTERED, Some(LIBTEST)),
    family(&["cargo nextest run"], FILTERED, None),
    family(&["cargo clippy"], CARGO, Some(LINTS)),
    family(
        &["cargo fmt"],
        Set {
            flags: &["-v", "-q", "--all", "--check"],
            valued: &["-p", "--package"],
            words: Words::None,
            ..NOTHING
        },
        Some(Set {
            flags: &["--check"],
            ..NOTHING
        }),
    ),
    family(
        &[
            "go build", "go test", "go vet", "go list", "go doc", "go fmt",
        ],
        GO,
        None,
    ),
    family(
        &[
            "npm test",
            "npm run _",
            "pnpm test",
            "pnpm run _",
            "yarn test",
            "yarn run _",
        ],
        SCRIPT,
        Some(FILES),
    ),
    family(&["pytest", "py.test"], PYTEST, None),
    family(&["git add"], ADD, Some(FILES)),
    family(&["git commit"], COMMIT, Some(FILES)),
];

const fn family(names: &'static [&'static str], set: Set, behind: Option<Set>) -> Family {
    Family { names, set, behind }
}

/// The words of a command that are not known to be harmless there; none of a command of no known kind.
pub(super) fn unknown(run: &[Word]) -> Vec<String> {
    for family in FAMILIES {
        for name in family.names {
            if let Some(words) = begins(run, name) {
                return family.unknown(words);
            }
        }
    }
    Vec::new()
}

/// Whether a kind of commands has its words in a table.
#[cfg(test)]
pub(in crate::toolbox::permission) fn has(kind: &str) -> bool {
    FAMILIES.iter().any(|family| family.names.contains(&kind))
}

/// What stands behind a command's beginning.
fn begins<'a>(run: &'a [Word], names: &str) -> Option<&'a [Word]> {
    let mut rest = run;
    for (at, name) in names.split(' ').enumerate() {
        let (word, behind) = rest.split_first()?;
        let own = if at == 0 { word.base() } else { &word.plain };
        if own != name && (name != "_" || word.plain.starts_with('-')) {
            return None;
        }
        rest = behind;
    }
    Some(rest)
}

impl Family {
    fn unknown(&self, words: &[Word]) -> Vec<String> {
        let mut set = self.set;
        let mut behind = self.behind;
        let mut value = false;
        let mut found = Vec::new();
        for word in words {
            let text = word.plain.as_str();
            // `@` begins a file of options for some, wherever it stands.
            if std::mem::take(&mut value) && !text.starts_with(['-', '@']) {
                continue;
            }
            if text == "--" && behind.is_some() {
                set = behind.take().unwrap_or(NOTHING);
                continue;
            }
            match set.takes(word) {
                Takes::Known => {}
                Takes::Valued => value = true,
                Takes::Not => found.push(text.to_owned()),
            }
        }
        found
    }
}

enum Takes {
    Known,
    /// The next word is its value.
    Valued,
    Not,
}

impl Set {
    fn takes(&self, word: &Word) -> Takes {
        let text = word.plain.as_str();
        // What a variable holds may be several words.
        if word.uncertain.is_some() && text.contains('$') {
            return Takes::Not;
        }
        if !text.starts_with('-') || text == "-" {
            let fits = match self.words {
                Words::Names => !text.starts_with('@'),
                Words::Files => is_within(word),
                Words::None => false,
            };
            return if fits { Takes::Known } else { Takes::Not };
        }
        let name = text.split('=').next().unwrap_or(text);
        let has_value = name.len() < text.len();
        match (self.flags.contains(&name), self.valued.contains(&name)) {
            (true, _) if !has_value => Takes::Known,
            (_, true) if has_value => Takes::Known,
            (_, true) => Takes::Valued,
            _ if text.starts_with("--") || self.dashes == Dashes::Name => Takes::Not,
            _ => self.letters(&text[1..]),
        }
    }

    /// Options of one letter that stand together, the last with its value.
    fn letters(&self, letters: &str) -> Takes {
        for (at, letter) in letters.char_indices() {
            let is =
                |option: &&str| option.strip_prefix('-') == Some(letter.encode_utf8(&mut [0; 4]));
            if self.valued.iter().any(&is) {
                let rest = &letters[at + letter.len_utf8()..];
                return if rest.is_empty() {
                    Takes::Valued
                } else {
                    Takes::Known
                };
            }
            if !self.flags.iter().any(is) {
                return Takes::Not;
            }
        }
        Takes::Known
    }
}

/// Whether a file is one of the directory by its path.
fn is_within(word: &Word) -> bool {
    let text = word.plain.as_str();
    let leaves = text.starts_with(['/', '~', '@']) || text.split('/').any(|part| part == "..");
    !leaves && !text.contains("://")
}
