//! What differs between a file as it is and as a call would make it, as the hunks of a unified diff. Must never read or
//! write a file.

use similar::{Algorithm, ChangeTag, TextDiff};
use std::ops::Range;
use std::time::Duration;

/// The most bytes of a difference that is told.
const SHOWN: usize = 64 << 10;
/// Lines around a change.
const AROUND: usize = 2;
/// Past it what differs is still told, if with more lines than need be.
const LONGEST: Duration = Duration::from_millis(200);

/// What differs between two texts; none if that is too much to tell.
pub(super) fn whole(old: &str, new: &str) -> Option<String> {
    let mut out = String::new();
    compare(old, new, (0, 0), &mut out);
    (out.len() <= SHOWN).then_some(out)
}

/// What differs where some places of a content are replaced; none if that is too much to tell. Looks at the lines around
/// them alone, so the file may be large, and no text elsewhere.
pub(super) fn at_places(
    content: &[u8],
    places: &[Range<usize>],
    replacement: &str,
) -> Option<String> {
    let mut out = String::new();
    let (mut looked_to, mut before) = (0, (0, 0));
    let mut rest = places;
    while let Some(first) = rest.first() {
        let mut lines = around(content, first);
        let mut count = 1;
        while let Some(next) = rest.get(count).map(|next| around(content, next)) {
            if next.start > lines.end {
                break;
            }
            lines.end = next.end;
            count += 1;
        }
        let (these, after) = rest.split_at(count);
        rest = after;
        let between = count_lines(&content[looked_to..lines.start]);
        before = (before.0 + between, before.1 + between);
        let old = String::from_utf8_lossy(&content[lines.clone()]);
        let new = replaced(content, &lines, these, replacement);
        let new = String::from_utf8_lossy(&new);
        compare(&old, &new, before, &mut out);
        if out.len() > SHOWN {
            return None;
        }
        before.0 += count_lines(old.as_bytes());
        before.1 += count_lines(new.as_bytes());
        looked_to = lines.end;
    }
    Some(out)
}

/// The lines that a place touches, and those around them.
fn around(content: &[u8], place: &Range<usize>) -> Range<usize> {
    let mut breaks = memchr::memrchr_iter(b'\n', &content[..place.start]);
    let start = breaks.nth(AROUND).map_or(0, |at| at + 1);
    let mut breaks = memchr::memchr_iter(b'\n', &content[place.end..]);
    let end = breaks.nth(AROUND).map(|at| place.end + at + 1);
    start..end.unwrap_or(content.len())
}

fn replaced(content: &[u8], lines: &Range<usize>, places: &[Range<usize>], by: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut at = lines.start;
    for place in places {
        out.extend(&content[at..place.start]);
        out.extend(by.as_bytes());
        at = place.end;
    }
    out.extend(&content[at..lines.end]);
    out
}

fn count_lines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// The hunks of two texts that begin behind so many lines of either side.
fn compare(old: &str, new: &str, before: (usize, usize), out: &mut String) {
    let mut config = TextDiff::configure();
    config.algorithm(Algorithm::Myers).timeout(LONGEST);
    let diff = config.diff_lines(old, new);
    for group in diff.grouped_ops(AROUND) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let olds = first.old_range().start..last.old_range().end;
        let news = first.new_range().start..last.new_range().end;
        let (olds, news) = (counted(olds, before.0), counted(news, before.1));
        out.push_str(&format!("@@ -{olds} +{news} @@\n"));
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            out.push(match change.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            });
            out.push_str(change.value());
            if change.missing_newline() {
                out.push('\n');
            }
        }
    }
}

/// Where lines begin and how many they are, as a hunk's head says it.
fn counted(lines: Range<usize>, before: usize) -> String {
    match lines.len() {
        0 => format!("{},0", before + lines.start),
        1 => format!("{}", before + lines.start + 1),
        count => format!("{},{count}", before + lines.start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_are_numbered_as_everywhere() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = old.replace("a\n", "").replace("h\n", "h\ni");
        let hunks = "@@ -1,3 +1,2 @@\n-a\n b\n c\n@@ -7,2 +6,3 @@\n g\n h\n+i\n";
        assert_eq!(whole(old, &new).unwrap(), hunks);
        assert_eq!(whole("", "x\n").unwrap(), "@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn places_tell_what_the_whole_would() {
        let lines =
            |count: usize| -> String { (1..=count).map(|n| format!("line {n} x\n")).collect() };
        for (content, old, new) in [
            (lines(40), "line 2", "LINE\ntwo 2"),
            (lines(40), " x\nline 7", ""),
            (lines(9), "x", "y"),
            (lines(3) + "line 2", "line 2", "z\n"),
            ("one".to_owned(), "one", ""),
        ] {
            let places: Vec<_> = memchr::memmem::find_iter(content.as_bytes(), old)
                .map(|at| at..at + old.len())
                .collect();
            let changed = content.replace(old, new);
            let told = at_places(content.as_bytes(), &places, new).unwrap();
            assert_eq!(told, whole(&content, &changed).unwrap(), "{old:?}");
        }
    }

    #[test]
    fn more_than_can_be_read_is_not_told() {
        let content = "some words to change\n".repeat(9_000);
        let places: Vec<_> = memchr::memmem::find_iter(content.as_bytes(), "words")
            .map(|at| at..at + 5)
            .collect();
        assert_eq!(at_places(content.as_bytes(), &places, "letters"), None);
    }
}
