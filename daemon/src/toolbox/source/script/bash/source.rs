//! A script's text made ready for argc, and places in it. Lines stay where they are.

use super::quoted;

/// Without here-documents, and with a type said where a name would be taken for one.
pub(super) fn prepared(text: &str) -> String {
    let mut prepared = String::with_capacity(text.len());
    for (line, inside) in text.lines().zip(quoted::inside(text)) {
        if !inside {
            prepared.push_str(&untyped(line));
        }
        prepared.push('\n');
    }
    prepared
}

/// The longest that stands between `<` and `>`: argc goes one call deeper for each character.
pub(super) const NOTATION: usize = 2000;

/// Where a tag has a longer one, if any has.
pub(super) fn line_of_long_notation(prepared: &str) -> Option<usize> {
    let is_long = |line: &str| {
        let body = tag(line, &["option", "arg", "flag"]).unwrap_or_default();
        let after = body.split_once(" <").map_or("", |(_, after)| after);
        let mut open = 1_usize;
        let end = after.chars().position(|c| {
            match c {
                '<' => open += 1,
                '>' => open -= 1,
                _ => {}
            }
            open == 0
        });
        // One that is not closed goes to the end of its line.
        end.unwrap_or_else(|| after.chars().count()) > NOTATION
    };
    Some(prepared.lines().position(is_long)? + 1)
}

/// argc calls an option without a notation by its name, so that `--num` would be a number. Only `<NUM>` says so.
fn untyped(line: &str) -> String {
    let Some(body) = tag(line, &["option", "arg"]) else {
        return line.to_owned();
    };
    let Some((start, end)) = head(body) else {
        return line.to_owned();
    };
    let name = body[start..end].trim_start_matches(['-', '+']);
    let name = &name[..name
        .find(['!', '+', '*', '=', '[', '~'])
        .unwrap_or(name.len())];
    let rest = &body[end..];
    let after = rest.trim_start();
    let after = match after.strip_prefix('$') {
        Some(bound) => bound
            .trim_start_matches(|c: char| !c.is_whitespace())
            .trim_start(),
        None => after,
    };
    if !["int", "num"].contains(&name.to_lowercase().as_str()) || after.starts_with('<') {
        return line.to_owned();
    }
    let at = line.len() - after.len();
    let gap = if line[..at].ends_with(char::is_whitespace) {
        ""
    } else {
        " "
    };
    format!("{}{gap}<VALUE> {after}", &line[..at])
}

/// What follows one of these tags in a comment line.
fn tag<'l>(line: &'l str, names: &[&str]) -> Option<&'l str> {
    let body = line.trim_start_matches('#');
    if body.len() == line.len() {
        return None;
    }
    let body = body.trim_start_matches([' ', '\t']).strip_prefix('@')?;
    names.iter().find_map(|name| {
        let rest = body.strip_prefix(name)?;
        rest.starts_with([' ', '\t']).then_some(rest)
    })
}

/// Where the name with what is glued to it is: after a short name, up to a blank outside quotes, brackets and backticks.
fn head(body: &str) -> Option<(usize, usize)> {
    let start = body.len() - body.trim_start().len();
    let first = &body[start..];
    let is_short =
        first.len() > 2 && first.is_char_boundary(2) && first[2..].starts_with([' ', '\t']);
    let next = first.get(2..).map_or("", str::trim_start);
    let start = if is_short && next.starts_with(['-', '+']) {
        body.len() - next.len()
    } else {
        start
    };
    let mut open = None;
    for (at, c) in body[start..].char_indices() {
        match open {
            Some(end) if c == end => open = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' | '`' => open = Some(c),
                '[' => open = Some(']'),
                c if c.is_whitespace() => return Some((start, start + at)),
                _ => {}
            },
        }
    }
    (start < body.len()).then_some((start, body.len()))
}

/// Where a parameter is last declared, if it is.
pub(super) fn line_of_parameter(text: &str, id: &str) -> Option<usize> {
    let declares = |line: &str| {
        let body = tag(line, &["option", "flag", "arg"])?;
        let (start, end) = head(body)?;
        let name = body[start..end].trim_start_matches(['-', '+']);
        let rest = name.strip_prefix(id)?;
        (!rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')).then_some(())
    };
    let found = text
        .lines()
        .enumerate()
        .filter(|(_, line)| declares(line).is_some());
    found.last().map(|(at, _)| at + 1)
}

/// Where a function begins.
pub(super) fn line_of_function(text: &str, name: &str) -> usize {
    let begins = |line: &str| {
        let line = line.trim_start();
        let line = line.strip_prefix("function ").unwrap_or(line).trim_start();
        line.strip_prefix(name)
            .is_some_and(|rest| rest.trim_start().starts_with(['(', '{']) || rest.trim().is_empty())
    };
    text.lines().position(begins).map_or(1, |at| at + 1)
}
