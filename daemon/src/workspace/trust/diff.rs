//! What differs between two small texts, line by line, as people read it. Pure.

/// Longer texts are not compared.
const LINES: usize = 400;
/// Lines around a change.
const AROUND: usize = 2;
/// The most that is shown.
const SHOWN: usize = 60;

#[derive(Clone, Copy, PartialEq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// Lines that go with `-`, those that come with `+`, and some around them; none when the texts are too long for that.
pub(super) fn of(old: &str, new: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    if old.len() > LINES || new.len() > LINES {
        return None;
    }
    let lines = compared(&old, &new);
    let differs = |at: usize| !matches!(lines[at], Line::Same(_));
    let near = |at: usize| {
        let end = (at + AROUND + 1).min(lines.len());
        (at.saturating_sub(AROUND)..end).any(differs)
    };
    let mut shown: Vec<String> = Vec::new();
    let mut last = None;
    for at in (0..lines.len()).filter(|at| near(*at)) {
        if last.map_or(at > 0, |last| last + 1 != at) {
            shown.push("...".to_owned());
        }
        last = Some(at);
        shown.push(match lines[at] {
            Line::Same(line) => format!(" {line}"),
            Line::Gone(line) => format!("-{line}"),
            Line::New(line) => format!("+{line}"),
        });
    }
    if shown.len() > SHOWN {
        let more = shown.len() - SHOWN;
        shown.truncate(SHOWN);
        shown.push(format!("... and {more} lines more"));
    }
    Some(shown.join("\n"))
}

/// Both texts in one, by their longest common sequence of lines.
fn compared<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let width = new.len() + 1;
    // How many lines are common from here to the ends.
    let mut common = vec![0_u16; (old.len() + 1) * width];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            let here = i * width + j;
            common[here] = match old[i] == new[j] {
                true => common[here + width + 1] + 1,
                false => common[here + width].max(common[here + 1]),
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut lines = Vec::with_capacity(old.len().max(new.len()));
    while i < old.len() || j < new.len() {
        let here = i * width + j;
        if i < old.len() && j < new.len() && old[i] == new[j] {
            lines.push(Line::Same(old[i]));
            (i, j) = (i + 1, j + 1);
        } else if j == new.len() || (i < old.len() && common[here + width] >= common[here + 1]) {
            lines.push(Line::Gone(old[i]));
            i += 1;
        } else {
            lines.push(Line::New(new[j]));
            j += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_go_and_come_are_shown_with_some_around_them() {
        let old: Vec<String> = (1..=20).map(|n| n.to_string()).collect();
        let mut new = old.clone();
        new[9] = "ten".to_owned();
        new.push("21".to_owned());
        let shown = of(&old.join("\n"), &new.join("\n")).unwrap();
        assert_eq!(
            shown,
            "...\n 8\n 9\n-10\n+ten\n 11\n 12\n...\n 19\n 20\n+21"
        );
        assert_eq!(of("a\n", "a\n").unwrap(), "");
        assert_eq!(of("", "a\nb").unwrap(), "+a\n+b");
        assert_eq!(of("a\nb", "").unwrap(), "-a\n-b");
    }

    #[test]
    fn long_texts_are_not_compared_and_long_differences_are_cut() {
        assert_eq!(of(&"x\n".repeat(LINES + 1), ""), None);
        let shown = of(&"x\n".repeat(LINES), "").unwrap();
        assert!(shown.ends_with("... and 340 lines more"), "{shown}");
    }
}
