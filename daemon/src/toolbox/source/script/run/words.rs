//! A call as words on a command line, for scripts that look at their own arguments.
//! What is long is left out: a word has a limit, and the stand-in for argc does not read the words.

use super::super::bash::Passed;
use super::Declaration;
use serde_json::{Map, Value};

/// The longest word, and all of them together.
const WORD: usize = 64 * 1024;
const ALL: usize = 256 * 1024;

pub(super) fn of(declaration: &Declaration, arguments: &Map<String, Value>) -> Vec<String> {
    let (mut words, mut positionals) = (Vec::new(), Vec::new());
    for (name, value) in arguments {
        let Some(passed) = declaration.passed.get(name) else {
            continue;
        };
        for value in values(value) {
            match passed {
                Passed::Flag(_) if value != "true" => {}
                Passed::Flag(flag) => words.push(flag.clone()),
                Passed::Option(option) => words.push(format!("{option}={value}")),
                Passed::Prefix(prefix) => words.push(format!("{prefix}{value}")),
                Passed::Positional => positionals.push(value),
            }
        }
    }
    if !positionals.is_empty() {
        words.push("--".to_owned());
        words.append(&mut positionals);
    }
    words.retain(|word| word.len() <= WORD);
    let mut length = 0;
    words.retain(|word| {
        length += word.len() + 1;
        length <= ALL
    });
    words
}

/// As texts; null is not given.
pub(in super::super) fn values(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().map(one).collect(),
        value => vec![one(value)],
    }
}

/// Text as it is, all else as JSON writes it.
pub(in super::super) fn one(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // The reader of JSON puts a plus before each exponent that has no sign, which few people write.
        Value::Number(number) => number.to_string().replace("e+", "e"),
        value => value.to_string(),
    }
}
