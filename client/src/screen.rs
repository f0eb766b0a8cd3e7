//! The terminal as this program draws on it: rows that stand for good, and below them a panel that is drawn anew. Moves are
//! relative to the cursor, so nothing is ever asked of the terminal. Must never be written past by anybody else.

use crate::paint::only_colours;
use crate::render::styled::{clip, painted_width, rows_taken};
use crate::render::words::wrapped;
use std::borrow::Cow;
use std::io::{self, Write};

/// Programs that know these show a frame only once it is whole.
const BEGIN: &str = "\x1b[?2026h\x1b[?25l";
const END: &str = "\x1b[?25h\x1b[?2026l";

/// Around rows that are drawn anew. Where a terminal takes some character for wider, such a row is cut at its edge and is one row
/// all the same: else all moves from there on would be wrong.
const KEEP: &str = "\x1b[?7l";
const BREAK: &str = "\x1b[?7h";

/// Erases from the start of the row on. In two steps: some terminals take an erasure from the very first cell for a new
/// screen, and keep what is erased among what has scrolled away.
const ERASE: &str = "\r\x1b[K\x1b[C\x1b[J\r";

/// Columns and rows of the window; none where there is no terminal. One that does not know, as a serial line, tells zeros.
pub(crate) fn size() -> Option<(usize, usize)> {
    let (columns, rows) = crossterm::terminal::size().ok()?;
    let said = |name: &str| std::env::var(name).ok()?.trim().parse().ok();
    let known = |told: u16, name: &str, usual: usize| {
        let told = Some(usize::from(told)).filter(|told| *told > 0);
        let said = || said(name).filter(|said| *said > 0);
        told.or_else(said).unwrap_or(usual)
    };
    Some((known(columns, "COLUMNS", 80), known(rows, "LINES", 24)))
}

/// The rows at the bottom, and where the cursor stands in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Panel {
    pub(crate) rows: Vec<String>,
    /// Row and column.
    pub(crate) cursor: (usize, usize),
}

/// The terminal.
#[derive(Debug)]
pub(crate) struct Screen<W: Write> {
    out: W,
    size: (usize, usize),
    /// What stands at the bottom now.
    drawn: Panel,
    /// How many rows of the window are between its first one and the cursor: a window that was resized may have broken some.
    risen: usize,
    /// Rows that are to stand above it.
    above: String,
    /// Whether what stands there cannot be trusted to be where it was drawn.
    stale: bool,
}

impl<W: Write> Screen<W> {
    /// At the start of an empty line, with nothing drawn.
    pub(crate) fn new(out: W, size: (usize, usize)) -> Self {
        Self {
            out,
            size: (size.0.max(1), size.1.max(1)),
            drawn: Panel::default(),
            risen: 0,
            above: String::new(),
            stale: false,
        }
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Text that ends a line, to stand for good at the next drawing.
    pub(crate) fn write(&mut self, text: &str) {
        // What its writer did not break would be broken by the terminal, within words.
        self.above
            .push_str(&wrapped(&only_colours(text), self.size.0));
        if !text.is_empty() && !text.ends_with('\n') {
            self.above.push('\n');
        }
    }

    /// Whether something waits to be drawn.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.above.is_empty() || self.stale
    }

    /// The window has another size. A terminal breaks rows that have become too long into several, so the panel's first
    /// row is further up than it was.
    pub(crate) fn resize(&mut self, columns: usize, rows: usize) {
        let columns = columns.max(1);
        let above = &self.drawn.rows[..self.drawn.cursor.0.min(self.drawn.rows.len())];
        let taken: usize = above.iter().map(|row| rows_taken(row, columns)).sum();
        self.risen = taken + self.drawn.cursor.1 / columns;
        self.size = (columns, rows.max(1));
        self.stale = true;
    }

    /// Draws what waits and the panel.
    pub(crate) fn draw(&mut self, panel: Panel) -> io::Result<()> {
        let panel = self.fitted(panel);
        if panel == self.drawn && !self.is_waiting() {
            return Ok(());
        }
        let mut frame = String::from(BEGIN);
        if self.is_waiting() || panel.rows.len() != self.drawn.rows.len() {
            self.draw_all(&panel, &mut frame);
        } else {
            self.draw_changed(&panel, &mut frame);
        }
        frame.push_str(END);
        self.risen = panel.cursor.0;
        self.drawn = panel;
        self.stale = false;
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Takes the panel away: the cursor stands at the start of an empty line.
    pub(crate) fn leave(&mut self) -> io::Result<()> {
        let mut frame = up(self.risen) + ERASE;
        frame.push_str(&std::mem::take(&mut self.above).replace('\n', "\r\n"));
        frame.push_str("\x1b[?25h");
        self.drawn = Panel::default();
        self.risen = 0;
        self.stale = false;
        self.out.write_all(frame.as_bytes())?;
        self.out.flush()
    }

    /// Somebody else may have written: the next drawing is of everything.
    pub(crate) fn distrust(&mut self) {
        self.stale = true;
    }

    /// Empties the screen; what has scrolled away stays.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.drawn = Panel::default();
        self.risen = 0;
        self.stale = true;
        self.out.write_all(b"\x1b[2J\x1b[H")
    }

    /// Rings, or shows a message of the desktop where the terminal can.
    pub(crate) fn notify(&mut self, text: &str) -> io::Result<()> {
        let text: String = text
            .chars()
            .filter(|c| !c.is_control() && *c != ';')
            .collect();
        self.out
            .write_all(format!("\x1b]9;{text}\x07\x07").as_bytes())?;
        self.out.flush()
    }

    /// A panel that fits: no row reaches the last column, where terminals differ, and there are fewer rows than the
    /// window has. The last ones count most.
    fn fitted(&self, mut panel: Panel) -> Panel {
        let (columns, rows) = self.size;
        let most = rows.saturating_sub(1).max(1);
        let over = panel.rows.len().saturating_sub(most);
        panel.rows.drain(..over);
        panel.cursor.0 = panel.cursor.0.saturating_sub(over);
        panel.cursor.1 = panel.cursor.1.min(columns.saturating_sub(1));
        let room = columns.saturating_sub(1);
        for row in &mut panel.rows {
            if let Cow::Owned(harmless) = only_colours(row) {
                *row = harmless;
            }
            if painted_width(row) > room {
                *row = clip(row, room);
            }
        }
        panel
    }

    fn draw_all(&mut self, panel: &Panel, frame: &mut String) {
        frame.push_str(&up(self.risen));
        frame.push_str(ERASE);
        frame.push_str(&std::mem::take(&mut self.above).replace('\n', "\r\n"));
        frame.push_str(KEEP);
        frame.push_str(&panel.rows.join("\r\n"));
        frame.push_str(BREAK);
        let last = panel.rows.len().saturating_sub(1);
        frame.push_str(&up(last - panel.cursor.0.min(last)));
        frame.push_str(&column(panel.cursor.1));
    }

    fn draw_changed(&mut self, panel: &Panel, frame: &mut String) {
        let mut at = self.drawn.cursor.0;
        for (row, text) in panel.rows.iter().enumerate() {
            if self.drawn.rows[row] == *text {
                continue;
            }
            frame.push_str(&to_row(at, row));
            frame.push_str(&format!("\r\x1b[2K{KEEP}{text}{BREAK}"));
            at = row;
        }
        frame.push_str(&to_row(at, panel.cursor.0));
        frame.push_str(&column(panel.cursor.1));
    }
}

fn up(rows: usize) -> String {
    match rows {
        0 => String::new(),
        rows => format!("\x1b[{rows}A"),
    }
}

fn to_row(from: usize, to: usize) -> String {
    match to.checked_sub(from) {
        None => up(from - to),
        Some(0) => String::new(),
        Some(down) => format!("\x1b[{down}B"),
    }
}

fn column(column: usize) -> String {
    match column {
        0 => "\r".into(),
        column => format!("\r\x1b[{column}C"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(rows: &[&str], cursor: (usize, usize)) -> Panel {
        Panel {
            rows: rows.iter().map(|row| (*row).to_string()).collect(),
            cursor,
        }
    }

    /// What a frame writes, without the marks around it.
    fn frame(screen: &mut Screen<Vec<u8>>, panel: Panel) -> String {
        screen.out.clear();
        screen.draw(panel).unwrap();
        let text = String::from_utf8(screen.out.clone()).unwrap();
        text.trim_start_matches(BEGIN).trim_end_matches(END).into()
    }

    fn screen() -> Screen<Vec<u8>> {
        Screen::new(Vec::new(), (20, 10))
    }

    #[test]
    fn rows_for_good_go_above_the_panel() {
        let mut screen = screen();
        assert_eq!(
            frame(&mut screen, panel(&["> "], (0, 2))),
            format!("{ERASE}{KEEP}> {BREAK}\r\x1b[2C")
        );
        screen.write("one\ntwo");
        let drawn = frame(&mut screen, panel(&["> ", "status"], (0, 2)));
        assert_eq!(
            drawn,
            format!("{ERASE}one\r\ntwo\r\n{KEEP}> \r\nstatus{BREAK}\x1b[1A\r\x1b[2C")
        );
    }

    #[test]
    fn nothing_that_is_shown_steers_the_terminal() {
        let mut screen = screen();
        screen.write("a\x1b]0;title\x07");
        let drawn = frame(&mut screen, panel(&["> \x1b[36m@x\x1b[2Jy\x1b[0m"], (0, 2)));
        assert!(
            drawn.contains("a]0;title\r\n\x1b[?7l> \x1b[36m@x[2Jy\x1b[0m"),
            "{drawn:?}"
        );
    }

    #[test]
    fn only_what_changed_is_drawn_again() {
        let mut screen = screen();
        frame(&mut screen, panel(&["> ", "a"], (0, 2)));
        assert_eq!(frame(&mut screen, panel(&["> ", "a"], (0, 2))), "");
        let drawn = frame(&mut screen, panel(&["> x", "a"], (0, 3)));
        assert_eq!(drawn, format!("\r\x1b[2K{KEEP}> x{BREAK}\r\x1b[3C"));
    }

    #[test]
    fn a_narrower_window_breaks_rows_and_all_of_them_are_erased() {
        let mut screen = screen();
        frame(&mut screen, panel(&["0123456789abcdef", "> xy"], (1, 4)));
        screen.resize(8, 10);
        let drawn = frame(&mut screen, panel(&["> xy"], (0, 4)));
        assert!(drawn.starts_with(&format!("\x1b[2A{ERASE}")), "{drawn:?}");
    }

    #[test]
    fn a_window_that_changes_its_size_twice_before_it_is_drawn_is_reckoned_once() {
        let mut screen = screen();
        frame(
            &mut screen,
            panel(&["0123456789abcdef", "> xy", "status"], (1, 4)),
        );
        screen.resize(4, 10);
        screen.resize(18, 10);
        let drawn = frame(&mut screen, panel(&["> xy"], (0, 4)));
        assert!(drawn.starts_with(&format!("\x1b[1A{ERASE}")), "{drawn:?}");
    }

    #[test]
    fn a_panel_never_fills_the_window_nor_touches_its_last_column() {
        let mut screen = Screen::new(Vec::new(), (4, 3));
        let drawn = frame(&mut screen, panel(&["a", "b", "c", "defgh"], (3, 5)));
        assert_eq!(drawn, format!("{ERASE}{KEEP}c\r\ndef{BREAK}\r\x1b[3C"));
    }
}
