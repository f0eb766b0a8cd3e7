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
        let Some(end) = self.partial.rfind('\n') else {
            return Ok(());
        };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        if self.typing {
            self.above.push(&whole);
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

    /// The line editor takes over: the unfinished line is held back until it is finished.
    pub(super) fn begin_typing(&mut self) -> io::Result<()> {
        self.hide_status()?;
        if !self.partial.is_empty() {
            let rows = width(&self.partial).saturating_sub(1) / columns();
            let up = match rows {
                0 => String::new(),
                rows => format!("\x1b[{rows}A"),
            };
            put(&format!("\r{up}\x1b[J"))?;
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

/// How many columns a text takes, colours aside.
fn width(text: &str) -> usize {
    visible(text).map(|c| c.width().unwrap_or(0)).sum()
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

/// The characters of a text without its colours, which are the only sequences that ever get here.
fn visible(text: &str) -> impl Iterator<Item = char> {
    let mut within = false;
    text.chars().filter(move |c| match (*c, within) {
        ('\x1b', _) => {
            within = true;
            false
        }
        ('m', true) => {
            within = false;
            false
        }
        (_, within) => !within,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_take_no_room() {
        assert_eq!(width("\x1b[2mgrün\x1b[0m 日本"), 9);
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
