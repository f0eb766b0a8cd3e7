//! Where an error stands among the others: a key made of the path through the schema and the instance.
//! Must never look at what the error is.

use serde_json::Value;

/// Keywords in the order of the standard's vocabularies; others come last.
const KEYWORDS: [&str; 44] = [
    "$ref",
    "$dynamicRef",
    "$defs",
    "definitions",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "prefixItems",
    "items",
    "additionalItems",
    "contains",
    "properties",
    "patternProperties",
    "additionalProperties",
    "propertyNames",
    "dependencies",
    "unevaluatedItems",
    "unevaluatedProperties",
    "type",
    "enum",
    "const",
    "multipleOf",
    "maximum",
    "exclusiveMaximum",
    "minimum",
    "exclusiveMinimum",
    "maxLength",
    "minLength",
    "pattern",
    "maxItems",
    "minItems",
    "uniqueItems",
    "maxContains",
    "minContains",
    "maxProperties",
    "minProperties",
    "required",
    "dependentRequired",
    "format",
];

/// What follows a keyword in a path.
struct Step {
    /// The schema's own name or index of a subschema.
    named: bool,
    /// One step down the instance.
    down: bool,
}

fn step(keyword: &str) -> Step {
    let (named, down) = match keyword {
        "properties" | "patternProperties" | "prefixItems" => (true, true),
        "$defs" | "definitions" | "dependentSchemas" | "dependencies" => (true, false),
        "allOf" | "anyOf" | "oneOf" => (true, false),
        "items" | "additionalItems" | "contains" | "unevaluatedItems" => (false, true),
        "additionalProperties" | "unevaluatedProperties" => (false, true),
        _ => (false, false),
    };
    Step { named, down }
}

/// The keyword's place among the others.
pub(super) fn rank(keyword: &str) -> usize {
    KEYWORDS
        .iter()
        .position(|known| *known == keyword)
        .unwrap_or(KEYWORDS.len())
}

/// A path of keywords, taken apart.
pub(super) struct Route {
    /// The last keyword; none when the path ends with a name, so that a whole subschema failed.
    pub(super) keyword: Option<String>,
    /// To sort by.
    pub(super) key: Vec<usize>,
}

/// Follows an evaluation path through the schema, and the instance's path beside it.
pub(super) fn route(root: &Value, instance: &Value, evaluation: &str, place: &str) -> Route {
    let mut schema = Some(root);
    let mut here = Some(instance);
    let mut places = segments(place).into_iter();
    let mut path = segments(evaluation).into_iter();
    let mut route = Route {
        keyword: None,
        key: Vec::new(),
    };
    while let Some(keyword) = path.next() {
        let step = step(&keyword);
        route.key.push(rank(&keyword));
        schema = follow(
            root,
            schema.and_then(|schema| schema.get(&keyword)),
            &keyword,
        );
        let name = if step.named { path.next() } else { None };
        if let Some(name) = &name {
            route.key.push(position(schema, name));
            schema = child(schema, name);
        }
        let down = if step.down { places.next() } else { None };
        if let Some(down) = down {
            route.key.push(position(here, &down));
            here = child(here, &down);
        }
        route.keyword = name.is_none().then_some(keyword);
    }
    route
}

/// A reference within the document stands for what it points at.
fn follow<'a>(root: &'a Value, value: Option<&'a Value>, keyword: &str) -> Option<&'a Value> {
    match (keyword, value) {
        ("$ref" | "$dynamicRef", Some(Value::String(target))) => target
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer)),
        (_, value) => value,
    }
}

fn child<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    match value? {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    }
}

fn position(value: Option<&Value>, name: &str) -> usize {
    match value {
        Some(Value::Object(members)) => members.keys().position(|known| known == name).unwrap_or(0),
        _ => name.parse().unwrap_or(0),
    }
}

fn segments(pointer: &str) -> Vec<String> {
    let plain = |segment: &str| segment.replace("~1", "/").replace("~0", "~");
    pointer.split('/').skip(1).map(plain).collect()
}
