//! A session as a Markdown document for people: what was said before the calls that it led to, each result with its call,
//! calls within calls as quotes under them. Pure.

use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::{CallId, MessageId};
use protocol::session::Session;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What a line of somebody's must not look like, for the document's own headings to be told from it.
const HEADINGS: [&str; 5] = [
    "## User",
    "## Assistant",
    "## Summary",
    "### Tool:",
    "### Result",
];

/// The whole session, oldest first. Pieces are left out where the whole is there.
pub fn markdown(session: &Session, events: &[Event]) -> String {
    let title = match &*session.title {
        "" => session.id.as_str(),
        title => title,
    };
    let mut out = format!(
        "# {title}\n\nSession `{}` in `{}`.\n",
        session.id, session.cwd
    );
    let mut document = Document::default();
    for event in events {
        document.take(&event.kind);
    }
    let tops = document.parts.iter().filter(|part| part.is_top);
    tops.for_each(|part| document.write(&mut out, part));
    out
}

/// In the order of the document, calls within calls beside the others.
#[derive(Default)]
struct Document<'e> {
    parts: Vec<Part<'e>>,
    /// The part of each call that runs.
    running: HashMap<&'e CallId, usize>,
}

struct Part<'e> {
    /// Of a call, the message that it came with.
    message: Option<&'e MessageId>,
    /// Of a message's first call, what was said with it.
    said: Option<String>,
    is_top: bool,
    content: Content<'e>,
}

enum Content<'e> {
    Text(String),
    Call {
        name: &'e str,
        arguments: &'e Value,
        within: Vec<usize>,
        result: Option<&'e Map<String, Value>>,
    },
}

impl<'e> Document<'e> {
    fn take(&mut self, event: &'e EventKind) {
        match event {
            EventKind::Doing {
                call,
                message,
                name,
                arguments,
                parent,
                ..
            } => {
                let around = parent
                    .as_ref()
                    .and_then(|call| self.running.get(call).copied());
                let part = self.add(
                    message.as_ref(),
                    Content::Call {
                        name,
                        arguments,
                        within: Vec::new(),
                        result: None,
                    },
                );
                self.running.insert(call, part);
                if let Some(around) = around
                    && let Content::Call { within, .. } = &mut self.parts[around].content
                {
                    within.push(part);
                    self.parts[part].is_top = false;
                }
            }
            EventKind::Done {
                call, result: got, ..
            } => {
                let part = self.running.remove(call);
                if let Some(part) = part
                    && let Content::Call { result, .. } = &mut self.parts[part].content
                {
                    *result = Some(got);
                }
            }
            EventKind::Said { message, text } if !text.is_empty() => {
                self.said(message, format!("\n## Assistant\n\n{}\n", own(text)));
            }
            other => {
                if let Some(text) = plain(other) {
                    self.add(None, Content::Text(text));
                }
            }
        }
    }

    fn add(&mut self, message: Option<&'e MessageId>, content: Content<'e>) -> usize {
        self.parts.push(Part {
            message,
            said: None,
            is_top: true,
            content,
        });
        self.parts.len() - 1
    }

    /// A message is told whole once it ended, which is after its calls began: it stands before them.
    fn said(&mut self, message: &MessageId, text: String) {
        let is_its_first = |part: &&mut Part| part.message == Some(message);
        match self.parts.iter_mut().find(is_its_first) {
            Some(call) => call.said = Some(text),
            None => {
                self.add(None, Content::Text(text));
            }
        }
    }

    fn write(&self, out: &mut String, part: &Part) {
        let (name, arguments, within, result) = match &part.content {
            Content::Text(text) => return out.push_str(text),
            Content::Call {
                name,
                arguments,
                within,
                result,
            } => (name, arguments, within, result),
        };
        out.push_str(part.said.as_deref().unwrap_or_default());
        out.push_str(&format!(
            "\n### Tool: {name}\n\n{}\n",
            fenced("json", &pretty(arguments))
        ));
        for inner in within {
            let mut text = String::new();
            self.write(&mut text, &self.parts[*inner]);
            out.push_str(&quoted(&text));
        }
        match result {
            Some(result) => {
                let text = serde_json::to_string_pretty(result).unwrap_or_default();
                out.push_str(&format!("\n### Result\n\n{}\n", fenced("json", &text)));
            }
            None => out.push_str("\n*It has no result.*\n"),
        }
    }
}

fn quoted(text: &str) -> String {
    let lines = text.trim_matches('\n').lines();
    let lines = lines.map(|line| format!("> {line}").trim_end().to_owned() + "\n");
    format!("\n{}", lines.collect::<String>())
}

/// What is neither said nor a call; none for what has no place in the document.
fn plain(event: &EventKind) -> Option<String> {
    Some(match event {
        EventKind::TurnStarted { text, .. } => format!("\n## User\n\n{}\n", own(text)),
        EventKind::Steered { text } => format!("\n## User (steering)\n\n{}\n", own(text)),
        EventKind::CommandOutput { text } => format!("\n{}\n", fenced("", text)),
        EventKind::Compacted { summary } => format!("\n## Summary\n\n{}\n", own(summary)),
        EventKind::Cleared => "\n---\n\nThe conversation was cleared here.\n".to_owned(),
        EventKind::TurnEnded { status, reply } if *status != TurnStatus::Completed => {
            format!("\n*Turn {}: {reply}*\n", status.as_str())
        }
        _ => return None,
    })
}

/// Somebody's own Markdown: code that they never closed ends with it, and it has none of the document's headings.
fn own(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut open: Option<&str> = None;
    for line in text.trim_end().lines() {
        let bare = line.trim_start_matches(' ');
        let is_code = line.len() - bare.len() > 3;
        if open.is_none() && !is_code && HEADINGS.iter().any(|heading| bare.starts_with(heading)) {
            out.push('\\');
            out.push_str(bare);
        } else {
            out.push_str(line);
        }
        out.push('\n');
        open = match (open, fence(bare).filter(|_| !is_code)) {
            (None, Some((fence, rest))) if fence.starts_with('~') || !rest.contains('`') => {
                Some(fence)
            }
            (Some(opened), Some((fence, rest)))
                if fence.starts_with(opened) && rest.trim().is_empty() =>
            {
                None
            }
            (open, _) => open,
        };
    }
    out.push_str(open.unwrap_or_default());
    out.trim_end().to_owned()
}

/// The fence that a line begins with, and what follows.
fn fence(line: &str) -> Option<(&str, &str)> {
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let rest = line.trim_start_matches(mark);
    let fence = &line[..line.len() - rest.len()];
    (fence.len() >= 3).then_some((fence, rest))
}

fn pretty(value: &serde_json::Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A fence longer than any in the text.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn event(kind: Value) -> Event {
        let mut event = json!({"session": "s", "seq": 1, "at": 1});
        event
            .as_object_mut()
            .unwrap()
            .extend(kind.as_object().unwrap().clone());
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn a_call_within_a_call_is_quoted_under_it_with_its_own_name_and_arguments() {
        let session = json!({"id": "s", "title": "T", "cwd": "/w", "state": "idle", "provider": "script",
                             "created_at": 1, "updated_at": 1, "seq": 4});
        let doing = |call: &str, name: &str, parent: Value| {
            event(
                json!({"type": "doing", "call": call, "name": name, "arguments": {"n": 1}, "parent": parent}),
            )
        };
        let done = |call: &str| {
            event(json!({"type": "done", "call": call, "result": {"ok": true}, "ms": 1}))
        };
        let events = [
            doing("c1", "call_tool", Value::Null),
            doing("c1/1", "read", json!("c1")),
            done("c1/1"),
            done("c1"),
        ];
        let text = markdown(&serde_json::from_value(session).unwrap(), &events);
        let arguments = "```json\n{\n  \"n\": 1\n}\n```\n";
        let result = "```json\n{\n  \"ok\": true\n}\n```\n";
        let inner = |text: &str| {
            text.lines()
                .map(|line| format!("> {line}\n"))
                .collect::<String>()
        };
        let expected = format!(
            "# T\n\nSession `s` in `/w`.\n\n### Tool: call_tool\n\n{arguments}\n> ### Tool: read\n>\n{}>\n> ### Result\n>\n{}\n### Result\n\n{result}",
            inner(arguments),
            inner(result)
        );
        assert_eq!(text, expected);
    }

    #[test]
    fn what_was_said_stands_before_its_calls_and_each_result_with_its_own() {
        let session = json!({"id": "s", "title": "T", "cwd": "/w", "state": "idle", "provider": "script",
                             "created_at": 1, "updated_at": 1, "seq": 4});
        let doing = |call: &str, name: &str| {
            event(
                json!({"type": "doing", "call": call, "message": "m1", "name": name, "arguments": {}}),
            )
        };
        let done = |call: &str, text: &str| {
            event(json!({"type": "done", "call": call, "result": {"text": text}, "ms": 1}))
        };
        let events = [
            doing("c1", "read"),
            doing("c2", "list"),
            doing("c3", "grep"),
            event(json!({"type": "said", "message": "m1", "text": "Let me look."})),
            done("c2", "of list"),
            done("c1", "of read"),
        ];
        let text = markdown(&serde_json::from_value(session).unwrap(), &events);
        let order = [
            "Let me look.",
            "Tool: read",
            "of read",
            "Tool: list",
            "of list",
            "Tool: grep",
            "no result",
        ];
        let places: Vec<_> = order
            .iter()
            .map(|part| text.find(part).expect(part))
            .collect();
        assert!(places.is_sorted(), "{text}");
    }

    #[test]
    fn nobodys_text_swallows_or_looks_like_what_follows() {
        assert_eq!(own("a\n```js\nx"), "a\n```js\nx\n```");
        assert_eq!(own("~~~~\n~~~\n"), "~~~~\n~~~\n~~~~");
        assert_eq!(own("```\nx\n````\nb"), "```\nx\n````\nb");
        assert_eq!(own("```a`b\nc"), "```a`b\nc");
        assert_eq!(own("    ```\nc"), "    ```\nc");
        assert_eq!(own("## Assistant\nx"), "\\## Assistant\nx");
        assert_eq!(own("```\n## User\n```"), "```\n## User\n```");
        assert_eq!(own("## Users\n# User"), "\\## Users\n# User");
    }
}
