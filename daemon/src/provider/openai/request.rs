//! The conversation as a chat completion's body. What a model once wrote may be wrong; what is sent never is.

use super::super::fit::{self, Ids};
use super::super::vendor::Call as RoundTrip;
use super::super::{Message, Signed, ToolCall};
use super::{Quirks, Reasoning};
use protocol::event::Image;
use protocol::tool::Definition;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Stands where no model's reply came between a tool's result and a person's words.
const NO_REPLY: &str = "(no reply)";
/// What Gemini takes in place of a signature for a call that another model made.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Wire<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Declared<'a>,
}

#[derive(Serialize)]
struct Declared<'a> {
    name: &'a str,
    description: &'a str,
    /// Left out it says that there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<&'a Value>,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<&'a Value>,
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
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<Cow<'a, Value>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    arguments: String,
}

pub(super) fn body(call: &RoundTrip<'_>, quirks: &Quirks) -> Result<Vec<u8>, String> {
    let body = Body {
        model: call.model,
        messages: messages(call.provider, call.request.messages, quirks),
        stream: true,
        stream_options: quirks.stream_options.then_some(StreamOptions {
            include_usage: true,
        }),
        tools: tools(call.request.tools, quirks),
    };
    serde_json::to_vec(&body).map_err(|error| format!("cannot write the request: {error}"))
}

fn tools<'a>(tools: &'a [Definition], quirks: &Quirks) -> Vec<Tool<'a>> {
    let takes_nothing = |parameters: &Value| {
        let properties = parameters["properties"].as_object();
        properties.is_none_or(serde_json::Map::is_empty)
    };
    let tool = |tool: &'a Definition| {
        let function = &tool.function;
        Tool {
            kind: "function",
            function: Declared {
                name: &function.name,
                description: &function.description,
                parameters: Some(&function.parameters)
                    .filter(|parameters| !quirks.bare_tools || !takes_nothing(parameters)),
            },
        }
    };
    tools.iter().map(tool).collect()
}

fn messages<'a>(provider: &str, messages: &'a [Message], quirks: &Quirks) -> Vec<Wire<'a>> {
    let mut ids = Ids::new(quirks.ids);
    let mut wire = Vec::with_capacity(messages.len());
    for message in messages {
        match (wire.last_mut(), message) {
            (Some(Wire::User { content: before }), Message::User { content, images }) => {
                join(before, content, images);
                continue;
            }
            (Some(Wire::Tool { .. }), Message::User { .. }) if quirks.assistant_after_tools => {
                wire.push(Wire::Assistant {
                    content: Some(NO_REPLY),
                    reasoning_content: None,
                    reasoning_details: None,
                    tool_calls: Vec::new(),
                });
            }
            _ => {}
        }
        wire.extend(translate(provider, message, quirks, &mut ids));
    }
    wire
}

/// `None` for a message that says nothing.
fn translate<'a>(
    provider: &str,
    message: &'a Message,
    quirks: &Quirks,
    ids: &mut Ids<'a>,
) -> Option<Wire<'a>> {
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
            signed,
        } => {
            if content.is_empty() && tool_calls.is_empty() {
                return None;
            }
            let own = own(provider, signed);
            Wire::Assistant {
                content: Some(content.as_str()).filter(|content| !content.is_empty()),
                reasoning_content: (quirks.reasoning == Reasoning::Content
                    && !tool_calls.is_empty())
                .then(|| own["reasoning_content"].as_str().unwrap_or_default()),
                reasoning_details: (quirks.reasoning == Reasoning::Details)
                    .then(|| &own["reasoning_details"])
                    .filter(|details| details.is_array()),
                tool_calls: calls(tool_calls, &own["extra_content"], quirks, ids),
            }
        }
        Message::Tool {
            tool_call_id,
            content,
        } => Wire::Tool {
            tool_call_id: ids.of(tool_call_id),
            content,
        },
    })
}

/// What this provider wants back of a message; null when there is nothing.
fn own<'a>(provider: &str, signed: &'a [Signed]) -> &'a Value {
    let own = signed.iter().find(|signed| signed.provider == provider);
    own.map_or(&Value::Null, |signed| &signed.block)
}

fn calls<'a>(
    calls: &'a [ToolCall],
    extra: &'a Value,
    quirks: &Quirks,
    ids: &mut Ids<'a>,
) -> Vec<Call<'a>> {
    let signs = quirks.reasoning == Reasoning::ThoughtSignatures;
    let extra_of = |n: usize| match &extra[n] {
        Value::Null if signs && n == 0 => {
            let unsigned = json!({"google": {"thought_signature": NO_SIGNATURE}});
            Some(Cow::Owned(unsigned))
        }
        Value::Null => None,
        extra => signs.then_some(Cow::Borrowed(extra)),
    };
    let call = |(n, call): (usize, &'a ToolCall)| Call {
        id: ids.of(&call.id),
        kind: "function",
        function: Function {
            name: fit::name(&call.name),
            arguments: serde_json::to_string(&call.arguments)
                .expect("a JSON object has string keys only"),
        },
        extra_content: extra_of(n),
    };
    calls.iter().enumerate().map(call).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn sent(conversation: Value) -> Value {
        with(conversation, &Quirks::NONE)
    }

    fn with(conversation: Value, quirks: &Quirks) -> Value {
        let conversation: Vec<Message> = serde_json::from_value(conversation).unwrap();
        serde_json::to_value(messages("me", &conversation, quirks)).unwrap()
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

    fn tool_round(signed: Value) -> Value {
        json!([
            {"role": "assistant", "content": "", "signed": signed, "tool_calls": [
                {"id": "call_1", "name": "read", "arguments": {}},
                {"id": "call_2", "name": "read", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "{}"},
            {"role": "tool", "tool_call_id": "call_2", "content": "{}"},
            {"role": "user", "content": "u"},
        ])
    }

    #[test]
    fn what_a_vendor_wants_back_goes_to_it_alone() {
        let quirks = |reasoning| Quirks {
            reasoning,
            ..Quirks::NONE
        };
        let mine = |block: Value| tool_round(json!([{"provider": "me", "block": block}]));
        let others = |block: Value| tool_round(json!([{"provider": "other", "block": block}]));

        let block = json!({"reasoning_content": "hm"});
        let sent = |conversation| with(conversation, &quirks(Reasoning::Content));
        assert_eq!(sent(mine(block.clone()))[0]["reasoning_content"], "hm");
        assert_eq!(sent(others(block.clone()))[0]["reasoning_content"], "");
        assert_eq!(
            with(mine(block), &Quirks::NONE)[0].get("reasoning_content"),
            None
        );

        let block = json!({"extra_content": [{"google": {"thought_signature": "s"}}, null]});
        let sent = |conversation| with(conversation, &quirks(Reasoning::ThoughtSignatures));
        let calls = sent(mine(block.clone()))[0]["tool_calls"].clone();
        let signature = |call: &Value| call["extra_content"]["google"]["thought_signature"].clone();
        assert_eq!(
            (signature(&calls[0]), signature(&calls[1])),
            ("s".into(), Value::Null)
        );
        let calls = sent(others(block))[0]["tool_calls"].clone();
        assert_eq!(signature(&calls[0]), NO_SIGNATURE);

        let block = json!({"reasoning_details": [{"type": "reasoning.text", "text": "t"}]});
        let sent = |conversation| with(conversation, &quirks(Reasoning::Details));
        assert_eq!(
            sent(mine(block.clone()))[0]["reasoning_details"],
            block["reasoning_details"]
        );
        assert_eq!(sent(others(block))[0].get("reasoning_details"), None);
    }

    #[test]
    fn strict_ids_are_the_same_for_a_call_and_its_result_and_no_user_follows_a_tool() {
        let quirks = Quirks {
            ids: fit::IdRule::Exact(9),
            assistant_after_tools: true,
            ..Quirks::NONE
        };
        let sent = with(tool_round(json!([])), &quirks);
        let ids = [0, 1].map(|n| sent[0]["tool_calls"][n]["id"].clone());
        assert_eq!(ids[0].as_str().unwrap().len(), 9);
        assert_ne!(ids[0], ids[1]);
        assert_eq!(
            [&sent[1]["tool_call_id"], &sent[2]["tool_call_id"]],
            [&ids[0], &ids[1]]
        );
        assert_eq!(
            (&sent[3]["role"], &sent[4]["role"]),
            (&"assistant".into(), &"user".into())
        );
    }

    #[test]
    fn body_asks_for_a_stream_with_usage_and_leaves_out_missing_tools() {
        let request = super::super::super::Request {
            messages: &[],
            tools: &[],
        };
        let call = RoundTrip {
            provider: "me",
            model: "m",
            window: None,
            request: &request,
        };
        let body_of = |quirks: &Quirks| -> Value {
            serde_json::from_slice(&body(&call, quirks).unwrap()).unwrap()
        };
        let expected = json!({"model": "m", "messages": [], "stream": true,
            "stream_options": {"include_usage": true}});
        assert_eq!(body_of(&Quirks::NONE), expected);
        let unasked = Quirks {
            stream_options: false,
            ..Quirks::NONE
        };
        let expected = json!({"model": "m", "messages": [], "stream": true});
        assert_eq!(body_of(&unasked), expected);
    }

    #[test]
    fn an_object_without_properties_is_left_out_for_who_refuses_it() {
        let empty = json!({"type": "object", "properties": {}, "required": []});
        let full = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let tool = |name: &str, parameters: &Value| -> Definition {
            let function = json!({"name": name, "description": "D.", "parameters": parameters});
            serde_json::from_value(json!({"type": "function", "function": function})).unwrap()
        };
        let given = [tool("now", &empty), tool("say", &full)];
        let sent = |quirks: &Quirks| serde_json::to_value(tools(&given, quirks)).unwrap();
        assert_eq!(sent(&Quirks::NONE), serde_json::to_value(&given).unwrap());
        let bare = sent(&Quirks {
            bare_tools: true,
            ..Quirks::NONE
        });
        assert_eq!(
            bare[0]["function"],
            json!({"name": "now", "description": "D."})
        );
        assert_eq!(bare[1]["function"]["parameters"], full);
    }
}
