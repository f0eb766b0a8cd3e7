//! Colours for code: comments, strings, numbers and keywords of the usual languages, a line at a time. A table and a
//! scanner instead of grammars, which would weigh more than the rest of this program. Must never change the text.

mod language;

use super::styled::Piece;
use language::{Language, find};
use nu_ansi_term::{Color, Style};

/// Colours the lines of one block of code.
#[derive(Clone, Debug)]
pub(crate) struct Highlighter {
    language: Option<&'static Language>,
    /// What began on an earlier line and has not ended.
    open: Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    Nothing,
    Comment(&'static str),
    Text(&'static str),
}

impl Highlighter {
    /// By the word behind a fence, or the end of a file's name.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            language: find(name),
            open: Open::Nothing,
        }
    }

    /// One line, without its break.
    pub(crate) fn line(&mut self, line: &str) -> Vec<Piece> {
        match self.language {
            None => vec![Piece::plain(line)],
            Some(language) if language.is_diff() => vec![Piece::new(line, diff_style(line))],
            Some(language) => self.scan(language, line),
        }
    }

    fn scan(&mut self, language: &'static Language, line: &str) -> Vec<Piece> {
        let mut out = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (length, style) = self.token(language, rest);
            let (token, behind) = rest.split_at(length.clamp(1, rest.len()));
            push(&mut out, token, style);
            rest = behind;
        }
        out
    }

    /// The length of the next token, on a character's boundary, and its style.
    fn token(&mut self, language: &'static Language, rest: &str) -> (usize, Style) {
        match self.open {
            Open::Comment(end) => return (self.until(rest, end), comment()),
            Open::Text(end) => return (self.until(rest, end), string()),
            Open::Nothing => {}
        }
        if language.line.iter().any(|mark| rest.starts_with(mark)) {
            return (rest.len(), comment());
        }
        let starts = |(start, _): &&(&str, &str)| rest.starts_with(*start);
        if let Some((start, end)) = language.block.iter().find(starts) {
            self.open = Open::Comment(end);
            return (start.len(), comment());
        }
        if let Some(end) = language.long.iter().find(|mark| rest.starts_with(**mark)) {
            self.open = Open::Text(end);
            return (end.len(), string());
        }
        let first = rest.chars().next().unwrap_or(' ');
        if language.quotes.contains(first) {
            return match quoted(rest, first) {
                // An apostrophe that nothing ends, such as a lifetime's, is no text.
                1 => (1, Style::new()),
                length => (length, string()),
            };
        }
        if first.is_ascii_digit() {
            return (
                while_of(rest, |c| {
                    c.is_ascii_alphanumeric() || matches!(c, '.' | '_')
                }),
                number(),
            );
        }
        if is_word(first) {
            let length = while_of(rest, is_word);
            return (length, language.style_of(&rest[..length], &rest[length..]));
        }
        (first.len_utf8(), Style::new())
    }

    /// Up to and with the end of what is open, or all.
    fn until(&mut self, rest: &str, end: &str) -> usize {
        match rest.find(end) {
            Some(at) => {
                self.open = Open::Nothing;
                at + end.len()
            }
            None => rest.len(),
        }
    }
}

impl Language {
    fn style_of(&self, word: &str, behind: &str) -> Style {
        let known = self
            .keywords
            .split(' ')
            .any(|keyword| match self.folds_case {
                true => keyword.eq_ignore_ascii_case(word),
                false => keyword == word,
            });
        match () {
            () if known => Style::new().fg(Color::Magenta),
            () if behind.starts_with('(') => Style::new().fg(Color::Blue),
            () => Style::new(),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn while_of(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// The length of a text in quotes, which ends with its line at the latest.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    if quote == '\'' { 1 } else { text.len() }
}

fn diff_style(line: &str) -> Style {
    match line.chars().next() {
        Some('+') => Style::new().fg(Color::Green),
        Some('-') => Style::new().fg(Color::Red),
        Some('@') => Style::new().fg(Color::Cyan),
        _ => Style::new(),
    }
}

fn comment() -> Style {
    Style::new().dimmed()
}

fn string() -> Style {
    Style::new().fg(Color::Green)
}

fn number() -> Style {
    Style::new().fg(Color::Yellow)
}

fn push(out: &mut Vec<Piece>, text: &str, style: Style) {
    match out.last_mut() {
        Some(last) if last.style == style => last.text.push_str(text),
        _ => out.push(Piece::new(text, style)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn styles(language: &str, lines: &[&str]) -> Vec<(String, Style)> {
        let mut highlighter = Highlighter::new(language);
        let pieces = lines.iter().flat_map(|line| highlighter.line(line));
        pieces.map(|piece| (piece.text, piece.style)).collect()
    }

    #[test]
    fn keywords_strings_numbers_and_comments_differ() {
        let all = styles("rust", &["let x = f(\"a\\\"b\", 0x1f); // end"]);
        let find = |text: &str| {
            all.iter()
                .find(|(one, _)| one == text)
                .map(|(_, style)| *style)
        };
        assert_eq!(find("let"), Some(Style::new().fg(Color::Magenta)));
        assert_eq!(find("\"a\\\"b\""), Some(string()));
        assert_eq!(find("0x1f"), Some(number()));
        assert_eq!(find("// end"), Some(comment()));
    }

    #[test]
    fn a_comment_goes_on_until_it_ends() {
        let all = styles("c", &["/* a", "b */ return"]);
        assert_eq!(all[0], ("/* a".into(), comment()));
        assert_eq!(all[1], ("b */".into(), comment()));
        assert_eq!(
            all.last(),
            Some(&("return".into(), Style::new().fg(Color::Magenta)))
        );
    }

    #[test]
    fn a_lifetime_is_no_text() {
        let all = styles("rs", &["&'a str"]);
        assert!(all.iter().all(|(_, style)| *style != string()), "{all:?}");
    }

    proptest! {
        #[test]
        fn no_text_is_changed(lines in proptest::collection::vec("[^\n]{0,30}", 0..5), name in "rust|py|sh|html|sql|none|diff") {
            let mut highlighter = Highlighter::new(&name);
            for line in lines {
                let text: String = highlighter.line(&line).into_iter().map(|piece| piece.text).collect();
                prop_assert_eq!(text, line);
            }
        }
    }
}
