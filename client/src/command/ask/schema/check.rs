//! JSON Schema as far as people use it to shape a reply: a library that knows all of it weighs more than half of this
//! program. Must never pass over a keyword that it does not know: the schema is refused instead.

use serde_json::{Map, Value};

/// Keywords that say nothing about whether a value fits.
const NOTES: &[&str] = &[
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "format",
    "deprecated",
    "readOnly",
    "writeOnly",
];

/// How deep references may lead: one that leads to itself would never end.
const DEEP: usize = 64;

/// What is known of one keyword: its name, and what is wrong with a value by it.
type Keyword = (&'static str, fn(&Place<'_>, &Value, &Value) -> Vec<String>);

const KEYWORDS: &[Keyword] = &[
    ("$ref", |place, word, value| {
        match word.as_str().and_then(|path| place.target(path)) {
            Some(schema) => place.deeper().check(schema, value),
            None => vec![place.fault("the schema refers to what is not there")],
        }
    }),
    ("type", |place, word, value| {
        place.unless(has_type(word, value), || {
            format!("it is not of type {word}")
        })
    }),
    ("enum", |place, word, value| {
        let known = word.as_array().is_some_and(|all| all.contains(value));
        place.unless(known, || format!("it is none of {word}"))
    }),
    ("const", |place, word, value| {
        place.unless(word == value, || format!("it is not {word}"))
    }),
    ("required", |place, word, value| {
        let names = word
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        let missing = names.filter(|name| value.is_object() && value.get(name).is_none());
        missing
            .map(|name| place.fault(&format!("\"{name}\" is required")))
            .collect()
    }),
    ("properties", |place, word, value| {
        let (Some(schemas), Some(members)) = (word.as_object(), value.as_object()) else {
            return Vec::new();
        };
        let both = members
            .iter()
            .filter_map(|(name, one)| Some((name, schemas.get(name)?, one)));
        both.flat_map(|(name, schema, one)| place.at(name).check(schema, one))
            .collect()
    }),
    // Looked at with the whole schema, in `others`.
    ("additionalProperties", |_, _, _| Vec::new()),
    ("items", |place, word, value| {
        let all = value.as_array().into_iter().flatten().enumerate();
        all.flat_map(|(at, one)| place.at(&at.to_string()).check(word, one))
            .collect()
    }),
    ("minItems", |place, word, value| {
        place.at_least(value.as_array().map(Vec::len), word, "items")
    }),
    ("maxItems", |place, word, value| {
        place.at_most(value.as_array().map(Vec::len), word, "items")
    }),
    ("minLength", |place, word, value| {
        place.at_least(length(value), word, "characters")
    }),
    ("maxLength", |place, word, value| {
        place.at_most(length(value), word, "characters")
    }),
    ("minProperties", |place, word, value| {
        place.at_least(value.as_object().map(Map::len), word, "members")
    }),
    ("maxProperties", |place, word, value| {
        place.at_most(value.as_object().map(Map::len), word, "members")
    }),
    ("minimum", |place, word, value| {
        place.compare(word, value, |value, limit| value >= limit, "less than")
    }),
    ("maximum", |place, word, value| {
        place.compare(word, value, |value, limit| value <= limit, "more than")
    }),
    ("exclusiveMinimum", |place, word, value| {
        place.compare(word, value, |value, limit| value > limit, "not above")
    }),
    ("exclusiveMaximum", |place, word, value| {
        place.compare(word, value, |value, limit| value < limit, "not below")
    }),
    ("uniqueItems", |place, word, value| {
        let all = value.as_array().map_or(&[][..], Vec::as_slice);
        let twice = all
            .iter()
            .enumerate()
            .any(|(at, one)| all[..at].contains(one));
        place.unless(word != true || !twice, || "an item is there twice".into())
    }),
    ("allOf", |place, word, value| {
        let all = word.as_array().into_iter().flatten();
        all.flat_map(|schema| place.deeper().check(schema, value))
            .collect()
    }),
    ("anyOf", |place, word, value| {
        place.unless(place.fitting(word, value) > 0, || {
            "it fits none of `anyOf`".into()
        })
    }),
    ("oneOf", |place, word, value| {
        let fitting = place.fitting(word, value);
        place.unless(fitting == 1, || {
            format!("it fits {fitting} of `oneOf`, not one")
        })
    }),
    ("not", |place, word, value| {
        place.unless(!place.deeper().check(word, value).is_empty(), || {
            "it fits `not`".into()
        })
    }),
];

/// What of a schema this program does not know; none if it knows all.
pub(super) fn unknown(schema: &Value) -> Option<String> {
    let Value::Object(members) = schema else {
        let fine = schema.is_boolean();
        return (!fine).then(|| format!("{schema} is no schema"));
    };
    members.iter().find_map(|(name, word)| match name.as_str() {
        "properties" | "$defs" | "definitions" => match word.as_object() {
            Some(all) => all.values().find_map(unknown),
            None => Some(format!("`{name}` is no object")),
        },
        "items" | "additionalProperties" | "not" => unknown(word),
        "allOf" | "anyOf" | "oneOf" => match word.as_array() {
            Some(all) => all.iter().find_map(unknown),
            None => Some(format!("`{name}` is no list")),
        },
        "type" => (!known_type(word)).then(|| format!("there is no type {word}")),
        name if NOTES.contains(&name) || KEYWORDS.iter().any(|(known, _)| *known == name) => None,
        name => Some(format!("`{name}` is not supported here")),
    })
}

/// A reference that leads nowhere in a schema that is known otherwise.
pub(super) fn dangling(root: &Value) -> Option<String> {
    fn within(root: &Value, part: &Value) -> Option<String> {
        match part {
            Value::Object(members) => members.iter().find_map(|(name, word)| {
                let leads = || {
                    let path = word.as_str().and_then(|path| path.strip_prefix('#'));
                    path.is_some_and(|path| root.pointer(path).is_some())
                };
                match name.as_str() {
                    "$ref" => (!leads()).then(|| format!("`$ref` leads to no part of it: {word}")),
                    // Values, not schemas.
                    "enum" | "const" | "default" | "examples" => None,
                    _ => within(root, word),
                }
            }),
            Value::Array(all) => all.iter().find_map(|one| within(root, one)),
            _ => None,
        }
    }
    within(root, root)
}

/// What is wrong with a value; nothing if it fits.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let place = Place {
        root: schema,
        path: String::new(),
        depth: 0,
    };
    place.check(schema, value)
}

/// Where in the value one is.
struct Place<'a> {
    root: &'a Value,
    path: String,
    depth: usize,
}

impl Place<'_> {
    fn check(&self, schema: &Value, value: &Value) -> Vec<String> {
        if self.depth > DEEP {
            return vec![self.fault("the schema refers to itself without end")];
        }
        let Some(members) = schema.as_object() else {
            return self.unless(schema != false, || "nothing may stand here".into());
        };
        let known = |name: &str| KEYWORDS.iter().find(|(known, _)| *known == name);
        let checked = members
            .iter()
            .filter_map(|(name, word)| Some((known(name)?.1)(self, word, value)));
        let mut all: Vec<String> = checked.flatten().collect();
        all.extend(self.others(members, value));
        all
    }

    /// Members that `properties` does not name.
    fn others(&self, schema: &Map<String, Value>, value: &Value) -> Vec<String> {
        let (Some(word), Some(members)) = (schema.get("additionalProperties"), value.as_object())
        else {
            return Vec::new();
        };
        let named = schema.get("properties").and_then(Value::as_object);
        let others = members
            .iter()
            .filter(|(name, _)| named.is_none_or(|named| !named.contains_key(*name)));
        others
            .flat_map(|(name, one)| self.at(name).check(word, one))
            .collect()
    }

    fn at(&self, part: &str) -> Self {
        Self {
            path: format!("{}/{part}", self.path),
            ..self.deeper()
        }
    }

    fn deeper(&self) -> Self {
        Self {
            root: self.root,
            path: self.path.clone(),
            depth: self.depth + 1,
        }
    }

    /// What a reference within the schema leads to.
    fn target(&self, path: &str) -> Option<&Value> {
        self.root.pointer(path.strip_prefix('#')?)
    }

    fn fault(&self, what: &str) -> String {
        match self.path.as_str() {
            "" => what.to_string(),
            path => format!("{what} (at {path})"),
        }
    }

    fn unless(&self, fits: bool, what: impl Fn() -> String) -> Vec<String> {
        if fits {
            Vec::new()
        } else {
            vec![self.fault(&what())]
        }
    }

    fn fitting(&self, schemas: &Value, value: &Value) -> usize {
        let all = schemas.as_array().into_iter().flatten();
        all.filter(|schema| self.deeper().check(schema, value).is_empty())
            .count()
    }

    fn at_least(&self, count: Option<usize>, limit: &Value, of: &str) -> Vec<String> {
        let few = count
            .zip(limit.as_u64())
            .is_some_and(|(count, limit)| (count as u64) < limit);
        self.unless(!few, || format!("it has fewer than {limit} {of}"))
    }

    fn at_most(&self, count: Option<usize>, limit: &Value, of: &str) -> Vec<String> {
        let many = count
            .zip(limit.as_u64())
            .is_some_and(|(count, limit)| count as u64 > limit);
        self.unless(!many, || format!("it has more than {limit} {of}"))
    }

    fn compare(
        &self,
        limit: &Value,
        value: &Value,
        fits: fn(f64, f64) -> bool,
        word: &str,
    ) -> Vec<String> {
        let both = value.as_f64().zip(limit.as_f64());
        self.unless(both.is_none_or(|(value, limit)| fits(value, limit)), || {
            format!("it is {word} {limit}")
        })
    }
}

fn length(value: &Value) -> Option<usize> {
    value.as_str().map(|text| text.chars().count())
}

fn known_type(word: &Value) -> bool {
    let known = |name: &Value| {
        let names = [
            "null", "boolean", "object", "array", "number", "integer", "string",
        ];
        name.as_str().is_some_and(|name| names.contains(&name))
    };
    word.as_array()
        .map_or_else(|| known(word), |all| all.iter().all(known))
}

fn has_type(word: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "number" => value.is_number(),
        "integer" => {
            value.is_i64()
                || value.is_u64()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "string" => value.is_string(),
        _ => false,
    };
    match word {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        word => word.as_str().is_some_and(is),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, value: &Value) -> Vec<String> {
        assert_eq!(unknown(schema), None);
        faults(schema, value)
    }

    #[test]
    fn each_keyword_lets_through_what_fits_and_nothing_else() {
        for (schema, good, bad) in [
            (json!({"type": "integer"}), json!(3.0), json!(3.5)),
            (json!({"type": ["string", "null"]}), json!(null), json!(1)),
            (json!({"enum": ["a", 1]}), json!(1), json!("b")),
            (json!({"const": {"a": 1}}), json!({"a": 1}), json!({})),
            (
                json!({"required": ["a"]}),
                json!({"a": null}),
                json!({"b": 1}),
            ),
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!({"a": "x", "b": 1}),
                json!({"a": 1}),
            ),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"a": 1}),
                json!({"b": 1}),
            ),
            (
                json!({"additionalProperties": {"type": "number"}}),
                json!({"x": 1}),
                json!({"x": "1"}),
            ),
            (
                json!({"items": {"type": "string"}}),
                json!(["a"]),
                json!(["a", 1]),
            ),
            (
                json!({"minItems": 1, "maxItems": 2}),
                json!([1]),
                json!([1, 2, 3]),
            ),
            (
                json!({"minLength": 2, "maxLength": 3}),
                json!("日本"),
                json!("日"),
            ),
            (
                json!({"minimum": 1, "exclusiveMaximum": 5}),
                json!(1),
                json!(5),
            ),
            (json!({"uniqueItems": true}), json!([1, 2]), json!([1, 1])),
            (
                json!({"anyOf": [{"type": "string"}, {"minimum": 5}]}),
                json!(6),
                json!(4),
            ),
            (
                json!({"oneOf": [{"type": "number"}, {"minimum": 5}]}),
                json!(4),
                json!(6),
            ),
            (
                json!({"allOf": [{"minimum": 1}, {"maximum": 2}]}),
                json!(2),
                json!(3),
            ),
            (json!({"not": {"type": "null"}}), json!(0), json!(null)),
            (
                json!({"$ref": "#/$defs/n", "$defs": {"n": {"type": "number"}}}),
                json!(1),
                json!("1"),
            ),
        ] {
            assert_eq!(
                check(&schema, &good),
                Vec::<String>::new(),
                "{schema} and {good}"
            );
            assert!(!check(&schema, &bad).is_empty(), "{schema} and {bad}");
        }
    }

    #[test]
    fn a_recursive_schema_follows_the_value_and_an_endless_one_ends() {
        let tree = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
        assert!(check(&tree, &json!({"next": {"next": {}}})).is_empty());
        assert_eq!(check(&tree, &json!({"next": {"next": 1}})).len(), 1);
        let endless = json!({"$ref": "#"});
        assert!(check(&endless, &json!(1))[0].contains("without end"));
    }

    #[test]
    fn what_is_not_known_is_refused_wherever_it_stands() {
        let nested = json!({"items": {"properties": {"a": {"pattern": "x"}}}});
        assert!(unknown(&nested).unwrap().contains("`pattern`"));
        assert!(unknown(&json!({"type": "text"})).is_some());
        assert!(unknown(&json!({"type": 3})).is_some());
        assert!(unknown(&json!([])).is_some());
    }
}
