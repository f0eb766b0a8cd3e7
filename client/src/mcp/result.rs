//! Tools and results in the protocol's shapes. Must never call a failure a success.

use crate::error::Failure;
use protocol::tool::{Policy, ToolInfo, ToolList};
use serde_json::{Map, Value, json};

/// The tools, without those that would always be refused.
pub(super) fn tools(list: &ToolList) -> Value {
    let offered = list
        .tools
        .iter()
        .filter(|tool| tool.approval != Policy::Deny);
    let shown = offered.map(|tool: &ToolInfo| {
        let function = &tool.definition.function;
        json!({
            "name": function.name,
            "description": function.description,
            "inputSchema": function.parameters,
        })
    });
    shown.collect()
}

/// A lone text is itself, everything else is JSON.
pub(super) fn of(result: Result<Map<String, Value>, Failure>) -> Value {
    let mut result = match result {
        Ok(result) => result,
        // The model reads it, and has no other way to know.
        Err(failure) => return said(&told(&failure), true),
    };
    let ok = result.remove("ok") == Some(Value::Bool(true));
    // What a failed call has done already stands beside its error, and has to be known to whoever would try again.
    // The name and arguments are those of the request.
    let said_already = ["error", "code", "retryable", "name", "args"];
    let beside = |name: &String| !said_already.contains(&name.as_str());
    if let (false, Some(Value::String(error)), false) =
        (ok, result.get("error"), result.keys().any(beside))
    {
        return said(error, true);
    }
    if let (1, Some(Value::String(text))) = (result.len(), result.get("content")) {
        return said(text, !ok);
    }
    let value = Value::Object(result);
    let mut whole = said(&value.to_string(), !ok);
    whole["structuredContent"] = value;
    whole
}

fn told(failure: &Failure) -> String {
    match &failure.hint {
        Some(hint) if failure.is_disconnect() => format!("{}: {hint}", failure.message),
        _ => failure.message.clone(),
    }
}

fn said(text: &str, failed: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": failed})
}

#[cfg(test)]
mod tests {
    use super::of;
    use serde_json::{Value, json};

    fn check(result: Value, text: &str, failed: bool) -> Value {
        let shown = of(Ok(result.as_object().unwrap().clone()));
        assert_eq!(
            shown["content"],
            json!([{"type": "text", "text": text}]),
            "{result}"
        );
        assert_eq!(shown["isError"], failed, "{result}");
        shown["structuredContent"].clone()
    }

    #[test]
    fn results_keep_their_text_their_structure_and_their_failure() {
        assert_eq!(
            check(json!({"content": "x", "ok": true}), "x", false),
            Value::Null
        );
        assert_eq!(
            check(json!({"error": "no", "code": "x", "ok": false}), "no", true),
            Value::Null
        );
        let program = json!({"error": "no", "code": "thrown", "calls": [{"tool": "list"}]});
        let failed = of(Ok(program.as_object().unwrap().clone()));
        assert_eq!(
            (&failed["structuredContent"], &failed["isError"]),
            (&program, &json!(true))
        );
        let both = json!({"exit_status": 1, "content": "x"});
        let structured = check(
            json!({"exit_status": 1, "content": "x", "ok": true}),
            "{\"exit_status\":1,\"content\":\"x\"}",
            false,
        );
        assert_eq!(structured, both);
        check(json!({}), "{}", true);
    }
}
