//! `sed`: scripts that only select and substitute. Must never take for one what it does not read to its end.

use super::lex::Word;
use super::options::{Found, is};

/// Commands without an argument that touch nothing but the text that flows by.
const PLAIN: &str = "pdqQ=nNgGhHxDPlz";

pub(super) fn look(words: &[Word]) -> Found {
    let mut found = Found::default();
    let mut script_seen = false;
    let mut options = true;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.plain.as_str();
        let given = match text {
            "--" if options => {
                options = false;
                None
            }
            _ if options && text.starts_with("--") => long(word, &mut found, &mut words),
            _ if options && text.starts_with('-') && text.len() > 1 => {
                short(word, &mut found, &mut words)
            }
            _ if script_seen => {
                found.runs |= word.uncertain == Some(0) && !text.starts_with('~');
                None
            }
            _ => Some(only_edits_in(word, text)),
        };
        if let Some(only_edits) = given {
            script_seen = true;
            found.runs |= !only_edits;
        }
    }
    found
}

/// A long option; whether the script that it gives only edits.
fn long<'w>(
    word: &Word,
    found: &mut Found,
    words: &mut impl Iterator<Item = &'w Word>,
) -> Option<bool> {
    found.runs |= word.uncertain.is_some() || is(word, "--file");
    if is(word, "--in-place") {
        found.changes.push(word.plain.clone());
    }
    if !is(word, "--expression") {
        return None;
    }
    match word.plain.split_once('=') {
        Some((_, script)) => Some(only_edits_in(word, script)),
        None => words
            .next()
            .map(|script| only_edits_in(script, &script.plain)),
    }
}

/// Short options, one letter each until one takes the rest; whether the script that they give only edits.
fn short<'w>(
    word: &Word,
    found: &mut Found,
    words: &mut impl Iterator<Item = &'w Word>,
) -> Option<bool> {
    found.runs |= word.uncertain.is_some();
    let letters = &word.plain[1..];
    for (at, letter) in letters.char_indices() {
        let rest = &letters[at + letter.len_utf8()..];
        match letter {
            'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' => {}
            'e' if rest.is_empty() => {
                return words
                    .next()
                    .map(|script| only_edits_in(script, &script.plain));
            }
            'e' => return Some(only_edits_in(word, rest)),
            'i' => {
                found.changes.push(word.plain.clone());
                return None;
            }
            'l' => {
                if rest.is_empty() {
                    words.next();
                }
                return None;
            }
            _ => {
                found.runs = true;
                return None;
            }
        }
    }
    None
}

fn only_edits_in(word: &Word, script: &str) -> bool {
    word.uncertain.is_none() && only_edits(script)
}

/// Whether a script is understood to its end and only selects and substitutes.
fn only_edits(script: &str) -> bool {
    let mut rest = script.trim();
    while !rest.is_empty() {
        match one(rest) {
            Some(after) => rest = after.trim_start_matches([';', '\n', ' ', '\t', '}']),
            None => return false,
        }
    }
    true
}

/// What follows one command.
fn one(text: &str) -> Option<&str> {
    let text = address(text)?.trim_start_matches([' ', '!']);
    let mut chars = text.chars();
    let command = chars.next()?;
    let rest = chars.as_str();
    match command {
        '{' => Some(rest.trim_start()),
        's' => {
            let after = parts(rest, 2)?;
            let flags =
                after.trim_start_matches(|c: char| "gpiImM".contains(c) || c.is_ascii_digit());
            ended(flags)
        }
        'y' => ended(parts(rest, 2)?),
        _ if PLAIN.contains(command) => {
            ended(rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        }
        _ => None,
    }
}

fn ended(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    (text.is_empty() || text.starts_with([';', '\n', '}'])).then_some(text)
}

/// Behind the lines that a command is for.
fn address(text: &str) -> Option<&str> {
    let mut text = text;
    loop {
        text = text.trim_start_matches(|c: char| c.is_ascii_digit() || ",$~+ ".contains(c));
        match text.strip_prefix('/') {
            Some(_) => text = parts(text, 1)?.trim_start_matches('I'),
            None => return Some(text),
        }
    }
}

/// Behind so many parts, each ended by the character that `text` begins with.
fn parts(text: &str, count: usize) -> Option<&str> {
    let mut chars = text.chars();
    let mark = chars
        .next()
        .filter(|c| !c.is_alphanumeric() && *c != '\\' && *c != '\n')?;
    let mut left = count;
    while left > 0 {
        match chars.next()? {
            '\\' => drop(chars.next()?),
            // Inside a class the mark may stand for itself, and then this is not where the part ends.
            '[' if mark != '[' => return None,
            c if c == mark => left -= 1,
            _ => {}
        }
    }
    Some(chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::only_edits;

    #[test]
    fn scripts_that_only_edit_are_told_from_those_that_reach_further() {
        for script in [
            "p",
            "1,5p",
            "$d",
            "/a b/d",
            "/a/,/b/p",
            "s/a/b/",
            "s/a/b/g; s|/x|/y|2p",
            "s/a\\/b/c/I",
            "/x/!d",
            "y/abc/def/",
            "10q",
            "1~2d",
            "/a/{s/b/c/;p}",
            "",
        ] {
            assert!(only_edits(script), "{script}");
        }
        for script in [
            "e",
            "1e id",
            "e id",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/id/;e",
            "s/a/b/w x",
            "w x",
            "r /etc/passwd",
            "R x",
            "W x",
            "/a/e",
            "1,5!e id",
            "s,a,b,e",
            "s/[/]/x/;e id",
            "p;e id",
            "p\ne id",
            "{e id}",
            "a text",
            "b x",
            "s/a/b",
            "F",
        ] {
            assert!(!only_edits(script), "{script}");
        }
    }
}
