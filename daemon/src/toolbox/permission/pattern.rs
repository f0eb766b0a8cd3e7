//! Patterns of rules: `*` is any run of characters, `?` is one, a backslash takes the meaning from the next. A pattern
//! that ends in ` *` also matches without anything behind it. Must never take more than linear steps per character.

use std::cmp::Ordering;

/// A compiled pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: String,
    tokens: Vec<Token>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Char(char),
    One,
    Many,
}

/// How narrow a pattern is: more fixed characters, then none that vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Narrowness {
    fixed: usize,
    literal: bool,
}

impl Pattern {
    pub fn new(text: &str) -> Self {
        let mut tokens = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '*' if tokens.last() == Some(&Token::Many) => {}
                '*' => tokens.push(Token::Many),
                '?' => tokens.push(Token::One),
                '\\' => tokens.push(Token::Char(chars.next().unwrap_or('\\'))),
                c => tokens.push(Token::Char(c)),
            }
        }
        Self {
            text: text.to_owned(),
            tokens,
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn matches(&self, text: &str) -> bool {
        if matches(&self.tokens, text) {
            return true;
        }
        match self.tokens.as_slice() {
            [head @ .., Token::Char(' '), Token::Many] if !head.is_empty() => matches(head, text),
            _ => false,
        }
    }

    /// As `matches`, for a path: what is hidden (`.git`, `.envrc`) is only matched by a dot of the pattern's own, unless the
    /// pattern is a star alone, which is every path.
    pub fn matches_path(&self, path: &str) -> bool {
        if self.tokens == [Token::Many] {
            return true;
        }
        if matches_shown(&self.tokens, path) {
            return true;
        }
        match self.tokens.as_slice() {
            [head @ .., Token::Char(' '), Token::Many] if !head.is_empty() => {
                matches_shown(head, path)
            }
            _ => false,
        }
    }

    /// The one text it stands for, when nothing in it varies.
    pub fn literal(&self) -> Option<String> {
        let char = |token: &Token| match token {
            Token::Char(c) => Some(*c),
            Token::One | Token::Many => None,
        };
        self.tokens.iter().map(char).collect()
    }

    /// Whether one of its words stands for this word of a command, by more than a `*`.
    pub fn names(&self, word: &str) -> bool {
        self.text.split_whitespace().map(Self::new).any(|own| {
            let prefix = own.prefix();
            prefix.len() > 1 && word.starts_with(&prefix) && matches(&own.tokens, word)
        })
    }

    /// What every text that it matches begins with.
    pub fn prefix(&self) -> String {
        let char = |token: &Token| match token {
            Token::Char(c) => Some(*c),
            Token::One | Token::Many => None,
        };
        let prefix: String = self.tokens.iter().map_while(char).collect();
        // `git push *` also matches `git push`.
        match self.tokens.as_slice() {
            [.., Token::Char(' '), Token::Many] => prefix.trim_end_matches(' ').to_owned(),
            _ => prefix,
        }
    }

    pub fn narrowness(&self) -> Narrowness {
        let fixed = self
            .tokens
            .iter()
            .filter(|token| matches!(token, Token::Char(_)))
            .count();
        Narrowness {
            fixed,
            literal: fixed == self.tokens.len(),
        }
    }

    /// By narrowness, the narrower greater.
    pub fn cmp_narrowness(&self, other: &Self) -> Ordering {
        self.narrowness().cmp(&other.narrowness())
    }
}

/// The pattern that matches this text and no other.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '*' | '?' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Goes back to the newest `*` only, which is enough, and so never tries more than text times pattern steps.
fn matches(tokens: &[Token], text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut token) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        match tokens.get(token) {
            Some(Token::Many) => {
                back = Some((token, at));
                token += 1;
            }
            Some(Token::One) => (at, token) = (at + 1, token + 1),
            Some(Token::Char(c)) if *c == text[at] => (at, token) = (at + 1, token + 1),
            Some(Token::Char(_)) | None => match back {
                Some((many, from)) => {
                    back = Some((many, from + 1));
                    (at, token) = (from + 1, many + 1);
                }
                None => return false,
            },
        }
    }
    tokens[token..].iter().all(|token| *token == Token::Many)
}

/// Keeps all places of the pattern that the text so far may have led to: what a star may stand for differs from one
/// character to the next here, so going back to the newest one is not enough.
fn matches_shown(tokens: &[Token], path: &str) -> bool {
    let through_stars = |mut at: Vec<bool>| {
        for (place, token) in tokens.iter().enumerate() {
            at[place + 1] |= at[place] && *token == Token::Many;
        }
        at
    };
    let mut at = vec![false; tokens.len() + 1];
    at[0] = true;
    at = through_stars(at);
    for part in path.split_inclusive('/') {
        let hidden = is_hidden(part.trim_end_matches('/'));
        for (nth, c) in part.chars().enumerate() {
            let must_name = hidden && nth == 0;
            let mut next = vec![false; tokens.len() + 1];
            for (place, token) in tokens.iter().enumerate().filter(|(place, _)| at[*place]) {
                match token {
                    Token::Many => next[place] |= !must_name,
                    Token::One => next[place + 1] |= !must_name,
                    Token::Char(own) => next[place + 1] |= *own == c,
                }
            }
            at = through_stars(next);
        }
    }
    at[tokens.len()]
}

/// Whether a part of a path is hidden by its name.
fn is_hidden(part: &str) -> bool {
    part.starts_with('.') && !matches!(part, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::{Pattern, escape};
    use proptest::prelude::*;

    #[test]
    fn stars_match_any_run() {
        let table = [
            ("git status*", "git status --short", true),
            ("git status*", "git statusx", true),
            ("git status*", "git", false),
            ("rm *", "rm -rf /", true),
            ("rm *", "rm", true),
            ("rm *", "rmdir x", false),
            ("*", "", true),
            ("**", "a/b", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*.rs", "src/main.rs", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            (r"rm \*", "rm *", true),
            (r"rm \*", "rm x", false),
            ("", "", true),
            ("", "x", false),
            (" *", "", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(
                Pattern::new(pattern).matches(text),
                expected,
                "{pattern:?} on {text:?}"
            );
        }
    }

    #[test]
    fn narrower_is_more_fixed_characters_then_none_that_vary() {
        let table = [
            ("*", "git *"),
            ("git *", "git status*"),
            ("git status*", "git status -s"),
            ("ab*", "ab?c"),
            ("ab*", "ab"),
        ];
        for (wide, narrow) in table {
            assert!(
                Pattern::new(wide).narrowness() < Pattern::new(narrow).narrowness(),
                "{wide} < {narrow}"
            );
        }
    }

    #[test]
    fn a_pattern_names_a_word_by_more_than_a_star() {
        let table = [
            ("find * -delete", "-delete", true),
            ("find *", "-delete", false),
            ("find * -*", "-delete", false),
            ("sort --output=* *", "--output=x", true),
            ("*-delete", "-delete", false),
            ("git push +main", "+main", true),
        ];
        for (pattern, word, expected) in table {
            let named = Pattern::new(pattern).names(word);
            assert_eq!(named, expected, "{pattern} {word}");
        }
    }

    #[test]
    fn what_is_hidden_in_a_path_is_matched_by_a_dot_of_the_pattern_only() {
        let table = [
            ("src/*", "src/a/b.rs", true),
            ("src/*", "src/a..b/c.", true),
            ("src/*", "src/.git/config", false),
            ("src/*", "src/a/.envrc", false),
            ("src/?git/*", "src/.git/config", false),
            ("src/.*", "src/.envrc", true),
            ("src/.*", "src/.a/.git/config", false),
            ("src/.git/*", "src/.git/hooks/x", true),
            (r"src/\.git/*", "src/.git/hooks/x", true),
            ("*.env", "a/.env", true),
            ("*.json", ".agents/permissions.json", false),
            ("*/.github/*", "a/.github/b", true),
            ("*/x*", "a/.x/x", false),
            ("/home/me/*", "/home/me/.bashrc", false),
            ("~/.config/x/*", "~/.config/x/y", true),
            ("a *", "a", true),
            ("*", ".git/config", true),
            ("?", ".", true),
        ];
        for (pattern, path, expected) in table {
            let matched = Pattern::new(pattern).matches_path(path);
            assert_eq!(matched, expected, "{pattern:?} on {path:?}");
        }
    }

    #[test]
    fn many_stars_on_a_long_text_end_soon() {
        let pattern = Pattern::new(&"*a".repeat(200));
        assert!(!pattern.matches(&"a".repeat(20_000).replace("aa", "ab").replace('a', "b")));
    }

    proptest! {
        #[test]
        fn an_escaped_text_matches_itself_and_nothing_else(text in ".{0,20}", other in ".{0,20}") {
            let pattern = Pattern::new(&escape(&text));
            prop_assert!(pattern.matches(&text));
            prop_assert_eq!(pattern.literal(), Some(text.clone()));
            prop_assert_eq!(pattern.matches(&other), text == other);
        }

        #[test]
        fn a_path_where_nothing_is_hidden_is_matched_as_any_text(pattern in "[ab/*?]{0,8}", path in "[ab/]{0,8}") {
            let pattern = Pattern::new(&pattern);
            prop_assert_eq!(pattern.matches_path(&path), pattern.matches(&path));
        }

        #[test]
        fn what_matches_begins_with_the_prefix(pattern in "[ab *?]{0,8}", text in "[ab ]{0,8}") {
            let pattern = Pattern::new(&pattern);
            if pattern.matches(&text) {
                prop_assert!(text.starts_with(&pattern.prefix()));
            }
        }
    }
}
