//! Text that streams to a terminal that cannot be drawn on, in rows that break between words. Must never take back what
//! it gave out, nor touch a line of code or of a table.

use super::styled::{cell, width};
use unicode_segmentation::UnicodeSegmentation as _;

/// How many columns a row may be indented by, as a part of all.
const INDENT: usize = 3;

/// The line so far, and the word at its end, which is held back until it is known where it belongs.
#[derive(Debug)]
pub(super) struct Breaker {
    room: usize,
    /// Columns taken in the row.
    column: usize,
    /// Spaces before the word; they go where the row breaks.
    spaces: String,
    word: String,
    /// What further rows of this line are indented by.
    indent: usize,
    line: Line,
    /// The mark of the fence that is open: which character, how many.
    fence: Option<(char, usize)>,
}

/// What is known of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Nothing was placed yet.
    Begins,
    /// Words.
    Prose,
    /// Code, or a row of a table: as it is.
    Verbatim,
}

impl Breaker {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room: room.max(1),
            column: 0,
            spaces: String::new(),
            word: String::new(),
            indent: 0,
            line: Line::Begins,
            fence: None,
        }
    }

    pub(super) fn set_room(&mut self, room: usize) {
        self.room = room.max(1);
    }

    /// What may go out of a further piece.
    pub(super) fn push(&mut self, text: &str) -> String {
        let mut out = String::new();
        for c in text.chars() {
            match c {
                '\n' => self.end_line(&mut out),
                c if self.line == Line::Verbatim => out.push(c),
                ' ' | '\t' => {
                    self.place_word(&mut out);
                    match self.line {
                        Line::Verbatim => out.push(c),
                        Line::Begins | Line::Prose => self.spaces.push(c),
                    }
                }
                c => self.word.push(c),
            }
        }
        self.place_ahead(&mut out);
        out
    }

    /// What was held back, where a text ends without a line break.
    pub(super) fn finish(&mut self) -> String {
        let mut out = String::new();
        self.place_word(&mut out);
        *self = Self::new(self.room);
        out
    }

    fn end_line(&mut self, out: &mut String) {
        self.place_word(out);
        out.push('\n');
        let fence = self.fence.take();
        *self = Self {
            fence,
            ..Self::new(self.room)
        };
    }

    /// Gives out a word that has ended.
    fn place_word(&mut self, out: &mut String) {
        let word = std::mem::take(&mut self.word);
        if word.is_empty() {
            return;
        }
        if self.line == Line::Begins {
            self.begin(&word);
        }
        if self.line == Line::Verbatim {
            out.push_str(&std::mem::take(&mut self.spaces));
            return out.push_str(&word);
        }
        for part in parts(&word) {
            self.place(part, out);
        }
    }

    /// Wide letters part words by themselves: all but the last need not be held back.
    fn place_ahead(&mut self, out: &mut String) {
        if self.line != Line::Prose {
            return;
        }
        let word = std::mem::take(&mut self.word);
        let mut known: Vec<&str> = parts(&word).collect();
        let last = known.pop().unwrap_or_default();
        for part in known {
            self.place(part, out);
        }
        self.word = last.to_owned();
    }

    /// What kind of line its first word makes it.
    fn begin(&mut self, word: &str) {
        let deep = self.spaces.contains('\t') || self.spaces.len() >= 4;
        let mark = fence_of(word);
        let marks = is_marker(word);
        self.line = match self.fence {
            Some((open, count)) => {
                if mark.is_some_and(|(c, long)| c == open && long >= count) {
                    self.fence = None;
                }
                Line::Verbatim
            }
            None if mark.is_some() => {
                self.fence = mark;
                Line::Verbatim
            }
            None if word.starts_with('|') || (deep && !marks) => Line::Verbatim,
            None => Line::Prose,
        };
        let hanging = if marks { width(word) + 1 } else { 0 };
        self.indent = (self.spaces.len() + hanging).min(self.room / INDENT);
    }

    /// Puts what must not break where there is room for it.
    fn place(&mut self, part: &str, out: &mut String) {
        let wide = width(part);
        let gap = std::mem::take(&mut self.spaces);
        if self.column + gap.len() + wide <= self.room {
            out.push_str(&gap);
            self.column += gap.len();
        } else if self.column > self.indent {
            self.break_row(out);
        }
        if self.column + wide <= self.room {
            out.push_str(part);
            self.column += wide;
            return;
        }
        for grapheme in part.graphemes(true) {
            if self.column + cell(grapheme) > self.room && self.column > self.indent {
                self.break_row(out);
            }
            out.push_str(grapheme);
            self.column += cell(grapheme);
        }
    }

    fn break_row(&mut self, out: &mut String) {
        out.push('\n');
        out.push_str(&" ".repeat(self.indent));
        self.column = self.indent;
    }
}

/// A word between the places where it may break: beside each wide letter.
fn parts(word: &str) -> impl Iterator<Item = &str> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let first = rest.graphemes(true).next()?;
        let narrow = || rest.graphemes(true).take_while(|one| cell(one) < 2);
        let length = match cell(first) {
            2.. => first.len(),
            _ => narrow().map(str::len).sum(),
        };
        let (part, after) = rest.split_at(length);
        rest = after;
        Some(part)
    })
}

/// The fence that a line's first word is.
fn fence_of(word: &str) -> Option<(char, usize)> {
    let mark = word.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let count = word.chars().take_while(|c| *c == mark).count();
    (count >= 3).then_some((mark, count))
}

/// Whether a line's first word begins an item or a quotation.
fn is_marker(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']);
    matches!(word, "-" | "*" | "+" | ">" | "•")
        || number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In one piece, and in pieces of each length: the same.
    #[track_caller]
    fn broken(text: &str, room: usize) -> String {
        let whole = |size: usize| {
            let mut breaker = Breaker::new(room);
            let letters: Vec<char> = text.chars().collect();
            let pieces = letters.chunks(size).map(|piece| piece.iter().collect());
            let mut out: String = pieces.map(|piece: String| breaker.push(&piece)).collect();
            out.push_str(&breaker.finish());
            out
        };
        let once = whole(usize::MAX >> 1);
        for size in 1..9 {
            assert_eq!(whole(size), once, "in pieces of {size}");
        }
        once
    }

    #[test]
    fn rows_break_between_words_and_words_that_are_too_long_anywhere() {
        assert_eq!(broken("one two three\nfour", 9), "one two\nthree\nfour");
        assert_eq!(broken("a 0123456789ab c", 6), "a\n012345\n6789ab\nc");
        assert_eq!(broken("fits\n\n  in\n", 4), "fits\n\n  in\n");
    }

    #[test]
    fn wide_letters_take_two_columns_and_part_words() {
        assert_eq!(broken("日本語のテキスト", 7), "日本語\nのテキ\nスト");
        assert_eq!(broken("ab👩‍👩‍👧c e\u{301}f", 4), "ab👩‍👩‍👧\nc e\u{301}f");
    }

    #[test]
    fn further_rows_of_an_item_stand_below_its_text() {
        assert_eq!(broken("- one two three", 9), "- one two\n  three");
        assert_eq!(broken("  12. one two", 12), "  12. one\n    two");
    }

    #[test]
    fn code_and_tables_are_left_alone() {
        let code = "```rust\nfn main() { a long line }\n```\nword word\n";
        assert_eq!(broken(code, 8), code.replace("word word", "word\nword"));
        for line in [
            "    indented by four\n",
            "| a | table | row |\n",
            "\ttab and tab\n",
        ] {
            assert_eq!(broken(line, 8), line);
        }
    }
}
