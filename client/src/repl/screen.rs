//! The terminal as the REPL writes on it: straight on while nothing is typed, above the line being typed otherwise,
//! and one line of status that comes and goes. Must never be written past by anybody else.

use super::input::Above;
use std::io::{self, Write};
use unicode_width::UnicodeWidthChar;

/// What stands on the terminal below the last finished line.
#[derive(Debug)]
pub(super) struct Screen {
    above: Above,
    /// Text of the line that is not finished, with its colours.
    partial: String,
    /// Whether a status stands on the line of the cursor.
    status: bool,
    /// Whether a line is being typed, so that the terminal's last rows belong to the line editor.
    typing: bool,
}

impl Screen {
    /// At the start of an empty line.
    pub(super) fn new(above: Above) -> Self {
        Self {
            above,
            partial: String::new(),
            status: false,
            typing: false,
        }
    }

    /// Writes text; it need not end a line.
    pub(super) fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.hide_status()?;
        if !self.typing {
            put(text)?;
        }
        self.partial.push_str(text);
        if let Some(end) = self.partial.rfind('\n') {
            let rest = self.partial.split_off(end + 1);
            let whole = std::mem::replace(&mut self.partial, rest);
            if self.typing {
                self.above.push(&whole);
            }
        }
        if self.typing {
            let (rows, rest) = split_rows(&self.partial, columns());
            for row in rows {
                self.above.push(&(row + "\n"));
            }
            self.partial = rest;
        }
        Ok(())
    }

    /// Writes a line of its own.
    pub(super) fn line(&mut self, text: &str) -> io::Result<()> {
        if !self.partial.is_empty() {
            self.write("\n")?;
        }
        self.write(&format!("{text}\n"))
    }

    /// The line editor takes over. Full rows of the unfinished line stay where they are; what stands on its last row
    /// is held back until the row is full or the line editor is done, so that nothing ever looks torn.
    pub(super) fn begin_typing(&mut self) -> io::Result<()> {
        self.hide_status()?;
        if !self.partial.is_empty() {
            let (_, rest) = split_rows(&self.partial, columns());
            // After a full row the cursor still stands on it.
            put(if rest.is_empty() { "\n" } else { "\r\x1b[J" })?;
            self.partial = rest;
        }
        self.typing = true;
        Ok(())
    }

    /// The line editor is done, and the cursor stands at the start of a line.
    pub(super) fn end_typing(&mut self) -> io::Result<()> {
        if !self.typing {
            return Ok(());
        }
        self.typing = false;
        put(&self.above.take())?;
        put(&self.partial)
    }

    /// Whether the terminal's last rows belong to the line editor.
    pub(super) fn is_typing(&self) -> bool {
        self.typing
    }

    /// Takes an empty prompt off the screen.
    pub(super) fn erase_prompt(&self) -> io::Result<()> {
        put("\r\x1b[J")
    }

    /// Shows what runs, where nothing else stands on the line.
    pub(super) fn show_status(&mut self, text: &str) -> io::Result<()> {
        if self.typing || !self.partial.is_empty() {
            return Ok(());
        }
        self.status = true;
        let room = columns().saturating_sub(1);
        put(&format!("\r\x1b[K\x1b[2m{}\x1b[0m", fit(text, room)))
    }

    fn hide_status(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.status) {
            return Ok(());
        }
        put("\r\x1b[K")
    }

    /// Leaves the terminal with the cursor at the start of a line.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        self.hide_status()?;
        self.end_typing()?;
        if !self.partial.is_empty() {
            self.write("\n")?;
        }
        Ok(())
    }
}

/// Line breaks carry a return: the terminal may be raw or not.
fn put(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.replace('\n', "\r\n").as_bytes())?;
    stdout.flush()
}

fn columns() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns).max(1))
}

/// As much of a text as fits.
fn fit(text: &str, room: usize) -> String {
    let mut left = room;
    text.chars()
        .take_while(|c| {
            let width = c.width().unwrap_or(0);
            let fits = width <= left;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

/// A text as the terminal breaks it: full rows, and what stands on the last one. Each part carries its colours.
fn split_rows(text: &str, columns: usize) -> (Vec<String>, String) {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    // The colour that holds here; colours are the only sequences that ever get here.
    let mut colour = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c == '\x1b' {
            colour = format!("{c}{}", take_through(&mut chars, 'm'));
            row.push_str(&colour);
            if colour == RESET {
                colour.clear();
            }
            continue;
        }
        let width = c.width().unwrap_or(0);
        if used + width > columns {
            rows.push(end_row(&mut row, &colour));
            used = 0;
        }
        row.push(c);
        used += width;
    }
    if used == columns {
        rows.push(end_row(&mut row, &colour));
    }
    (rows, row)
}

const RESET: &str = "\x1b[0m";

/// Ends a row without its colour leaking, and begins the next one with it.
fn end_row(row: &mut String, colour: &str) -> String {
    let mut whole = std::mem::replace(row, colour.to_string());
    if !colour.is_empty() {
        whole.push_str(RESET);
    }
    whole
}

/// The characters up to one of a kind, and that one.
fn take_through(chars: &mut std::str::Chars<'_>, last: char) -> String {
    let mut taken = String::new();
    for c in chars.by_ref() {
        taken.push(c);
        if c == last {
            break;
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_break_where_the_terminal_breaks_them() {
        let split = |text: &str, columns| {
            let (rows, rest) = split_rows(text, columns);
            (rows.join("|"), rest)
        };
        assert_eq!(split("abc", 4), (String::new(), "abc".into()));
        assert_eq!(split("abcd", 4), ("abcd".into(), String::new()));
        assert_eq!(split("abcdefghi", 4), ("abcd|efgh".into(), "i".into()));
        assert_eq!(split("grü日本x", 4), ("grü|日本".into(), "x".into()));
    }

    #[test]
    fn a_colour_goes_on_in_the_next_row() {
        let (rows, rest) = split_rows("a\x1b[2mbcd\x1b[0me", 3);
        assert_eq!(rows, ["a\x1b[2mbc\x1b[0m"]);
        assert_eq!(rest, "\x1b[2md\x1b[0me");
    }

    #[test]
    fn a_status_never_wraps() {
        assert_eq!(fit("abcdef", 4), "abcd");
        assert_eq!(fit("日本語", 5), "日本");
    }

    #[test]
    fn finished_lines_go_above_while_a_line_is_typed() {
        let above = Above::default();
        let mut screen = Screen::new(above.clone());
        screen.typing = true;
        screen.write("one\ntw").unwrap();
        screen.write("o\nthree").unwrap();
        assert_eq!(above.take(), "one\ntwo\n");
        assert_eq!(screen.partial, "three");
    }
}
