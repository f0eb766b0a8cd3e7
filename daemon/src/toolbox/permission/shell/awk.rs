//! `awk`: programs that only read and print. Must never believe one that it cannot see.

use super::lex::Word;
use super::options::{Found, is};

/// Options that bring in a program, or code, from elsewhere.
const ELSEWHERE: &[&str] = &[
    "-f",
    "-l",
    "-i",
    "-E",
    "--file",
    "--load",
    "--include",
    "--exec",
];
/// What a program runs commands, opens files or loads code with.
const REACHES: &[&str] = &["system", "|", ">", "getline", "@"];

pub(super) fn look(words: &[Word]) -> Found {
    let mut runs = false;
    let mut program_seen = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        runs |= ELSEWHERE.iter().any(|option| is(word, option));
        runs |= word.uncertain == Some(0) && !word.plain.starts_with('~');
        match word.plain.as_str() {
            "-F" | "-v" => drop(words.next()),
            option if option.starts_with('-') && option.len() > 1 && !program_seen => {}
            program => {
                let reaches = REACHES.iter().any(|text| program.contains(text));
                runs |= reaches || (!program_seen && word.uncertain.is_some());
                program_seen = true;
            }
        }
    }
    Found {
        runs,
        changes: Vec::new(),
    }
}
