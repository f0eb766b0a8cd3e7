//! Files of a directory that fit a few letters of their path. What `.gitignore` leaves out is left out; must never follow
//! a link, nor look longer than a person waits for a key.

use ignore::WalkBuilder;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many entries are looked at.
const LOOKED_AT: usize = 500_000;

/// How long. Who types on does not wait: what comes late is for a line that stands no more.
const LIMIT: Duration = Duration::from_secs(3);

/// How long a list serves the letters that follow. A file that is made meanwhile is found after it.
const FRESH: Duration = Duration::from_secs(4);

/// The last list that was made, so that each letter does not make one. Held while it is: who comes meanwhile needs the same
/// one, and waits for it.
static LAST: Mutex<Option<Listed>> = Mutex::new(None);

struct Listed {
    directory: PathBuf,
    hidden: bool,
    at: Instant,
    walked: Arc<Walked>,
}

/// The paths of a directory, as far as it was looked through.
#[derive(Debug, Default)]
struct Walked {
    paths: Vec<String>,
    /// Why not further.
    cut: Option<String>,
}

/// How far a directory is looked through.
#[derive(Clone, Copy, Debug)]
struct Limits {
    entries: usize,
    time: Duration,
}

/// What fits.
#[derive(Debug, Default)]
pub(super) struct Fitting {
    pub(super) paths: Vec<String>,
    /// How many more fit.
    pub(super) left: usize,
    /// Why others may that were not looked at.
    pub(super) cut: Option<String>,
}

/// The paths that fit best, relative to the directory; folders end with a `/`.
pub(super) fn paths(directory: &Path, letters: &str, most: usize) -> Fitting {
    let hidden = letters.starts_with('.') || letters.contains("/.");
    let mut found: Vec<(i64, String)> = Vec::new();
    let listed = listed(directory, hidden);
    for path in &listed.paths {
        if let Some(score) = score(path, letters) {
            found.push((score, path.clone()));
        }
    }
    found.sort_by(|(one, a), (other, b)| other.cmp(one).then_with(|| a.cmp(b)));
    let left = found.len().saturating_sub(most);
    found.truncate(most);
    Fitting {
        paths: found.into_iter().map(|(_, path)| path).collect(),
        left,
        cut: listed.cut.clone(),
    }
}

fn listed(directory: &Path, hidden: bool) -> Arc<Walked> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let fits = |last: &&Listed| {
        last.directory == directory && last.hidden == hidden && last.at.elapsed() < FRESH
    };
    if let Some(last) = last.as_ref().filter(fits) {
        return Arc::clone(&last.walked);
    }
    let limits = Limits {
        entries: LOOKED_AT,
        time: LIMIT,
    };
    let walked = Arc::new(walk(directory, hidden, limits));
    *last = Some(Listed {
        directory: directory.to_owned(),
        hidden,
        at: Instant::now(),
        walked: Arc::clone(&walked),
    });
    // A large directory's list is no longer held than it serves.
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async {
            tokio::time::sleep(FRESH).await;
            // Who walks just now replaces it anyway, and is not waited for on this thread.
            if let Ok(mut last) = LAST.try_lock() {
                last.take_if(|last| last.at.elapsed() >= FRESH);
            }
        });
    }
    walked
}

fn walk(directory: &Path, hidden: bool, limits: Limits) -> Walked {
    let until = Instant::now() + limits.time;
    let mut walk = WalkBuilder::new(directory);
    // A folder's rules count whether or not it is a repository.
    walk.hidden(!hidden).require_git(false).follow_links(false);
    let mut paths = Vec::new();
    let mut cut = None;
    for (count, entry) in walk.build().flatten().skip(1).enumerate() {
        if count == limits.entries {
            cut = Some(format!("only the first {count} files were looked at"));
            break;
        }
        if Instant::now() > until {
            let seconds = limits.time.as_secs();
            cut = Some(format!(
                "only what {seconds} s sufficed for was looked at, {count} files"
            ));
            break;
        }
        let Some(path) = entry
            .path()
            .strip_prefix(directory)
            .ok()
            .and_then(Path::to_str)
        else {
            continue;
        };
        let is_directory = entry.file_type().is_some_and(|kind| kind.is_dir());
        paths.push(match is_directory {
            true => format!("{path}/"),
            false => path.to_owned(),
        });
    }
    Walked { paths, cut }
}

/// The names in a directory that a mention may offer.
pub(super) fn names(directory: &Path, partial: &str) -> HashSet<String> {
    let mut walk = WalkBuilder::new(directory);
    walk.max_depth(Some(1));
    walk.hidden(!partial.starts_with('.')).require_git(false);
    let entries = walk.build().flatten().skip(1).take(LOOKED_AT);
    entries
        .filter_map(|entry| entry.file_name().to_str().map(str::to_owned))
        .collect()
}

/// How well the letters fit a path, in their order; none if they do not. Letters that follow each other or begin a name
/// count most, all of them in one piece in the file's own name above all, and short paths before long ones. Capitals
/// count only where somebody typed one.
fn score(path: &str, letters: &str) -> Option<i64> {
    let exact = letters.chars().any(char::is_uppercase);
    let same = |a: char, b: char| a == b || (!exact && a.to_lowercase().eq(b.to_lowercase()));
    let name_at = path.trim_end_matches('/').rfind('/').map_or(0, |at| at + 1);
    let mut score = whole(&path[name_at..], letters, exact);
    let mut rest = path.char_indices();
    let (mut before, mut last) = ('/', None);
    for letter in letters.chars() {
        loop {
            let (at, c) = rest.next()?;
            let begins = matches!(before, '/' | '_' | '-' | '.' | ' ');
            let follows = last.is_some_and(|last: usize| last + 1 == at);
            before = c;
            if same(c, letter) {
                let in_name = at >= name_at;
                score +=
                    1 + 8 * i64::from(begins) + 10 * i64::from(follows) + 2 * i64::from(in_name);
                last = Some(at + c.len_utf8() - 1);
                break;
            }
        }
    }
    Some(score * 16 - i64::try_from(path.len()).unwrap_or(i64::MAX / 2))
}

/// What it is worth that a name holds the letters in one piece.
fn whole(name: &str, letters: &str, exact: bool) -> i64 {
    let at = match exact {
        true => name.find(letters),
        false => name.to_lowercase().find(&letters.to_lowercase()),
    };
    match at {
        Some(0) => 60,
        Some(_) => 40,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        directory
    }

    #[test]
    fn a_file_behind_twenty_thousand_others_is_found() {
        let directory = directory(&["zlast/needle.rs"]);
        for folder in 0..20 {
            let folder = directory.path().join(format!("d{folder:02}"));
            std::fs::create_dir(&folder).unwrap();
            for file in 0..1000 {
                std::fs::write(folder.join(format!("f{file}")), "").unwrap();
            }
        }
        assert_eq!(
            paths(directory.path(), "needle", 20).paths,
            ["zlast/needle.rs"]
        );
    }

    #[test]
    fn a_few_letters_find_a_file_far_below() {
        let directory = directory(&["src/session/actor.rs", "src/tactics.rs", "docs/a.md"]);
        let found = paths(directory.path(), "actor", 20).paths;
        assert_eq!(found[0], "src/session/actor.rs");
        assert_eq!(
            paths(directory.path(), "sesact", 20).paths,
            ["src/session/actor.rs"]
        );
        assert!(
            paths(directory.path(), "Actor", 20).paths.is_empty(),
            "capitals count where typed"
        );
    }

    #[test]
    fn what_git_ignores_is_not_offered_and_hidden_files_only_when_asked_for() {
        let directory = directory(&["target/made.rs", "made.rs", ".made.rs"]);
        std::fs::write(directory.path().join(".gitignore"), "target\n").unwrap();
        assert_eq!(paths(directory.path(), "made", 20).paths, ["made.rs"]);
        assert_eq!(paths(directory.path(), ".made", 20).paths, [".made.rs"]);
    }

    #[test]
    fn a_whole_word_at_the_start_of_a_name_comes_first() {
        let directory = directory(&["lib/unread.rs", "read.rs", "r/e/a/d.rs", "rex/add/read.md"]);
        let found = paths(directory.path(), "read", 3);
        assert_eq!(found.paths, ["read.rs", "rex/add/read.md", "lib/unread.rs"]);
        assert_eq!((found.left, found.cut), (2, None));
    }

    #[test]
    fn what_was_not_looked_at_is_told() {
        let directory = directory(&["a", "b", "c"]);
        let walk = |entries, time| walk(directory.path(), false, Limits { entries, time });
        let whole = walk(3, LIMIT);
        assert_eq!((whole.paths.len(), whole.cut), (3, None));
        let few = walk(2, LIMIT);
        assert_eq!(few.paths.len(), 2);
        assert_eq!(few.cut.unwrap(), "only the first 2 files were looked at");
        let brief = walk(3, Duration::ZERO);
        assert!(brief.cut.unwrap().contains("0 s sufficed"));
    }
}
