//! Columns of text for commands that list things. Must never cut a cell.

/// Rows with every column but the last as wide as its widest cell, two spaces between them.
pub(super) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let widths: Vec<usize> = (0..N).map(|column| widest(rows, column)).collect();
    let lines = rows.iter().map(|row| {
        let cells = row.iter().zip(&widths);
        let line = cells.map(|(cell, width)| format!("{cell:width$}  "));
        line.collect::<String>().trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn widest<const N: usize>(rows: &[[String; N]], column: usize) -> usize {
    let cells = rows.iter().map(|row| row[column].chars().count());
    cells.max().unwrap_or(0)
}

/// The first line of a text, at most so many characters of it.
pub(super) fn first_line(text: &str, limit: usize) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    match line.char_indices().nth(limit) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let text = table(&[row("/a", "one"), row("/äöü", "two"), row("/b", "")]);
        assert_eq!(text, "/a    one\n/äöü  two\n/b");
    }

    #[test]
    fn long_first_line_is_cut_at_a_character() {
        assert_eq!(first_line("äöüß\nmore", 2), "äö...");
        assert_eq!(first_line("\n  short\nmore", 9), "short");
    }
}
