//! The provider without a model: it calls the first tool once and is done. The same events every time.
//! Must never wait, fail or look at what a tool answered.

use super::registry::{Build, Builtin, Make};
use super::{BoxFuture, Message, Provider, ProviderError, ProviderEvent, Request};
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "stub",
    make: Make::Here(|_: Build| Ok(Arc::new(Stub))),
    has_settings: false,
    default_model: |_| None,
};

/// What it thinks: the stub answers where nothing else is set up, and a person should learn why.
const THOUGHT: &str = "no model is connected: set ANTHROPIC_API_KEY or OPENAI_API_KEY (or OPENAI_BASE_URL for a \
                       compatible server), start ollama, pull a small model with `dwell model pull smollm2`, or \
                       choose a provider with -p.";

struct Stub;

impl Provider for Stub {
    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            answer(&request).into_iter().for_each(emit);
            Ok(())
        })
    }
}

fn answer(request: &Request<'_>) -> Vec<ProviderEvent> {
    if matches!(request.messages.last(), Some(Message::Tool { .. })) {
        return vec![ProviderEvent::Saying("done.".to_owned())];
    }
    let mut events = vec![
        ProviderEvent::Thinking(THOUGHT.to_owned()),
        ProviderEvent::Saying("let me check.".to_owned()),
    ];
    events.extend(request.tools.first().map(|tool| ProviderEvent::Doing {
        id: None,
        name: tool.function.name.clone(),
        arguments: Value::Object(Map::new()),
    }));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::tool::{Definition, Function, FunctionTag};

    fn tool(name: &str) -> Definition {
        Definition {
            kind: FunctionTag::Function,
            function: Function {
                name: name.to_owned(),
                description: String::new(),
                parameters: Value::Null,
            },
        }
    }

    fn user() -> Message {
        Message::User {
            content: "hello".to_owned(),
            images: Vec::new(),
        }
    }

    #[test]
    fn first_tool_is_called_with_an_empty_object() {
        let events = answer(&Request {
            messages: &[user()],
            tools: &[tool("read"), tool("write")],
        });
        assert_eq!(
            events[1..],
            [
                ProviderEvent::Saying("let me check.".to_owned()),
                ProviderEvent::Doing {
                    id: None,
                    name: "read".to_owned(),
                    arguments: serde_json::json!({}),
                }
            ]
        );
        assert!(matches!(events[0], ProviderEvent::Thinking(_)));
    }

    #[test]
    fn a_tools_result_is_answered_with_done() {
        let result = Message::Tool {
            tool_call_id: "c1".to_owned(),
            content: "{}".to_owned(),
        };
        let events = answer(&Request {
            messages: &[user(), result],
            tools: &[tool("read")],
        });
        assert_eq!(events, [ProviderEvent::Saying("done.".to_owned())]);
    }

    #[test]
    fn without_tools_it_only_talks() {
        let events = answer(&Request {
            messages: &[user()],
            tools: &[],
        });
        assert_eq!(events.len(), 2);
    }
}
