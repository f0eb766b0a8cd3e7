//! A tool's parameters as a server declares them, in the shape that a toolbox has. Must never refuse a tool for a root that
//! only says its parameters in another way.

use serde_json::{Map, Value};

/// How deep a root may lead to another by `$ref` or `allOf`.
const DEPTH: usize = 8;
/// Members of the root that stand beside `properties` and `required` as they are. What combines schemas at the root is
/// none of them: vendors refuse it there, and the server judges its arguments itself.
const BESIDE: [&str; 7] = [
    "$schema",
    "$defs",
    "definitions",
    "additionalProperties",
    "patternProperties",
    "minProperties",
    "maxProperties",
];

#[derive(Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub(super) properties: Map<String, Value>,
    pub(super) required: Vec<String>,
    pub(super) beside: Map<String, Value>,
}

/// What an `inputSchema` says; an error when it is none of an object.
pub(super) fn shape(schema: Option<&Value>) -> Result<Shape, String> {
    let root = match schema {
        None | Some(Value::Null | Value::Bool(true)) => return Ok(Shape::default()),
        Some(Value::Object(root)) => root,
        Some(_) => return Err("its inputSchema is no object".to_owned()),
    };
    let mut shape = Shape::default();
    shape.take(root, root, Whose::All, 0)?;
    for name in BESIDE {
        if let Some(value) = root.get(name) {
            shape.beside.insert(name.to_owned(), value.clone());
        }
    }
    let known = &shape.properties;
    shape.required.retain(|name| known.contains_key(name));
    Ok(shape)
}

/// Whether all that is required there is required of every call.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    All,
    Some,
}

impl Shape {
    fn take(
        &mut self,
        part: &Map<String, Value>,
        root: &Map<String, Value>,
        whose: Whose,
        depth: usize,
    ) -> Result<(), String> {
        if !is_object(part.get("type")) {
            return Err("its inputSchema is not that of an object".to_owned());
        }
        match part.get("properties") {
            None | Some(Value::Null) => {}
            Some(Value::Object(properties)) => {
                for (name, schema) in properties {
                    let known = self.properties.entry(name.clone());
                    known.or_insert_with(|| schema.clone());
                }
            }
            Some(_) => return Err("the properties of its inputSchema are no object".to_owned()),
        }
        if whose == Whose::All {
            let names = part.get("required").and_then(Value::as_array).into_iter();
            let names = names.flatten().filter_map(Value::as_str);
            for name in names {
                if !self.required.iter().any(|known| known == name) {
                    self.required.push(name.to_owned());
                }
            }
        }
        if depth >= DEPTH {
            return Ok(());
        }
        if let Some(target) = part.get("$ref").and_then(|target| resolve(target, root)) {
            self.take(target, root, whose, depth + 1)?;
        }
        for (name, whose) in [
            ("allOf", whose),
            ("anyOf", Whose::Some),
            ("oneOf", Whose::Some),
        ] {
            let parts = part
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for part in parts.filter_map(Value::as_object) {
                self.take(part, root, whose, depth + 1)?;
            }
        }
        Ok(())
    }
}

/// Nothing said, or `object` among what is.
fn is_object(kind: Option<&Value>) -> bool {
    match kind {
        None | Some(Value::Null) => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    }
}

/// A place within the same document.
fn resolve<'a>(target: &Value, root: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    let mut steps = target.as_str()?.strip_prefix("#/")?.split('/');
    let first = root.get(steps.next()?)?;
    let found = steps.try_fold(first, |value, step| {
        value.get(step.replace("~1", "/").replace("~0", "~"))
    });
    found?.as_object()
}

#[cfg(test)]
mod tests {
    use super::shape;
    use serde_json::{Value, json};

    fn check(schema: Value, properties: Value, required: &[&str]) {
        let shape = shape(Some(&schema)).unwrap();
        assert_eq!(Value::Object(shape.properties), properties, "{schema}");
        assert_eq!(shape.required, required, "{schema}");
    }

    #[test]
    fn every_root_gives_parameters() {
        let a = json!({"type": "string"});
        check(
            json!({"type": "object", "properties": {"a": a}, "required": ["a", "gone"]}),
            json!({"a": a}),
            &["a"],
        );
        check(json!({}), json!({}), &[]);
        check(
            json!({"type": ["object", "null"], "properties": {"a": a}, "required": "a"}),
            json!({"a": a}),
            &[],
        );
        check(
            json!({"$ref": "#/$defs/In", "$defs": {"In": {"type": "object", "properties": {"a": a}, "required": ["a"]}}}),
            json!({"a": a}),
            &["a"],
        );
        check(
            json!({"properties": {"a": a}, "anyOf": [{"properties": {"b": {}}, "required": ["b"]}, {"required": ["a"]}]}),
            json!({"a": a, "b": {}}),
            &[],
        );
        check(
            json!({"allOf": [{"properties": {"a": a}, "required": ["a"]}, {"properties": {"b": {}}}]}),
            json!({"a": a, "b": {}}),
            &["a"],
        );
        check(json!({"$ref": "#"}), json!({}), &[]);
        check(
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
            json!({}),
            &[],
        );
    }

    #[test]
    fn definitions_stay_and_combinations_go() {
        let schema =
            json!({"$defs": {"a": {}}, "additionalProperties": false, "oneOf": [], "title": "x"});
        let beside = shape(Some(&schema)).unwrap().beside;
        assert_eq!(
            Value::Object(beside),
            json!({"$defs": {"a": {}}, "additionalProperties": false})
        );
    }

    #[test]
    fn what_is_no_object_is_refused() {
        for schema in [
            json!([]),
            json!("object"),
            json!({"type": "string"}),
            json!({"type": 1}),
            json!({"properties": []}),
            json!({"anyOf": [{"type": "array"}]}),
        ] {
            assert!(shape(Some(&schema)).is_err(), "{schema}");
        }
        for schema in [None, Some(json!(null)), Some(json!(true))] {
            assert!(shape(schema.as_ref()).is_ok());
        }
    }
}
