//! Python's literals as JSON values. What is no literal is nothing.

use super::expression::{Expression, read};
use serde_json::{Map, Value};

/// The text of a string literal, or of several that stand side by side.
pub(super) fn string(text: &str) -> Option<String> {
    let mut whole = String::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (part, after) = one(rest)?;
        whole.push_str(&part);
        rest = after.trim_start_matches(|c: char| c.is_whitespace() || c == '\\');
        // Between those in parentheses there may be comments.
        while rest.starts_with('#') {
            rest = rest
                .split_once('\n')
                .map_or("", |(_, rest)| rest.trim_start());
        }
    }
    Some(whole)
}

/// One literal at the beginning, and what follows it. Bytes and what is formatted are no text.
pub(super) fn one(text: &str) -> Option<(String, &str)> {
    let quote_at = text.find(['"', '\''])?;
    let prefix = text[..quote_at].to_lowercase();
    let raw = match prefix.as_str() {
        "" | "u" => false,
        "r" => true,
        _ => return None,
    };
    let body = &text[quote_at..];
    let single = &body[..1];
    let triple = single.repeat(3);
    let quote = if body.starts_with(&triple) {
        triple.as_str()
    } else {
        single
    };
    let body = &body[quote.len()..];
    let end = end_of(body, quote)?;
    let inner = body[..end].replace("\r\n", "\n");
    let inner = if raw { inner } else { unescaped(&inner) };
    Some((inner, &body[end + quote.len()..]))
}

fn end_of(body: &str, quote: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in body.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if body[at..].starts_with(quote) {
            return Some(at);
        }
    }
    None
}

fn unescaped(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => {}
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some('0') => text.push('\0'),
            Some('x') => coded(&mut chars, 2, &mut text),
            Some('u') => coded(&mut chars, 4, &mut text),
            Some('U') => coded(&mut chars, 8, &mut text),
            Some(quoted @ ('\\' | '\'' | '"')) => text.push(quoted),
            Some(other) => text.extend(['\\', other]),
            None => text.push('\\'),
        }
    }
    text
}

fn coded(chars: &mut std::str::Chars<'_>, digits: usize, text: &mut String) {
    let code: String = chars.clone().take(digits).collect();
    let read = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
    if let Some(c) = read {
        text.push(c);
        for _ in 0..digits {
            chars.next();
        }
    } else {
        text.push('\u{fffd}');
    }
}

/// The value of a default.
pub(super) fn value(text: &str) -> Option<Value> {
    of(&read(text)?)
}

pub(super) fn of(expression: &Expression) -> Option<Value> {
    match expression {
        Expression::Value(value) => Some(value.clone()),
        Expression::Text(text) => Some(Value::String(text.clone())),
        Expression::List(parts) => parts.iter().map(of).collect(),
        Expression::Pairs(pairs) => {
            let pair = |(key, value): &(Expression, Expression)| match of(key)? {
                Value::String(key) => Some((key, of(value)?)),
                _ => None,
            };
            pairs
                .iter()
                .map(pair)
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object)
        }
        _ => None,
    }
}
