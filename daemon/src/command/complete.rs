//! What may stand at the end of a line: command names, their arguments, resources of servers, names of files.
//! Must never read a file, only directories, and those off the runtime's thread.

mod fuzzy;

use super::Commands;
use crate::session::SessionResult;
use protocol::command::{Candidate, Completions, holds_letters, last_word};
use protocol::id::SessionId;
use std::path::{Path, PathBuf};

/// How many file names are offered.
const FILES: usize = 20;

pub(super) async fn complete(
    commands: &Commands,
    session: &SessionId,
    line: &str,
) -> SessionResult<Completions> {
    let known = commands.sessions.get(session).await?;
    if let Some(rest) = line.strip_prefix('/') {
        match rest.split_once(' ') {
            None if !rest.contains('/') => return names(commands, session, line).await,
            Some((name, partial)) if !name.contains('/') => {
                let words = commands.completions_for(session, name, partial).await?;
                return Ok(Completions {
                    start: line.len() - partial.len(),
                    candidates: words,
                    more: None,
                });
            }
            _ => {}
        }
    }
    let word = last_word(line);
    if word.starts_with('@') && word.contains(':') {
        let resources = commands.sessions.resources(session, word).await?;
        return Ok(words_at(line.len() - word.len(), resources));
    }
    let home = known.env.get("HOME").map(PathBuf::from);
    Ok(file_names(PathBuf::from(known.cwd), home, line).await)
}

async fn names(commands: &Commands, session: &SessionId, line: &str) -> SessionResult<Completions> {
    let infos = commands.with(session, &line[1..]).await?.infos();
    // What begins as it was typed comes alone; else a few letters of a name are enough.
    let any = infos.iter().any(|info| info.name.starts_with(line));
    let fits = |name: &str| match any {
        true => name.starts_with(line),
        false => holds_letters(name, line),
    };
    let matching = infos.into_iter().filter(|info| fits(&info.name));
    let candidates = matching.map(|info| Candidate {
        text: info.name,
        description: Some(info.description).filter(|about| !about.is_empty()),
    });
    Ok(Completions {
        start: 0,
        candidates: candidates.collect(),
        more: None,
    })
}

fn words_at(start: usize, words: Vec<String>) -> Completions {
    let candidates = words.into_iter().map(|text| Candidate {
        text,
        description: None,
    });
    Completions {
        start,
        candidates: candidates.collect(),
        more: None,
    }
}

/// Completes the last word, which may start with an `@`, as a path.
async fn file_names(cwd: PathBuf, home: Option<PathBuf>, line: &str) -> Completions {
    let word = last_word(line);
    let start = line.len() - word.len();
    let word = word.to_owned();
    let read = tokio::task::spawn_blocking(move || matching_files(&cwd, home.as_deref(), &word));
    let Found { names, more } = read.await.unwrap_or_default();
    Completions {
        more,
        ..words_at(start, names)
    }
}

/// Names of files, and why there may be more.
#[derive(Debug, Default)]
struct Found {
    names: Vec<String>,
    more: Option<String>,
}

fn matching_files(cwd: &Path, home: Option<&Path>, word: &str) -> Found {
    let mark = if word.starts_with('@') { "@" } else { "" };
    let path = word.strip_prefix("@\"").unwrap_or(&word[mark.len()..]);
    let (directory, partial) = match path.rfind('/') {
        Some(slash) => path.split_at(slash + 1),
        None => ("", path),
    };
    let place = match (directory.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => cwd.join(directory),
    };
    let mut names = entries(&place, partial);
    if !mark.is_empty() {
        let offered = fuzzy::names(&place, partial);
        names.retain(|name| offered.contains(name.trim_end_matches('/')));
    }
    // What begins as it was typed comes alone; else a few letters of a path are enough.
    if names.is_empty() && !mark.is_empty() && is_below(path) {
        let found = fuzzy::paths(cwd, path, FILES);
        return Found {
            names: found.paths.iter().map(|path| mentioned(path)).collect(),
            more: found.cut.or_else(|| left(found.left)),
        };
    }
    names.sort_unstable();
    let more = left(names.len().saturating_sub(FILES));
    names.truncate(FILES);
    let whole = |name: &String| match mark {
        "" => format!("{directory}{name}"),
        _ => mentioned(&format!("{directory}{name}")),
    };
    Found {
        names: names.iter().map(whole).collect(),
        more,
    }
}

/// A path as a prompt names it. One with spaces stands in quotes, which stay open behind a folder: more follows.
fn mentioned(path: &str) -> String {
    let quoted = path.contains(char::is_whitespace) && !path.contains('"');
    match (quoted, path.ends_with('/')) {
        (false, _) => format!("@{path}"),
        (true, true) => format!("@\"{path}"),
        (true, false) => format!("@\"{path}\""),
    }
}

/// What is said of those that are not offered.
fn left(count: usize) -> Option<String> {
    (count > 0).then(|| format!("{count} more fit, type on"))
}

/// Whether a mention is of a file of the directory: a few letters of it are enough then.
fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.starts_with(['/', '~']) && !path.split('/').any(|part| part == "..")
}

/// Names that start with `partial`, directories with a `/`. Hidden ones only when asked for.
fn entries(directory: &Path, partial: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Vec::new();
    };
    let named = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let shown =
            name.starts_with(partial) && (!name.starts_with('.') || partial.starts_with('.'));
        let is_directory = || entry.path().is_dir();
        shown.then(|| {
            if is_directory() {
                name.clone() + "/"
            } else {
                name.clone()
            }
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("src")).unwrap();
        for name in ["src/main.rs", "setup.py", "README.md", ".hidden"] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        directory
    }

    #[test]
    fn file_names_start_with_what_is_typed_and_directories_end_with_a_slash() {
        let directory = directory();
        let find =
            |word: &str| matching_files(directory.path(), Some(directory.path()), word).names;
        assert_eq!(find("s"), ["setup.py", "src/"]);
        assert_eq!(find("src/m"), ["src/main.rs"]);
        assert_eq!(find("@R"), ["@README.md"]);
        assert_eq!(find("~/src/"), ["~/src/main.rs"]);
        assert_eq!(find(""), ["README.md", "setup.py", "src/"]);
        assert_eq!(find(".h"), [".hidden"]);
        assert!(find("no/such/").is_empty());
    }

    #[test]
    fn at_most_twenty_are_offered_and_it_is_said_how_many_are_not() {
        let directory = tempfile::tempdir().unwrap();
        for number in 0..30 {
            std::fs::write(directory.path().join(format!("f{number:02}")), "").unwrap();
        }
        let found = matching_files(directory.path(), None, "f");
        assert_eq!((found.names.len(), found.names[19].as_str()), (20, "f19"));
        assert_eq!(found.more.as_deref(), Some("10 more fit, type on"));
    }

    #[test]
    fn names_with_spaces_stand_in_quotes_that_a_folder_leaves_open() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("my notes")).unwrap();
        std::fs::write(directory.path().join("my notes/to do.md"), "").unwrap();
        std::fs::write(directory.path().join("-dash ü.md"), "").unwrap();
        let find = |line: &str| matching_files(directory.path(), None, last_word(line)).names;
        assert_eq!(find("see @my"), ["@\"my notes/"]);
        assert_eq!(find("see @\"my no"), ["@\"my notes/"]);
        assert_eq!(find("see @\"my notes/t"), ["@\"my notes/to do.md\""]);
        assert_eq!(find("see @todo"), ["@\"my notes/to do.md\""]);
        assert_eq!(find("@-d"), ["@\"-dash ü.md\""]);
        assert_eq!(find("@\"my notes/to do.md\" @-d"), ["@\"-dash ü.md\""]);
    }

    #[tokio::test]
    async fn last_word_of_the_line_is_completed_in_place() {
        let directory = directory();
        let found = file_names(directory.path().to_owned(), None, "läs @READ").await;
        assert_eq!(found.start, "läs ".len());
        assert_eq!(found.candidates[0].text, "@README.md");
    }
}
