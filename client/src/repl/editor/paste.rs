//! Folded pastes: what stands for them is one thing, that goes as a whole or stays as a whole. Must never lose one unseen.

use super::Editor;
use reedline::EditCommand;

/// A paste with more lines than this folds.
const FOLD_LINES: usize = 5;

/// How many steps it takes at most to put a broken mark right.
const STEPS: usize = 4;

/// And one with more characters.
const FOLD_LENGTH: usize = 1_000;

impl Editor {
    /// A large paste stands as a few words until the text is done.
    pub(super) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let text: String = text
            .chars()
            .filter(|c| matches!(c, '\n' | '\t') || !c.is_control())
            .collect();
        let lines = text.lines().count();
        let before = self.text().to_string();
        if lines <= FOLD_LINES && text.chars().count() <= FOLD_LENGTH {
            self.run(&[EditCommand::InsertString(text)]);
        } else {
            let mark = self.mark_for(&text, lines);
            self.run(&[EditCommand::InsertString(mark.clone())]);
            self.pastes.push((mark, text));
        }
        self.mend_pastes(&before);
        self.changed();
    }

    /// What no other paste is called.
    fn mark_for(&self, text: &str, lines: usize) -> String {
        let size = match lines {
            0 | 1 => format!("{} characters", text.chars().count()),
            lines => format!("{lines} lines"),
        };
        let taken = |mark: &String| self.pastes.iter().any(|(known, _)| known == mark);
        (1..)
            .map(|n| match n {
                1 => format!("[pasted {size}]"),
                n => format!("[pasted {size} #{n}]"),
            })
            .find(|mark| !taken(mark))
            .unwrap_or_default()
    }

    /// After a change: a mark that lost a part goes altogether, and what was put into one stands behind it. The paste
    /// itself is kept, for a change that is taken back.
    pub(super) fn mend_pastes(&mut self, before: &str) {
        let marks: Vec<String> = self.pastes.iter().map(|(mark, _)| mark.clone()).collect();
        for mark in marks {
            let Some(at) = before.find(&mark) else {
                continue;
            };
            if let Some((text, cursor)) = mended(before, self.text(), at, at + mark.len()) {
                self.broken.push((self.text().to_owned(), text.clone()));
                self.run(&[
                    EditCommand::Clear,
                    EditCommand::InsertString(text),
                    EditCommand::MoveToPosition {
                        position: cursor,
                        select: false,
                    },
                ]);
            }
        }
    }
}

impl Editor {
    /// Takes the last change back; one that broke a mark was several steps, and goes as one.
    pub(super) fn undo(&mut self) {
        let made = self.text().to_owned();
        self.run(&[EditCommand::Undo]);
        let Some((broken, _)) = self.broken.iter().find(|(_, text)| *text == made).cloned() else {
            return;
        };
        for _ in 0..STEPS {
            let text = self.text();
            if !(text.is_empty() || *text == broken || *text == made) {
                return;
            }
            self.run(&[EditCommand::Undo]);
        }
    }
}

/// The text and the cursor, where a change from `before` to `after` broke what stood at `from..to` and is still there in part.
fn mended(before: &str, after: &str, from: usize, to: usize) -> Option<(String, usize)> {
    if after.contains(&before[from..to]) {
        return None;
    }
    let same = |(a, b): &(char, char)| a == b;
    let head = before.chars().zip(after.chars()).take_while(same);
    let head: usize = head.map(|(c, _)| c.len_utf8()).sum();
    let room = before.len().min(after.len()) - head;
    let tail = before.chars().rev().zip(after.chars().rev());
    let mut tail_length = 0;
    for (c, _) in tail.take_while(same) {
        if tail_length + c.len_utf8() > room {
            break;
        }
        tail_length += c.len_utf8();
    }
    let (kept_from, kept_to) = (head, before.len() - tail_length);
    let inserted = &after[head..after.len() - tail_length];
    let broken = kept_from > from || kept_to < to;
    match (broken, inserted.is_empty()) {
        (false, _) => None,
        (true, true) => {
            let start = kept_from.min(from);
            let text = format!("{}{}", &before[..start], &before[kept_to.max(to)..]);
            Some((text, start))
        }
        (true, false) => {
            let text = format!("{}{inserted}{}", &before[..to], &before[to..]);
            Some((text, to + inserted.len()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn a_mark_goes_as_a_whole_and_nothing_is_put_into_it() {
        let before = "see [m] now";
        let broken = |after: &str| mended(before, after, 4, 7);
        assert_eq!(broken("see [m now"), Some(("see  now".into(), 4)));
        assert_eq!(broken("see m] now"), Some(("see  now".into(), 4)));
        assert_eq!(
            broken("see [w"),
            Some(("see w".into(), 4)),
            "beyond its end"
        );
        assert_eq!(broken("see [xm] now"), Some(("see [m]x now".into(), 8)));
        assert_eq!(broken("see  now"), None, "it is gone altogether");
        assert_eq!(broken("look, see [m] now"), None);
        assert_eq!(broken(""), None);
    }
}
