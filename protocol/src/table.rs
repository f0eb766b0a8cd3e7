//! Parameters that are objects, and the empty list that languages write for an empty one which have one word for both (Lua).
//! Does no IO.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Their names, which mean the same in all methods.
pub const NAMES: [&str; 4] = ["env", "vars", "mcp_servers", "arguments"];

/// The same parameters with `{}` for each of these that is `[]`. What names none of them is not even read.
pub fn mend(params: &str) -> Cow<'_, str> {
    let names_one = || {
        NAMES
            .iter()
            .any(|name| params.contains(&format!("\"{name}\"")))
    };
    if !params.trim_start().starts_with('{') || !params.contains('[') || !names_one() {
        return Cow::Borrowed(params);
    }
    mended(params).map_or(Cow::Borrowed(params), Cow::Owned)
}

fn mended(params: &str) -> Option<String> {
    let mut members: BTreeMap<&str, &RawValue> = serde_json::from_str(params).ok()?;
    let empty: &RawValue = serde_json::from_str("{}").ok()?;
    let lists = NAMES.iter().filter(|name| {
        let value = members.get(*name);
        value.is_some_and(|value| is_empty_list(value))
    });
    let lists: Vec<&&str> = lists.collect();
    if lists.is_empty() {
        return None;
    }
    for name in lists {
        members.insert(name, empty);
    }
    serde_json::to_string(&members).ok()
}

fn is_empty_list(value: &RawValue) -> bool {
    let inner = value.get().strip_prefix('[');
    let inner = inner.and_then(|inner| inner.strip_suffix(']'));
    inner.is_some_and(|inner| inner.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::mend;

    #[test]
    fn an_empty_list_is_an_empty_object_where_an_object_belongs() {
        let mended = mend(r#"{"cwd": "/x", "env": [], "mcp_servers": [ ]}"#);
        assert_eq!(mended, r#"{"cwd":"/x","env":{},"mcp_servers":{}}"#);
        for same in [
            r#"{"images": [], "text": "[]"}"#,
            r#"{"env": [1]}"#,
            r#"["env", []]"#,
            r#"{"env": []"#,
        ] {
            assert_eq!(mend(same), same);
        }
    }
}
