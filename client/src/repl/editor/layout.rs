//! Where the characters of the text stand on the screen. Must never change the text.

use crate::render::styled::cell;
use unicode_segmentation::UnicodeSegmentation as _;

/// Rows of a text behind a prompt, and the row and column of the cursor. Every row begins below the prompt's end.
pub(in crate::repl) fn lay_out(
    text: &str,
    cursor: usize,
    indent: usize,
    columns: usize,
) -> (Vec<String>, (usize, usize)) {
    let room = columns.saturating_sub(indent + 1).max(2);
    let mut rows = vec![String::new()];
    let (mut used, mut place) = (0, None);
    for (at, grapheme) in text.grapheme_indices(true) {
        if at >= cursor && place.is_none() {
            place = Some((rows.len() - 1, indent + used));
        }
        if grapheme == "\n" {
            rows.push(String::new());
            used = 0;
            continue;
        }
        let wide = cell(grapheme);
        if used + wide > room {
            rows.push(String::new());
            used = 0;
            if at == cursor {
                place = Some((rows.len() - 1, indent));
            }
        }
        used += wide;
        let shown = if grapheme == "\t" { "    " } else { grapheme };
        if let Some(row) = rows.last_mut() {
            row.push_str(shown);
        }
    }
    let end = (rows.len() - 1, indent + used);
    (rows, place.unwrap_or(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_stands_where_the_next_character_goes() {
        let at = |text: &str, cursor| lay_out(text, cursor, 2, 8);
        assert_eq!(at("abc", 3), (vec!["abc".into()], (0, 5)));
        assert_eq!(
            at("abcdefg", 7),
            (vec!["abcde".into(), "fg".into()], (1, 4))
        );
        assert_eq!(at("abcdefg", 5).1, (1, 2));
        assert_eq!(at("a\nb", 1).1, (0, 3));
        assert_eq!(at("a\nb", 3).1, (1, 3));
        assert_eq!(at("日本語", 3).1, (0, 4));
    }
}
