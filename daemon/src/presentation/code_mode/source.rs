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

    /// The text of the function, were it one.
    pub(super) fn alone(&self) -> &str {
        let code = self.code.trim_end().trim_end_matches(';').trim_end();
        without_comments(code)
    }
}

/// One Markdown fence around everything goes; its first line becomes an empty one.
fn unfenced(code: &str) -> String {
    let fenced = || {
        let start = code.len() - code.trim_start().len();
        let ticks = code[start..]
            .bytes()
            .take_while(|byte| *byte == b'`')
            .count();
        let fence = code[start..]
            .get(..ticks)
            .filter(|fence| fence.len() >= 3)?;
        let (_, body) = code[start..].split_once('\n')?;
        let body = body.trim_end().strip_suffix(fence)?;
        (body.is_empty() || body.ends_with('\n')).then(|| format!("{}\n{body}", &code[..start]))
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
