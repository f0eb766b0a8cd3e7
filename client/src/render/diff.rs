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
    /// Where it stands: in the old file if it goes, else in the new one. None where nobody told.
    number: Option<usize>,
}

/// A change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Diff {
    pub(crate) path: String,
    lines: Vec<Line>,
    /// Bytes of the file that goes, where what differs is not known.
    replaced: Option<u64>,
    /// In how many places the same is done, where they are not shown.
    places: Option<u64>,
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
            places: None,
        })
    }

    /// The file is there: what differs, or how much goes where that is not told.
    pub(crate) fn replaces(&mut self, size: u64, diff: Option<&str>, places: Option<u64>) {
        match (diff, places) {
            (Some(diff), _) => self.lines = told(diff),
            (None, Some(_)) => self.places = places,
            (None, None) => self.replaced = Some(size),
        }
    }

    /// `+3 -1`.
    pub(crate) fn summary(&self) -> String {
        let count = |tag| self.lines.iter().filter(|line| line.tag == tag).count();
        match (count(ChangeTag::Insert), count(ChangeTag::Delete)) {
            (added, 0) if self.replaced.is_some() => format!("+{added}, {}", self.loss()),
            (added, removed) => {
                let lines = match removed {
                    0 => format!("+{added}"),
                    removed => format!("+{added} -{removed}"),
                };
                match self.places {
                    Some(places) => format!("{lines} in {places} places"),
                    None => lines,
                }
            }
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
        if let Some(places) = self.places {
            let text = format!("in {places} places of the file:");
            rows.push(paint_row(paint, &[Piece::new(text, Style::new().dimmed())]));
        }
        let last = self.lines.iter().filter_map(|line| line.number).max();
        let wide = last.map_or(0, |last| last.to_string().len() + 1);
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
            let number = line
                .number
                .map_or(String::new(), |number| number.to_string());
            let number = format!("{number:>0$} ", wide.saturating_sub(1));
            let room = room.saturating_sub(wide + 2);
            for (row, pieces) in wrap(&[text], room, Break::Anywhere).iter().enumerate() {
                let (number, mark) = match row {
                    0 => (number.clone(), mark),
                    _ => (" ".repeat(wide), "  "),
                };
                let number = if wide == 0 { String::new() } else { number };
                let head = [
                    Piece::new(number, Style::new().dimmed()),
                    Piece::new(mark, style),
                ];
                rows.push(paint_row(paint, &head) + &paint_row(paint, pieces));
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

/// The lines of a unified diff's hunks, with their numbers and a mark where one begins.
fn told(diff: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut next = (0, 0);
    for line in diff.split_terminator('\n') {
        let text = line.get(1..).unwrap_or_default().trim_end_matches('\r');
        let (tag, number, text) = match line.as_bytes().first() {
            Some(b'@') => {
                next = begins(line).unwrap_or(next);
                if lines.is_empty() {
                    continue;
                }
                (ChangeTag::Equal, None, "…")
            }
            Some(b'+') => (ChangeTag::Insert, Some(&mut next.1), text),
            Some(b'-') => (ChangeTag::Delete, Some(&mut next.0), text),
            _ => {
                next.0 += 1;
                (ChangeTag::Equal, Some(&mut next.1), text)
            }
        };
        let number = number.map(|number| {
            *number += 1;
            *number - 1
        });
        lines.push(Line {
            tag,
            text: text.to_string(),
            number,
        });
    }
    lines
}

/// Where the hunk with this head begins, in the old file and in the new one.
fn begins(head: &str) -> Option<(usize, usize)> {
    let mut sides = head.strip_prefix("@@ -")?.split(" +");
    let mut first = || {
        let side = sides.next()?;
        let digits = side.find(|c: char| !c.is_ascii_digit());
        side[..digits.unwrap_or(side.len())].parse().ok()
    };
    Some((first()?, first()?))
}

fn written(content: &str) -> Vec<Line> {
    let line = |text: &str| Line {
        tag: ChangeTag::Insert,
        text: text.to_string(),
        number: None,
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
                number: None,
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
        known.replaces(40, Some(hunks), None);
        let rows = ["1 - 1", "1 + one", "2   two", "    …", "9 - ", "9 + four"];
        assert_eq!(known.rows(Paint::Plain, 40, 10), rows);
        assert_eq!(known.summary(), "+2 -2");
        let mut large = Diff::of(&arguments).unwrap();
        large.replaces(3 << 20, None, None);
        let first = "- all that is there (3 MB)";
        assert_eq!(large.rows(Paint::Plain, 40, 10)[0], first);
        assert_eq!(large.summary(), "+4, in place of 3 MB");
    }

    #[test]
    fn an_edit_shows_where_or_in_how_many_places() {
        let arguments = json!({"path": "a", "old": "x", "new": "y", "all": true});
        let mut known = Diff::of(&arguments).unwrap();
        known.replaces(9, Some("@@ -99,2 +98,2 @@\n a\n-b\n+wide words\n"), Some(1));
        let rows = [" 98   a", "100 - b", " 99 + wide ", "      words"];
        assert_eq!(known.rows(Paint::Plain, 11, 10), rows);
        let mut many = Diff::of(&arguments).unwrap();
        many.replaces(9, None, Some(3_000));
        assert_eq!(many.summary(), "+1 -1 in 3000 places");
        let rows = ["in 3000 places of the file:", "- x", "+ y"];
        assert_eq!(many.rows(Paint::Plain, 40, 10), rows);
    }

    #[test]
    fn a_write_shows_its_content_and_other_calls_nothing() {
        let diff = Diff::of(&json!({"path": "a", "content": "one\ntwo"})).unwrap();
        assert_eq!(diff.rows(Paint::Plain, 40, 10), ["+ one", "+ two"]);
        assert_eq!(Diff::of(&json!({"path": "a"})), None);
        assert_eq!(Diff::of(&json!({"command": "x"})), None);
    }
}
