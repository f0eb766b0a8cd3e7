//! The conversation as a body of Responses: a list of items, with the model's own reasoning where it stood.
//! What a model once wrote may be wrong; what is sent never is.

use super::super::Message;
use super::super::fit::{self, IdRule, Ids};
use super::super::place::{Part, weave};
use super::super::vendor::Call;
use protocol::event::Image;
use protocol::tool::Definition;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// The longest id of a call that the vendor takes.
const ID: usize = 64;
/// Stands where a person said nothing.
const NO_WORDS: &str = "(no words)";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<Item<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: Cow<'a, Value>,
    strict: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        content: Vec<Content<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: &'a str,
    },
    /// Reasoning as it came.
    #[serde(untagged)]
    Signed(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

pub(super) fn body(call: &Call<'_>, reasons: bool) -> Result<Vec<u8>, String> {
    let messages = call.request.messages;
    let body = Body {
        model: call.model,
        instructions: instructions(messages),
        input: items(call.provider, messages),
        stream: true,
        store: false,
        tools: call.request.tools.iter().map(tool).collect(),
        reasoning: reasons.then(|| json!({"summary": "auto"})),
        include: match reasons {
            true => &["reasoning.encrypted_content"],
            false => &[],
        },
    };
    serde_json::to_vec(&body).map_err(|error| format!("cannot write the request: {error}"))
}

fn instructions(messages: &[Message]) -> Option<String> {
    let texts = messages.iter().filter_map(|message| match message {
        Message::System { content } if !content.is_empty() => Some(content.as_str()),
        _ => None,
    });
    let texts: Vec<_> = texts.collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

fn tool(definition: &Definition) -> Tool<'_> {
    let function = &definition.function;
    Tool {
        kind: "function",
        name: &function.name,
        description: &function.description,
        parameters: fit::schema(&function.parameters),
        strict: false,
    }
}

fn items<'a>(provider: &str, messages: &'a [Message]) -> Vec<Item<'a>> {
    let mut ids = Ids::new(IdRule::Any(ID));
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        match message {
            Message::System { .. } => {}
            Message::User { content, images } => said(&mut items, content, images),
            Message::Assistant {
                content,
                tool_calls,
                signed,
            } => {
                // Reasoning that no call follows is refused.
                let signed = if tool_calls.is_empty() {
                    &[]
                } else {
                    &**signed
                };
                let parts = weave(provider, content, tool_calls, signed);
                items.extend(parts.into_iter().map(|part| assistant(part, &mut ids)));
            }
            Message::Tool {
                tool_call_id,
                content,
            } => items.push(Item::FunctionCallOutput {
                call_id: ids.of(tool_call_id),
                output: content,
            }),
        }
    }
    items
}

/// A person's words; those in a row are one message.
fn said<'a>(items: &mut Vec<Item<'a>>, text: &'a str, images: &[Image]) {
    let text = Some(text).filter(|text| !text.is_empty());
    let text = text.map(|text| Content::InputText { text });
    let images = images.iter().map(|image| Content::InputImage {
        image_url: format!("data:{};base64,{}", image.mime_type, image.data),
    });
    let mut content: Vec<_> = text.into_iter().chain(images).collect();
    if content.is_empty() {
        content.push(Content::InputText { text: NO_WORDS });
    }
    match items.last_mut() {
        Some(Item::Message {
            role: "user",
            content: before,
        }) => before.extend(content),
        _ => items.push(Item::Message {
            role: "user",
            content,
        }),
    }
}

fn assistant<'a>(part: Part<'a>, ids: &mut Ids<'a>) -> Item<'a> {
    match part {
        Part::Signed(signed) => Item::Signed(signed),
        Part::Text(text) => Item::Message {
            role: "assistant",
            content: vec![Content::OutputText { text }],
        },
        Part::Call(call) => Item::FunctionCall {
            call_id: ids.of(&call.id),
            name: fit::name(&call.name),
            arguments: serde_json::to_string(&call.arguments)
                .expect("a JSON object has string keys only"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Request;
    use super::*;

    fn sent(conversation: Value, reasons: bool) -> Value {
        let messages: Vec<Message> = serde_json::from_value(conversation).unwrap();
        let request = Request {
            messages: &messages,
            tools: &[],
        };
        let call = Call {
            provider: "openai",
            model: "m",
            window: None,
            request: &request,
        };
        serde_json::from_slice(&body(&call, reasons).unwrap()).unwrap()
    }

    #[test]
    fn tool_round_is_a_list_of_items_with_reasoning_before_its_call() {
        let reasoning =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e"});
        let signed = json!([{"provider": "openai", "block": {"at": [0, 0], "block": reasoning}},
            {"provider": "anthropic", "block": {"at": [0, 0], "block": {"type": "thinking"}}}]);
        let body = sent(
            json!([
                {"role": "system", "content": "s"},
                {"role": "user", "content": "a"},
                {"role": "user", "content": "b"},
                {"role": "assistant", "content": "hm", "signed": signed, "tool_calls": [
                    {"id": "c1", "name": "read", "arguments": {"path": "a"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": "{}"},
                {"role": "assistant", "content": "done", "signed": signed},
            ]),
            true,
        );
        let expected = json!([
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]},
            reasoning,
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"},
            {"type": "function_call_output", "call_id": "c1", "output": "{}"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ]);
        assert_eq!(body["input"], expected);
        assert_eq!(body["instructions"], "s");
        assert_eq!(body["store"], false);
        assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    }

    #[test]
    fn model_that_does_not_reason_is_not_asked_to() {
        let body = sent(json!([{"role": "user", "content": "a"}]), false);
        assert_eq!((body.get("reasoning"), body.get("include")), (None, None));
        let default = super::super::Responses { thinking: None };
        for (model, reasons) in [
            ("gpt-5.6", true),
            ("openai/gpt-oss-20b", true),
            ("gpt-4.1", false),
            ("gpt-5-chat-latest", false),
        ] {
            assert_eq!(default.reasons(model), reasons, "{model}");
        }
    }
}
