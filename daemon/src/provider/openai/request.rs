//! The conversation as a chat completion's body. What a model once wrote may be wrong; what is sent never is.

use super::super::{Message, Request, ToolCall};
use protocol::event::Image;
use protocol::tool::Definition;
use serde::Serialize;
use std::borrow::Cow;

/// The longest id of a call that the vendor takes.
const ID: usize = 40;
/// The longest name of a function that the vendor takes.
const NAME: usize = 64;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [Definition],
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Wire<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

pub(super) fn body(model: &str, request: &Request<'_>) -> Result<Vec<u8>, String> {
    let body = Body {
        model,
        messages: messages(request.messages),
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        tools: request.tools,
    };
    serde_json::to_vec(&body).map_err(|error| format!("cannot write the request: {error}"))
}

fn messages(messages: &[Message]) -> Vec<Wire<'_>> {
    let mut wire = Vec::with_capacity(messages.len());
    for message in messages {
        match (wire.last_mut(), message) {
            (Some(Wire::User { content: before }), Message::User { content, images }) => {
                join(before, content, images);
            }
            _ => wire.extend(translate(message)),
        }
    }
    wire
}

/// `None` for a message that says nothing.
fn translate(message: &Message) -> Option<Wire<'_>> {
    Some(match message {
        Message::System { content } if content.is_empty() => return None,
        Message::System { content } => Wire::System { content },
        Message::User { content, images } if images.is_empty() => Wire::User {
            content: Content::Text(content.into()),
        },
        Message::User { content, images } => Wire::User {
            content: Content::Parts(parts(content.into(), images)),
        },
        Message::Assistant {
            content,
            tool_calls,
            ..
        } => {
            if content.is_empty() && tool_calls.is_empty() {
                return None;
            }
            Wire::Assistant {
                content: Some(content.as_str()).filter(|content| !content.is_empty()),
                tool_calls: tool_calls.iter().map(call).collect(),
            }
        }
        Message::Tool {
            tool_call_id,
            content,
        } => Wire::Tool {
            tool_call_id: id(tool_call_id),
            content,
        },
    })
}

/// Two user messages in a row become one: many models' templates want the roles to alternate.
fn join<'a>(before: &mut Content<'a>, content: &'a str, images: &[Image]) {
    match before {
        Content::Text(text) if images.is_empty() => {
            let text = text.to_mut();
            text.push_str("\n\n");
            text.push_str(content);
        }
        Content::Text(text) => {
            let mut all = parts(std::mem::take(text), &[]);
            all.extend(parts(content.into(), images));
            *before = Content::Parts(all);
        }
        Content::Parts(all) => all.extend(parts(content.into(), images)),
    }
}

fn parts<'a>(text: Cow<'a, str>, images: &[Image]) -> Vec<Part<'a>> {
    let text = Some(text).filter(|text| !text.is_empty());
    let text = text.map(|text| Part::Text { text });
    let images = images.iter().map(|image| Part::ImageUrl {
        image_url: ImageUrl {
            url: format!("data:{};base64,{}", image.mime_type, image.data),
        },
    });
    text.into_iter().chain(images).collect()
}

fn call(call: &ToolCall) -> Call<'_> {
    Call {
        id: id(&call.id),
        kind: "function",
        function: Function {
            name: name(&call.name),
            arguments: serde_json::to_string(&call.arguments)
                .expect("a JSON object has string keys only"),
        },
    }
}

/// The vendor refuses longer ones, which another provider may have given; their ends differ most.
fn id(id: &str) -> Cow<'_, str> {
    let length = id.chars().count();
    match length > ID {
        true => id.chars().skip(length - ID).collect::<String>().into(),
        false => id.into(),
    }
}

/// A model may have called a tool by a name that no tool can have: refused now, that would end the session for good.
fn name(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.len() <= NAME && name.chars().all(fits) {
        return name.into();
    }
    let fitting = name.chars().map(|c| if fits(c) { c } else { '_' });
    let fitting: String = fitting.take(NAME).collect();
    match fitting.is_empty() {
        true => "unnamed".into(),
        false => fitting.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sent(conversation: Value) -> Value {
        let conversation: Vec<Message> = serde_json::from_value(conversation).unwrap();
        serde_json::to_value(messages(&conversation)).unwrap()
    }

    #[test]
    fn tool_round_is_sent_in_the_vendors_shape() {
        let conversation = json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c1", "name": "read", "arguments": {"path": "a"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{\"ok\":true}"},
            {"role": "assistant", "content": "a"},
        ]);
        let wire = json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{\"ok\":true}"},
            {"role": "assistant", "content": "a"},
        ]);
        assert_eq!(sent(conversation), wire);
    }

    #[test]
    fn empty_messages_are_left_out_and_user_messages_in_a_row_are_joined() {
        let conversation = json!([
            {"role": "system", "content": ""},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": ""},
            {"role": "user", "content": "b"},
            {"role": "user", "content": "", "images": [{"mime_type": "image/png", "data": "QQ=="}]},
            {"role": "user", "content": "c"},
        ]);
        let wire = json!([{"role": "user", "content": [
            {"type": "text", "text": "a\n\nb"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
            {"type": "text", "text": "c"},
        ]}]);
        assert_eq!(sent(conversation), wire);
    }

    #[test]
    fn signed_blocks_of_any_provider_stay_here() {
        let conversation = json!([{"role": "assistant", "content": "a",
            "signed": [{"provider": "anthropic", "block": {"type": "thinking"}}]}]);
        assert_eq!(
            sent(conversation),
            json!([{"role": "assistant", "content": "a"}])
        );
    }

    #[test]
    fn names_and_ids_that_the_vendor_refuses_are_made_to_fit() {
        assert_eq!(name("functions.read file"), "functions_read_file");
        assert_eq!(name(""), "unnamed");
        assert_eq!(name(&"x".repeat(99)).len(), NAME);
        assert_eq!(id(&format!("{}end", "y".repeat(60))).len(), ID);
        assert_eq!(id("call_1"), "call_1");
    }

    #[test]
    fn body_asks_for_a_stream_with_usage_and_leaves_out_missing_tools() {
        let request = Request {
            messages: &[],
            tools: &[],
        };
        let body: Value = serde_json::from_slice(&body("m", &request).unwrap()).unwrap();
        let expected = json!({"model": "m", "messages": [], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(body, expected);
    }
}
