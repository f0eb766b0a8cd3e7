//! The conversation as a body of Messages: roles that alternate, results right behind their calls, blocks that the model
//! signed where they stood. What a model once wrote may be wrong; what is sent never is.

use super::super::Message;
use super::super::fit::{self, IdRule, Ids};
use super::super::place::{Part, weave};
use super::super::settings::Thinking;
use super::super::vendor::Call;
use super::{Host, MAX_TOKENS, Messages, Mode, known};
use protocol::event::Image;
use protocol::tool::Definition;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// The version of the interface as Google's cloud wants it.
const VERTEX_VERSION: &str = "vertex-2023-10-16";
/// The fewest tokens of thinking that may be asked for.
const LEAST_BUDGET: u64 = 1_024;
/// Stands where a conversation would not begin with a person's words.
const NO_PROMPT: &str = "(continued)";
/// Stands where a person said nothing.
const NO_WORDS: &str = "(no words)";

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anthropic_version: Option<&'static str>,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: Cow<'a, Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Block<'a>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Role {
    User,
    Assistant,
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Kind<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Map<String, Value>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        is_error: bool,
    },
    /// As the model signed it, unchanged.
    #[serde(untagged)]
    Signed(&'a Value),
}

#[derive(Serialize)]
struct Source<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum CacheControl {
    Ephemeral,
}

pub(super) fn body(call: &Call<'_>, messages: &Messages) -> Result<Vec<u8>, String> {
    let model = known(call.model);
    let max_tokens = messages.max_tokens;
    let max_tokens = max_tokens.unwrap_or_else(|| model.map_or(MAX_TOKENS, |row| row.max_tokens));
    let mode = model.map_or(Mode::Never, |row| row.mode);
    let all = call.request.messages;
    let mode = match mode {
        Mode::Budget if !may_think(call.provider, all) => Mode::Never,
        other => other,
    };
    let (model, version) = match messages.host {
        Host::Anthropic => (Some(call.model), None),
        Host::Vertex => (None, Some(VERTEX_VERSION)),
    };
    let mut body = Body {
        model,
        anthropic_version: version,
        max_tokens,
        stream: true,
        thinking: thinking(mode, messages.thinking, max_tokens),
        system: system(all),
        tools: call.request.tools.iter().map(tool).collect(),
        messages: turns(call.provider, all),
    };
    mark(&mut body);
    serde_json::to_vec(&body).map_err(|error| format!("cannot write the request: {error}"))
}

fn thinking(mode: Mode, set: Option<Thinking>, max_tokens: u64) -> Option<Value> {
    let most = max_tokens.saturating_sub(LEAST_BUDGET);
    let enabled = |budget: u64| {
        let budget = budget.min(most);
        (budget >= LEAST_BUDGET).then(|| json!({"type": "enabled", "budget_tokens": budget}))
    };
    match (mode, set) {
        (_, Some(Thinking::Asked(false))) | (Mode::Never, _) => None,
        (Mode::Budget, Some(Thinking::Budget(budget))) => enabled(budget),
        (Mode::Budget, _) => enabled(max_tokens / 2),
        (Mode::Adaptive, _) => Some(json!({"type": "adaptive", "display": "summarized"})),
    }
}

/// A model that thinks by a budget refuses a turn in which another model made calls: its own begin with what it thought.
fn may_think(provider: &str, messages: &[Message]) -> bool {
    let since = messages
        .iter()
        .rposition(|message| matches!(message, Message::User { .. }));
    let turn = &messages[since.map_or(0, |at| at + 1)..];
    turn.iter().all(|message| match message {
        Message::Assistant {
            tool_calls, signed, ..
        } => tool_calls.is_empty() || signed.iter().any(|block| block.provider == provider),
        _ => true,
    })
}

fn system(messages: &[Message]) -> Vec<Block<'_>> {
    let texts = messages.iter().filter_map(|message| match message {
        Message::System { content } => text(content),
        _ => None,
    });
    texts.collect()
}

fn tool(definition: &Definition) -> Tool<'_> {
    let function = &definition.function;
    Tool {
        name: &function.name,
        description: &function.description,
        input_schema: fit::schema(&function.parameters),
    }
}

fn turns<'a>(provider: &str, messages: &'a [Message]) -> Vec<Turn<'a>> {
    let mut ids = Ids::new(IdRule::Plain(64));
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        let (role, content) = match message {
            Message::System { .. } => continue,
            Message::User { content, images } => (Role::User, said(content, images)),
            Message::Assistant {
                content,
                tool_calls,
                signed,
            } => {
                let parts = weave(provider, content, tool_calls, signed);
                let only_signed = content.trim().is_empty() && tool_calls.is_empty();
                let parts = parts.into_iter().filter(|_| !only_signed);
                let blocks = parts.filter_map(|part| assistant(part, &mut ids));
                (Role::Assistant, blocks.collect())
            }
            Message::Tool {
                tool_call_id,
                content,
            } => (Role::User, vec![result(ids.of(tool_call_id), content)]),
        };
        push(&mut turns, role, content);
    }
    turns
}

/// Turns of one role in a row are one; the first is a person's.
fn push<'a>(turns: &mut Vec<Turn<'a>>, role: Role, content: Vec<Block<'a>>) {
    if content.is_empty() {
        return;
    }
    if turns.is_empty() && role == Role::Assistant {
        turns.push(Turn {
            role: Role::User,
            content: text(NO_PROMPT).into_iter().collect(),
        });
    }
    match turns.last_mut() {
        Some(last) if last.role == role => last.content.extend(content),
        _ => turns.push(Turn { role, content }),
    }
}

fn said<'a>(content: &'a str, images: &'a [Image]) -> Vec<Block<'a>> {
    let images = images.iter().map(|image| {
        block(Kind::Image {
            source: Source {
                kind: "base64",
                media_type: &image.mime_type,
                data: &image.data,
            },
        })
    });
    let blocks: Vec<_> = text(content).into_iter().chain(images).collect();
    match blocks.is_empty() {
        true => text(NO_WORDS).into_iter().collect(),
        false => blocks,
    }
}

fn assistant<'a>(part: Part<'a>, ids: &mut Ids<'a>) -> Option<Block<'a>> {
    match part {
        Part::Signed(signed) => Some(block(Kind::Signed(signed))),
        Part::Text(said) => text(said),
        Part::Call(call) => Some(block(Kind::ToolUse {
            id: ids.of(&call.id),
            name: fit::name(&call.name),
            input: &call.arguments,
        })),
    }
}

fn result<'a>(tool_use_id: Cow<'a, str>, content: &'a str) -> Block<'a> {
    block(Kind::ToolResult {
        tool_use_id,
        content,
        is_error: content.trim_end().ends_with("\"ok\":false}"),
    })
}

/// A text block has to say something.
fn text(text: &str) -> Option<Block<'_>> {
    (!text.trim().is_empty()).then(|| block(Kind::Text { text }))
}

fn block(kind: Kind<'_>) -> Block<'_> {
    Block {
        kind,
        cache_control: None,
    }
}

/// What comes again in the next request ends in a mark: the tools with the system prompt, and the conversation as it is now
/// and as it was one person's turn before.
fn mark(body: &mut Body<'_>) {
    if let Some(last) = body.system.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let users = body.messages.iter_mut().rev();
    let users = users.filter(|turn| turn.role == Role::User);
    for last in users.take(2).filter_map(|turn| turn.content.last_mut()) {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Request;
    use super::*;

    fn sent_to(model: &str, conversation: Value, thinking: Option<Thinking>) -> Value {
        let messages: Vec<Message> = serde_json::from_value(conversation).unwrap();
        let request = Request {
            messages: &messages,
            tools: &[],
        };
        let call = Call {
            provider: "anthropic",
            model,
            window: None,
            request: &request,
        };
        let dialect = Messages {
            thinking,
            max_tokens: None,
            host: Host::Anthropic,
        };
        serde_json::from_slice(&body(&call, &dialect).unwrap()).unwrap()
    }

    fn sent(conversation: Value) -> Value {
        sent_to("claude-opus-5-5", conversation, None)
    }

    fn marked(mut block: Value) -> Value {
        block["cache_control"] = json!({"type": "ephemeral"});
        block
    }

    #[test]
    fn tool_round_is_sent_with_signed_blocks_in_their_places_and_marks_at_the_ends() {
        let at = |chars, calls, block: Value| json!({"provider": "anthropic", "block": {"at": [chars, calls], "block": block}});
        let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
        let hidden = json!({"type": "redacted_thinking", "data": "d"});
        let body = sent(json!([
            {"role": "system", "content": "s"},
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "let me see", "tool_calls": [
                {"id": "toolu_1", "name": "read", "arguments": {"path": "a"}}],
                "signed": [at(0, 0, thought.clone()), at(10, 0, hidden.clone())]},
            {"role": "tool", "tool_call_id": "toolu_1", "content": "{\"error\":\"no\",\"ok\":false}"},
        ]));
        let expected = json!([
            {"role": "user", "content": [marked(json!({"type": "text", "text": "u"}))]},
            {"role": "assistant", "content": [
                thought, {"type": "text", "text": "let me see"}, hidden,
                {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}]},
            {"role": "user", "content": [marked(json!({"type": "tool_result", "tool_use_id": "toolu_1",
                "content": "{\"error\":\"no\",\"ok\":false}", "is_error": true}))]},
        ]);
        assert_eq!(body["messages"], expected);
        assert_eq!(
            body["system"],
            json!([marked(json!({"type": "text", "text": "s"}))])
        );
        assert_eq!(
            body["thinking"],
            json!({"type": "adaptive", "display": "summarized"})
        );
        assert_eq!(body["max_tokens"], 64_000);
    }

    #[test]
    fn roles_alternate_and_no_block_is_blank() {
        let body = sent(json!([
            {"role": "assistant", "content": "begun by nobody"},
            {"role": "assistant", "content": "  "},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "a b", "name": "x y", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "a b", "content": "{}"},
            {"role": "user", "content": ""},
            {"role": "user", "content": "u"},
        ]));
        let messages = body["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|turn| &turn["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"]);
        let call = &messages[1]["content"][1];
        assert_eq!(call["name"], "x_y");
        assert_eq!(call["id"], messages[2]["content"][0]["tool_use_id"]);
        assert_eq!(messages[2]["content"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn thinking_is_asked_for_in_the_way_the_model_knows_and_not_behind_anothers_calls() {
        let plain = json!([{"role": "user", "content": "u"}]);
        let thinking = |model: &str, set| sent_to(model, plain.clone(), set)["thinking"].clone();
        assert_eq!(thinking("claude-3-5-haiku-latest", None), Value::Null);
        assert_eq!(thinking("some-model", None), Value::Null);
        let budget = thinking("claude-haiku-4-5", Some(Thinking::Budget(2_000)));
        assert_eq!(budget, json!({"type": "enabled", "budget_tokens": 2_000}));
        assert_eq!(
            thinking("claude-haiku-4-5", Some(Thinking::Asked(false))),
            Value::Null
        );
        assert_eq!(thinking("claude-sonnet-4-5", None)["budget_tokens"], 16_000);
        let others = json!([
            {"role": "user", "content": "u"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "name": "t", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c", "content": "{}"},
        ]);
        assert_eq!(
            sent_to("claude-haiku-4-5", others, None)["thinking"],
            Value::Null
        );
    }
}
