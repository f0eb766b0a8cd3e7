//! Characters that nobody sees: a daemon that judges a command and a client that shows it must mean the same ones.
//! Owns the list; must never change a text.

/// Whether a character leaves no trace of its own, or moves what stands beside it: what Unicode names default-ignorable
/// (`Default_Ignorable_Code_Point` in DerivedCoreProperties.txt), separators of lines, and blanks that count as letters or
/// symbols. Control characters and spaces are not meant. The mark behind a symbol that makes a picture of it is seen.
pub fn is_unseen(before: Option<char>, c: char) -> bool {
    let pictures = |before: char| !before.is_ascii() && !before.is_alphanumeric();
    match c {
        '\u{fe0f}' => !before.is_some_and(|before| pictures(before) && !is_listed(before)),
        c => is_listed(c),
    }
}

/// The unseen characters of a text.
pub fn has_unseen(text: &str) -> bool {
    let mut before = None;
    text.chars().any(|c| is_unseen(before.replace(c), c))
}

fn is_listed(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_tags_and_blank_letters_are_unseen() {
        for c in "\u{ad}\u{61c}\u{202e}\u{2066}\u{3164}\u{fe00}\u{ffa0}\u{e0072}\u{e0100}".chars() {
            assert!(is_unseen(Some('a'), c), "{c:?}");
        }
        for c in "aé 漢\u{3000}\u{a0}\n😀\u{301}".chars() {
            assert!(!is_unseen(Some('a'), c), "{c:?}");
        }
    }

    #[test]
    fn the_mark_that_makes_a_picture_is_unseen_only_where_none_is_made() {
        assert!(!has_unseen("I \u{2764}\u{fe0f} it"));
        for text in [
            "rm\u{fe0f}",
            "\u{fe0f}",
            "é\u{fe0f}",
            "\u{2764}\u{fe0f}\u{fe0f}",
        ] {
            assert!(has_unseen(text), "{text:?}");
        }
    }
}
