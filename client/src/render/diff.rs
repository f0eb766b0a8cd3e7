//! What a file tool changes, as a diff. Must never guess what stood in a file: `write` shows what it writes.

use super::styled::{Break, Piece, paint_row, wrap};
use crate::paint::{Paint, spell_out};
use nu_ansi_term::{Color, Style};
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

/// How many unchanged lines stand around a change.
const CONTEXT: usize = 2;

/// A line of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    tag: ChangeTag,
    text: String,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) path: String,
    lines: Vec<Line>,
}

impl Diff {
    /// What the arguments of a call change; none for a call that is no change of a file.
    pub(crate) fn of(arguments: &Value) -> Option<Self> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let path = text("path")?.to_string();
        let lines = match (text("old"), text("new"), text("content")) {
            (Some(old), Some(new), _) => changed(old, new),
            (None, None, Some(content)) => written(content),
            _ => return None,
        };
        Some(Self { path, lines })
    }

    /// `+3 -1`.
    pub(crate) fn summary(&self) -> String {
        let count = |tag| self.lines.iter().filter(|line| line.tag == tag).count();
        match (count(ChangeTag::Insert), count(ChangeTag::Delete)) {
            (added, 0) => format!("+{added}"),
            (added, removed) => format!("+{added} -{removed}"),
        }
    }

    /// Rows, at most so many; the last says how many lines are missing.
    pub(crate) fn rows(&self, paint: Paint, room: usize, most: usize) -> Vec<String> {
        let mut rows = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            if at >= most {
                let more = format!("… {} more lines", self.lines.len() - at);
                rows.push(paint_row(paint, &[Piece::new(more, Style::new().dimmed())]));
                break;
            }
            let (mark, style) = match line.tag {
                ChangeTag::Insert => ("+ ", Style::new().fg(Color::Green)),
                ChangeTag::Delete => ("- ", Style::new().fg(Color::Red)),
                ChangeTag::Equal => ("  ", Style::new().dimmed()),
            };
            let text = Piece::new(spell_out(&line.text), style);
            for (row, pieces) in wrap(&[text], room.saturating_sub(2), Break::Anywhere)
                .iter()
                .enumerate()
            {
                let mark = if row == 0 { mark } else { "  " };
                let mark = paint_row(paint, &[Piece::new(mark, style)]);
                rows.push(format!("{mark}{}", paint_row(paint, pieces)));
            }
        }
        rows
    }
}

fn written(content: &str) -> Vec<Line> {
    let line = |text: &str| Line {
        tag: ChangeTag::Insert,
        text: text.to_string(),
    };
    content.lines().map(line).collect()
}

fn changed(old: &str, new: &str) -> Vec<Line> {
    let diff = TextDiff::from_lines(old, new);
    let mut lines = Vec::new();
    for group in diff.grouped_ops(CONTEXT) {
        for op in group {
            lines.extend(diff.iter_changes(&op).map(|change| Line {
                tag: change.tag(),
                text: change.value().trim_end_matches(['\n', '\r']).to_string(),
            }));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_edit_shows_what_goes_and_what_comes() {
        let diff = Diff::of(&json!({"path": "a", "old": "x\ny\nz\n", "new": "x\nY\nz\n"})).unwrap();
        assert_eq!(
            diff.rows(Paint::Plain, 40, 10),
            ["  x", "- y", "+ Y", "  z"]
        );
        assert_eq!(diff.summary(), "+1 -1");
        assert_eq!(diff.rows(Paint::Plain, 40, 1), ["  x", "… 3 more lines"]);
    }

    #[test]
    fn a_write_shows_its_content_and_other_calls_nothing() {
        let diff = Diff::of(&json!({"path": "a", "content": "one\ntwo"})).unwrap();
        assert_eq!(diff.rows(Paint::Plain, 40, 10), ["+ one", "+ two"]);
        assert_eq!(Diff::of(&json!({"path": "a"})), None);
        assert_eq!(Diff::of(&json!({"command": "x"})), None);
    }
}
