//! What came of a program, out of what QuickJS gives: its result as JSON, what it threw, and where. Must never run any
//! of it.

use super::PROGRAM;
use crate::presentation::code_mode::source::Source;
use crate::presentation::code_mode::wire::{Ending, Failed, Returned, beginning};
use crate::toolbox::result::DEEPEST;
use rquickjs::{Exception, Object, Value};
use serde_json::json;

/// What the bootstrap says of a value that was returned.
pub(super) fn returned(value: &Object<'_>, most: usize, depth: usize) -> Ending {
    let member = |name: &str| value.get::<_, Option<String>>(name).ok().flatten();
    if let Some(why) = member("unserialisable") {
        let message = format!(
            "the result cannot be JSON: {why}. Return plain objects, arrays, strings and numbers"
        );
        return Ending::Failed(Failed::new("unserialisable", &message));
    }
    if member("nothing").is_some() {
        return Ending::Returned(Returned::new("null".to_owned(), false, true));
    }
    if let Some(text) = member("string") {
        let cut = beginning(&text, most);
        let is_cut = cut.len() < text.len();
        return Ending::Returned(Returned::new(json!(cut).to_string(), is_cut, false));
    }
    match member("json").map(|json| tidy(&json, depth)) {
        Some(Ok(json)) if json.len() <= most => Ending::Returned(Returned::new(json, false, false)),
        Some(Ok(json)) => {
            let cut = json!(beginning(&json, most)).to_string();
            Ending::Returned(Returned::new(cut, true, false))
        }
        Some(Err(TooDeep)) => Ending::Failed(Failed::new(
            "unserialisable",
            &format!("the result cannot be JSON: it is more than {depth} deep"),
        )),
        None => Ending::Failed(Failed::new(
            "memory",
            "the result does not fit into the program's memory",
        )),
    }
}

/// What the bootstrap says of what was thrown.
pub(super) fn thrown(value: &Object<'_>) -> Failed {
    let member = |name: &str| value.get::<_, Option<String>>(name).ok().flatten();
    let at = member("stack").and_then(|stack| place(&stack));
    let message = member("message").unwrap_or_default();
    let message = short(&message, MESSAGE);
    if let Some(code) = member("code") {
        return Failed {
            tool: member("tool").map(|tool| short(&tool, NAME)),
            retryable: value.get("retryable").unwrap_or(false),
            details: member("details").and_then(|details| short_details(&details)),
            at,
            ..Failed::new(&short(&code, NAME), &message)
        };
    }
    let failed = match member("error") {
        Some(name) => of_error(&short(&name, NAME), &message),
        None => match member("value") {
            Some(value) if value == "null" => Failed::new("thrown", THREW_NULL),
            Some(value) => {
                let value = short(&value, MESSAGE);
                Failed::new("thrown", &format!("the program threw {value}"))
            }
            // There was no memory left to say anything.
            None => Failed::new("memory", OUT_OF_MEMORY),
        },
    };
    Failed { at, ..failed }
}

/// The most that is told of what was thrown, in bytes.
const MESSAGE: usize = 8 * 1024;
/// Of a name or a code.
const NAME: usize = 256;
/// Of the details of a failure, as JSON.
const DETAILS: usize = 64 * 1024;
/// Also what is thrown where there is no memory left for an error.
const THREW_NULL: &str = "the program threw null";

/// A text that is at most so long, and says it when it was cut.
fn short(text: &str, most: usize) -> String {
    let cut = beginning(text, most);
    match cut.len() < text.len() {
        true => format!("{cut} [cut: it has {} bytes]", text.len()),
        false => text.to_owned(),
    }
}

fn short_details(json: &str) -> Option<serde_json::Value> {
    match tidy(json, DEEPEST) {
        Ok(json) if json.len() <= DETAILS => serde_json::from_str(&json).ok(),
        Ok(json) => Some(short(&json, DETAILS).into()),
        Err(TooDeep) => Some(short(json, DETAILS).into()),
    }
}

/// Whether a program fails in this way, too, where it has no memory left to fail in its own.
pub(super) fn is_vague(failed: &Failed) -> bool {
    let of_the_engine = failed.code == "thrown" && failed.message.starts_with("InternalError");
    let vague = ["never_settles", "unserialisable"].contains(&&*failed.code);
    vague || of_the_engine || failed.message == THREW_NULL
}

pub(super) const OUT_OF_MEMORY: &str = "the program needs more memory than it may have";

fn of_error(name: &str, message: &str) -> Failed {
    match (name, message) {
        ("InternalError", text)
            if text.starts_with("out of memory") || text == "string too long" =>
        {
            Failed::new("memory", OUT_OF_MEMORY)
        }
        ("RangeError", "Maximum call stack size exceeded") => Failed::new(
            "stack",
            "the program calls itself too deep: the stack is full",
        ),
        (name, "") => Failed::new("thrown", name),
        (name, message) => Failed::new("thrown", &format!("{name}: {message}")),
    }
}

/// An exception that came to the host: of a program that could not be read, or of one that has no memory left.
pub(super) fn host_error(thrown: &Value<'_>) -> Failed {
    let Some(exception) = thrown.as_object().cloned().and_then(Exception::from_object) else {
        return Failed::new("memory", OUT_OF_MEMORY);
    };
    let name: String = exception.as_object().get("name").unwrap_or_default();
    let message = exception.message().unwrap_or_default();
    let at = exception.stack().and_then(|stack| place(&stack));
    let failed = match name.as_str() {
        "SyntaxError" => Failed::new(
            "syntax",
            &format!(
                "{message}. A program is plain JavaScript, the body of an async function: no types, no import, no export"
            ),
        ),
        name => of_error(name, &message),
    };
    Failed { at, ..failed }
}

/// `line:column` of the innermost place in the program.
fn place(stack: &str) -> Option<String> {
    let (_, rest) = stack.split_once(&format!("{PROGRAM}:"))?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != ':')
        .unwrap_or(rest.len());
    let mut numbers = rest[..end].split(':').map(str::parse::<usize>);
    let line = numbers.next()?.ok()?;
    let column = numbers.next().and_then(Result::ok)?;
    let column = if line == 1 {
        column.saturating_sub(Source::BEFORE).max(1)
    } else {
        column
    };
    Some(format!("{line}:{column}"))
}

/// JSON that is more than that deep.
#[derive(Debug, PartialEq)]
pub(super) struct TooDeep;

/// JSON whose strings every reader takes: half of a surrogate pair becomes U+FFFD.
pub(super) fn tidy(json: &str, deepest: usize) -> Result<String, TooDeep> {
    let mut tidied = String::new();
    let (mut depth, mut at, mut copied, mut in_string) = (0_usize, 0, 0, false);
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if in_string => match unit(at) {
                Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 11,
                Some(0xd800..=0xdfff) => {
                    tidied.push_str(&json[copied..at]);
                    tidied.push('\u{fffd}');
                    at += 5;
                    copied = at + 1;
                }
                _ => at += 1,
            },
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                if depth > deepest {
                    return Err(TooDeep);
                }
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    tidied.push_str(&json[copied.min(json.len())..]);
    Ok(tidied)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_of_surrogate_pairs_are_replaced_and_nothing_else_changes() {
        for (json, tidied) in [
            (r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude00"]"#),
            (r#"["\ud83d"]"#, "[\"\u{fffd}\"]"),
            (r#"["\ude00\ud83d"]"#, "[\"\u{fffd}\u{fffd}\"]"),
            (r#"["\\ud83d", "\u0041\""]"#, r#"["\\ud83d", "\u0041\""]"#),
        ] {
            assert_eq!(tidy(json, 10).as_deref(), Ok(tidied), "{json}");
        }
    }

    #[test]
    fn brackets_in_strings_are_no_depth() {
        assert!(tidy(r#"[["[[[[\"[[", {}]]"#, 3).is_ok());
        assert_eq!(tidy("[[[[]]]]", 3), Err(TooDeep));
    }

    #[test]
    fn what_was_thrown_is_told_as_far_as_it_is_short() {
        assert_eq!(short("all of it", 9), "all of it");
        assert_eq!(short("aäb", 2), "a [cut: it has 4 bytes]");
        assert_eq!(short_details("{\"page\":7}"), Some(json!({"page": 7})));
        let long = format!("\"{}\"", "x".repeat(DETAILS));
        let cut = short_details(&long).unwrap();
        assert!(cut.as_str().unwrap().len() < DETAILS + 100);
        let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
        assert_eq!(short_details(&deep), Some(deep.into()));
    }

    #[test]
    fn a_place_is_the_first_one_in_the_program() {
        let stack = "    at f (native)\n    at g (program:3:7)\n    at <anonymous> (program:9:1)\n";
        assert_eq!(place(stack).as_deref(), Some("3:7"));
        let first = format!("at <anonymous> (program:1:{})", Source::BEFORE + 5);
        assert_eq!(place(&first).as_deref(), Some("1:5"));
        for stack in ["", "program:", "program:x:1", "at f (native)"] {
            assert_eq!(place(stack), None, "{stack}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_looked_at_without_harm(text in "[\\[\\]{}\"\\\\u0-9a-fd]{0,40}") {
            let _ = tidy(&text, 5);
            let _ = place(&text);
        }
    }
}
