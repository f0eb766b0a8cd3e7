//! Numbers that a language's own do not hold. Must never let one be changed without a word.

use super::{Language, Map, Value};
use serde_json::{Number, json};

/// Whole numbers up to here are what they say in a JavaScript Number.
const SAFE: u64 = (1 << 53) - 1;

/// Bash takes numbers as texts. The others have no end for whole numbers, and one for those with a fraction or an exponent.
pub(super) fn check(language: Language, arguments: &Map<String, Value>) -> Result<(), String> {
    let whose = match language {
        Language::Bash => return Ok(()),
        Language::JavaScript => "JavaScript",
        Language::Python => "Python",
    };
    for (name, value) in arguments {
        if let Some(number) = endless(value) {
            return Err(format!(
                "the argument {name:?} holds {number}, which is beyond the numbers of {whose}"
            ));
        }
    }
    Ok(())
}

fn endless(value: &Value) -> Option<&Number> {
    match value {
        Value::Number(number) => {
            (digits(number).is_none() && number.as_f64().is_none()).then_some(number)
        }
        Value::Array(values) => values.iter().find_map(endless),
        Value::Object(members) => members.values().find_map(endless),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

/// What our runner for Node reads: the arguments, and where in them the numbers are that a Number would change.
pub(super) fn for_node(arguments: Map<String, Value>) -> Value {
    let mut found = Found::default();
    found.members(&arguments);
    json!({"arguments": arguments, "whole": found.long})
}

#[derive(Default)]
struct Found {
    path: Vec<Value>,
    /// Each with its path and its digits.
    long: Vec<Value>,
}

impl Found {
    fn value(&mut self, step: Value, value: &Value) {
        self.path.push(step);
        match value {
            Value::Number(number) => {
                if let Some(digits) = digits(number).filter(|digits| is_long(digits)) {
                    self.long.push(json!([self.path, digits]));
                }
            }
            Value::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    self.value(at.into(), value);
                }
            }
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
        self.path.pop();
    }

    fn members(&mut self, members: &Map<String, Value>) {
        for (name, value) in members {
            self.value(name.as_str().into(), value);
        }
    }
}

/// Of a number with neither a fraction nor an exponent.
fn digits(number: &Number) -> Option<String> {
    let text = number.to_string();
    (!text.contains(['.', 'e'])).then_some(text)
}

fn is_long(digits: &str) -> bool {
    let size = digits.trim_start_matches('-').parse::<u64>();
    size.map_or(true, |size| size > SAFE)
}
