//! A session as a Markdown document for people. Pure.

use protocol::event::{Event, EventKind, TurnStatus};
use protocol::session::Session;
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
    for event in events {
        // Writing to a string does not fail.
        let _ = section(&mut out, event);
    }
    out
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
