//! Parameters that are objects, and the empty list that languages write for an empty one which have one word for both (Lua).
//! Does no IO.

use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Their names, which mean the same in all methods.
pub const NAMES: [&str; 4] = ["env", "vars", "mcp_servers", "arguments"];

/// The same parameters with `{}` for each of these that is `[]`.
pub fn mend(params: &str) -> Cow<'_, str> {
    if !params.trim_start().starts_with('{') || !params.contains('[') {
        return Cow::Borrowed(params);
    }
    let Ok(mut members) = serde_json::from_str::<BTreeMap<&str, &RawValue>>(params) else {
        return Cow::Borrowed(params);
    };
    let empty: &RawValue = serde_json::from_str("{}").unwrap_or(RawValue::NULL);
    let mut mended = false;
    for name in NAMES {
        if let Some(value) = members.get_mut(name).filter(|value| is_empty_list(value)) {
            *value = empty;
            mended = true;
        }
    }
    match serde_json::to_string(&members) {
        Ok(text) if mended => Cow::Owned(text),
        _ => Cow::Borrowed(params),
    }
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
