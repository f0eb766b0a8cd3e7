//! Failures as a presentation hands them on: to a model the one shape of results, to a program something to branch on.
//! Must never change what a tool's own failure says.

use crate::toolbox::gate::Ran;
use crate::toolbox::result::{self, Cause, FAILED, Origin, finish};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Why a call failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// To branch on: `unknown_tool`, `invalid_parameters`, `denied`, `cancelled`, ..., or the tool's own.
    pub code: Cow<'static, str>,
    /// For the model.
    pub message: String,
    /// Whether the same call may succeed later.
    pub retryable: bool,
    pub origin: Origin,
    /// What the tool adds for programs.
    pub details: Option<Box<Value>>,
}

/// A failure that no tool gave, such as that of a name that is no tool's. It is not worth trying again.
pub fn failure(code: &'static str, message: impl Into<String>) -> Failure {
    Failure {
        code: code.into(),
        message: message.into(),
        retryable: false,
        origin: Origin::Presentation,
        details: None,
    }
}

impl Failure {
    /// What a call failed with, if it did.
    pub fn of(ran: &Ran) -> Option<Self> {
        let result = &ran.result;
        if result.get("ok") == Some(&Value::Bool(true)) {
            return None;
        }
        let message = match result.get("error") {
            Some(Value::String(message)) => message.clone(),
            Some(other) => other.to_string(),
            None => "it failed and does not say why".to_owned(),
        };
        let own = || {
            result
                .get("code")
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let (code, origin) = match &ran.cause {
            Some(cause) => (cause.code.clone(), cause.origin),
            None => (own().map_or(FAILED.into(), Cow::Owned), Origin::Handler),
        };
        Some(Self {
            code,
            message,
            retryable: result.get("retryable") == Some(&Value::Bool(true)),
            origin,
            details: details(ran).map(Box::new),
        })
    }

    /// Arguments of a presentation's own tool that do not fit.
    pub fn parameters(errors: impl Into<String>) -> Self {
        Self {
            code: "invalid_parameters".into(),
            origin: Origin::Parameters,
            ..failure("", errors)
        }
    }

    /// A tool that is there and not shown.
    pub(super) fn hidden(mut unknown: result::Failure, how: String) -> Self {
        if let result::Failure::Unknown { way, .. } = &mut unknown {
            *way = Some(how);
        }
        failure("unknown_tool", unknown.text())
    }

    pub(super) fn not_recorded(tool: &str, why: &str) -> Self {
        let (tool, why) = (tool.to_owned(), why.to_owned());
        let failed = result::Failure::NotRecorded { tool, why };
        Self {
            retryable: true,
            origin: failed.cause().origin,
            ..failure("storage", failed.text())
        }
    }

    /// As a model reads it. Fields that say nothing are left out.
    pub fn result(&self) -> Map<String, Value> {
        let mut result = Map::from_iter([("error".to_owned(), json!(self.message))]);
        // Wrong arguments are told as the gate tells them, without more.
        if self.origin != Origin::Parameters {
            result.insert("code".to_owned(), json!(self.code));
        }
        if self.retryable {
            result.insert("retryable".to_owned(), json!(true));
        }
        if let Some(details) = &self.details {
            result.insert("details".to_owned(), Value::clone(details));
        }
        finish(result)
    }

    /// As the end of a call.
    pub fn ran(self) -> Ran {
        Ran {
            result: self.result(),
            ms: 0,
            cause: Some(Cause {
                code: self.code,
                origin: self.origin,
            }),
        }
    }
}

/// What a failed tool adds to its message: what it calls so, or all else that it gave (what a process printed, say).
fn details(ran: &Ran) -> Option<Value> {
    const SAID: [&str; 4] = ["error", "code", "retryable", "ok"];
    // The gate names the call, which whoever made it knows.
    const CALL: [&str; 2] = ["name", "args"];
    let result = &ran.result;
    if let Some(details) = result.get("details") {
        return Some(details.clone());
    }
    let rest = result
        .iter()
        .filter(|(name, _)| !SAID.contains(&name.as_str()))
        .filter(|(name, _)| ran.cause.is_none() || !CALL.contains(&name.as_str()));
    let rest: Map<String, Value> = rest
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (!rest.is_empty()).then_some(Value::Object(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_of_no_tool_says_its_code_and_is_not_worth_trying_again() {
        let failed = failure("unknown_tool", "no tool is named \"x\"");
        assert!(!failed.retryable);
        let shown = json!({"error": "no tool is named \"x\"", "code": "unknown_tool", "ok": false});
        assert_eq!(Value::Object(failed.result()), shown);
        assert_eq!(Failure::of(&failed.clone().ran()), Some(failed));
    }

    #[test]
    fn a_tools_own_failure_is_read_whole() {
        let result = json!({"error": "no such page", "code": "not_found", "retryable": true, "details": {"page": 7}, "ok": false});
        let ran = Ran {
            result: result.as_object().cloned().unwrap_or_default(),
            ms: 3,
            cause: None,
        };
        let read = Failure::of(&ran).expect("it failed");
        assert_eq!((&*read.code, read.origin), ("not_found", Origin::Handler));
        assert!(read.retryable);
        assert_eq!(read.details.as_deref(), Some(&json!({"page": 7})));
    }

    #[test]
    fn what_a_failed_tool_gave_beside_its_message_is_kept() {
        let result =
            json!({"error": "exit status 3", "exit_status": 3, "output": "half\n", "ok": false});
        let ran = Ran {
            result: result.as_object().cloned().unwrap_or_default(),
            ms: 3,
            cause: None,
        };
        let details = json!({"exit_status": 3, "output": "half\n"});
        assert_eq!(
            Failure::of(&ran).and_then(|failed| failed.details),
            Some(Box::new(details))
        );
    }
}
