//! Input schemas as models are shown them: a JSON Schema whose root is an object. Pure.

use crate::toolbox::tool::Tool;
use serde_json::{Map, Value, json};

/// How many references a root is followed through.
const REFERENCES: usize = 16;

/// The parameters of a tool, with an object root. Those of a tool whose parameters are no object have no properties.
pub fn input_schema_of(tool: &Tool) -> Value {
    object_root(tool.presented().function.parameters)
}

/// The same schema where its root is an object, or leads to one; else an object without properties.
pub(super) fn object_root(schema: Value) -> Value {
    match root(&schema) {
        Some(found) if std::ptr::eq(found, &schema) => schema,
        Some(found) => {
            let mut resolved = found.clone();
            for definitions in ["$defs", "definitions"] {
                if let (Some(all), Some(object)) =
                    (schema.get(definitions), resolved.as_object_mut())
                {
                    let all = all.clone();
                    object.entry(definitions).or_insert(all);
                }
            }
            resolved
        }
        None => json!({"type": "object", "properties": {}}),
    }
}

fn root(schema: &Value) -> Option<&Value> {
    let mut at = schema;
    for _ in 0..REFERENCES {
        match at.as_object()?.get("$ref").and_then(Value::as_str) {
            Some(reference) => at = schema.pointer(reference.strip_prefix('#')?)?,
            None => return is_object(at.as_object()?).then_some(at),
        }
    }
    None
}

fn is_object(schema: &Map<String, Value>) -> bool {
    match schema.get("type") {
        Some(kind) => kind == "object",
        None => schema.contains_key("properties"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: Value, shown: Value) {
        assert_eq!(object_root(schema), shown);
    }

    #[test]
    fn an_object_is_shown_as_it_is_and_anything_else_as_an_object_without_properties() {
        let nothing = json!({"type": "object", "properties": {}});
        let record = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"],
                            "additionalProperties": false});
        check(record.clone(), record);
        let untyped = json!({"properties": {"a": {}}});
        check(untyped.clone(), untyped);
        check(json!({"type": "object"}), json!({"type": "object"}));
        check(json!({}), nothing.clone());
        check(json!(true), nothing.clone());
        check(json!({"type": "string"}), nothing.clone());
        let either =
            json!({"anyOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]});
        check(either, nothing);
    }

    #[test]
    fn a_root_that_refers_to_an_object_is_resolved_and_keeps_the_definitions() {
        let definitions = json!({
            "Issue": {"type": "object", "properties": {"by": {"$ref": "#/$defs/User"}}},
            "User": {"type": "string"}, "Also": {"$ref": "#/$defs/Issue"}
        });
        let resolved = json!({
            "type": "object", "properties": {"by": {"$ref": "#/$defs/User"}}, "$defs": definitions,
        });
        for name in ["Issue", "Also"] {
            let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": definitions});
            check(schema, resolved.clone());
        }
    }

    #[test]
    fn references_that_lead_nowhere_or_in_circles_are_no_object() {
        let nothing = json!({"type": "object", "properties": {}});
        check(json!({"$ref": "#/$defs/x"}), nothing.clone());
        check(json!({"$ref": "https://example.org/x"}), nothing.clone());
        check(json!({"$ref": "#"}), nothing.clone());
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}});
        check(circle, nothing);
    }
}
