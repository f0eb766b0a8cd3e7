//! `.env` files: one reading for scripts of every language. Nothing in them is expanded or run.

use std::io;
use std::path::Path;

/// The variables of a file, in order; none when there is no file.
pub(in super::super) fn read(file: &Path) -> io::Result<Vec<(String, String)>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(parse(&text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(io::Error::new(
            error.kind(),
            format!("cannot read {}: {error}", file.display()),
        )),
    }
}

/// Of two lines with one name the later counts. A line that sets nothing is passed over.
pub(in super::super) fn parse(text: &str) -> Vec<(String, String)> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let mut variables: Vec<(String, String)> = Vec::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        rest = after;
        let Some((name, value)) = named(line) else {
            continue;
        };
        let value = match quoted(value, after) {
            Some((value, after)) => {
                rest = after;
                value
            }
            None => bare(value).to_owned(),
        };
        variables.retain(|(known, _)| known != name);
        variables.push((name.to_owned(), value));
    }
    variables
}

fn named(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = match line.strip_prefix("export") {
        Some(rest) if rest.starts_with([' ', '\t']) => rest.trim_start(),
        _ => line,
    };
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name && !value.contains('\0')).then(|| (name, value.trim_start_matches([' ', '\t'])))
}

/// A value in quotes, which may go on over lines, and what follows the line of its end. Something else behind the
/// closing quote means that the quotes are part of the value.
fn quoted<'t>(value: &str, after: &'t str) -> Option<(String, &'t str)> {
    let quote = value.chars().next().filter(|c| "\"'".contains(*c))?;
    let whole = format!("{}\n{after}", &value[1..]);
    let end = end(&whole, quote)?;
    let (inner, rest) = (&whole[..end], &whole[end + 1..]);
    let line = rest.split('\n').next().unwrap_or_default();
    let is_comment = line.trim_start().is_empty() || line.trim_start().starts_with('#');
    if !is_comment || inner.contains('\0') {
        return None;
    }
    let left = rest.len() - line.len();
    // Of what is left the newline goes too.
    let left = after.len().min(left.saturating_sub(1));
    let inner = match quote {
        '"' => inner.replace("\\\"", "\""),
        _ => inner.to_owned(),
    };
    Some((inner, &after[after.len() - left..]))
}

/// Where the quotation ends; in double quotes a backslash keeps a quote from ending it.
fn end(text: &str, quote: char) -> Option<usize> {
    let ends =
        |(at, c): &(usize, char)| *c == quote && !(quote == '"' && text[..*at].ends_with('\\'));
    text.char_indices().find(ends).map(|(at, _)| at)
}

/// Up to a comment, which has a blank before it.
fn bare(value: &str) -> &str {
    let comment = [" #", "\t#"]
        .iter()
        .filter_map(|mark| value.find(mark))
        .min();
    let value = &value[..comment.unwrap_or(value.len())];
    if value.starts_with('#') {
        ""
    } else {
        value.trim_end()
    }
}
