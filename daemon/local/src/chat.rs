//! The daemon's conversation in the form that models' templates take. Must never drop what was said.

use crate::template::Template;
use crate::tokenizer::Tokenizer;
use serde_json::{Map, Value, json};

/// The prompt's text.
pub fn prompt(
    messages: &[Value],
    tools: &[Value],
    template: &Template,
    tokenizer: &Tokenizer,
) -> Result<String, String> {
    let messages: Vec<Value> = match template.knows_tools {
        true => with_tools(messages, tokenizer),
        false => without_tools(messages, tokenizer),
    };
    let tools = if template.knows_tools { tools } else { &[] };
    let begin = tokenizer.name(tokenizer.begin);
    let end = tokenizer.name(tokenizer.end());
    let first = template.render(&messages, tools, begin, end);
    first.or_else(|why| {
        // Some templates know no system prompt: it then opens what the user says.
        let merged = merged(&messages).ok_or(why)?;
        template.render(&merged, tools, begin, end)
    })
}

fn text(message: &Value, name: &str) -> String {
    message[name].as_str().unwrap_or_default().to_owned()
}

fn said(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Calls in the shape of OpenAI's functions, and results with the name of their tool.
fn with_tools(messages: &[Value], tokenizer: &Tokenizer) -> Vec<Value> {
    let mut names = Map::new();
    let mut out = Vec::new();
    for message in messages {
        let role = text(message, "role");
        let content = tokenizer.harmless(&text(message, "content"));
        let mut new = said(&role, &content);
        let calls = calls(message);
        if !calls.is_empty() {
            let shape = |(id, name, arguments): &(String, String, Value)| {
                names.insert(id.clone(), name.clone().into());
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
            };
            new["tool_calls"] = calls.iter().map(shape).collect();
        }
        if role == "tool" {
            let id = text(message, "tool_call_id");
            new["name"] = names.get(&id).cloned().unwrap_or_default();
            new["tool_call_id"] = id.into();
        }
        out.push(new);
    }
    out
}

/// For models that know no tools: earlier calls and their results are told in words.
fn without_tools(messages: &[Value], tokenizer: &Tokenizer) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for message in messages {
        let mut content = tokenizer.harmless(&text(message, "content"));
        for (_, name, arguments) in calls(message) {
            let call = tokenizer.harmless(&format!("(used the tool {name} with {arguments})"));
            content.push_str(if content.is_empty() { "" } else { "\n" });
            content.push_str(&call);
        }
        let role = text(message, "role");
        match role.as_str() {
            "tool" => out.push(said("user", &format!("The tool's result: {content}"))),
            _ => out.push(said(&role, &content)),
        }
    }
    out
}

fn calls(message: &Value) -> Vec<(String, String, Value)> {
    let calls = message["tool_calls"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    let call = |call: &Value| {
        (
            text(call, "id"),
            text(call, "name"),
            call["arguments"].clone(),
        )
    };
    calls.iter().map(call).collect()
}

/// The same without a system message, if there was one before a user's.
fn merged(messages: &[Value]) -> Option<Vec<Value>> {
    let (system, rest) = messages
        .split_first()
        .filter(|(first, _)| first["role"] == "system")?;
    let mut rest = rest.to_vec();
    let user = rest.first_mut().filter(|first| first["role"] == "user")?;
    let both = format!("{}\n\n{}", text(system, "content"), text(user, "content"));
    user["content"] = both.into();
    Some(rest)
}
