//! What went wrong in the vendor's own words, and whether trying again may mend it.

use super::stream::Peer;
use super::{ErrorClass, ProviderError};
use serde_json::Value;

/// Types and codes of errors that may be gone the next time.
const PASSING: &[&str] = &[
    "overloaded",
    "rate_limit",
    "server_error",
    "api_error",
    "internal",
    "timeout",
    "unavailable",
    "try_again",
];
/// Those that stay, whatever the status says.
const LASTING: &[&str] = &["insufficient_quota", "billing"];

/// How servers say that a conversation does not fit.
const TOO_LONG: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context window",
    "context size",
    "prompt is too long",
    "input is too long",
    "input token count",
    "too many tokens",
    "does not fit into the model's window",
    "reduce the length of",
];

pub(super) fn is_too_long(error: &ProviderError) -> bool {
    let may = match error.class {
        ErrorClass::Status { code, .. } => matches!(code, 400 | 413 | 422 | 500),
        ErrorClass::Reported { .. } | ErrorClass::Fatal => true,
        ErrorClass::Dropped | ErrorClass::Stalled => false,
    };
    let said = error.message.to_lowercase();
    may && TOO_LONG.iter().any(|words| said.contains(words))
}

/// The vendor's message in a body, if it is one of the known shapes.
pub(super) fn explain(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    Some(describe(&body))
}

/// An error event in a stream, or in the body of a success.
pub(super) fn reported(peer: &Peer, error: &Value) -> ProviderError {
    ProviderError {
        class: ErrorClass::Reported {
            retryable: is_passing(error),
        },
        message: format!("{} reports: {}", peer.name(), describe(error)),
    }
}

/// Where a person sets what was wrong.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// The key: a variable, or what stands for it.
    pub(super) key: String,
    /// The base URL.
    pub(super) base: String,
}

pub(super) fn page(peer: &Peer, hints: &Hints) -> ProviderError {
    let (name, base) = (peer.name(), &hints.base);
    ProviderError {
        class: ErrorClass::Fatal,
        message: format!(
            "{name} answered with a web page (text/html) where a model's answer belongs: check {base}"
        ),
    }
}

/// Adds what a person can do about it.
pub(super) fn with_hint(mut error: ProviderError, hints: &Hints) -> ProviderError {
    if LASTING.iter().any(|word| error.message.contains(word)) {
        error.class = ErrorClass::Fatal;
    }
    let ErrorClass::Status { code, .. } = error.class else {
        return error;
    };
    let Hints { key, base } = hints;
    error.message += &match code {
        401 | 403 => format!(": check {key}"),
        404 => format!(": check {base} and the model's name"),
        300..=399 => format!(": it redirects, so check {base}"),
        _ => String::new(),
    };
    error
}

/// `{error: {message, type, code}}`, `{error: "text"}`, `{message}`, `{detail}`, or the JSON as it is.
fn describe(body: &Value) -> String {
    let error = body
        .get("error")
        .filter(|error| !error.is_null())
        .unwrap_or(body);
    let said = [error, &error["message"], &error["detail"]];
    let Some(message) = said.iter().find_map(|value| value.as_str()) else {
        return error.to_string().chars().take(300).collect();
    };
    let kind = [&error["code"], &error["type"]];
    match kind.iter().find_map(|value| value.as_str()) {
        Some(kind) if !message.contains(kind) => format!("{message} ({kind})"),
        _ => message.to_owned(),
    }
}

fn is_passing(body: &Value) -> bool {
    let error = body
        .get("error")
        .filter(|error| error.is_object())
        .unwrap_or(body);
    let number = error["code"].as_u64().or_else(|| error["status"].as_u64());
    if let Some(code) = number {
        return matches!(code, 408 | 409 | 429 | 500..=599);
    }
    let words = ["type", "code"]
        .iter()
        .filter_map(|name| error[*name].as_str());
    let words: String = words.collect::<Vec<_>>().join(" ").to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| words.contains(word));
    has(PASSING) && !has(LASTING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn vendors_own_message_is_found_in_every_known_shape() {
        let told = |body: Value| explain(body.to_string().as_bytes()).unwrap();
        let full = json!({"error": {"message": "No such model", "type": "invalid_request_error", "code": null}});
        assert_eq!(told(full), "No such model (invalid_request_error)");
        assert_eq!(told(json!({"error": "plain"})), "plain");
        assert_eq!(told(json!({"object": "error", "message": "m"})), "m");
        assert_eq!(told(json!({"detail": "not found"})), "not found");
        assert_eq!(told(json!({"odd": 1})), "{\"odd\":1}");
        assert_eq!(explain(b"<html>"), None);
    }

    #[test]
    fn only_troubles_of_the_server_pass() {
        let of = |kind: &str| is_passing(&json!({"error": {"message": "m", "type": kind}}));
        for kind in [
            "overloaded_error",
            "server_error",
            "rate_limit_exceeded",
            "InternalServerError",
        ] {
            assert!(of(kind), "{kind}");
        }
        for kind in [
            "invalid_request_error",
            "insufficient_quota",
            "context_length_exceeded",
            "",
        ] {
            assert!(!of(kind), "{kind}");
        }
        assert!(is_passing(&json!({"error": {"message": "m", "code": 502}})));
        assert!(!is_passing(
            &json!({"error": {"message": "m", "code": 400}})
        ));
    }

    #[test]
    fn conversation_that_does_not_fit_is_known_by_the_words_of_each_server() {
        let of = |code, message: &str| {
            let class = ErrorClass::Status {
                code,
                retry_after_ms: None,
            };
            let message = message.to_owned();
            is_too_long(&ProviderError { class, message })
        };
        for said in [
            "This model's maximum context length is 8192 tokens (context_length_exceeded)",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "the request exceeds the available context size, try increasing it",
            "The input token count (1200000) exceeds the maximum number of tokens allowed",
            "Your input exceeds the context window of this model",
        ] {
            assert!(of(400, said), "{said}");
        }
        assert!(!of(401, "no key for this context window"));
        assert!(!of(400, "max_tokens is too large"));
    }

    #[test]
    fn exhausted_quota_is_not_tried_again() {
        let hints = Hints {
            key: "K".to_owned(),
            base: "B".to_owned(),
        };
        let error = ProviderError {
            class: ErrorClass::Status {
                code: 429,
                retry_after_ms: None,
            },
            message: "no money (insufficient_quota)".to_owned(),
        };
        let error = with_hint(error, &hints);
        assert_eq!(error.class, ErrorClass::Fatal);
    }
}
