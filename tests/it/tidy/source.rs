//! Reading Rust sources just well enough for the repository's rules: comments and strings apart, paths put together.

use std::fs;
use std::path::{Path, PathBuf};

/// A source file of the repository.
#[derive(Debug)]
pub(super) struct Source {
    /// Relative to the root, with `/`.
    pub(super) name: String,
    pub(super) text: String,
    /// Its module is declared under `#[cfg(test)]`.
    test_only: bool,
}

impl Source {
    pub(super) fn sample(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            text: text.into(),
            test_only: false,
        }
    }

    /// The part that ships: what lies before the first `#[cfg(test)]` of a module; nothing in a file of tests.
    pub(super) fn shipped(&self) -> &str {
        if self.test_only || self.name.starts_with("tests/") {
            return "";
        }
        let mut from = 0;
        while let Some(at) = self.text[from..].find("#[cfg(test)]").map(|at| at + from) {
            let rest = self.text[at..].lines().skip(1);
            let item = rest
                .map(str::trim)
                .find(|line| !line.is_empty() && !line.starts_with("#["));
            if item.is_some_and(|line| line.starts_with("mod ") && line.ends_with('{')) {
                return &self.text[..at];
            }
            from = at + 1;
        }
        &self.text
    }

    /// The module path inside its crate: `daemon/src/rpc/session.rs` is `["rpc", "session"]`.
    pub(super) fn module(&self) -> Vec<&str> {
        let inside = self
            .name
            .split_once("/src/")
            .map_or("", |(_, inside)| inside);
        let inside = inside.strip_suffix(".rs").unwrap_or(inside);
        inside
            .split('/')
            .filter(|part| !matches!(*part, "" | "lib" | "main"))
            .collect()
    }

    /// All paths of the shipped part that lead to another module of the crate, from its root on.
    pub(super) fn crate_paths(&self) -> Vec<String> {
        let tokens = tokens(&without_comments_and_strings(self.shipped()));
        let mut paths = Vec::new();
        for at in 0..tokens.len() {
            let before = at.checked_sub(1).map(|before| tokens[before].as_str());
            if matches!(before, Some("::" | "$"))
                || tokens.get(at + 1).is_none_or(|next| next != "::")
            {
                continue;
            }
            let base = match tokens[at].as_str() {
                "crate" => Vec::new(),
                "super" => self
                    .module()
                    .iter()
                    .rev()
                    .skip(1)
                    .rev()
                    .map(|part| (*part).to_owned())
                    .collect(),
                _ => continue,
            };
            tree(&tokens, at + 2, base, &mut paths);
        }
        paths
    }
}

/// Every Rust file of the workspace.
pub(super) fn sources(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    for part in ["protocol", "daemon", "client", "tests"] {
        walk(&root.join(part), &mut files);
    }
    files.sort();
    files
        .iter()
        .filter(|path| path.extension().is_some_and(|ext| ext == "rs"))
        .map(|path| Source {
            name: path
                .strip_prefix(root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned(),
            text: fs::read_to_string(path).unwrap(),
            test_only: declared_for_tests(path),
        })
        .collect()
}

/// Whether the module above declares this file, or a folder it lies in, under `#[cfg(test)]`.
fn declared_for_tests(path: &Path) -> bool {
    let (Some(folder), Some(name)) = (path.parent(), path.file_stem()) else {
        return false;
    };
    let parents = [
        folder.with_extension("rs"),
        folder.join("lib.rs"),
        folder.join("main.rs"),
    ];
    let line = format!("mod {};", name.to_string_lossy());
    let declared = parents
        .iter()
        .filter_map(|parent| fs::read_to_string(parent).ok())
        .any(|text| {
            let lines: Vec<&str> = text.lines().map(str::trim).collect();
            lines
                .windows(2)
                .any(|pair| pair[0] == "#[cfg(test)]" && pair[1].ends_with(&line))
        });
    declared || (folder.file_name().is_some_and(|name| name != "src") && declared_for_tests(folder))
}

/// All files below a folder, but for build output and git's own.
pub(super) fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if name == "target" || name == ".git" || name == "node_modules" {
            continue;
        }
        if path.is_dir() {
            walk(&path, files);
        } else if path.is_file() {
            files.push(path);
        }
    }
}

/// The same text with every comment and every literal blanked.
pub(super) fn without_comments_and_strings(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < letters.len() {
        let end = match (letters[at], letters.get(at + 1)) {
            ('/', Some('/')) => until(&letters, at, "\n"),
            ('/', Some('*')) => block_comment(&letters, at),
            ('"', _) => string(&letters, at + 1),
            ('r', Some('"' | '#')) if !joined(&out) => raw_string(&letters, at),
            ('\'', _) => letter(&letters, at),
            _ => at,
        };
        if end == at {
            out.push(letters[at]);
            at += 1;
        } else {
            out.extend(
                letters[at..end]
                    .iter()
                    .map(|letter| if *letter == '\n' { '\n' } else { ' ' }),
            );
            at = end;
        }
    }
    out
}

/// Whether what comes next continues a word.
fn joined(out: &str) -> bool {
    out.chars()
        .next_back()
        .is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
}

fn until(letters: &[char], from: usize, end: &str) -> usize {
    let end: Vec<char> = end.chars().collect();
    let found = letters[from..]
        .windows(end.len())
        .position(|part| part == end);
    found.map_or(letters.len(), |found| from + found)
}

/// Block comments nest.
fn block_comment(letters: &[char], from: usize) -> usize {
    let mut depth = 0;
    let mut at = from;
    while at < letters.len() {
        match (letters[at], letters.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(letters: &[char], mut at: usize) -> usize {
    while at < letters.len() && letters[at] != '"' {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(letters.len())
}

fn raw_string(letters: &[char], from: usize) -> usize {
    let marks = letters[from + 1..]
        .iter()
        .take_while(|letter| **letter == '#')
        .count();
    let open = from + 1 + marks;
    if letters.get(open) != Some(&'"') {
        return from;
    }
    let end = format!("\"{}", "#".repeat(marks));
    (until(letters, open + 1, &end) + end.len()).min(letters.len())
}

/// A character literal; a lifetime is none.
fn letter(letters: &[char], at: usize) -> usize {
    match (letters.get(at + 1), letters.get(at + 2)) {
        (Some('\\'), _) => until(letters, at + 3, "'") + 1,
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// Words, `::` and single marks.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter.is_alphanumeric() || letter == '_' {
            let mut word = String::from(letter);
            while let Some(next) = letters.next_if(|next| next.is_alphanumeric() || *next == '_') {
                word.push(next);
            }
            tokens.push(word);
        } else if letter == ':' && letters.next_if_eq(&':').is_some() {
            tokens.push("::".into());
        } else if !letter.is_whitespace() {
            tokens.push(letter.into());
        }
    }
    tokens
}

/// Follows a path from a token on; `{a, b::c}` is several. Returns the first token that is not part of it.
fn tree(tokens: &[String], mut at: usize, mut path: Vec<String>, paths: &mut Vec<String>) -> usize {
    loop {
        match tokens.get(at).map(String::as_str) {
            Some("super") => {
                path.pop();
            }
            Some("{") => return group(tokens, at + 1, &path, paths),
            Some(word)
                if word == "*"
                    || word
                        .starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') =>
            {
                if word != "self" {
                    path.push(word.to_owned());
                }
            }
            _ => break,
        }
        at += 1;
        if tokens.get(at).is_none_or(|next| next != "::") {
            break;
        }
        at += 1;
    }
    paths.push(path.join("::"));
    at
}

fn group(tokens: &[String], mut at: usize, path: &[String], paths: &mut Vec<String>) -> usize {
    while at < tokens.len() && tokens[at] != "}" {
        let next = tree(tokens, at, path.to_vec(), paths);
        // `a as b` and commas: on to the next member.
        at = next.max(at + 1);
        while at < tokens.len() && tokens[at] != "," && tokens[at] != "}" {
            at += 1;
        }
        if tokens.get(at).is_some_and(|token| token == ",") {
            at += 1;
        }
    }
    at + 1
}
