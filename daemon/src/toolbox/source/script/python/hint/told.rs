//! Types as docstrings write them, in words: `list of str, optional`, `int or None`, `{'x', 'y'}`.
//! Must never lose a parameter to a word that it does not know: that one is a text.

use super::{Hint, Names, Types, read};
use serde_json::{Value, json};

/// Words inside words beyond this are no type that somebody wrote.
const DEPTH: usize = 8;

/// Of a type in a docstring.
pub(in super::super) fn read_told(text: &str, names: &Names) -> Hint {
    let parts = split(text, ",");
    let is_choice = |part: &&&str| part.starts_with('{') && part.ends_with('}');
    if let Some(choices) = parts.iter().find(is_choice) {
        let choices = &choices[1..choices.len() - 1];
        let hint = read(&format!("Literal[{choices}]"), names);
        return with_optional(hint, &parts);
    }
    let kinds: Vec<_> = parts.iter().filter(|part| !is_remark(part)).collect();
    let mut alternatives = Vec::new();
    for (at, part) in kinds.into_iter().enumerate() {
        for one in split(part, " or ") {
            let one = one.strip_prefix("or ").unwrap_or(one);
            // What follows a comma is a remark, unless it is a type.
            match word(one, names, 0) {
                Some(hint) => alternatives.push(hint),
                None if at == 0 => alternatives.push(Hint::of(json!({"type": "string"}))),
                None => {}
            }
        }
    }
    let hint = match alternatives.len() {
        0 => Hint::of(json!({"type": "string"})),
        1 => alternatives.swap_remove(0),
        _ => Types::joined(alternatives),
    };
    with_optional(hint, &parts)
}

fn with_optional(hint: Hint, parts: &[&str]) -> Hint {
    let optional = parts.iter().any(|part| part.ends_with("optional"));
    Hint {
        optional: hint.optional || optional,
        ..hint
    }
}

/// What says nothing of the type.
fn is_remark(part: &str) -> bool {
    let lower = part.to_lowercase();
    lower.is_empty() || lower == "optional" || lower == "required" || lower.starts_with("default")
}

/// None for words that name no type.
fn word(text: &str, names: &Names, depth: usize) -> Option<Hint> {
    let text = text.trim().trim_end_matches('.');
    if depth > DEPTH || text.is_empty() {
        return None;
    }
    for end in [" optional", " required"] {
        if let Some(rest) = text.strip_suffix(end) {
            return word(rest, names, depth + 1);
        }
    }
    let lower = text.to_lowercase();
    if let Some((of, inner)) = text.split_once(" of ") {
        let of = lower.get(..of.len())?;
        if spelled(of) == "list" {
            let inner = word(inner, names, depth + 1)
                .filter(|inner| !inner.schema.is_null())
                .unwrap_or_else(|| Hint::of(json!({})));
            return Some(Hint::of(json!({"type": "array", "items": inner.schema})));
        }
        if spelled(of) == "dict" {
            return Some(Hint::of(json!({"type": "object"})));
        }
    }
    if ["any", "object"].contains(&lower.as_str()) && lower == text {
        let schema = if lower == "any" {
            json!({})
        } else {
            json!({"type": "object"})
        };
        return Some(Hint::of(schema));
    }
    let hint = read(text, names);
    if !is_anything(&hint.schema) {
        return Some(hint);
    }
    if lower == "any" || hint.optional {
        return Some(hint);
    }
    // Only the first of several words is the type: `string with blanks`.
    let first = lower.split(' ').next().unwrap_or_default();
    match spelled(first) {
        "" => None,
        kind => Some(read(kind, names)),
    }
}

fn is_anything(schema: &Value) -> bool {
    schema.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Python's name for a type that is spelled out, also for many of it.
fn spelled(word: &str) -> &'static str {
    match word {
        "str" | "strs" | "string" | "strings" | "text" => "str",
        "int" | "ints" | "integer" | "integers" => "int",
        "bool" | "bools" | "boolean" | "booleans" => "bool",
        "float" | "floats" | "number" | "numbers" | "double" | "doubles" => "float",
        "list" | "lists" | "array" | "arrays" | "array_like" | "array-like" | "ndarray"
        | "sequence" | "iterable" | "tuple" | "tuples" | "set" => "list",
        "dict" | "dicts" | "object" | "objects" | "dictionary" | "mapping" => "dict",
        _ => "",
    }
}

/// At a separator that stands in no brackets and no quotes.
fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let mut parts = Vec::new();
    let (mut depth, mut quote, mut from) = (0_usize, None, 0);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '(' | '{') => depth += 1,
            (None, ']' | ')' | '}') => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= from && text[at..].starts_with(separator) => {
                parts.push(text[from..at].trim());
                from = at + separator.len();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}
