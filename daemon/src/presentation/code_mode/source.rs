//! A program's text: what is around it is taken off, and it becomes the body of a function. Pure.
//! Must never change on which line anything stands.

/// A program as it was given.
#[derive(Debug, PartialEq)]
pub(super) struct Source {
    /// Without its fence, with its lines where they were.
    code: String,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// Statements.
    Body,
    /// It begins like a function and may be nothing else.
    Perhaps,
}

const BEFORE: &str = "(async function () {";

impl Source {
    /// How many characters stand before the program on its first line.
    pub(super) const BEFORE: usize = BEFORE.len();

    pub(super) fn of(code: &str) -> Self {
        let code = unfenced(code);
        let begun = without_comments(&code);
        let words = ["function", "async function", "async(", "async (", "("];
        let function = words.iter().any(|word| begun.starts_with(word));
        let arrow = begun.split_once("=>").is_some_and(|(before, _)| {
            let name = before.trim().trim_start_matches("async").trim();
            !name.is_empty()
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "_$".contains(c))
        });
        let shape = if function || arrow {
            Shape::Perhaps
        } else {
            Shape::Body
        };
        Self { code, shape }
    }

    pub(super) fn is_empty(&self) -> bool {
        without_comments(&self.code).is_empty()
    }

    /// As the body of a function.
    pub(super) fn program(&self) -> String {
        format!("{BEFORE}{}\n}})", self.code)
    }

    /// As an expression; the parenthesis stands as far from the start as in `program`.
    pub(super) fn expression(&self) -> String {
        let code = self.code.trim_end().trim_end_matches(';');
        format!("{:>width$}{code}\n)", "(", width = BEFORE.len())
    }

    /// Whether the function of this text is all that there is, but for brackets and comments around it.
    pub(super) fn is_all(&self, function: &str) -> bool {
        let mut rest = without_comments(&self.code);
        let mut brackets = 0;
        while let (false, Some(inner)) = (rest.starts_with(function), rest.strip_prefix('(')) {
            rest = without_comments(inner);
            brackets += 1;
        }
        let Some(after) = rest.strip_prefix(function) else {
            return false;
        };
        rest = without_comments(after);
        for _ in 0..brackets {
            match rest.strip_prefix(')') {
                Some(after) => rest = without_comments(after),
                None => return false,
            }
        }
        rest.trim_start_matches(|c: char| c == ';' || c.is_whitespace())
            .is_empty()
    }
}

/// One Markdown fence around everything goes; its first line becomes an empty one.
fn unfenced(code: &str) -> String {
    let fenced = || {
        let start = code.len() - code.trim_start().len();
        let mark = code[start..].chars().next().filter(|c| "`~".contains(*c))?;
        let rest = code[start..].trim_start_matches(mark);
        let fence = &code[start..code.len() - rest.len()];
        let (_, body) = rest.split_once('\n').filter(|_| fence.len() >= 3)?;
        let body = body.trim_end().strip_suffix(fence)?;
        Some(format!("{}\n{body}", &code[..start]))
    };
    fenced().unwrap_or_else(|| code.to_owned())
}

/// From the first word on.
fn without_comments(code: &str) -> &str {
    let mut rest = code.trim_start();
    loop {
        let after = if let Some(line) = rest.strip_prefix("//") {
            line.split_once('\n').map_or("", |(_, after)| after)
        } else if let Some(block) = rest.strip_prefix("/*") {
            block.split_once("*/").map_or("", |(_, after)| after)
        } else {
            return rest;
        };
        rest = after.trim_start();
    }
}
