//! Each vendor's rules for a request, as strict as its documents are: the first breach is told.

use serde_json::Value;
use std::collections::HashSet;

type Check = Result<(), String>;

/// What a server of the chat interface insists on beyond the rest.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Strict {
    pub(super) nine_characters: bool,
    pub(super) no_user_after_tool: bool,
    pub(super) reasoning_with_calls: bool,
    pub(super) signature_with_calls: bool,
}

fn ensure(holds: bool, rule: &str, at: &Value) -> Check {
    match holds {
        true => Ok(()),
        false => Err(format!("{rule}: {at}")),
    }
}

fn is_name(value: &Value) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name = value.as_str().unwrap_or_default();
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn chat(body: &Value, strict: Strict) -> Check {
    ensure(
        body["model"].is_string() && body["stream"] == true,
        "model and stream",
        body,
    )?;
    let mut waiting: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    let mut last = "";
    for (n, message) in list(&body["messages"]).iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" {
            ensure(
                waiting.is_empty(),
                "every call has its result right behind it",
                message,
            )?;
        }
        match role {
            "system" => ensure(n == 0, "the system prompt is first", message)?,
            "user" => {
                ensure(last != "user", "no two user messages in a row", message)?;
                let after_tool = strict.no_user_after_tool && last == "tool";
                ensure(!after_tool, "no user message behind a tool's", message)?;
                let content = &message["content"];
                ensure(
                    content.is_string() || !list(content).is_empty(),
                    "a user message has content",
                    message,
                )?;
            }
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                let content = message["content"].as_str();
                ensure(
                    content.is_some() || message["content"].is_null(),
                    "content is text or null",
                    message,
                )?;
                ensure(
                    content != Some("") && (content.is_some() || !calls.is_empty()),
                    "no empty assistant message",
                    message,
                )?;
                ensure(
                    message.get("tool_calls").is_none_or(|_| !calls.is_empty()),
                    "no empty list of calls",
                    message,
                )?;
                for call in calls {
                    call_of_chat(call, strict)?;
                    let id = call["id"].as_str().unwrap_or_default();
                    ensure(ids.insert(id), "ids are unique", call)?;
                    waiting.push(id);
                }
                if strict.reasoning_with_calls && !calls.is_empty() {
                    ensure(
                        message["reasoning_content"].is_string(),
                        "reasoning goes with calls",
                        message,
                    )?;
                }
                if strict.signature_with_calls && !calls.is_empty() {
                    let signature = &calls[0]["extra_content"]["google"]["thought_signature"];
                    ensure(signature.is_string(), "the first call is signed", message)?;
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let known = waiting.iter().position(|waits| *waits == id);
                let known = known.ok_or_else(|| format!("a result has its call: {message}"))?;
                waiting.remove(known);
                ensure(message["content"].is_string(), "a result is text", message)?;
            }
            _ => return Err(format!("roles are known: {message}")),
        }
        last = role;
    }
    ensure(waiting.is_empty(), "every call has its result", body)?;
    ensure(
        last == "user" || last == "tool",
        "it is the model's turn",
        body,
    )
}

fn call_of_chat(call: &Value, strict: Strict) -> Check {
    let id = call["id"].as_str().unwrap_or_default();
    ensure(
        !id.is_empty() && id.chars().count() <= 40,
        "ids have 1 to 40 characters",
        call,
    )?;
    let nine = id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    ensure(
        nine || !strict.nine_characters,
        "ids are nine letters and digits",
        call,
    )?;
    ensure(
        call["type"] == "function" && is_name(&call["function"]["name"]),
        "a function's name",
        call,
    )?;
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    ensure(
        arguments.is_object(),
        "arguments are an object as text",
        call,
    )
}

/// `provider` is whose signed blocks may be there: those of the histories say whose they are.
pub(super) fn messages(body: &Value, provider: &str) -> Check {
    let thinking = &body["thinking"];
    if let Some(budget) = thinking["budget_tokens"].as_u64() {
        let most = body["max_tokens"].as_u64().unwrap_or(0);
        ensure(budget >= 1_024 && budget < most, "the budget fits", body)?;
    }
    let mut marks = count_marks(&body["system"]);
    let turns = list(&body["messages"]);
    let mut waiting: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (n, turn) in turns.iter().enumerate() {
        let expected = if n % 2 == 0 { "user" } else { "assistant" };
        ensure(
            turn["role"] == expected,
            "roles alternate, a user's first",
            turn,
        )?;
        let content = list(&turn["content"]);
        ensure(!content.is_empty(), "a message has content", turn)?;
        marks += count_marks(&turn["content"]);
        let results = content
            .iter()
            .take_while(|block| block["type"] == "tool_result");
        let mut found: Vec<&str> = Vec::new();
        for result in results {
            found.push(result["tool_use_id"].as_str().unwrap_or_default());
        }
        found.sort_unstable();
        waiting.sort_unstable();
        ensure(
            found == waiting,
            "each call has its one result first in the next message",
            turn,
        )?;
        waiting.clear();
        let rest = &content[found.len()..];
        for block in rest {
            match block["type"].as_str().unwrap_or_default() {
                "text" => {
                    let text = block["text"].as_str().unwrap_or_default();
                    ensure(!text.trim().is_empty(), "text is not blank", turn)?;
                }
                "image" => ensure(expected == "user", "images are a user's", turn)?,
                "tool_use" => {
                    ensure(
                        expected == "assistant" && block["input"].is_object(),
                        "a call",
                        turn,
                    )?;
                    let id = block["id"].as_str().unwrap_or_default();
                    ensure(
                        is_name(&block["id"]) && is_name(&block["name"]),
                        "ids and names",
                        turn,
                    )?;
                    ensure(ids.insert(id), "ids are unique", turn)?;
                    waiting.push(id);
                }
                "thinking" => {
                    ensure(expected == "assistant", "thinking is the model's", turn)?;
                    ensure(
                        block["signature"] == provider,
                        "signed by this provider",
                        turn,
                    )?;
                    ensure(
                        block.get("cache_control").is_none(),
                        "thinking has no mark",
                        turn,
                    )?;
                }
                other => return Err(format!("block {other:?} is known: {turn}")),
            }
        }
    }
    ensure(marks <= 4, "at most four marks", body)?;
    ensure(turns.len() % 2 == 1, "it is the model's turn", body)?;
    match thinking["type"] == "enabled" {
        true => begun_by_thought(turns),
        false => Ok(()),
    }
}

/// With a budget of thinking, the running turn's messages with calls begin with what was thought.
fn begun_by_thought(turns: &[Value]) -> Check {
    let is_prompt = |turn: &Value| {
        let mut blocks = list(&turn["content"]).iter();
        turn["role"] == "user"
            && blocks.any(|block| block["type"] == "text" || block["type"] == "image")
    };
    let since = turns.iter().rposition(is_prompt).unwrap_or(0);
    for turn in turns[since..]
        .iter()
        .filter(|turn| turn["role"] == "assistant")
    {
        let content = list(&turn["content"]);
        let calls = content.iter().any(|block| block["type"] == "tool_use");
        ensure(
            !calls || content.iter().any(|block| block["type"] == "thinking"),
            "a call follows its thought",
            turn,
        )?;
    }
    Ok(())
}

fn count_marks(blocks: &Value) -> usize {
    let marked = list(blocks).iter();
    marked
        .filter(|block| block.get("cache_control").is_some())
        .count()
}

pub(super) fn responses(body: &Value, provider: &str) -> Check {
    ensure(body["store"] == false, "nothing is stored", body)?;
    let mut waiting = HashSet::new();
    let mut ids = HashSet::new();
    let input = list(&body["input"]);
    for (n, item) in input.iter().enumerate() {
        let call_id = || item["call_id"].as_str().unwrap_or_default().to_owned();
        match item["type"].as_str().unwrap_or_default() {
            "message" => {
                let part = match item["role"].as_str() {
                    Some("user") => ["input_text", "input_image"],
                    Some("assistant") => ["output_text", "output_text"],
                    _ => return Err(format!("roles are known: {item}")),
                };
                let content = list(&item["content"]);
                ensure(!content.is_empty(), "a message has content", item)?;
                for block in content {
                    let kind = block["type"].as_str().unwrap_or_default();
                    ensure(part.contains(&kind), "content fits its role", item)?;
                }
            }
            "function_call" => {
                ensure(is_name(&item["name"]), "names", item)?;
                let id = call_id();
                ensure(
                    !id.is_empty() && id.chars().count() <= 64,
                    "ids have 1 to 64 characters",
                    item,
                )?;
                ensure(ids.insert(id.clone()), "ids are unique", item)?;
                let arguments = item["arguments"].as_str().unwrap_or_default();
                let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
                ensure(
                    arguments.is_object(),
                    "arguments are an object as text",
                    item,
                )?;
                waiting.insert(id);
            }
            "function_call_output" => {
                ensure(waiting.remove(&call_id()), "a result has its call", item)?;
                ensure(item["output"].is_string(), "a result is text", item)?;
            }
            "reasoning" => {
                ensure(
                    item["encrypted_content"] == provider,
                    "of this provider",
                    item,
                )?;
                let follows = input[n + 1..]
                    .iter()
                    .find(|item| item["type"] != "reasoning");
                let kind = follows.map_or("", |item| item["type"].as_str().unwrap_or_default());
                ensure(
                    kind == "function_call" || kind == "message",
                    "something follows reasoning",
                    item,
                )?;
            }
            other => return Err(format!("item {other:?} is known: {item}")),
        }
    }
    ensure(waiting.is_empty(), "every call has its result", body)
}

pub(super) fn ollama(body: &Value) -> Check {
    let mut last = "";
    for message in list(&body["messages"]) {
        let role = message["role"].as_str().unwrap_or_default();
        ensure(message["content"].is_string(), "content is text", message)?;
        match role {
            "system" => ensure(last.is_empty(), "the system prompt is first", message)?,
            "user" => ensure(last != "user", "no two user messages in a row", message)?,
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                ensure(
                    message["content"] != "" || !calls.is_empty(),
                    "no empty message",
                    message,
                )?;
                for call in calls {
                    let function = &call["function"];
                    ensure(
                        is_name(&function["name"]) && function["arguments"].is_object(),
                        "a call",
                        message,
                    )?;
                }
            }
            "tool" => {
                ensure(
                    last == "assistant" || last == "tool",
                    "a result follows its call",
                    message,
                )?;
                ensure(
                    is_name(&message["tool_name"]),
                    "a result names its tool",
                    message,
                )?;
            }
            _ => return Err(format!("roles are known: {message}")),
        }
        last = role;
    }
    ensure(
        last == "user" || last == "tool",
        "it is the model's turn",
        body,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A checker that takes anything would make the histories a test that cannot fail.
    #[test]
    fn breaches_are_found() {
        let of = |messages: Value| json!({"model": "m", "stream": true, "messages": messages});
        let call = json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}]});
        let user = json!({"role": "user", "content": "u"});
        let result = json!({"role": "tool", "tool_call_id": "c", "content": "{}"});
        let strict = Strict::default();
        assert_eq!(chat(&of(json!([user, call, result])), strict), Ok(()));
        for bad in [
            json!([user, user]),
            json!([user, call, user]),
            json!([user, result]),
            json!([user, {"role": "assistant", "content": ""}, user]),
            json!([call, result, call, result]),
        ] {
            assert!(chat(&of(bad.clone()), strict).is_err(), "{bad}");
        }
        let all = Strict {
            nine_characters: true,
            no_user_after_tool: true,
            reasoning_with_calls: true,
            signature_with_calls: true,
        };
        assert!(chat(&of(json!([user, call, result])), all).is_err());

        let text = |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
        let used = json!({"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "t", "input": {}}]});
        let thought = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "", "signature": "other"}, {"type": "text", "text": "a"}]});
        for bad in [
            json!([text("assistant", "a")]),
            json!([text("user", " ")]),
            json!([text("user", "a"), text("user", "b")]),
            json!([text("user", "a"), used, text("user", "b")]),
            json!([text("user", "a"), thought, text("user", "b")]),
        ] {
            let body = json!({"max_tokens": 9, "messages": bad});
            assert!(messages(&body, "me").is_err(), "{bad}");
        }
        for bad in [
            json!([{"type": "function_call", "call_id": "c", "name": "t", "arguments": "{}"}]),
            json!([{"type": "function_call_output", "call_id": "c", "output": ""}]),
            json!([{"type": "reasoning", "encrypted_content": "me"}]),
        ] {
            let body = json!({"store": false, "input": bad});
            assert!(responses(&body, "me").is_err(), "{bad}");
        }
        let lonely = json!({"messages": [user, {"role": "tool", "content": "{}"}]});
        assert!(ollama(&lonely).is_err());
    }
}
