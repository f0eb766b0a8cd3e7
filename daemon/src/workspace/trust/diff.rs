//! What differs between two small texts, line by line, as people read it. Pure.

use similar::{Algorithm, ChangeTag, TextDiff};
use std::time::Duration;

/// Lines around a change.
const AROUND: usize = 2;
/// The most that is shown of a file: more nobody reads in a question.
const SHOWN: usize = 200;
/// Past it what differs is still told, if with more lines than need be.
const LONGEST: Duration = Duration::from_millis(200);

/// A difference, as far as it is shown.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// Lines that go with `-`, those that come with `+`, and some around them.
    pub(super) text: String,
    /// How many lines more there are.
    pub(super) more: usize,
}

pub(super) fn of(old: &str, new: &str) -> Difference {
    let mut config = TextDiff::configure();
    config.algorithm(Algorithm::Myers).timeout(LONGEST);
    let diff = config.diff_lines(old, new);
    let mut shown: Vec<String> = Vec::new();
    for group in diff.grouped_ops(AROUND) {
        let is_first_line = group
            .first()
            .is_some_and(|op| op.old_range().start == 0 && op.new_range().start == 0);
        if !is_first_line {
            shown.push("...".to_owned());
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let mark = match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let line = change.value();
            shown.push(format!("{mark}{}", line.trim_end_matches(['\n', '\r'])));
        }
    }
    let more = shown.len().saturating_sub(SHOWN);
    shown.truncate(SHOWN);
    Difference {
        text: shown.join("\n"),
        more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(old: &str, new: &str) -> String {
        of(old, new).text
    }

    #[test]
    fn lines_that_go_and_come_are_shown_with_some_around_them() {
        let old: Vec<String> = (1..=20).map(|n| format!("{n}\n")).collect();
        let mut new = old.clone();
        new[9] = "ten\n".to_owned();
        new.push("21".to_owned());
        let shown = text(&old.concat(), &new.concat());
        assert_eq!(
            shown,
            "...\n 8\n 9\n-10\n+ten\n 11\n 12\n...\n 19\n 20\n+21"
        );
        assert_eq!(text("a\n", "a\n"), "");
        assert_eq!(text("", "a\nb"), "+a\n+b");
        assert_eq!(text("a\nb", ""), "-a\n-b");
    }

    #[test]
    fn one_line_of_a_long_text_is_shown_and_long_differences_say_what_is_left() {
        let old: String = (0..9000).map(|n| format!("line {n}\n")).collect();
        let new = old.replace("line 4500\n", "line 4500; evil\n");
        let shown = text(&old, &new);
        assert!(
            shown.contains("\n-line 4500\n+line 4500; evil\n"),
            "{shown}"
        );
        let all = of(&"x\n".repeat(SHOWN + 140), "");
        assert_eq!((all.text.lines().count(), all.more), (SHOWN, 140));
    }
}
