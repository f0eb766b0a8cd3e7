//! Painted lines of any origin in rows that break between words. Must never drop or reorder a character.

use super::styled::{cell, painted_width, sequence};
use unicode_segmentation::UnicodeSegmentation as _;

/// Each line in rows of at most so many columns; where it goes on, it is indented as it began. A word that is longer than a
/// row breaks where the row ends, and a line that fits stays as it is.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        match painted_width(line.trim_end_matches('\n')) <= columns {
            true => out.push_str(line),
            false => wrap_line(line, columns, &mut out),
        }
    }
    out
}

fn wrap_line(line: &str, columns: usize, out: &mut String) {
    let indent = " ".repeat(indent_of(line).min(columns / 3));
    // The row so far, and the word at its end that may have to go to the next one.
    let (mut row, mut word) = (0, String::new());
    let mut wide = 0;
    // What it is indented by belongs to the first word.
    let mut begun = false;
    let mut rest = line;
    while !rest.is_empty() {
        if let Some(length) = sequence(rest) {
            word.push_str(&rest[..length]);
            rest = &rest[length..];
            continue;
        }
        let grapheme = rest.graphemes(true).next().unwrap_or(rest);
        rest = &rest[grapheme.len()..];
        if grapheme == "\n" {
            break;
        }
        let taken = cell(grapheme);
        if grapheme == " " && (begun || wide > indent_of(line)) {
            begun = true;
            out.push_str(&word);
            out.push_str(grapheme);
            row += wide + taken;
            (word, wide) = (String::new(), 0);
            continue;
        }
        if row + wide + taken > columns {
            if row > indent.len() {
                out.truncate(out.trim_end_matches(' ').len());
                out.push('\n');
                out.push_str(&indent);
                row = indent.len();
            }
            if row + wide + taken > columns {
                out.push_str(&word);
                out.push('\n');
                out.push_str(&indent);
                (word, wide, row) = (String::new(), 0, indent.len());
                begun = true;
            }
        }
        word.push_str(grapheme);
        wide += taken;
    }
    out.push_str(&word);
    if line.ends_with('\n') {
        out.push('\n');
    }
}

/// How many spaces a painted line begins with.
fn indent_of(line: &str) -> usize {
    let (mut spaces, mut rest) = (0, line);
    loop {
        if let Some(length) = sequence(rest) {
            rest = &rest[length..];
        } else if let Some(after) = rest.strip_prefix(' ') {
            spaces += 1;
            rest = after;
        } else {
            return spaces;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_as_they_began() {
        let table = [
            ("one two three", 8, "one two\nthree"),
            ("  one two three\n", 9, "  one two\n  three\n"),
            ("short\nalso one more\n", 9, "short\nalso one\nmore\n"),
            ("abcdefghij", 4, "abcd\nefgh\nij"),
            ("a bcdefghij k", 4, "a\nbcde\nfghi\nj k"),
            (
                "\u{1b}[31mone two\u{1b}[0m three",
                8,
                "\u{1b}[31mone two\u{1b}[0m\nthree",
            ),
            ("grün 😀😀 x", 8, "grün\n😀😀 x"),
            ("", 8, ""),
        ];
        for (text, columns, expected) in table {
            assert_eq!(wrapped(text, columns), expected, "{text:?} in {columns}");
        }
    }

    #[test]
    fn nothing_is_lost_and_no_row_is_too_wide() {
        let text = "    \u{1b}[36m→ write\u{1b}[0m a/very/long/path/of/a/file.rs with words, 漢字漢字漢字 and more";
        let solid = |text: &str| text.replace([' ', '\n'], "");
        for columns in 6..90 {
            let rows = wrapped(text, columns);
            assert_eq!(solid(&rows), solid(text), "{columns}");
            for row in rows.lines() {
                assert!(painted_width(row) <= columns, "{columns}: {row:?}");
            }
        }
    }
}
