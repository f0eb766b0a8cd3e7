//! Styled text and how it breaks into rows. Widths are a terminal's columns; must never break inside a character.

use crate::paint::Paint;
use nu_ansi_term::Style;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

/// A run of text in one style.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) style: Style,
}

impl Piece {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
        }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Style::new())
    }
}

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.graphemes(true).map(cell).sum()
}

/// Columns of one character as people see it.
pub(crate) fn cell(grapheme: &str) -> usize {
    match grapheme {
        "\t" => 4,
        _ => grapheme.width().min(2),
    }
}

/// Columns of all pieces together.
pub(crate) fn width_of(pieces: &[Piece]) -> usize {
    pieces.iter().map(|piece| width(&piece.text)).sum()
}

/// A row as it is written: each run carries its own colours, and none leaks.
pub(crate) fn paint_row(paint: Paint, pieces: &[Piece]) -> String {
    let mut out = String::new();
    for piece in pieces.iter().filter(|piece| !piece.text.is_empty()) {
        let text = piece.text.replace('\t', "    ");
        if paint == Paint::Plain || piece.style.is_plain() {
            out.push_str(&text);
        } else {
            out.push_str(&piece.style.paint(text).to_string());
        }
    }
    out
}

/// How rows may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// Between words, and inside one that is longer than a row.
    Words,
    /// Anywhere: spaces count.
    Anywhere,
}

/// Breaks pieces into rows of at most `room` columns. A line break in the text is one in the rows.
pub(crate) fn wrap(pieces: &[Piece], room: usize, how: Break) -> Vec<Vec<Piece>> {
    let mut rows = Rows::new(room.max(2));
    for piece in pieces {
        for (at, line) in piece.text.split('\n').enumerate() {
            if at > 0 {
                rows.end();
            }
            match how {
                Break::Words => rows.words(line, piece.style),
                Break::Anywhere => rows.letters(line, piece.style),
            }
        }
    }
    rows.finish()
}

/// Rows under way. A word may consist of pieces in several styles, so it is held back until it is whole.
struct Rows {
    room: usize,
    done: Vec<Vec<Piece>>,
    row: Vec<Piece>,
    used: usize,
    word: Vec<Piece>,
    space: Vec<Piece>,
}

impl Rows {
    fn new(room: usize) -> Self {
        Self {
            room,
            done: Vec::new(),
            row: Vec::new(),
            used: 0,
            word: Vec::new(),
            space: Vec::new(),
        }
    }

    fn words(&mut self, line: &str, style: Style) {
        for grapheme in line.graphemes(true) {
            if grapheme.chars().all(char::is_whitespace) {
                self.settle();
                add(&mut self.space, grapheme, style);
            } else {
                add(&mut self.word, grapheme, style);
                // Wide characters break anywhere, as the languages that use them do.
                if cell(grapheme) == 2 {
                    self.settle();
                }
            }
        }
    }

    /// Puts the word on this row or the next.
    fn settle(&mut self) {
        if self.word.is_empty() {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let space = std::mem::take(&mut self.space);
        let (wide, gap) = (width_of(&word), width_of(&space));
        if self.used + gap + wide <= self.room {
            self.append(space);
            self.append(word);
            return;
        }
        if self.used > 0 {
            self.break_row();
        }
        match wide <= self.room {
            true => self.append(word),
            false => word
                .iter()
                .for_each(|piece| self.letters(&piece.text, piece.style)),
        }
    }

    fn letters(&mut self, text: &str, style: Style) {
        for grapheme in text.graphemes(true) {
            let wide = cell(grapheme);
            if self.used + wide > self.room {
                self.break_row();
            }
            add(&mut self.row, grapheme, style);
            self.used += wide;
        }
    }

    fn append(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            self.used += width(&piece.text);
            add(&mut self.row, &piece.text, piece.style);
        }
    }

    fn break_row(&mut self) {
        self.done.push(std::mem::take(&mut self.row));
        self.used = 0;
    }

    /// The end of a line.
    fn end(&mut self) {
        self.settle();
        self.space.clear();
        self.break_row();
    }

    fn finish(mut self) -> Vec<Vec<Piece>> {
        self.settle();
        self.done.push(self.row);
        self.done
    }
}

fn add(pieces: &mut Vec<Piece>, text: &str, style: Style) {
    match pieces.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => pieces.push(Piece::new(text, style)),
    }
}

/// As much of a painted row as fits; colours take no room.
pub(crate) fn clip(text: &str, room: usize) -> String {
    let (mut out, mut used, mut coloured) = (String::new(), 0, false);
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(length) = sequence(rest) {
            coloured = true;
            out.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let Some(grapheme) = rest.graphemes(true).next() else {
            break;
        };
        used += cell(grapheme);
        if used > room {
            break;
        }
        out.push_str(grapheme);
        rest = &rest[grapheme.len()..];
    }
    if coloured && !rest.is_empty() {
        out.push_str("\x1b[0m");
    }
    out
}

/// As much of a painted row as fits, with a mark where something is missing.
pub(crate) fn shortened(text: &str, room: usize) -> String {
    if painted_width(text) <= room {
        return text.to_string();
    }
    let cut = clip(text, room.saturating_sub(1));
    match cut.strip_suffix("\x1b[0m") {
        Some(cut) => format!("{}…\x1b[0m", cut.trim_end()),
        None => format!("{}…", cut.trim_end()),
    }
}

/// Plain text in so many columns, its end as well as its beginning where it is longer.
pub(crate) fn clip_middle(text: &str, room: usize) -> String {
    const GAP: &str = " … ";
    if width(text) <= room || room <= width(GAP) + 2 {
        return clip(text, room);
    }
    let left = room - width(GAP);
    let mut tail = String::new();
    for grapheme in text.graphemes(true).rev() {
        if width(&tail) + cell(grapheme) > left / 2 {
            break;
        }
        tail.insert_str(0, grapheme);
    }
    format!("{}{GAP}{tail}", clip(text, left - width(&tail)))
}

/// Columns of a painted row.
pub(crate) fn painted_width(text: &str) -> usize {
    cells(text).sum()
}

/// How many rows a terminal makes of a painted one that may be too long: a wide letter that has no room goes to the next.
pub(crate) fn rows_taken(text: &str, columns: usize) -> usize {
    let (mut rows, mut column) = (1, 0);
    for wide in cells(text) {
        if column + wide > columns && column > 0 {
            rows += 1;
            column = 0;
        }
        column += wide;
    }
    rows
}

/// Columns of each character of a painted row.
fn cells(text: &str) -> impl Iterator<Item = usize> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while let Some(length) = sequence(rest) {
            rest = &rest[length..];
        }
        let grapheme = rest.graphemes(true).next()?;
        rest = &rest[grapheme.len()..];
        Some(cell(grapheme))
    })
}

/// The length of the colour sequence that a text begins with.
pub(super) fn sequence(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\x1b[")?;
    inner
        .find(|c: char| c.is_ascii_alphabetic())
        .map(|end| end + 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nu_ansi_term::Color;

    fn rows(text: &str, room: usize) -> Vec<String> {
        let wrapped = wrap(&[Piece::plain(text)], room, Break::Words);
        wrapped
            .iter()
            .map(|row| paint_row(Paint::Plain, row))
            .collect()
    }

    #[test]
    fn words_stay_whole_and_long_ones_break() {
        assert_eq!(rows("one two three", 8), ["one two", "three"]);
        assert_eq!(rows("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(rows("a\nb", 8), ["a", "b"]);
    }

    #[test]
    fn wide_characters_take_two_columns_and_emoji_stay_whole() {
        assert_eq!(rows("日本語", 5), ["日本", "語"]);
        assert_eq!(rows("a👩‍👩‍👧b", 2), ["a", "👩‍👩‍👧", "b"]);
        assert_eq!(width("é👍🏽"), 3);
    }

    #[test]
    fn every_row_fits_at_every_width() {
        let text = "Grüße aus 東京, 👩‍👩‍👧 and averyveryverylongword\n\tend";
        for room in 2..40 {
            for row in rows(text, room) {
                let tab_alone = room < 4 && row.contains("    ");
                assert!(width(&row) <= room || tab_alone, "{row:?} at {room}");
            }
        }
    }

    #[test]
    fn a_word_in_two_styles_is_one_word() {
        let bold = Style::new().bold();
        let pieces = [Piece::plain("x to"), Piece::new("gether", bold)];
        let wrapped = wrap(&pieces, 9, Break::Words);
        assert_eq!(wrapped.len(), 2);
        assert_eq!(wrapped[1], [Piece::plain("to"), Piece::new("gether", bold)]);
    }

    #[test]
    fn a_wide_letter_without_room_begins_another_row() {
        let red = Style::new()
            .fg(Color::Red)
            .paint("日本語日本語")
            .to_string();
        assert_eq!(rows_taken(&red, 12), 1);
        assert_eq!(rows_taken(&red, 4), 3);
        assert_eq!(rows_taken(&red, 3), 6);
        assert_eq!((rows_taken("", 3), rows_taken("日", 1)), (1, 1));
    }

    #[test]
    fn clipping_counts_no_colours_and_leaks_none() {
        let red = Style::new().fg(Color::Red).paint("abc").to_string();
        assert_eq!(clip(&red, 2), "\x1b[31mab\x1b[0m");
        assert_eq!(clip("日本語", 5), "日本");
        assert_eq!(painted_width(&red), 3);
        assert_eq!(shortened(&red, 2), "\x1b[31ma…\x1b[0m");
        assert_eq!(shortened("sleep 1; ls", 9), "sleep 1;…");
        assert_eq!(shortened("sleep 1; ls", 11), "sleep 1; ls");
    }
}
