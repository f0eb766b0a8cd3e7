//! Conversations of every kind that a session can reach, each sent to every provider: after a cancel, a failed turn, an empty
//! reply, a compaction, words steered in, and calls that another provider made.

use super::super::anthropic::{Host, Messages};
use super::super::fit::IdRule;
use super::super::openai::{Chat, Quirks, Reasoning};
use super::super::place::{Place, placed};
use super::super::settings::Named;
use super::super::vendor::{Call, Dialect};
use super::super::{Message, Request, Signed, ToolCall, ollama, responses};
use super::checker::{self, Strict};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Those whose blocks may be in a history. The providers that are asked are the same.
const PROVIDERS: &[&str] = &[
    "anthropic",
    "openai",
    "deepseek",
    "gemini",
    "openrouter",
    "mistral",
    "ollama",
    "far",
];

/// One thing that happens in a session.
#[derive(Clone, Debug)]
enum Happening {
    Words(String),
    /// A reply, which may be blank, as after a cancel or a failure.
    Reply(String),
    /// A round with calls, by a provider, with text before them.
    Round {
        by: usize,
        text: String,
        calls: Vec<(String, String)>,
    },
    /// All before is a summary now.
    Compacted(String),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("  \n".to_owned()),
        Just("Error: cancelled".to_owned()),
        "[a-zäöü€😀 ]{1,12}",
    ]
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("call_1".to_owned()),
        Just("toolu_01AbC".to_owned()),
        Just(format!("call_{}", "x".repeat(90))),
        Just("abc/de f".to_owned()),
        "[a-zA-Z0-9]{9}",
        "[a-zäöü:./ ]{1,70}",
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("read".to_owned()),
        Just(String::new()),
        "[a-z. ä]{1,80}"
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let calls = prop::collection::vec((id(), name()), 1..4);
    prop_oneof![
        3 => text().prop_map(Happening::Words),
        3 => text().prop_map(Happening::Reply),
        4 => (0..PROVIDERS.len(), text(), calls)
            .prop_map(|(by, text, calls)| Happening::Round { by, text, calls }),
        1 => text().prop_map(Happening::Compacted),
    ]
}

/// What a session hands to a provider: its own rules (`session/conversation.rs`) hold already. No blank assistant message,
/// a result for each call, unique ids, signed blocks in the running turn only.
fn conversation(happenings: &[Happening]) -> Vec<Message> {
    let last_words = happenings
        .iter()
        .rposition(|one| matches!(one, Happening::Words(_) | Happening::Compacted(_)));
    let mut messages = vec![Message::System {
        content: "s".to_owned(),
    }];
    let mut used = std::collections::HashSet::new();
    for (n, happening) in happenings.iter().enumerate() {
        match happening {
            Happening::Words(text) => messages.push(super::user(text)),
            Happening::Reply(text) if text.trim().is_empty() => {}
            Happening::Reply(text) => messages.push(Message::Assistant {
                content: text.clone(),
                tool_calls: Vec::new(),
                signed: Vec::new(),
            }),
            Happening::Compacted(text) => {
                messages.truncate(1);
                messages.push(super::user(&format!("what was before: {text}")));
            }
            Happening::Round { by, text, calls } => {
                let running = last_words.is_none_or(|last| n > last);
                round(&mut messages, &mut used, (*by, running), text, calls);
            }
        }
    }
    if !matches!(
        messages.last(),
        Some(Message::User { .. } | Message::Tool { .. })
    ) {
        messages.push(super::user("go on"));
    }
    messages
}

fn round(
    messages: &mut Vec<Message>,
    used: &mut std::collections::HashSet<String>,
    (by, running): (usize, bool),
    text: &str,
    calls: &[(String, String)],
) {
    let mut tool_calls = Vec::new();
    for (id, name) in calls {
        let mut id = id.clone();
        while !used.insert(id.clone()) {
            id.push('x');
        }
        tool_calls.push(ToolCall {
            id,
            name: name.clone(),
            arguments: Map::from_iter([("path".to_owned(), json!("a"))]),
        });
    }
    let ids: Vec<_> = tool_calls.iter().map(|call| call.id.clone()).collect();
    messages.push(Message::Assistant {
        content: text.to_owned(),
        tool_calls,
        signed: if running {
            signed(PROVIDERS[by])
        } else {
            Vec::new()
        },
    });
    messages.extend(ids.into_iter().map(|tool_call_id| Message::Tool {
        tool_call_id,
        content: json!({"content": "x", "ok": true}).to_string(),
    }));
}

/// As the provider of that name would have signed it; it bears its name, so that the checker knows it again.
fn signed(provider: &str) -> Vec<Signed> {
    let block = match provider {
        "anthropic" => {
            let block = json!({"type": "thinking", "thinking": "hm", "signature": provider});
            placed(block, Place::default())
        }
        "openai" => {
            let block = json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": provider});
            placed(block, Place { chars: 1, calls: 0 })
        }
        "deepseek" => json!({"reasoning_content": "hm"}),
        "gemini" => json!({"extra_content": [{"google": {"thought_signature": "s"}}]}),
        "openrouter" => json!({"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}),
        _ => return Vec::new(),
    };
    vec![Signed {
        provider: provider.to_owned(),
        block,
    }]
}

fn sent(dialect: &dyn Dialect, provider: &str, model: &str, messages: &[Message]) -> Value {
    let request = Request {
        messages,
        tools: &[],
    };
    let call = Call {
        provider,
        model,
        window: None,
        request: &request,
    };
    serde_json::from_slice(&dialect.post(&call).unwrap().body).unwrap()
}

/// All providers, each with the rules of its vendor.
fn check(messages: &[Message]) -> Result<(), String> {
    let named = |name: &str, result: Result<(), String>| {
        result.map_err(|breach| format!("{name} would refuse: {breach}"))
    };
    let chat = |name: &str, quirks: Quirks, strict: Strict| {
        let body = sent(&Chat { quirks }, name, "m", messages);
        named(name, checker::chat(&body, strict))
    };
    chat("openai", Quirks::NONE, Strict::default())?;
    chat(
        "deepseek",
        Quirks {
            reasoning: Reasoning::Content,
            ..Quirks::NONE
        },
        Strict {
            reasoning_with_calls: true,
            ..Strict::default()
        },
    )?;
    chat(
        "gemini",
        Quirks {
            reasoning: Reasoning::ThoughtSignatures,
            ..Quirks::NONE
        },
        Strict {
            signature_with_calls: true,
            ..Strict::default()
        },
    )?;
    chat(
        "mistral",
        Quirks {
            ids: IdRule::Exact(9),
            assistant_after_tools: true,
            stream_options: false,
            ..Quirks::NONE
        },
        Strict {
            nine_characters: true,
            no_user_after_tool: true,
            ..Strict::default()
        },
    )?;
    for model in ["claude-opus-5-5", "claude-haiku-4-5"] {
        for host in [Host::Anthropic, Host::Vertex] {
            let dialect = Messages {
                host,
                ..Messages::new(&Named::default())
            };
            let body = sent(&dialect, "anthropic", model, messages);
            named(model, checker::messages(&body, "anthropic"))?;
        }
    }
    let dialect = responses::Responses { thinking: None };
    let body = sent(&dialect, "openai", "gpt-5.6", messages);
    named("responses", checker::responses(&body, "openai"))?;
    let dialect = ollama::Ollama { thinking: None };
    let body = sent(&dialect, "ollama", "m", messages);
    named("ollama", checker::ollama(&body))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_accepted_by_every_vendors_rules(happenings in prop::collection::vec(happening(), 0..10)) {
        let messages = conversation(&happenings);
        if let Err(breach) = check(&messages) {
            prop_assert!(false, "{breach}");
        }
    }
}

#[test]
fn a_switch_from_each_provider_to_each_in_mid_turn_is_accepted() {
    for by in 0..PROVIDERS.len() {
        for then in 0..PROVIDERS.len() {
            let round = |by, id: &str| Happening::Round {
                by,
                text: "let me see".to_owned(),
                calls: vec![
                    (id.to_owned(), "read".to_owned()),
                    (format!("{id}-2"), "list".to_owned()),
                ],
            };
            let happenings = [
                Happening::Words("u".to_owned()),
                round(by, "call_1"),
                round(then, "call_2"),
            ];
            check(&conversation(&happenings)).unwrap();
        }
    }
}
