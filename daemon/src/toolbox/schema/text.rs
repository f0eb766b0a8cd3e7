//! The one table of validation errors' texts, and how a schema's values look in them.
//! Must never decide whether something is an error.

use serde_json::Value;

/// The text of a keyword that failed at a place, with the keyword's own value.
pub(super) fn text(keyword: &str, place: &str, value: &Value) -> String {
    let at = location(place);
    let shown = shown(value);
    match keyword {
        "type" => match value.as_str().and_then(article) {
            Some(kind) => format!("value at {at} is not {kind}"),
            None => format!("value at {at} is not one of the types: {shown}"),
        },
        "enum" => format!("value at {at} is not one of: {shown}"),
        "const" => format!("value at {at} is not: {shown}"),
        "multipleOf" => format!("number at {at} is not a multiple of: {shown}"),
        "maximum" => format!("number at {at} is greater than: {shown}"),
        "exclusiveMaximum" => format!("number at {at} is greater than or equal to: {shown}"),
        "minimum" => format!("number at {at} is less than: {shown}"),
        "exclusiveMinimum" => format!("number at {at} is less than or equal to: {shown}"),
        "maxLength" => format!("string length at {at} is greater than: {shown}"),
        "minLength" => format!("string length at {at} is less than: {shown}"),
        "pattern" => format!("string at {at} does not match pattern: {shown}"),
        "format" => format!("value at {at} does not match format: {shown}"),
        "maxItems" => format!("array size at {at} is greater than: {shown}"),
        "minItems" => format!("array size at {at} is less than: {shown}"),
        "uniqueItems" => format!("array items at {at} are not unique"),
        "contains" => {
            format!("array at {at} does not contain enough items that match `contains` schema")
        }
        "maxContains" => format!(
            "number of array items at {at} matching `contains` schema is greater than: {shown}"
        ),
        "minContains" => format!(
            "number of array items at {at} matching `contains` schema is less than: {shown}"
        ),
        "maxProperties" => format!("object size at {at} is greater than: {shown}"),
        "minProperties" => format!("object size at {at} is less than: {shown}"),
        "dependentRequired" => {
            format!("object at {at} is missing required `dependentRequired` properties")
        }
        "dependencies" => format!(
            "object at {at} either does not match applicable `dependencies` schemas or is missing required `dependencies` properties"
        ),
        "additionalProperties" => {
            format!("object property at {at} is a disallowed additional property")
        }
        "unevaluatedProperties" => {
            format!("object properties at {at} do not match `unevaluatedProperties` schema")
        }
        "unevaluatedItems" => format!("array items at {at} do not match `unevaluatedItems` schema"),
        "additionalItems" => format!("array items at {at} do not match `additionalItems` schema"),
        "anyOf" => format!("value at {at} does not match any `anyOf` schemas"),
        "oneOf" => format!("value at {at} does not match exactly one `oneOf` schema"),
        "not" => format!("value at {at} matches `not` schema"),
        "then" => format!("value at {at} does not match conditional `then` schema"),
        "else" => format!("value at {at} does not match conditional `else` schema"),
        _ => format!("value at {at} does not match schema"),
    }
}

/// The text of `required`.
pub(super) fn missing(place: &str, names: &[String]) -> String {
    let at = location(place);
    format!(
        "object at {at} is missing required properties: {}",
        names.join(", ")
    )
}

fn location(place: &str) -> String {
    if place.is_empty() {
        "root".to_owned()
    } else {
        format!("`{place}`")
    }
}

fn article(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "null" => "null",
        "boolean" => "a boolean",
        "number" => "a number",
        "integer" => "an integer",
        "string" => "a string",
        "array" => "an array",
        "object" => "an object",
        _ => return None,
    })
}

/// A value put into a text: a string as it is, nothing for null, all else as `inspect`.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => inspect(other),
    }
}

/// A value as Ruby writes it.
fn inspect(value: &Value) -> String {
    match value {
        Value::Null => "nil".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float_text(float),
            _ => number.to_string(),
        },
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(inspect).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(members) if members.is_empty() => "{}".to_owned(),
        Value::Object(members) => {
            let member = |(name, value): (&String, &Value)| {
                format!("{} => {}", quoted(name), inspect(value))
            };
            let members: Vec<String> = members.iter().map(member).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

fn float_text(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{float:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = if digits.contains('.') {
            digits.to_owned()
        } else {
            format!("{digits}.0")
        };
        return match power.strip_prefix('-') {
            Some(power) => format!("{digits}e-{power:0>2}"),
            None => format!("{digits}e+{power:0>2}"),
        };
    }
    format!("{float:?}")
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{1b}' => out.push_str("\\e"),
            '#' if matches!(chars.peek(), Some('{' | '$' | '@')) => out.push_str("\\#"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
