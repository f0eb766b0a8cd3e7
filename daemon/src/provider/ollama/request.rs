//! The conversation as a body of Ollama's chat. What a model once wrote may be wrong; what is sent never is.

use super::super::Message;
use super::super::fit;
use super::super::settings::Thinking;
use super::super::vendor::Call;
use protocol::event::Image;
use protocol::tool::Definition;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Options>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [Definition],
}

/// A server cuts a conversation that does not fit without a word, so the window that people set is asked for.
#[derive(Serialize)]
struct Options {
    num_ctx: u64,
}

#[derive(Serialize)]
struct Wire<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: &'a Map<String, Value>,
}

pub(super) fn body(call: &Call<'_>, thinking: Option<Thinking>) -> Result<Vec<u8>, String> {
    let body = Body {
        model: call.model,
        messages: messages(call.request.messages),
        stream: true,
        // Unasked a model thinks when it can; asked, one that cannot is refused.
        think: thinking.map(|set| set != Thinking::Asked(false)),
        options: call.window.map(|num_ctx| Options { num_ctx }),
        tools: call.request.tools,
    };
    serde_json::to_vec(&body).map_err(|error| format!("cannot write the request: {error}"))
}

fn messages(messages: &[Message]) -> Vec<Wire<'_>> {
    let mut wire: Vec<Wire<'_>> = Vec::with_capacity(messages.len());
    // A result is known by its tool's name, which the message of the call has.
    let mut names: Vec<(&str, &str)> = Vec::new();
    for message in messages {
        match message {
            Message::System { content } if content.is_empty() => {}
            Message::System { content } => wire.push(said("system", content)),
            Message::User { content, images } => user(&mut wire, content, images),
            Message::Assistant {
                content,
                tool_calls,
                ..
            } => {
                if content.is_empty() && tool_calls.is_empty() {
                    continue;
                }
                let pairs = tool_calls.iter();
                names.extend(pairs.map(|call| (call.id.as_str(), call.name.as_str())));
                let calls = tool_calls.iter().map(|call| ToolCall {
                    id: &call.id,
                    function: Function {
                        name: fit::name(&call.name),
                        arguments: &call.arguments,
                    },
                });
                wire.push(Wire {
                    tool_calls: calls.collect(),
                    ..said("assistant", content)
                });
            }
            Message::Tool {
                tool_call_id,
                content,
            } => {
                let known = names.iter().rev().find(|(id, _)| id == tool_call_id);
                wire.push(Wire {
                    tool_name: known.map(|(_, name)| fit::name(name)),
                    tool_call_id: Some(tool_call_id),
                    ..said("tool", content)
                });
            }
        }
    }
    wire
}

/// A person's words; those in a row are one message, as many models' templates want it.
fn user<'a>(wire: &mut Vec<Wire<'a>>, content: &'a str, images: &'a [Image]) {
    let images = images.iter().map(|image| image.data.as_str());
    match wire.last_mut() {
        Some(last) if last.role == "user" => {
            let text = last.content.to_mut();
            text.push_str("\n\n");
            text.push_str(content);
            last.images.extend(images);
        }
        _ => wire.push(Wire {
            images: images.collect(),
            ..said("user", content)
        }),
    }
}

fn said<'a>(role: &'static str, content: &'a str) -> Wire<'a> {
    Wire {
        role,
        content: content.into(),
        images: Vec::new(),
        tool_calls: Vec::new(),
        tool_name: None,
        tool_call_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Request;
    use super::*;
    use serde_json::json;

    #[test]
    fn results_name_their_tool_and_the_window_is_asked_for() {
        let messages: Vec<Message> = serde_json::from_value(json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a"},
            {"role": "user", "content": "b", "images": [{"mime_type": "image/png", "data": "QQ=="}]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "name": "read", "arguments": {"path": "a"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{}"},
        ]))
        .unwrap();
        let request = Request {
            messages: &messages,
            tools: &[],
        };
        let call = Call {
            provider: "ollama",
            model: "m",
            window: Some(9),
            request: &request,
        };
        let sent: Value = serde_json::from_slice(&body(&call, None).unwrap()).unwrap();
        let expected = json!({"model": "m", "stream": true, "options": {"num_ctx": 9}, "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a\n\nb", "images": ["QQ=="]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "function": {"name": "read", "arguments": {"path": "a"}}}]},
            {"role": "tool", "content": "{}", "tool_name": "read", "tool_call_id": "c1"}]});
        assert_eq!(sent, expected);
    }
}
