//! Type hints as JSON Schemas. A type that nobody here knows allows everything.

mod told;

pub(super) use told::read_told;

use super::classes::Names;
use super::expression::{Expression, read as expression};
use super::literal;
use crate::toolbox::source::script::{is_whole, of_parts};
use serde_json::{Value, json};

/// Names that stand for names, at most.
const DEPTH: usize = 16;
/// What is looked at for one hint, as records may hold each other many times.
const MOST: usize = 2_000;

/// A type, and whether nothing will do too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hint {
    pub(super) schema: Value,
    pub(super) optional: bool,
    /// Text of `Annotated`.
    pub(super) description: Option<String>,
}

impl Hint {
    pub(super) fn of(schema: Value) -> Self {
        Self {
            schema,
            optional: false,
            description: None,
        }
    }

    fn nothing() -> Self {
        Self {
            optional: true,
            ..Self::of(Value::Null)
        }
    }
}

/// Of a hint in the code.
pub(super) fn read(text: &str, names: &Names) -> Hint {
    match expression(text) {
        Some(expression) => Types {
            names,
            depth: 0,
            left: MOST,
            inside: Vec::new(),
        }
        .hint(&expression),
        None => Hint::of(json!({})),
    }
}

struct Types<'n> {
    names: &'n Names,
    depth: usize,
    /// How much more may be looked at.
    left: usize,
    /// The records on the way here.
    inside: Vec<String>,
}

impl Types<'_> {
    fn hint(&mut self, expression: &Expression) -> Hint {
        self.depth += 1;
        self.left = self.left.saturating_sub(1);
        let hint = if self.depth > DEPTH || self.left == 0 {
            Hint::of(json!({}))
        } else {
            self.known(expression)
        };
        self.depth -= 1;
        hint
    }

    fn known(&mut self, expression: &Expression) -> Hint {
        match expression {
            Expression::Value(Value::Null) => Hint::nothing(),
            // Quoted, because what it names comes later in the file.
            Expression::Text(text) => {
                super::expression::read(text).map_or(Hint::of(json!({})), |inner| self.hint(&inner))
            }
            Expression::Either(parts) => self.union(parts),
            Expression::Of(of, parts) => match of.as_ref() {
                Expression::Name(name) => self.generic(name, parts),
                _ => Hint::of(json!({})),
            },
            Expression::Name(name) => self.name(name),
            _ => Hint::of(json!({})),
        }
    }

    fn name(&mut self, name: &str) -> Hint {
        let schema = match name {
            "str" | "Path" | "bytes" | "AnyStr" | "UUID" => json!({"type": "string"}),
            "int" => json!({"type": "integer"}),
            "float" | "Decimal" | "Number" => json!({"type": "number"}),
            "bool" => json!({"type": "boolean"}),
            "dict" | "Dict" | "Mapping" | "MutableMapping" | "TypedDict" => {
                json!({"type": "object"})
            }
            "datetime" => json!({"type": "string", "format": "date-time"}),
            "date" => json!({"type": "string", "format": "date"}),
            name if is_list(name) => json!({"type": "array", "items": {}}),
            name if self.names.record(name).is_some() => self.record(name),
            name => match (self.names.choices(name), self.names.alias(name)) {
                (Some(choices), _) => choice(choices),
                (None, Some(alias)) => match expression(alias) {
                    Some(meant) => return self.hint(&meant),
                    None => json!({}),
                },
                (None, None) => json!({}),
            },
        };
        Hint::of(schema)
    }

    fn record(&mut self, name: &str) -> Value {
        if self.inside.iter().any(|known| known == name) {
            return json!({"type": "object"});
        }
        self.inside.push(name.to_owned());
        let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
        for field in self.names.record(name).unwrap_or_default() {
            let hint = expression(&field.hint).map_or(Hint::of(json!({})), |hint| self.hint(&hint));
            let mut schema = match hint.schema {
                Value::Object(schema) => schema,
                _ => serde_json::Map::new(),
            };
            if let Some(text) = hint.description {
                schema.insert("description".to_owned(), text.into());
            }
            if let Some(default) = field.default.as_ref().filter(|default| !default.is_null()) {
                schema.insert("default".to_owned(), default.clone());
            }
            if field.required && !required.contains(&field.name) {
                required.push(field.name.clone());
            }
            properties.insert(field.name.clone(), schema.into());
        }
        self.inside.pop();
        json!({"type": "object", "properties": properties, "required": required})
    }

    fn generic(&mut self, name: &str, parts: &[Expression]) -> Hint {
        let name = self.names.original(name);
        match (name, parts) {
            ("Optional", [inner]) => Hint {
                optional: true,
                ..self.hint(inner)
            },
            ("Union", parts) => self.union(parts),
            ("Literal", parts) => {
                let (nothing, values): (Vec<_>, Vec<_>) = parts
                    .iter()
                    .filter_map(literal::of)
                    .partition(Value::is_null);
                Hint {
                    optional: !nothing.is_empty(),
                    ..Hint::of(choice(values))
                }
            }
            ("Annotated", [inner, about @ ..]) => Hint {
                description: about.iter().find_map(annotation),
                ..self.hint(inner)
            },
            ("Required" | "NotRequired" | "Final" | "ClassVar" | "InitVar", [inner]) => {
                self.hint(inner)
            }
            ("dict" | "Dict" | "Mapping" | "MutableMapping", [_, value]) => {
                let value = self.hint(value).schema;
                match value.as_object().is_none_or(serde_json::Map::is_empty) {
                    true => Hint::of(json!({"type": "object"})),
                    false => Hint::of(json!({"type": "object", "additionalProperties": value})),
                }
            }
            (name, [item, rest @ ..]) if is_list(name) => {
                let is_open = matches!(rest, [Expression::Name(name)] if name == "...");
                let is_tuple = name.eq_ignore_ascii_case("tuple") && !is_open;
                let items = match rest {
                    [] => self.hint(item).schema,
                    _ if is_open => self.hint(item).schema,
                    _ => self.union(parts).schema,
                };
                let items = if items.is_null() { json!({}) } else { items };
                Hint::of(match is_tuple {
                    true => {
                        let each: Vec<_> =
                            parts.iter().map(|part| self.hint(part).schema).collect();
                        of_parts(items, each, parts.len(), false)
                    }
                    false => json!({"type": "array", "items": items}),
                })
            }
            (name, _) => self.name(name),
        }
    }

    fn union(&mut self, parts: &[Expression]) -> Hint {
        let hints = parts.iter().map(|part| self.hint(part)).collect();
        Self::joined(hints)
    }

    fn joined(hints: Vec<Hint>) -> Hint {
        let mut joined = Hint::of(Value::Null);
        let mut schemas = Vec::new();
        for hint in hints {
            joined.optional |= hint.optional;
            if joined.description.is_none() {
                joined.description = hint.description;
            }
            let earlier = schemas.iter().position(|schema| choices(schema).is_some());
            if let (Some(more), Some(at)) = (choices(&hint.schema), earlier) {
                // Choices beside choices are more of them.
                let all = choices(&schemas[at]).into_iter().flatten().chain(more);
                schemas[at] = choice(all.cloned().collect());
            } else if !hint.schema.is_null() && !schemas.contains(&hint.schema) {
                schemas.push(hint.schema);
            }
        }
        joined.schema = match schemas.len() {
            0 => json!({}),
            1 => schemas.swap_remove(0),
            _ if schemas.contains(&json!({})) => json!({}),
            _ => json!({"anyOf": schemas}),
        };
        joined
    }
}

fn is_list(name: &str) -> bool {
    [
        "list",
        "List",
        "Sequence",
        "MutableSequence",
        "Iterable",
        "Collection",
        "set",
        "Set",
        "frozenset",
        "FrozenSet",
        "tuple",
        "Tuple",
    ]
    .contains(&name)
}

/// A text of `Annotated`, also one that a call in it names its description.
fn annotation(about: &Expression) -> Option<String> {
    match about {
        Expression::Text(text) => Some(text.clone()),
        Expression::Call(_, arguments) => arguments.iter().find_map(|(name, value)| match value {
            Expression::Text(text) if name == "description" => Some(text.clone()),
            _ => None,
        }),
        _ => None,
    }
}

/// The values of a schema that says nothing else.
fn choices(schema: &Value) -> Option<&Vec<Value>> {
    let only = schema
        .as_object()?
        .keys()
        .all(|key| key == "enum" || key == "type");
    schema["enum"].as_array().filter(|_| only)
}

/// Values of one type say so.
fn choice(values: Vec<Value>) -> Value {
    let kind = if values.is_empty() {
        return json!({});
    } else if values.iter().all(Value::is_string) {
        "string"
    } else if values.iter().all(Value::is_boolean) {
        "boolean"
    } else if values.iter().all(is_whole) {
        "integer"
    } else if values.iter().all(Value::is_number) {
        "number"
    } else {
        return json!({"enum": values});
    };
    json!({"type": kind, "enum": values})
}
