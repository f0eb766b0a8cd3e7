//! Words for bash: what is quoted here is taken for itself and nothing else.

/// In single quotes, where only a single quote ends the text.
pub(in super::super) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// `( 'a' 'b' )`
pub(super) fn list(values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|value| quote(value)).collect();
    format!("( {} )", values.join(" "))
}
