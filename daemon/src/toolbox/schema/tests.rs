//! What each keyword says, and in which order.

use super::Schema;
use serde_json::{Value, json};

fn check(schema: Value, instance: Value, expected: &str) {
    let said = Schema::default().validate(|| schema.clone(), &instance);
    assert_eq!(
        said.err().as_deref(),
        Some(expected),
        "{schema} <- {instance}"
    );
}

#[test]
fn every_keyword_has_its_text() {
    let table = [
        (
            json!({"type": "null"}),
            json!(1),
            "value at root is not null",
        ),
        (
            json!({"type": "boolean"}),
            json!(1),
            "value at root is not a boolean",
        ),
        (
            json!({"type": "number"}),
            json!("1"),
            "value at root is not a number",
        ),
        (
            json!({"type": "integer"}),
            json!(1.5),
            "value at root is not an integer",
        ),
        (
            json!({"type": "string"}),
            json!(1),
            "value at root is not a string",
        ),
        (
            json!({"type": "array"}),
            json!(1),
            "value at root is not an array",
        ),
        (
            json!({"type": "object"}),
            json!(1),
            "value at root is not an object",
        ),
        (
            json!({"type": ["string", "null"]}),
            json!(1),
            r#"value at root is not one of the types: ["string", "null"]"#,
        ),
        (
            json!({"enum": ["a", "b"]}),
            json!("c"),
            r#"value at root is not one of: ["a", "b"]"#,
        ),
        (
            json!({"enum": ["a", 1, null, true, {"k": 1.5}, []]}),
            json!("c"),
            r#"value at root is not one of: ["a", 1, nil, true, {"k" => 1.5}, []]"#,
        ),
        (json!({"const": "a"}), json!("b"), "value at root is not: a"),
        (
            json!({"const": {"a": [1]}}),
            json!("b"),
            r#"value at root is not: {"a" => [1]}"#,
        ),
        (
            json!({"multipleOf": 2}),
            json!(3),
            "number at root is not a multiple of: 2",
        ),
        (
            json!({"multipleOf": 0.5}),
            json!(0.3),
            "number at root is not a multiple of: 0.5",
        ),
        (
            json!({"maximum": 1}),
            json!(2),
            "number at root is greater than: 1",
        ),
        (
            json!({"exclusiveMaximum": 1}),
            json!(1),
            "number at root is greater than or equal to: 1",
        ),
        (
            json!({"minimum": 1}),
            json!(0),
            "number at root is less than: 1",
        ),
        (
            json!({"minimum": 1.0}),
            json!(0),
            "number at root is less than: 1.0",
        ),
        (
            json!({"minimum": 1e20}),
            json!(0),
            "number at root is less than: 1.0e+20",
        ),
        (
            json!({"exclusiveMinimum": 1}),
            json!(1),
            "number at root is less than or equal to: 1",
        ),
        (
            json!({"maxLength": 1}),
            json!("ab"),
            "string length at root is greater than: 1",
        ),
        (
            json!({"minLength": 3}),
            json!("ab"),
            "string length at root is less than: 3",
        ),
        (
            json!({"pattern": "^a"}),
            json!("b"),
            "string at root does not match pattern: ^a",
        ),
        (
            json!({"format": "date"}),
            json!("b"),
            "value at root does not match format: date",
        ),
        (
            json!({"maxItems": 1}),
            json!([1, 2]),
            "array size at root is greater than: 1",
        ),
        (
            json!({"minItems": 3}),
            json!([1, 2]),
            "array size at root is less than: 3",
        ),
        (
            json!({"uniqueItems": true}),
            json!([1, 1]),
            "array items at root are not unique",
        ),
        (
            json!({"contains": {"type": "string"}}),
            json!([1]),
            "array at root does not contain enough items that match `contains` schema",
        ),
        (
            json!({"contains": {"type": "string"}, "minContains": 2}),
            json!(["a"]),
            "array at root does not contain enough items that match `contains` schema, number of array items at root matching `contains` schema is less than: 2",
        ),
        (
            json!({"contains": {"type": "string"}, "maxContains": 1}),
            json!(["a", "b"]),
            "number of array items at root matching `contains` schema is greater than: 1",
        ),
        (
            json!({"maxProperties": 0}),
            json!({"a": 1}),
            "object size at root is greater than: 0",
        ),
        (
            json!({"minProperties": 2}),
            json!({"a": 1}),
            "object size at root is less than: 2",
        ),
        (
            json!({"required": ["a", "b"]}),
            json!({}),
            "object at root is missing required properties: a, b",
        ),
        (
            json!({"required": ["a", "b"]}),
            json!({"a": 1}),
            "object at root is missing required properties: b",
        ),
        (
            json!({"dependentRequired": {"a": ["b", "c"], "d": ["e"], "f": ["g"]}}),
            json!({"a": 1, "d": 2}),
            "object at `/a` is missing required `dependentRequired` properties, object at `/d` is missing required `dependentRequired` properties",
        ),
        (
            json!({"dependencies": {"a": ["b"]}}),
            json!({"a": 1}),
            "object at root either does not match applicable `dependencies` schemas or is missing required `dependencies` properties",
        ),
        (
            json!({"dependentSchemas": {"a": {"required": ["z"]}}}),
            json!({"a": 1}),
            "object at root is missing required properties: z",
        ),
        (
            json!({"properties": {"a": {"type": "string"}}}),
            json!({"a": 1}),
            "value at `/a` is not a string",
        ),
        (
            json!({"properties": {"a": false}}),
            json!({"a": 1}),
            "value at `/a` does not match schema",
        ),
        (
            json!({"properties": {"then": false}}),
            json!({"then": 1}),
            "value at `/then` does not match schema",
        ),
        (
            json!({"patternProperties": {"^x": {"minimum": 3}}}),
            json!({"x1": 1}),
            "number at `/x1` is less than: 3",
        ),
        (
            json!({"properties": {"a": true}, "additionalProperties": false}),
            json!({"c": 1, "a": 1, "b": 2}),
            "object property at `/c` is a disallowed additional property, object property at `/b` is a disallowed additional property",
        ),
        (
            json!({"additionalProperties": {"type": "string"}}),
            json!({"b": 1}),
            "value at `/b` is not a string",
        ),
        (
            json!({"properties": {"a": true}, "unevaluatedProperties": false}),
            json!({"a": 1, "b": 2}),
            "value at `/b` does not match schema",
        ),
        (
            json!({"unevaluatedProperties": {"type": "string"}}),
            json!({"b": 2}),
            "object properties at root do not match `unevaluatedProperties` schema",
        ),
        (
            json!({"prefixItems": [true], "unevaluatedItems": false}),
            json!([1, 2]),
            "value at `/1` does not match schema",
        ),
        (
            json!({"unevaluatedItems": {"type": "string"}}),
            json!([1]),
            "array items at root do not match `unevaluatedItems` schema",
        ),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"aa": 1}),
            "string length at root is greater than: 1",
        ),
        (
            json!({"propertyNames": false}),
            json!({"aa": 1}),
            "value at root does not match schema",
        ),
        (
            json!({"items": {"type": "string"}}),
            json!(["a", 1, 2]),
            "value at `/1` is not a string, value at `/2` is not a string",
        ),
        (
            json!({"prefixItems": [{"type": "string"}]}),
            json!([1]),
            "value at `/0` is not a string",
        ),
        (
            json!({"items": false}),
            json!([1]),
            "value at `/0` does not match schema",
        ),
        (
            json!({"allOf": [{"type": "string"}, {"minimum": 3}]}),
            json!(1),
            "value at root is not a string, number at root is less than: 3",
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"minimum": 3}]}),
            json!(1),
            "value at root is not a string, number at root is less than: 3",
        ),
        (
            json!({"anyOf": [false, false]}),
            json!(1),
            "value at root does not match schema, value at root does not match schema",
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"minimum": 3}]}),
            json!(1),
            "value at root is not a string, number at root is less than: 3",
        ),
        (
            json!({"oneOf": [true, true]}),
            json!(1),
            "value at root does not match exactly one `oneOf` schema",
        ),
        (
            json!({"not": {"type": "number"}}),
            json!(1),
            "value at root matches `not` schema",
        ),
        (
            json!({"if": true, "then": {"minimum": 3}}),
            json!(1),
            "number at root is less than: 3",
        ),
        (
            json!({"if": true, "then": false}),
            json!(1),
            "value at root does not match conditional `then` schema",
        ),
        (
            json!({"if": false, "else": false}),
            json!(1),
            "value at root does not match conditional `else` schema",
        ),
        (
            json!({"$ref": "#/$defs/x", "$defs": {"x": {"minimum": 3}}}),
            json!(1),
            "number at root is less than: 3",
        ),
        (
            json!(false),
            json!(1),
            "value at root does not match schema",
        ),
    ];
    for (schema, instance, expected) in table {
        check(schema, instance, expected);
    }
}

#[test]
fn members_come_in_the_schemas_order_and_before_what_is_missing() {
    let schema = json!({
        "type": "object",
        "properties": {
            "z": {"type": "string", "enum": ["a"]},
            "a": {"minLength": 3, "pattern": "^b"},
            "list": {"items": {"properties": {"n": {"type": "integer"}}, "required": ["m"]}},
        },
        "required": ["q"],
    });
    let instance = json!({"list": [{"n": "x"}, 1, {"m": 1, "n": ""}], "a": "x", "z": 1});
    let expected = "value at `/z` is not a string, value at `/z` is not one of: [\"a\"], \
        string length at `/a` is less than: 3, string at `/a` does not match pattern: ^b, \
        value at `/list/0/n` is not an integer, object at `/list/0` is missing required properties: m, \
        value at `/list/2/n` is not an integer, object at root is missing required properties: q";
    check(schema, instance, expected);
}

#[test]
fn places_are_escaped_as_pointers() {
    let schema = json!({"properties": {"a/b~c": {"type": "string"}}});
    check(
        schema,
        json!({"a/b~c": 1}),
        "value at `/a~1b~0c` is not a string",
    );
}

#[test]
fn errors_behind_a_reference_stand_where_it_stands() {
    let schema = json!({
        "$defs": {"name": {"type": "string", "minLength": 2}},
        "properties": {"b": {"$ref": "#/$defs/name"}, "a": {"type": "string"}},
    });
    check(
        schema,
        json!({"a": 1, "b": "x"}),
        "string length at `/b` is less than: 2, value at `/a` is not a string",
    );
}

#[test]
fn whole_numbers_are_integers_however_written() {
    assert_eq!(
        Schema::default().validate(|| json!({"type": "integer"}), &json!(1.0)),
        Ok(())
    );
}

#[test]
fn unusable_schemas_are_named_with_their_place() {
    let table = [
        (
            json!({"properties": {"a": {"type": "strin"}}}),
            "at /properties/a/type: ",
        ),
        (
            json!({"properties": {"a": {"pattern": "("}}}),
            "at /properties/a/pattern: ",
        ),
        (json!({"properties": {"a": {"$ref": "#/nope"}}}), "/nope"),
        (
            json!({"properties": {"a": {"$ref": "http://example.com/x"}}}),
            "http://example.com/x",
        ),
        (json!({"properties": {"a": 5}}), "at /properties/a"),
    ];
    for (schema, expected) in table {
        let said = Schema::default()
            .check(|| schema)
            .expect_err("it cannot be used");
        assert!(said.contains(expected), "{said}");
    }
}
