//! Markdown as it streams: rows for good are the same however the text was cut.

use super::*;
use crate::render::styled::painted_width;
use proptest::prelude::*;

fn whole(text: &str, room: usize) -> Vec<String> {
    let mut message = Markdown::new(Paint::Plain, room);
    let mut rows = message.push(text);
    rows.extend(message.finish());
    rows
}

fn check(text: &str, room: usize, expected: &str) {
    assert_eq!(whole(text, room).join("\n"), expected.trim_matches('\n'));
}

const SAMPLE: &str = "# Title\nSome *text* with `code` and a [link](http://x/y).\nMore of it.\n\n- one\n- two, which is \
long enough to break\n  - deeper\n\n3. third\n4. fourth\n\n> quoted\n> words\n\n```rust\nfn main() {}\n\n// 日本 👩‍👩‍👧\n```\n\
| a | b |\n|---|--:|\n| 1 | 22 |\n| x `y` | 3 |\n\n---\nEnd with **bold\nover lines** and no break";

#[test]
fn blocks_look_as_a_person_expects() {
    check(
        SAMPLE,
        30,
        "
# Title

Some *text* with `code` and a
link (http://x/y). More of it.

• one
• two, which is long enough to
  break
  • deeper

3. third
4. fourth

│ quoted words

  fn main() {}

  // 日本 👩‍👩‍👧

a     │  b
──────┼───
1     │ 22
x `y` │  3

──────────────────────────────

End with **bold over lines**
and no break
",
    );
}

#[test]
fn a_table_without_room_becomes_a_list() {
    let table = "| name | what it is | more |\n|---|---|---|\n| a | something longer | z |\n";
    check(
        table,
        10,
        "
name: a
what it
is:
something
longer
more: z
",
    );
}

#[test]
fn a_numbered_list_counts_on_when_its_first_items_are_written() {
    let mut message = Markdown::new(Paint::Plain, 40);
    let mut rows = Vec::new();
    for piece in ["1. a\n", "1. b\n", "1. c\n", "1. d"] {
        rows.extend(message.push(piece));
    }
    assert_eq!(rows, ["1. a", "2. b"]);
    assert_eq!(message.live(), ["3. c", "4. d"]);
}

#[test]
fn code_is_written_line_by_line_before_its_end() {
    let mut message = Markdown::new(Paint::Plain, 40);
    assert_eq!(message.push("```py\nx = 1\ny ="), ["  x = 1"]);
    assert_eq!(message.live(), ["  y ="]);
    assert_eq!(message.push(" 2\n```\nand"), ["  y = 2"]);
    assert_eq!(message.live(), ["", "and"]);
}

#[test]
fn a_long_reply_is_given_while_it_streams() {
    let mut message = Markdown::new(Paint::Plain, 40);
    for n in 0..1_000 {
        message.push(&format!("paragraph {n}\n\n- item\n- item\n\n"));
        assert!(message.source.len() < 100, "{:?}", message.source);
    }
}

#[test]
fn colours_are_in_every_row_of_their_own() {
    let mut message = Markdown::new(Paint::Colour, 12);
    let mut rows = message.push("**bold words that break** x\n");
    rows.extend(message.finish());
    for row in &rows {
        let starts = row.matches("\x1b[1m").count();
        assert_eq!(starts, row.matches("\x1b[0m").count(), "{row:?}");
    }
    assert!(rows.len() > 1);
}

#[test]
fn every_cut_gives_the_same_rows() {
    let expected = whole(SAMPLE, 34);
    let mut cuts: Vec<usize> = SAMPLE.char_indices().map(|(at, _)| at).collect();
    cuts.push(SAMPLE.len());
    for &first in &cuts {
        let mut message = Markdown::new(Paint::Plain, 34);
        let mut rows = message.push(&SAMPLE[..first]);
        let _ = message.live();
        rows.extend(message.push(&SAMPLE[first..]));
        rows.extend(message.finish());
        assert_eq!(rows, expected, "cut at {first}");
    }
    let mut message = Markdown::new(Paint::Plain, 34);
    let mut rows = Vec::new();
    for c in SAMPLE.chars() {
        rows.extend(message.push(&c.to_string()));
    }
    rows.extend(message.finish());
    assert_eq!(rows, expected, "by characters");
}

#[test]
fn of_what_has_no_end_the_end_is_shown_while_it_grows() {
    let sub = |n: usize| format!("  - point {n}\n");
    let points: String = (0..9_000).map(sub).collect();
    let words: String = (0..20_000).map(|n| format!("wörd{n} ")).collect();
    for (text, last) in [
        (format!("- top\n{points}"), "• point 8999"),
        (format!("- {words}"), "wörd19999"),
        ("> 日本語 の\n".repeat(9_000), "の"),
    ] {
        let mut message = Markdown::new(Paint::Plain, 14);
        assert_eq!(message.push(&text), Vec::<String>::new());
        let rows = message.live();
        assert!(rows.last().unwrap().ends_with(last), "{last}");
        assert!(rows.len() > 200 && rows.len() < 3_000, "{}", rows.len());
        assert!(message.finish().len() > rows.len());
    }
}

proptest! {
    #[test]
    fn no_row_is_wider_than_its_room(text in "[a-z #*`>|0-9.日👍\n_\\[\\]()-]{0,200}", room in 24_usize..60) {
        for row in whole(&text, room) {
            prop_assert!(painted_width(&row) <= room, "{row:?} at {room}");
        }
    }

    #[test]
    fn streamed_and_whole_show_the_same_words(text in "[a-z *`\n-]{0,120}", at in 0_usize..120) {
        let at = at.min(text.len());
        let mut message = Markdown::new(Paint::Plain, 40);
        let mut rows = message.push(&text[..at]);
        rows.extend(message.push(&text[at..]));
        rows.extend(message.finish());
        let words = |rows: Vec<String>| rows.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        prop_assert_eq!(words(rows), words(whole(&text, 40)));
    }
}

/// In pieces of so many characters, and the longest source that had to be laid out again meanwhile.
fn streamed(text: &str, size: usize, room: usize) -> (Vec<String>, usize) {
    let mut message = Markdown::new(Paint::Plain, room);
    let (mut rows, mut longest) = (Vec::new(), 0);
    let letters: Vec<char> = text.chars().collect();
    for piece in letters.chunks(size) {
        rows.extend(message.push(&piece.iter().collect::<String>()));
        longest = longest.max(message.source.len());
    }
    rows.extend(message.finish());
    (rows, longest)
}

#[test]
fn what_grows_long_is_laid_out_again_in_part_only_and_looks_as_it_would() {
    let words = |n: usize| format!("word{n} **bold {n}** is_snake `co de` 日本語 ");
    let paragraph: String = (0..2_000).map(words).collect();
    let lines = (0..2_000).map(|n| format!("line {n} of the text\n"));
    let wide: String = (0..9_000).map(|n| ["你", "好", "世"][n % 3]).collect();
    let code = format!("```js\n  f({})\n```\n", "abc + ".repeat(4_000));
    let rows = (0..900).map(|n| format!("| {n} | cell | {} |\n", "wide".repeat(1 + n / 300)));
    let table = format!("| a | b | c |\n|---|---|---|\n{}", rows.collect::<String>());
    for text in [paragraph, lines.collect(), wide, code, table] {
        let text = text + "\n\nand on";
        for size in [7, 1_000] {
            let (rows, longest) = streamed(&text, size, 40);
            assert!(longest < 3 * LONG, "{longest} by {size}");
            let start: String = text.chars().take(20).collect();
            assert!(rows == whole(&text, 40), "{start} by {size}");
        }
    }
}

#[test]
fn a_mark_that_nothing_closes_holds_back_no_more_than_it_must() {
    let text = format!("say **this {}", "and that ".repeat(8_000));
    let (rows, longest) = streamed(&text, 9, 40);
    assert!(longest < 4 * LONG, "{longest}");
    assert_eq!(rows[0], "say **this and that and that and that");
}
