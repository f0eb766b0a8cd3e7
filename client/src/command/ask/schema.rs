//! A JSON Schema that a reply must fit: what the model is told of it, and whether a reply does. Must never let through
//! what does not validate.

mod check;

use crate::error::Failure;
use serde_json::Value;
use std::path::Path;

/// How many faults the model is told at once.
const FAULTS: usize = 5;

/// A schema and how it stands in its file.
#[derive(Debug)]
pub(super) struct Schema {
    schema: Value,
    text: String,
}

impl Schema {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let cannot = |error: &dyn std::fmt::Display| {
            Failure::usage(format!("cannot use the schema {}: {error}", path.display()))
        };
        let text = std::fs::read_to_string(path).map_err(|error| cannot(&error))?;
        Self::parse(text).map_err(|error| cannot(&error))
    }

    fn parse(text: String) -> Result<Self, String> {
        let schema: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match check::unknown(&schema).or_else(|| check::dangling(&schema)) {
            Some(what) => Err(what),
            None => Ok(Self { schema, text }),
        }
    }

    /// What is asked, and in which form the answer is wanted.
    pub(super) fn prompt(&self, text: &str) -> String {
        format!(
            "{text}\n\nAnswer with one JSON value that this JSON Schema accepts, and with nothing else:\n\n{}",
            self.text.trim_end()
        )
    }

    /// The next prompt after a reply that did not fit.
    pub(super) fn again(faults: &str) -> String {
        format!(
            "That answer does not fit the schema: {faults}\n\nAnswer again, with the corrected JSON value and nothing else."
        )
    }

    /// The value that a reply is, or what is wrong with it.
    pub(super) fn check(&self, reply: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(unfenced(reply))
            .map_err(|error| format!("it is no JSON: {error}"))?;
        let mut faults = check::faults(&self.schema, &value);
        faults.truncate(FAULTS);
        match faults.is_empty() {
            true => Ok(value),
            false => Err(faults.join("; ")),
        }
    }
}

/// A reply without the fence that models put around JSON, and without the words around a fence that is the only one.
fn unfenced(reply: &str) -> &str {
    let reply = reply.trim();
    let fences: Vec<usize> = lines_at(reply)
        .filter(|(_, line)| line.trim_start().starts_with("```"))
        .map(|(at, _)| at)
        .collect();
    let [open, close] = fences[..] else {
        return reply;
    };
    reply[open..close]
        .split_once('\n')
        .map_or(reply, |(_, body)| body.trim())
}

/// Lines, and where they begin.
fn lines_at(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    text.split_inclusive('\n').map(move |line| {
        let begins = at;
        at += line.len();
        (begins, line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Schema {
        let schema =
            json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        Schema::parse(schema.to_string()).unwrap()
    }

    #[test]
    fn a_reply_fits_bare_or_fenced() {
        assert_eq!(schema().check("{\"n\": 1}"), Ok(json!({"n": 1})));
        assert_eq!(
            schema().check("```json\n{\"n\": 1}\n```\n"),
            Ok(json!({"n": 1}))
        );
        assert_eq!(
            schema().check("Here it is:\n\n```\n{\"n\": 1}\n```\nAnything else?"),
            Ok(json!({"n": 1}))
        );
        let text = Schema::parse("{\"type\": \"string\"}".into()).unwrap();
        assert_eq!(text.check("\"a ``` b\""), Ok(json!("a ``` b")));
        let two = "```\n{\"n\": 1}\n```\nor\n```\n{\"n\": 2}\n```";
        assert!(schema().check(two).is_err(), "which of them is not known");
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let fault = schema().check("{\"n\": \"x\"}").unwrap_err();
        assert!(fault.contains("/n"), "{fault}");
        assert!(schema().check("{}").unwrap_err().contains("required"));
        assert!(
            schema()
                .check("sure: {}")
                .unwrap_err()
                .starts_with("it is no JSON")
        );
    }

    #[test]
    fn a_file_that_is_no_schema_is_a_slip_of_the_command_line() {
        assert!(Schema::parse("{".into()).is_err());
        assert!(Schema::parse("{\"type\": 3}".into()).is_err());
        for nowhere in ["#/$defs/none", "other.json#/x", "#anchor"] {
            let schema = json!({"items": {"$ref": nowhere}});
            assert!(Schema::parse(schema.to_string()).is_err(), "{nowhere}");
        }
        assert!(Schema::parse("{\"$ref\": \"#\"}".into()).is_ok());
    }
}
