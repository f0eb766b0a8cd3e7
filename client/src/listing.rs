//! How sessions stand in a list: a row each, in columns. Must never ask the daemon for anything.

use crate::paint::{Paint, Part, one_line};
use crate::render::styled::{clip, width};
use crate::render::{cut, first_line};
use protocol::session::{Session, SessionState};
use unicode_segmentation::UnicodeSegmentation as _;

/// Cells of a row: id, state, age, title, directory.
pub(crate) type Cells = [String; 5];

/// The least room that title and directory share.
const NARROW: usize = 12;
/// What is left of an id in a window that has not even that.
const SHORT_ID: usize = 14;

/// The columns that give way where the window is narrow.
const TITLE: usize = 3;
const DIRECTORY: usize = 4;

/// What a list tells of a session.
pub(crate) fn cells(session: &Session, now: u64) -> Cells {
    [
        session.id.to_string(),
        session.state.as_str().to_string(),
        age(now.saturating_sub(session.updated_at)),
        titled(session),
        directory(&session.cwd),
    ]
}

/// A directory on one line, with `~` for the home directory.
pub(crate) fn directory(cwd: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    let short = cwd.strip_prefix(&home).filter(|rest| {
        let whole = rest.is_empty() || rest.starts_with('/');
        whole && !home.is_empty()
    });
    match short {
        Some(rest) => one_line(&format!("~{rest}")),
        None => one_line(cwd),
    }
}

fn titled(session: &Session) -> String {
    let title = first_line(&session.title);
    match (&session.parent, &session.task) {
        (Some(parent), Some(_)) => cut(&format!("(task of {parent}) {title}"), 70),
        _ => cut(&title, 50),
    }
}

/// Columns as wide as their widest cell; in a narrow window titles and the beginnings of directories give way.
pub(crate) fn table(rows: &[Cells], columns: Option<usize>) -> Vec<String> {
    let widest = |column: usize| {
        rows.iter()
            .map(|row| width(&row[column]))
            .max()
            .unwrap_or(0)
    };
    let mut widths: [usize; 5] = std::array::from_fn(widest);
    if let Some(columns) = columns {
        let fixed = widths[..TITLE].iter().sum::<usize>() + 8;
        let room = columns.saturating_sub(fixed);
        if room < NARROW {
            widths = narrow(widths, columns);
            return lines(rows, &widths, Some(columns));
        }
        // A title gives way only until it has two thirds.
        let left = room.saturating_sub(widths[DIRECTORY]);
        widths[TITLE] = widths[TITLE].min(left.max(room - room / 3));
        widths[DIRECTORY] = room.saturating_sub(widths[TITLE]);
    }
    lines(rows, &widths, columns)
}

/// Where a title has no room beside the rest, it counts more than age and directory and the end of an id.
fn narrow(widest: [usize; 5], columns: usize) -> [usize; 5] {
    let id = widest[0].min(SHORT_ID);
    let state = widest[1];
    let title = columns.saturating_sub(id + state + 4);
    [id, state, 0, title.min(widest[TITLE]), 0]
}

fn lines(rows: &[Cells], widths: &[usize; 5], columns: Option<usize>) -> Vec<String> {
    let line = |row: &Cells| {
        let mut text = String::new();
        for (cell, wide) in row.iter().zip(widths).take(DIRECTORY) {
            if *wide == 0 && columns.is_some() {
                continue;
            }
            let cell = start_of(cell, *wide);
            let gap = " ".repeat(wide.saturating_sub(width(&cell)) + 2);
            text.push_str(&format!("{cell}{gap}"));
        }
        if widths[DIRECTORY] > 0 || columns.is_none() {
            text.push_str(&end_of(&row[DIRECTORY], widths[DIRECTORY]));
        }
        let text = text.trim_end().to_string();
        // A row is to have one line of the window.
        columns.map_or_else(|| text.clone(), |columns| clip(&text, columns))
    };
    rows.iter().map(line).collect()
}

/// As much of a text as there is room for.
fn start_of(text: &str, room: usize) -> String {
    match width(text) > room && room > 0 {
        true => clip(text, room - 1) + "…",
        false => clip(text, room),
    }
}

/// As much of a path as there is room for: its end tells more than its beginning.
fn end_of(path: &str, room: usize) -> String {
    if width(path) <= room {
        return path.to_string();
    }
    let mut end = String::new();
    for grapheme in path.graphemes(true).rev() {
        if width(grapheme) + width(&end) + 1 > room {
            break;
        }
        end.insert_str(0, grapheme);
    }
    format!("…{end}")
}

/// The row in colours: its state's, and where it is given one the id's.
pub(crate) fn dressed(paint: Paint, row: &str, session: &Session, id: Option<Part>) -> String {
    let name = session.id.as_str();
    let (before, rest) = match (row.strip_prefix(name), id) {
        (Some(rest), Some(part)) => (paint.dress(part, name), rest),
        (Some(rest), None) => (name.to_string(), rest),
        (None, _) => return row.to_string(),
    };
    let word = session.state.as_str();
    let after = match colour(session.state) {
        Some(part) => rest.replacen(word, &paint.dress(part, word), 1),
        None => rest.to_string(),
    };
    before + &after
}

fn colour(state: SessionState) -> Option<Part> {
    match state {
        SessionState::Idle => None,
        SessionState::Running => Some(Part::Good),
        SessionState::Waiting => Some(Part::Ask),
        SessionState::Failed => Some(Part::Bad),
    }
}

/// How long ago, in one unit.
pub(crate) fn age(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// In milliseconds since the Unix epoch.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        assert_eq!(age(0), "0s");
        assert_eq!(age(61_000), "1m");
        assert_eq!(age(7_200_000), "2h");
        assert_eq!(age(200_000_000), "2d");
    }

    #[test]
    fn a_narrow_window_has_a_line_for_each_row() {
        let row = |title: &str, cwd: &str| {
            ["swift-otter-abc123", "idle", "1s", title, cwd].map(String::from)
        };
        let lines = table(&[row(&"long ".repeat(9), "~/here")], Some(60));
        assert!(
            width(&lines[0]) <= 60 && lines[0].ends_with("~/here"),
            "{lines:?}"
        );
        let deep = format!("/srv/{}/the/end", "d".repeat(80));
        let lines = table(&[row("short", &deep)], Some(60));
        assert!(
            width(&lines[0]) <= 60 && lines[0].ends_with("d/the/end") && lines[0].contains('…'),
            "{lines:?}"
        );
    }

    #[test]
    fn a_very_narrow_window_shows_titles_before_ages_and_directories() {
        let row = [
            "swift-otter-abc123",
            "waiting",
            "12s",
            "mend the build",
            "~/here",
        ];
        let lines = table(&[row.map(String::from)], Some(38));
        assert_eq!(lines, ["swift-otter-a…  waiting  mend the bui…"]);
    }

    #[test]
    fn columns_line_up() {
        let row = |cells: [&str; 5]| cells.map(String::from);
        let rows = [
            row(["a", "idle", "1s", "grün", "/x"]),
            row(["bcd", "running", "10s", "", "/y"]),
        ];
        assert_eq!(
            table(&rows, None),
            ["a    idle     1s   grün  /x", "bcd  running  10s        /y"]
        );
    }
}
