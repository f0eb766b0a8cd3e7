//! What a tool of a server gave, as a model reads it: text as it is, structure as it is, and of all else that it is there.
//! Must never put encoded bytes before a model.

use crate::toolbox::builtin::capture::{CAP, Capture};
use crate::toolbox::tool::{Call, Outcome};
use serde_json::{Map, Value, json};

/// The object of a `tools/call` result. `isError` makes a failure of it.
pub(super) async fn of(call: &Call, mut result: Value) -> Outcome {
    let structured = result.get_mut("structuredContent").map(Value::take);
    let structured = structured.filter(|value| !value.is_null());
    let text = text_of(&result["content"]);
    let failed = result["isError"].as_bool() == Some(true);
    // Servers send the same twice, for those that read only one of them.
    let twice = structured.as_ref().is_some_and(|value| same(&text, value));
    if failed {
        let said = match (text.trim().is_empty(), &structured) {
            (true, Some(value)) => value.to_string(),
            (true, None) => "the tool failed and did not say why".to_owned(),
            (false, _) => text,
        };
        return Err(Capture::silent(call).whole(&said).await);
    }
    let mut object = Map::new();
    match structured.map(|value| (value.to_string().len(), value)) {
        Some((length, value)) if length <= CAP => {
            if !twice {
                put_text(&mut object, call, &text).await;
            }
            object.insert("structured".to_owned(), value);
        }
        // Too long to be shown whole, and what is cut is no structure any more.
        Some((_, value)) if text.trim().is_empty() => {
            put_text(&mut object, call, &value.to_string()).await;
        }
        _ => put_text(&mut object, call, &text).await,
    }
    Ok(object)
}

async fn put_text(object: &mut Map<String, Value>, call: &Call, text: &str) {
    let text = Capture::silent(call).whole(text).await;
    object.insert("content".to_owned(), json!(text));
}

fn same(text: &str, value: &Value) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == *value)
}

/// The blocks of a result or a message, one below the other.
pub(super) fn text_of(content: &Value) -> String {
    let blocks = match content {
        Value::Array(blocks) => blocks.iter().map(block).collect(),
        Value::Null => Vec::new(),
        one => vec![block(one)],
    };
    blocks.join("\n")
}

/// One block.
fn block(block: &Value) -> String {
    let mime = block["mimeType"].as_str().unwrap_or("of no known type");
    match block["type"].as_str() {
        Some("text") => block["text"].as_str().unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            format!(
                "[{kind}, {mime}, {}: it is not shown]",
                size(&block["data"])
            )
        }
        Some("resource") => resource(&block["resource"]),
        Some("resource_link") => {
            let (name, uri) = (&block["name"], &block["uri"]);
            let about = block["description"].as_str().unwrap_or_default();
            let (name, uri) = (
                name.as_str().unwrap_or_default(),
                uri.as_str().unwrap_or_default(),
            );
            format!("[resource {name}: {uri}] {about}")
                .trim_end()
                .to_owned()
        }
        _ => match block {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        },
    }
}

/// The contents of a resource: its text, or that it has none.
pub(super) fn resource(contents: &Value) -> String {
    if let Some(text) = contents["text"].as_str() {
        return text.to_owned();
    }
    let uri = contents["uri"].as_str().unwrap_or_default();
    let mime = contents["mimeType"].as_str().unwrap_or("of no known type");
    format!(
        "[{uri}, {mime}, {}: it is not shown]",
        size(&contents["blob"])
    )
}

/// Of what is encoded in base 64.
fn size(data: &Value) -> String {
    let data = data.as_str().unwrap_or_default().trim_end_matches('=');
    match data.len() * 3 / 4 {
        bytes @ 0..1024 => format!("{bytes} bytes"),
        bytes => format!("{} KiB", bytes.div_ceil(1024)),
    }
}

#[cfg(test)]
mod tests {
    use super::{same, text_of};
    use serde_json::{Value, json};

    #[test]
    fn text_stays_and_what_is_encoded_is_only_named() {
        let data = "A".repeat(4000);
        let content = json!([
            {"type": "text", "text": "one"},
            {"type": "image", "mimeType": "image/png", "data": data},
            {"type": "audio", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "a:b", "text": "two"}},
            {"type": "resource", "resource": {"uri": "a:c", "mimeType": "x/y", "blob": data}},
            {"type": "resource_link", "name": "n", "uri": "a:d"},
            {"type": "other", "x": 1},
            "bare",
        ]);
        let expected = "one\n[image, image/png, 3 KiB: it is not shown]\n\
                        [audio, of no known type, 3 bytes: it is not shown]\ntwo\n\
                        [a:c, x/y, 3 KiB: it is not shown]\n[resource n: a:d]\n{\"type\":\"other\",\"x\":1}\nbare";
        assert_eq!(text_of(&content), expected);
        assert_eq!(text_of(&Value::Null), "");
        assert_eq!(text_of(&json!({"type": "text", "text": "alone"})), "alone");
    }

    #[test]
    fn text_that_repeats_the_structure_is_known() {
        assert!(same("{\"a\": 1}", &json!({"a": 1})));
        assert!(!same("a is 1", &json!({"a": 1})));
    }
}
