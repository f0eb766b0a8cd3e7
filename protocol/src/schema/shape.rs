//! From derived schemas to what is on the wire, in words that every reader of such schemas knows. Must never widen one.

use serde_json::{Map, Value, json};

/// Who writes what a schema describes.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Direction {
    /// A client.
    Taken,
    /// The daemon.
    Given,
}

/// The same schema without formats that few know, and exact about what is written.
pub(super) fn plain(mut schema: Value, direction: Direction) -> Value {
    walk(&mut schema, direction);
    schema
}

fn walk(schema: &mut Value, direction: Direction) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(|one| walk(one, direction)),
        Value::Object(members) => {
            if members
                .get("format")
                .and_then(Value::as_str)
                .is_some_and(|format| format.contains("int"))
            {
                members.remove("format");
            }
            if let Some(Value::String(text)) = members.get_mut("description") {
                // Lines of a comment are no lines of a text.
                *text = text.replace('\n', " ");
            }
            if direction == Direction::Given {
                members.remove("default");
                never_null(members);
            }
            members.values_mut().for_each(|one| walk(one, direction));
        }
        _ => {}
    }
}

/// A member that may be absent is left out by who writes it, in the place of a null.
fn never_null(members: &mut Map<String, Value>) {
    let required = members.get("required").cloned().unwrap_or_default();
    let required = required.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(Value::Object(properties)) = members.get_mut("properties") else {
        return;
    };
    for (name, property) in properties {
        if !required.contains(&json!(name)) {
            without_null(property);
        }
    }
}

fn without_null(schema: &mut Value) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            schema["type"] = one.clone();
        }
    }
    if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
        any.retain(|one| one["type"] != "null");
        if let ([only], Some(members)) = (any.clone().as_slice(), schema.as_object_mut()) {
            members.remove("anyOf");
            // Beside a reference nothing else counts.
            members.insert("allOf".into(), json!([only]));
        }
    }
}

/// Gives a schema its name as the title, and the alternatives in it that a `type` tells apart theirs.
pub(super) fn title(schema: &mut Value, name: &str) {
    if let Some(Value::Array(variants)) = schema.get_mut("oneOf") {
        for variant in variants {
            let tag = variant["properties"]["type"]["const"].as_str().map(camel);
            if let Some(tag) = tag {
                named(variant, &format!("{name}{tag}"));
            }
        }
    }
    named(schema, name);
}

fn named(schema: &mut Value, name: &str) {
    if let Value::Object(members) = schema {
        members.shift_insert(0, "title".into(), name.into());
    }
}

fn camel(tag: &str) -> String {
    let words = tag.split('_').map(|word| {
        let mut letters = word.chars();
        let first = letters.next().map(|first| first.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    });
    words.collect()
}
