//! An agent's documents: files of its folder, by name, folder or pattern, as they stand in a prompt.
//! Must never read what lies outside the folder, fetch anything, or give a prompt more than its budget.

use crate::toolbox::source::script::content;
use globset::GlobBuilder;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// What documents may take of the prompt, in bytes.
pub(super) const BUDGET: usize = 64 * 1024;
/// Files of one agent that are looked at, and how deep they lie.
const FILES: usize = 1_000;
const DEPTH: usize = 16;

/// What an entry of the list stands for, or why it stands for nothing.
type Found = Result<Vec<String>, String>;

/// All of them, each under its name, and a line for each that is left out.
pub(super) fn prompt(dir: &Path, names: &[String]) -> String {
    let (mut out, mut left, mut over) = (String::new(), BUDGET, 0_usize);
    let mut seen = BTreeSet::new();
    for (name, found) in named(dir, names) {
        let files = match found {
            Ok(files) => files,
            Err(why) => {
                out.push_str(&document(&name, &format!("[left out: {why}]")));
                continue;
            }
        };
        for file in files {
            if !seen.insert(file.clone()) {
                continue;
            }
            if left == 0 {
                over += 1;
                continue;
            }
            let text = read(dir, &file).unwrap_or_else(|why| format!("[left out: {why}]"));
            let text = fitted(text, &mut left);
            out.push_str(&document(&file, &text));
        }
    }
    if over > 0 {
        out.push_str(&format!(
            "\n\n[{over} more documents are left out: they are too long together]"
        ));
    }
    out
}

/// What is wrong with the list, for people.
pub(super) fn problems(dir: &Path, names: &[String]) -> Vec<String> {
    let list = dir.join("index.yaml");
    let wrong = named(dir, names).filter_map(|(name, found)| found.err().map(|why| (name, why)));
    wrong
        .map(|(name, why)| format!("{}: the document {name}: {why}", list.display()))
        .collect()
}

fn document(name: &str, text: &str) -> String {
    format!(
        "\n\n<document name=\"{name}\">\n{}\n</document>",
        text.trim_end()
    )
}

fn fitted(text: String, left: &mut usize) -> String {
    if text.len() <= *left {
        *left -= text.len();
        return text;
    }
    let cut = (0..=*left).rev().find(|at| text.is_char_boundary(*at));
    *left = 0;
    format!(
        "{}\n[cut: the documents are too long together]",
        &text[..cut.unwrap_or(0)]
    )
}

/// Each entry with its files, relative to the folder.
fn named<'n>(dir: &'n Path, names: &'n [String]) -> impl Iterator<Item = (String, Found)> + 'n {
    let mut all = None;
    names.iter().map(move |name| {
        let found = if name.contains("://") {
            Err("nothing is fetched for a prompt; a tool can fetch it when it is needed".to_owned())
        } else if let Some(kind) = inside(dir, name) {
            match kind.is_dir() {
                true => listed(&mut all, dir, |file| file.starts_with(name)),
                false => Ok(vec![name.clone()]),
            }
        } else if name.contains(['*', '?', '[', '{']) {
            pattern(name).and_then(|glob| listed(&mut all, dir, |file| glob.is_match(file)))
        } else {
            Err("no such file in the agent's folder".to_owned())
        };
        (name.clone(), found)
    })
}

fn pattern(name: &str) -> Result<globset::GlobMatcher, String> {
    let name = name.strip_prefix("./").unwrap_or(name);
    let glob = GlobBuilder::new(name).literal_separator(true).build();
    let glob = glob.map_err(|error| error.to_string())?;
    Ok(glob.compile_matcher())
}

fn listed(all: &mut Option<Vec<PathBuf>>, dir: &Path, fits: impl Fn(&Path) -> bool) -> Found {
    let all = all.get_or_insert_with(|| files(dir));
    let fitting = all.iter().filter(|file| fits(file));
    let names: Vec<_> = fitting
        .map(|file| file.to_string_lossy().into_owned())
        .collect();
    match names.is_empty() {
        true => Err("no file in the agent's folder is called so".to_owned()),
        false => Ok(names),
    }
}

/// The files of a folder and of those in it, in order; what is hidden is nobody's document.
fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![(dir.to_owned(), 0)]);
    while let Some((folder, depth)) = open.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for entry in entries {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            let Some(kind) = entry.file_type().ok().filter(|_| !is_hidden) else {
                continue;
            };
            if kind.is_dir() && depth < DEPTH {
                open.push((entry.path(), depth + 1));
            } else if !kind.is_dir() && found.len() < FILES {
                found.extend(entry.path().strip_prefix(dir).map(Path::to_owned));
            }
        }
    }
    found.sort();
    found
}

/// Where a name leads, if that is in the folder.
fn inside(dir: &Path, name: &str) -> Option<PathBuf> {
    let place = dir.join(name).canonicalize().ok()?;
    place.starts_with(dir.canonicalize().ok()?).then_some(place)
}

fn read(dir: &Path, name: &str) -> Result<String, String> {
    let file = inside(dir, name).ok_or("not a file in the agent's folder")?;
    let bytes = content::read(&file).map_err(|error| error.to_string())?;
    match bytes.contains(&0) {
        true => Err("not a text".to_owned()),
        false => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn folder(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
        let root = TempDir::new().unwrap();
        let dir = root.path().join("agent");
        for (name, text) in files {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        (root, dir)
    }

    fn of(dir: &Path, names: &[&str]) -> String {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        prompt(dir, &names)
    }

    #[test]
    fn files_folders_and_patterns_name_documents_and_each_is_there_once() {
        let (_root, dir) = folder(&[
            ("a.md", "A"),
            ("docs/b.md", "B"),
            ("docs/deep/c.md", "C"),
            ("docs/d.txt", "D"),
            ("docs/.hidden.md", "H"),
        ]);
        let order =
            |text: &str| -> String { text.lines().filter(|line| line.len() == 1).collect() };
        assert_eq!(order(&of(&dir, &["docs/*.md"])), "B");
        assert_eq!(order(&of(&dir, &["./docs/**/*.md", "a.md"])), "BCA");
        assert_eq!(order(&of(&dir, &["docs/", "a.md", "docs/b.md"])), "BDCA");
        assert_eq!(order(&of(&dir, &["**/*.{txt,md}"])), "ABDC");
    }

    #[test]
    fn what_is_left_out_is_named_with_its_reason() {
        let (root, dir) = folder(&[("bin", "\0\u{1}"), ("a", "A")]);
        fs::write(root.path().join("secret"), "SECRET").unwrap();
        std::os::unix::fs::symlink("../secret", dir.join("link")).unwrap();
        let names = [
            "https://x.invalid/a",
            "gone",
            "*.gone",
            "[",
            "bin",
            "../secret",
            "link",
        ];
        let text = of(&dir, &names);
        assert_eq!(text.matches("[left out: ").count(), names.len(), "{text}");
        assert!(
            text.contains("nothing is fetched") && !text.contains("SECRET"),
            "{text}"
        );
        let names = names.map(str::to_owned);
        assert_eq!(problems(&dir, &names).len(), 6);
    }

    #[test]
    fn all_of_them_together_keep_to_the_budget() {
        let long = "é".repeat(20_000);
        let names: Vec<_> = (0..50).map(|number| format!("{number:02}.md")).collect();
        let files: Vec<_> = names
            .iter()
            .map(|name| (name.as_str(), long.as_str()))
            .collect();
        let (_root, dir) = folder(&files);
        let text = of(&dir, &["*.md"]);
        assert!(text.len() < BUDGET + 1_000, "{}", text.len());
        assert!(
            text.contains("too long together"),
            "{}",
            &text[text.len() - 200..]
        );
        assert!(text.ends_with("[48 more documents are left out: they are too long together]"));
    }
}
