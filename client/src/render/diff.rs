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
    /// Bytes of the file that goes, where what differs is not known.
    replaced: Option<u64>,
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
        Some(Self {
            path,
            lines,
            replaced: None,
        })
    }

    /// The file is there: what differs, or how much goes where that is not told.
    pub(crate) fn replaces(&mut self, size: u64, diff: Option<&str>) {
        match diff {
            Some(diff) => self.lines = told(diff),
            None => self.replaced = Some(size),
        }
    }

    /// `+3 -1`.
    pub(crate) fn summary(&self) -> String {
        let count = |tag| self.lines.iter().filter(|line| line.tag == tag).count();
        match (count(ChangeTag::Insert), count(ChangeTag::Delete)) {
            (added, 0) if self.replaced.is_some() => format!("+{added}, {}", self.loss()),
            (added, 0) => format!("+{added}"),
            (added, removed) => format!("+{added} -{removed}"),
        }
    }

    /// What goes, where no line of it is shown; empty where lines are.
    fn loss(&self) -> String {
        self.replaced
            .map(|bytes| format!("in place of {}", size(bytes)))
            .unwrap_or_default()
    }

    /// Rows, at most so many; the last says how many lines are missing.
    pub(crate) fn rows(&self, paint: Paint, room: usize, most: usize) -> Vec<String> {
        let mut rows = Vec::new();
        if self.replaced.is_some() {
            let gone = Piece::new(
                format!(
                    "- all that is there ({})",
                    self.replaced.map(size).unwrap_or_default()
                ),
                removed(),
            );
            rows.push(paint_row(paint, &[gone]));
        }
        for (at, line) in self.lines.iter().enumerate() {
            if at >= most {
                let more = format!("… {} more lines", self.lines.len() - at);
                rows.push(paint_row(paint, &[Piece::new(more, Style::new().dimmed())]));
                break;
            }
            let (mark, style) = match line.tag {
                ChangeTag::Insert => ("+ ", Style::new().fg(Color::Green)),
                ChangeTag::Delete => ("- ", removed()),
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

fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{} KB", bytes / 1024),
        _ => format!("{} MB", bytes >> 20),
    }
}

fn removed() -> Style {
    Style::new().fg(Color::Red)
}

/// The lines of a unified diff's hunks, with a mark where one begins.
fn told(diff: &str) -> Vec<Line> {
    let line = |(at, line): (usize, &str)| {
        let (tag, text) = match line.split_at_checked(1) {
            Some(("+", text)) => (ChangeTag::Insert, text),
            Some(("-", text)) => (ChangeTag::Delete, text),
            Some(("@", _)) if at == 0 => return None,
            Some(("@", _)) => (ChangeTag::Equal, "…"),
            Some((_, text)) => (ChangeTag::Equal, text),
            None => (ChangeTag::Equal, ""),
        };
        Some(Line {
            tag,
            text: text.trim_end_matches('\r').to_string(),
        })
    };
    diff.split_terminator('\n')
        .enumerate()
        .filter_map(line)
        .collect()
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
    fn a_write_over_a_file_shows_what_goes_or_how_much() {
        let arguments = json!({"path": "a", "content": "one\ntwo\nthree\nfour"});
        let mut known = Diff::of(&arguments).unwrap();
        let hunks = "@@ -1,2 +1,2 @@\n-1\n+one\n two\n@@ -9 +9 @@\n-\n+four\n";
        known.replaces(40, Some(hunks));
        let rows = ["- 1", "+ one", "  two", "  …", "- ", "+ four"];
        assert_eq!(known.rows(Paint::Plain, 40, 10), rows);
        assert_eq!(known.summary(), "+2 -2");
        let mut large = Diff::of(&arguments).unwrap();
        large.replaces(3 << 20, None);
        let first = "- all that is there (3 MB)";
        assert_eq!(large.rows(Paint::Plain, 40, 10)[0], first);
        assert_eq!(large.summary(), "+4, in place of 3 MB");
    }

    #[test]
    fn a_write_shows_its_content_and_other_calls_nothing() {
        let diff = Diff::of(&json!({"path": "a", "content": "one\ntwo"})).unwrap();
        assert_eq!(diff.rows(Paint::Plain, 40, 10), ["+ one", "+ two"]);
        assert_eq!(Diff::of(&json!({"path": "a"})), None);
        assert_eq!(Diff::of(&json!({"command": "x"})), None);
    }
}
