//! Patterns that a person may be offered with a question, so that its kind is asked no more. Pure.
//! Must never offer one that reaches further than a person would read in it: what is not in a table is offered as it is.
//!
//! Wide ones stand for commands whose further words choose among harmless ones, or for files of one folder. Whether a
//! pattern allows the call is not decided here: who offers it has it judged first, by the same rules as any other.

use super::opinion::Subject;
use super::pattern::escape;
use super::place::Place;
use super::shell::{self, Command};

/// Longer ones are not offered: nobody reads them before saying yes for good.
const LONGEST: usize = 1_000;

/// Beginnings of commands that may be asked again with other words behind them; `_` is any plain word. Not in it: what
/// runs code that stands on its line (`python`, `node`), takes further targets as words (`make`), shows any file (`cat`,
/// `git diff`), or acts on the world outside (`git push`, `curl`).
const FAMILIES: &[&str] = &[
    "cargo bench",
    "cargo build",
    "cargo check",
    "cargo clippy",
    "cargo doc",
    "cargo fmt",
    "cargo metadata",
    "cargo nextest run",
    "cargo test",
    "cargo tree",
    "df",
    "git add",
    "git commit",
    "git describe",
    "git log",
    "git ls-files",
    "git rev-parse",
    "git shortlog",
    "git show",
    "git status",
    "go build",
    "go doc",
    "go fmt",
    "go list",
    "go test",
    "go vet",
    "id",
    "ls",
    "npm run _",
    "npm test",
    "pnpm run _",
    "pnpm test",
    "pwd",
    "pytest",
    "stat",
    "uname",
    "which",
    "whoami",
    "yarn run _",
    "yarn test",
];

/// What may be offered for a call, the likeliest first; each is to be judged before it is.
pub(super) fn candidates(subject: &Subject, places: &[Place]) -> Vec<String> {
    let mut all = match subject {
        Subject::Shell(line) => of_line(line.trim()),
        Subject::Text(text) => of_text(text),
        Subject::Paths => of_places(places),
    };
    all.retain(|pattern| !pattern.is_empty() && pattern.len() <= LONGEST);
    all
}

/// The kinds of its commands, and the line itself.
fn of_line(line: &str) -> Vec<String> {
    let split = shell::split(line);
    let mut all = Vec::new();
    if split.doubt.is_none() {
        let run = |command: &Command| family(&command.inner.as_deref().unwrap_or(command).written);
        for pattern in split.commands.iter().filter_map(run) {
            if !all.contains(&pattern) {
                all.push(pattern);
            }
        }
    }
    all.push(escape(line));
    all
}

/// The pattern for a command's kind, where it has one.
fn family(written: &str) -> Option<String> {
    let words: Vec<&str> = written.split(' ').collect();
    let fits = |family: &&&str| {
        let mut words = words.iter();
        family.split(' ').all(|name| {
            let word = words.next();
            word.is_some_and(|word| name == *word || name == "_" && is_plain(word))
        })
    };
    let known = FAMILIES.iter().find(fits)?;
    let count = known.split(' ').count();
    Some(format!("{} *", words[..count].join(" ")))
}

/// Whether a word can be nothing but itself: no option, no path, nothing quoted or expanded.
fn is_plain(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphanumeric())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'))
}

fn of_text(text: &str) -> Vec<String> {
    let exact = escape(text);
    if exact.len() > LONGEST {
        return Vec::new();
    }
    if let Some(origin) = origin(text) {
        return vec![format!("{origin}/*"), exact];
    }
    // What a server's or a script's tool is given differs each time: its kind is the tool.
    if text.starts_with('{') {
        return vec![exact, "*".to_owned()];
    }
    vec![exact]
}

/// The host of an address, where nothing but a path can follow it.
fn origin(text: &str) -> Option<&str> {
    let scheme = ["https://", "http://"]
        .iter()
        .find(|scheme| text.starts_with(**scheme))?;
    let length = text[scheme.len()..].find('/')?;
    let host = &text[scheme.len()..scheme.len() + length];
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
    (!host.is_empty() && host.chars().all(named)).then(|| &text[..scheme.len() + length])
}

/// The file, and what lies beside it where that is no hidden place.
fn of_places(places: &[Place]) -> Vec<String> {
    let outside = places.iter().find(|place| !place.inside);
    let Some(place) = outside.or_else(|| places.first()) else {
        return Vec::new();
    };
    let shown = place.real.shown();
    // A name that is no text stands for others, too.
    if shown.contains(char::REPLACEMENT_CHARACTER) || shown == "?" {
        return Vec::new();
    }
    let mut all = vec![escape(shown)];
    let folder = shown.rsplit_once('/').map(|(folder, _)| folder);
    let open = |folder: &&str| !folder.is_empty() && !folder.split('/').any(|n| n.starts_with('.'));
    if let Some(folder) = folder.filter(open).filter(|_| place.inside) {
        all.push(format!("{}/*", escape(folder)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES, Subject, candidates, of_line, shell};
    use crate::toolbox::permission::place::Ground;

    fn lines(line: &str) -> Vec<String> {
        of_line(line)
    }

    #[test]
    fn commands_of_a_known_kind_are_offered_by_their_kind() {
        let table: [(&str, &[&str]); 9] = [
            ("cargo test -p x", &["cargo test *", "cargo test -p x"]),
            ("cargo test", &["cargo test *", "cargo test"]),
            (
                "timeout 60 cargo test",
                &["cargo test *", "timeout 60 cargo test"],
            ),
            (
                "cargo fmt && cargo test 2>&1 | cat",
                &[
                    "cargo fmt *",
                    "cargo test *",
                    "cargo fmt && cargo test 2>&1 | cat",
                ],
            ),
            (
                "npm run build:prod",
                &["npm run build:prod *", "npm run build:prod"],
            ),
            ("ls *.rs", &["ls *", r"ls \*.rs"]),
            ("git status", &["git status *", "git status"]),
            (
                "cargo nextest run",
                &["cargo nextest run *", "cargo nextest run"],
            ),
            ("cargo nextest", &["cargo nextest"]),
        ];
        for (line, expected) in table {
            assert_eq!(lines(line), expected, "{line}");
        }
    }

    #[test]
    fn every_kind_that_is_offered_is_one_whose_words_are_known() {
        let only_shows = |family: &str| {
            let first = family.split(' ').next().unwrap_or_default();
            matches!(
                first,
                "df" | "id" | "ls" | "pwd" | "stat" | "uname" | "which" | "whoami"
            ) || matches!(
                family,
                "git describe"
                    | "git log"
                    | "git ls-files"
                    | "git rev-parse"
                    | "git shortlog"
                    | "git show"
                    | "git status"
            )
        };
        for family in FAMILIES {
            assert!(shell::is_known(family) || only_shows(family), "{family}");
        }
    }

    #[test]
    fn whatever_could_run_more_than_it_says_is_offered_as_it_is() {
        for line in [
            "cargo run -- x",
            "cargo --config x test",
            "cargo test; $(x)",
            "cargo test > out",
            "cargo test `x`",
            "cargo $x",
            "'cargo' test",
            "RUST_LOG=x cargo test",
            "sudo cargo test",
            "env cargo test",
            "sh -c 'cargo test'",
            "python -c 'import x'",
            "python x.py",
            "node -e x",
            "make test",
            "rm -r x",
            "cat x",
            "git diff /dev/null x",
            "curl https://x",
            "git push",
            "git -c a=b status",
            "npm run $x",
            "npm run ../x",
            "npm run -- x",
            "npm run",
            "npx x",
            "xargs ls",
            "find . -exec ls {} +",
            "./x.sh",
        ] {
            let offered = lines(line);
            assert_eq!(offered.len(), 1, "{line}: {offered:?}");
            assert!(!offered[0].ends_with(" *"), "{line}: {offered:?}");
        }
    }

    #[test]
    fn files_are_offered_with_their_folder_but_for_hidden_and_outer_ones() {
        let ground = Ground {
            cwd: "/srv/here".into(),
            spill_dir: "/spill".into(),
            home: None,
        };
        let table: [(&str, &[&str]); 7] = [
            ("src/a/b.rs", &["src/a/b.rs", "src/a/*"]),
            ("src/../x/y", &["x/y", "x/*"]),
            ("a[1]*/x", &[r"a[1]\*/x", r"a[1]\*/*"]),
            ("Cargo.toml", &["Cargo.toml"]),
            (".git/hooks/x", &[".git/hooks/x"]),
            ("src/.x/y", &["src/.x/y"]),
            ("/etc/apt/x", &["/etc/apt/x"]),
        ];
        for (path, expected) in table {
            let offered = candidates(&Subject::Paths, &[ground.place(path)]);
            assert_eq!(offered, expected, "{path}");
        }
    }

    #[test]
    fn texts_are_offered_as_they_are_and_addresses_by_their_host() {
        let of = |text: &str| candidates(&Subject::Text(text.to_owned()), &[]);
        assert_eq!(
            of("https://docs.rs/a?b"),
            ["https://docs.rs/*", r"https://docs.rs/a\?b"]
        );
        for text in [
            "https://docs.rs",
            "https://a@b/c",
            "https:///x",
            "file:///x",
        ] {
            assert_eq!(of(text).len(), 1, "{text}");
        }
        assert_eq!(of("commit -m x"), ["commit -m x"]);
        assert_eq!(of("reset --hard"), ["reset --hard"]);
        assert_eq!(of(r#"{"n":1}"#), [r#"{"n":1}"#, "*"]);
        assert!(of(&format!("{{{}}}", "x".repeat(2000))).is_empty());
    }
}
