//! A session as a Markdown document for people, calls within calls as quotes under them. Pure.

use protocol::event::{Event, EventKind, TurnStatus};
use protocol::id::CallId;
use protocol::session::Session;
use std::collections::HashMap;
use std::fmt::Write;

/// The whole session, oldest first. Pieces are left out where the whole is there.
pub fn markdown(session: &Session, events: &[Event]) -> String {
    let title = if session.title.is_empty() {
        session.id.as_str()
    } else {
        &session.title
    };
    let mut out = format!(
        "# {title}\n\nSession `{}` in `{}`.\n",
        session.id, session.cwd
    );
    let mut depths = Depths::default();
    for event in events {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = section(&mut text, event);
        out.push_str(&quoted(&text, depths.of(&event.kind)));
    }
    out
}

/// How many calls stand around each one that runs.
#[derive(Default)]
struct Depths(HashMap<CallId, usize>);

impl Depths {
    fn of(&mut self, kind: &EventKind) -> usize {
        match kind {
            EventKind::Doing { call, parent, .. } => {
                let around = parent.as_ref().and_then(|parent| self.0.get(parent));
                let depth = around.map_or(0, |depth| depth + 1);
                self.0.insert(call.clone(), depth);
                depth
            }
            EventKind::Done { call, .. } => self.0.remove(call).unwrap_or(0),
            _ => 0,
        }
    }
}

fn quoted(text: &str, depth: usize) -> String {
    if depth == 0 || text.is_empty() {
        return text.to_owned();
    }
    let mark = "> ".repeat(depth);
    let lines = text.trim_matches('\n').lines();
    let lines = lines.map(|line| format!("{mark}{line}").trim_end().to_owned() + "\n");
    format!("\n{}", lines.collect::<String>())
}

fn section(out: &mut String, event: &Event) -> std::fmt::Result {
    match &event.kind {
        EventKind::TurnStarted { text, .. } => write!(out, "\n## User\n\n{}\n", text.trim_end()),
        EventKind::Steered { text } => write!(out, "\n## User (steering)\n\n{}\n", text.trim_end()),
        EventKind::Said { text, .. } if !text.is_empty() => {
            write!(out, "\n## Assistant\n\n{}\n", text.trim_end())
        }
        EventKind::Doing {
            name, arguments, ..
        } => {
            write!(
                out,
                "\n### Tool: {name}\n\n{}\n",
                fenced("json", &pretty(arguments))
            )
        }
        EventKind::Done { result, .. } => {
            let text = serde_json::to_string_pretty(result).unwrap_or_default();
            write!(out, "\n### Result\n\n{}\n", fenced("json", &text))
        }
        EventKind::CommandOutput { text } => write!(out, "\n{}\n", fenced("", text)),
        EventKind::Compacted { summary } => write!(out, "\n## Summary\n\n{}\n", summary.trim_end()),
        EventKind::Cleared => out.write_str("\n---\n\nThe conversation was cleared here.\n"),
        EventKind::TurnEnded { status, reply } if *status != TurnStatus::Completed => {
            write!(out, "\n*Turn {}: {reply}*\n", status.as_str())
        }
        _ => Ok(()),
    }
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
            "# T\n\nSession `s` in `/w`.\n\n### Tool: call_tool\n\n{arguments}\n> ### Tool: read\n>\n{}\n> ### Result\n>\n{}\n### Result\n\n{result}",
            inner(arguments),
            inner(result)
        );
        assert_eq!(text, expected);
    }
}
