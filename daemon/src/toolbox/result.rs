//! Result objects: the one shape of success and failure, and the one table of their texts.
//! Must never decide whether something failed for a reason that is not in the object.

use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// How deep arguments and results may be: what reads JSON stops at 128, and there is an event around them.
pub const DEEPEST: usize = 100;

/// The code of a failure that gives none.
pub const FAILED: &str = "failed";

/// What a failure is, to branch on, and where it arose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    pub code: Cow<'static, str>,
    pub origin: Origin,
}

/// Where a failure arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The arguments do not fit.
    Parameters,
    /// The tool, a hook around it, or whoever had to allow it.
    Handler,
    /// What the tool gave.
    Result,
    /// The way in which tools are presented.
    Presentation,
}

/// Why a call has no result of its own.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// No tool of that name; `near` is one that may have been meant.
    Unknown {
        name: String,
        available: Vec<String>,
        near: Option<String>,
        /// How it is reached, where it is there but not shown.
        way: Option<String>,
    },
    /// The arguments do not fit; the errors, joined.
    Invalid(String),
    /// A rule forbids it.
    Forbidden { tool: String },
    /// A person said no.
    Refused {
        tool: String,
        reason: Option<String>,
    },
    /// The question was withdrawn.
    Withdrawn { tool: String, why: String },
    /// The file became another while the question waited, so that what was agreed to is not what would happen.
    Changed { tool: String, path: String },
    /// The handler or a hook raised.
    Raised(String),
    /// The handler or a hook panicked.
    Panicked { what: String, detail: String },
    /// The call was cancelled.
    Cancelled,
    /// The start could not be recorded, so it did not happen.
    NotRecorded { tool: String, why: String },
    /// Tools that call tools that call tools.
    TooDeep { tool: String, limit: usize },
}

impl Failure {
    /// The text for the model.
    pub fn text(&self) -> String {
        match self {
            Self::Unknown {
                name,
                available,
                near,
                way,
            } => {
                let near = || near.as_ref().map(|near| format!(" Did you mean {near:?}?"));
                let way = way.as_ref().map(|way| format!(" {way}")).or_else(near);
                let available = available.join(", ");
                format!(
                    "unknown tool: {name:?}. Available: {available}.{}",
                    way.unwrap_or_default()
                )
            }
            Self::Invalid(errors) => errors.clone(),
            Self::Forbidden { tool } => format!("Permission denied: {tool}"),
            Self::Refused { tool, reason: None } => format!("User denied permission: {tool}"),
            Self::Refused {
                tool,
                reason: Some(reason),
            } => {
                format!("User denied permission: {tool}: {reason}")
            }
            Self::Withdrawn { tool, why } => {
                format!("the question about {tool} was withdrawn: {why}")
            }
            Self::Changed { tool, path } => format!(
                "cannot {tool} {path}: it was changed by somebody else while the question about this call waited, and \
                 nothing was written; read it and try again"
            ),
            Self::Raised(message) => message.clone(),
            Self::Panicked { what, detail } => format!("{what} failed: {detail}"),
            Self::Cancelled => "cancelled".to_owned(),
            Self::NotRecorded { tool, why } => format!("cannot record that {tool} starts: {why}"),
            Self::TooDeep { tool, limit } => {
                format!("cannot call {tool}: tools call each other more than {limit} deep")
            }
        }
    }

    /// To branch on, where the text is not one of the fixed ones.
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Cancelled => Some("cancelled"),
            Self::NotRecorded { .. } => Some("storage"),
            Self::Changed { .. } => Some("changed"),
            Self::Unknown { .. }
            | Self::Invalid(_)
            | Self::Forbidden { .. }
            | Self::Refused { .. }
            | Self::Withdrawn { .. }
            | Self::Raised(_)
            | Self::Panicked { .. }
            | Self::TooDeep { .. } => None,
        }
    }

    /// What a program branches on, whether the object says it or not.
    pub fn cause(&self) -> Cause {
        let (code, origin) = match self {
            Self::Unknown { .. } => ("unknown_tool", Origin::Presentation),
            Self::Invalid(_) => ("invalid_parameters", Origin::Parameters),
            Self::Forbidden { .. } | Self::Refused { .. } => ("denied", Origin::Handler),
            Self::Withdrawn { .. } => ("withdrawn", Origin::Handler),
            Self::Changed { .. } => ("changed", Origin::Handler),
            Self::Raised(_) | Self::Panicked { .. } => (FAILED, Origin::Handler),
            Self::Cancelled => ("cancelled", Origin::Handler),
            Self::NotRecorded { .. } => ("storage", Origin::Handler),
            Self::TooDeep { .. } => ("too_deep", Origin::Handler),
        };
        Cause {
            code: code.into(),
            origin,
        }
    }

    fn retryable(&self) -> bool {
        matches!(self, Self::NotRecorded { .. })
    }

    /// The whole result object.
    pub fn result(&self) -> Map<String, Value> {
        let mut result = Map::new();
        result.insert("error".to_owned(), Value::String(self.text()));
        if let Some(code) = self.code() {
            result.insert("code".to_owned(), json!(code));
        }
        if self.retryable() {
            result.insert("retryable".to_owned(), json!(true));
        }
        finish(result)
    }

    /// The result object of something that was raised while this call ran.
    pub fn result_of(&self, name: &str, arguments: &Map<String, Value>) -> Map<String, Value> {
        let mut result = self.result();
        result.insert("name".to_owned(), json!(name));
        result.insert("args".to_owned(), Value::Object(arguments.clone()));
        finish(result)
    }
}

/// Whether there is more than so many objects and arrays in each other.
pub fn is_deeper(value: &Value, most: usize) -> bool {
    let any = |mut values: &mut dyn Iterator<Item = &Value>| match most.checked_sub(1) {
        None => true,
        Some(left) => (&mut values).any(|value| is_deeper(value, left)),
    };
    match value {
        Value::Array(items) => any(&mut items.iter()),
        Value::Object(members) => any(&mut members.values()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Makes JSON texts of what is deeper, so that everybody can read the rest.
pub fn flatten(value: &mut Value, most: usize) {
    if let (0, Value::Array(_) | Value::Object(_)) = (most, &*value) {
        *value = Value::String(value.to_string());
        return;
    }
    let left = most.saturating_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| flatten(item, left)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| flatten(member, left)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A handler's object with `ok` as its last member: false when it has an `error`.
pub fn finish(mut result: Map<String, Value>) -> Map<String, Value> {
    result
        .values_mut()
        .for_each(|value| flatten(value, DEEPEST));
    let failed = result.get("error").is_some_and(|error| !error.is_null());
    result.shift_remove("ok");
    result.insert("ok".to_owned(), Value::Bool(!failed));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(deep: usize) -> Value {
        (0..deep).fold(json!(1), |inner, at| match at % 2 {
            0 => json!([inner]),
            _ => json!({"in": inner}),
        })
    }

    #[test]
    fn what_is_too_deep_is_found_and_becomes_text_while_the_rest_stays() {
        for deep in 0..12 {
            let mut value = nested(deep);
            assert_eq!(is_deeper(&value, 10), deep > 10, "{deep}");
            flatten(&mut value, 10);
            assert!(!is_deeper(&value, 10));
            assert_eq!(value == nested(deep), deep <= 10, "{deep}");
        }
        let mut value = json!({"a": [[1]], "b": 2});
        flatten(&mut value, 2);
        assert_eq!(value, json!({"a": ["[1]"], "b": 2}));
    }

    #[test]
    fn a_result_that_is_too_deep_can_still_be_read() {
        let result = finish(Map::from_iter([("x".to_owned(), nested(120))]));
        let text = Value::Object(result).to_string();
        let read: Value = serde_json::from_str(&text).unwrap();
        assert!(!is_deeper(&read, DEEPEST + 1));
        assert_eq!(read["ok"], true);
    }
}
