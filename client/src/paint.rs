//! Colours and marks, decided once from the environment and the terminal. Must never decide what is said.

use nu_ansi_term::{Color, Style};
use protocol::unseen::is_unseen;
use std::borrow::Cow;
use std::io::IsTerminal;

/// How text may be dressed on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// Nothing but text: pipes, `NO_COLOR`, dumb terminals.
    Plain,
    /// Colours and marks beyond ASCII.
    Colour,
}

/// A part that text plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Thinking, tool output, small print.
    Quiet,
    /// What a person typed.
    Prompt,
    /// The name of a tool.
    Tool,
    /// It worked.
    Good,
    /// It failed.
    Bad,
    /// A question that waits for an answer.
    Ask,
}

/// A mark in front of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A tool is called.
    Call,
    /// It worked.
    Good,
    /// It failed.
    Bad,
    /// A question.
    Ask,
    /// More was cut off.
    More,
}

impl Paint {
    /// For a stream, by whether it is a terminal and what the environment says of it.
    pub(crate) fn of(stream: &impl IsTerminal) -> Self {
        let shows = forced() || (stream.is_terminal() && !dumb());
        let coloured = shows && !no_color();
        if coloured { Self::Colour } else { Self::Plain }
    }

    /// The text dressed for its part; line breaks stay outside, so that no colour leaks over one.
    pub(crate) fn dress(self, part: Part, text: &str) -> String {
        match self {
            Self::Plain => text.to_string(),
            Self::Colour => text
                .split('\n')
                .map(|line| dress_line(part, line))
                .collect::<Vec<_>>()
                .join("\n"),
        }
    }

    /// The mark, coloured where colours are shown and ASCII where they are not.
    pub(crate) fn mark(self, mark: Mark) -> String {
        let (part, rich, plain) = match mark {
            Mark::Call => (Part::Tool, "→", "->"),
            Mark::Good => (Part::Good, "✓", "ok"),
            Mark::Bad => (Part::Bad, "✗", "failed"),
            Mark::Ask => (Part::Ask, "?", "?"),
            Mark::More => (Part::Quiet, "…", "..."),
        };
        match self {
            Self::Plain => plain.to_string(),
            Self::Colour => self.dress(part, rich),
        }
    }
}

/// Whether the person wants no colours (<https://no-color.org>).
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Whether the person wants colours wherever output goes (<https://bixense.com/clicolors>).
fn forced() -> bool {
    std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0")
}

/// Whether the terminal understands nothing but text.
pub(crate) fn dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

fn dress_line(part: Part, line: &str) -> String {
    if line.is_empty() {
        return String::new();
    }
    let style = match part {
        Part::Quiet => Style::new().dimmed(),
        Part::Prompt => Style::new().bold(),
        Part::Tool => Style::new().fg(Color::Cyan),
        Part::Good => Style::new().fg(Color::Green),
        Part::Bad => Style::new().fg(Color::Red),
        Part::Ask => Style::new().fg(Color::Yellow).bold(),
    };
    style.paint(line).to_string()
}

/// Text that others made without what would steer the terminal: only line breaks and tabs stay. What turns the order of
/// letters round is spelled out.
pub(crate) fn tame(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.extend(c.escape_unicode()),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// What a program printed as a terminal would have left it, tame: a line that was begun again, as progress is, is the last
/// one.
pub(crate) fn printed(text: &str) -> String {
    let left = |line: &str| {
        let line = line.trim_end_matches('\r');
        tame(line.rsplit('\r').next().unwrap_or(line))
    };
    let lines: Vec<String> = text.split('\n').map(left).collect();
    lines.join("\n")
}

/// Text for a terminal, whoever made it: of all that steers one, colours alone stay.
pub(crate) fn only_colours(text: &str) -> Cow<'_, str> {
    let steers = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(steers) {
        out.push_str(&rest[..at]);
        let colour = colour_at(&rest[at..]);
        out.push_str(&rest[at..at + colour]);
        let after = rest[at..].chars().next().map_or(1, char::len_utf8);
        rest = &rest[at + colour.max(after)..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// How long the sequence is that a text begins with, if it is one for colours; 0 if it is another.
fn colour_at(text: &str) -> usize {
    let Some(parameters) = text.strip_prefix("\x1b[") else {
        return 0;
    };
    let length = parameters
        .bytes()
        .take_while(|b| b.is_ascii_digit() || *b == b';')
        .count();
    match parameters.as_bytes().get(length) {
        Some(b'm') => 2 + length + 1,
        _ => 0,
    }
}

/// Text that must be read exactly, such as a command to approve: what cannot be seen is spelled out.
pub(crate) fn spell_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = None;
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_unseen(before, c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
        before = Some(c);
    }
    out
}

/// A name, such as a directory's, as one line: what would break it or cannot be seen is spelled out.
pub(crate) fn one_line(text: &str) -> String {
    spell_out(text).replace('\n', "\\n").replace('\t', "\\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_never_span_a_line_break() {
        let dressed = Paint::Colour.dress(Part::Bad, "a\n\nb");
        assert_eq!(dressed, "\u{1b}[31ma\u{1b}[0m\n\n\u{1b}[31mb\u{1b}[0m");
        assert_eq!(Paint::Plain.dress(Part::Bad, "a\nb"), "a\nb");
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        assert_eq!(tame("a\u{1b}[2Jb\r\u{7}\n\tc\u{9b}d"), "a[2Jb\n\tcd");
    }

    #[test]
    fn progress_that_begins_its_line_again_leaves_the_last_one() {
        assert_eq!(
            printed("10%\r20%\r100%\ndone\r\n\r\nx\r"),
            "100%\ndone\n\nx"
        );
    }

    #[test]
    fn letters_stay_in_their_order() {
        assert_eq!(tame("a\u{202e}txt.sh"), "a\\u{202e}txt.sh");
    }

    #[test]
    fn what_nobody_sees_is_spelled_out() {
        let text = "a\u{e0072}b\u{61c}\u{3164}c \u{2764}\u{fe0f}";
        let shown = "a\\u{e0072}b\\u{61c}\\u{3164}c \u{2764}\u{fe0f}";
        assert_eq!(spell_out(text), shown);
    }

    #[test]
    fn of_what_steers_a_terminal_colours_alone_get_through() {
        let text = "a\u{1b}[36mb\u{1b}[0m\u{1b}]0;t\u{7}c\u{1b}[2J\u{9b}1m\n\u{1b}[3";
        assert_eq!(only_colours(text), "a\u{1b}[36mb\u{1b}[0m]0;tc[2J1m\n[3");
        assert!(matches!(only_colours("plain\ttext\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_name_is_one_line_and_hides_nothing() {
        assert_eq!(one_line("x\ny\tz\u{1b}[2J"), "x\\ny\\tz\\u{1b}[2J");
    }

    #[test]
    fn an_approval_shows_what_cannot_be_seen() {
        assert_eq!(spell_out("rm\u{202e}x\u{1b}[8m"), "rm\\u{202e}x\\u{1b}[8m");
    }
}
