//! Declarations: one golden file for schemas of all kinds, and what is shown when not all fit.

use super::*;
use crate::toolbox::builtin;
use crate::toolbox::{Toolbox, tool::Access};
use proptest::prelude::*;
use serde_json::json;

/// Compared byte by byte; `tests/it` has the compiler of TypeScript read it.
const GOLDEN: &str = include_str!("golden.ts");

/// A tool, its parameters, and what it gives.
type Fixture = (&'static str, &'static str, Value, Option<Value>);

fn fixtures() -> Vec<Fixture> {
    let node = json!({
        "type": "object",
        "properties": {"value": {"type": "string"}, "next": {"$ref": "#/$defs/node"}},
        "required": ["value"],
    });
    vec![
        (
            "nothing",
            "Takes nothing",
            json!({"type": "object", "properties": {}}),
            None,
        ),
        (
            "github__create_issue",
            "Creates an issue.\n\n  Ends a comment: */ no, it does not.",
            json!({
                "type": "object",
                "properties": {
                    "title": {"type": "string", "description": "In one line */ of text"},
                    "labels": {"type": "array", "items": {"type": "string"}, "default": ["bug"]},
                    "state": {"enum": ["open", "closed", 3, null, true]},
                    "assignee": {"type": ["string", "null"], "description": "Who does it"},
                },
                "required": ["title"],
                "additionalProperties": false,
            }),
            Some(
                json!({"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}),
            ),
        ),
        (
            "a-b",
            "",
            json!({
                "type": "object",
                "properties": {
                    "x-y": {"type": "number"}, "2d": {"type": "integer"}, "with \"quotes\"": {"type": "boolean"},
                    "größe": {"type": "number"}, "__proto__": {"const": "p"}, "class": {"const": {"a": [1, "b"]}},
                },
                "required": ["x-y", "undeclared"],
            }),
            None,
        ),
        (
            "unions",
            "Unions and intersections",
            json!({
                "type": "object",
                "properties": {
                    "one": {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "string"}]},
                    "many": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
                    "both": {"allOf": [{"type": "object", "properties": {"a": {"type": "string"}}}, {"type": "object", "properties": {"b": {"type": "number"}}}]},
                    "maybe": {"type": "string", "nullable": true},
                    "never": false,
                    "whatever": true,
                    "odd": {"type": "bytes"},
                    "none": {"anyOf": []},
                },
            }),
            Some(
                json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
            ),
        ),
        (
            "records",
            "Records and tuples",
            json!({
                "type": "object",
                "properties": {
                    "env": {"type": "object", "additionalProperties": {"type": "string"}},
                    "open": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": true},
                    "typed": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}},
                    "pattern": {"type": "object", "patternProperties": {"^x": {"type": "number"}, "^y": {"type": "string"}}},
                    "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": ["number", "null"]}], "items": false, "minItems": 2},
                    "rest": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "number"}},
                    "old": {"type": "array", "items": [{"type": "string"}, {"type": "boolean"}]},
                    "matrix": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
                    "list": {"type": "array"},
                },
            }),
            None,
        ),
        (
            "references",
            "References, one of them to itself",
            json!({
                "type": "object",
                "properties": {
                    "node": {"$ref": "#/$defs/node", "description": "A list"},
                    "away": {"$ref": "https://example.com/schema"},
                    "slash": {"$ref": "#/$defs/a~1b"},
                },
                "$defs": {"node": node, "a/b": {"type": "string"}},
            }),
            None,
        ),
    ]
}

fn golden() -> String {
    let members = fixtures()
        .into_iter()
        .map(|(name, description, input, output)| {
            member(name, description, &input, output.as_ref())
        });
    format!(
        "{COMMON}{SEARCH}declare const tools: {{\n{}}};\n",
        members.collect::<String>()
    )
}

#[test]
fn schemas_of_all_kinds_become_the_types_of_the_golden_file() {
    assert_eq!(golden(), GOLDEN);
    assert_eq!(golden(), golden());
}

#[test]
fn a_schema_without_end_is_cut_and_not_followed_for_ever() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    let text = types::of(&deep, 0);
    assert_eq!(text, format!("any{}", "[]".repeat(11)));
}

fn any_schema() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "type",
        "object",
        "array",
        "string",
        "properties",
        "items",
        "$ref",
        "#",
        "#/properties/a",
        "enum",
        "const",
        "anyOf",
        "allOf",
        "required",
        "additionalProperties",
        "prefixItems",
        "nullable",
        "description",
        "a",
        "\n",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 5, move |inner| {
        let members = prop::collection::vec((word.clone(), inner.clone()), 0..5);
        let object = members.prop_map(|all| {
            all.into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect()
        });
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(Value::from),
            object.prop_map(Value::Object)
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_given_as_a_schema_is_a_type_with_balanced_brackets(schema in any_schema()) {
        let text = member("any", "about */ it", &schema, Some(&schema));
        for (open, close) in [('{', '}'), ('[', ']'), ('(', ')')] {
            prop_assert_eq!(text.matches(open).count(), text.matches(close).count(), "{}", text);
        }
        prop_assert_eq!(text.matches("/**").count(), text.matches("*/").count(), "{}", text);
    }
}

fn tools(sources: &[(&str, usize)]) -> Vec<Arc<Tool>> {
    let each = |(source, count): &(&str, usize)| {
        let tool = |at: usize| {
            let name = format!("{source}__tool_{at}");
            let text =
                json!({"type": "string", "description": "What it is about, in so many words"});
            let tool = Tool::new(&name, "Does one thing or another").param("text", text);
            Arc::new(tool.source(source).access(Access::Nothing))
        };
        (0..*count).map(tool).collect::<Vec<_>>()
    };
    sources.iter().flat_map(each).collect()
}

#[test]
fn the_tools_of_the_daemon_fit_and_the_header_says_complete() {
    let mut toolbox = Toolbox::new();
    builtin::register(&mut toolbox);
    let declared = Declarations::of(toolbox.tools());
    assert!(declared.complete);
    let count = toolbox.tools().len();
    let head = format!("// COMPLETE: all {count} tools are declared.\n");
    assert!(declared.text.starts_with(&head), "{}", declared.text);
    assert!(!declared.text.contains("search_tools"));
    for tool in toolbox.tools() {
        let line = format!("  {}(input", tool.name());
        assert!(declared.text.contains(&line), "{line}");
    }
}

#[test]
fn when_not_all_fit_every_source_has_its_turn_and_the_header_says_how_many() {
    let declared = Declarations::of(&tools(&[("a", 1000), ("b", 3), ("c", 1000)]));
    assert!(!declared.complete && declared.text.chars().count() <= ROOM);
    let count = |source: &str| declared.text.matches(&format!("  {source}__tool_")).count();
    assert_eq!(count("b"), 3);
    assert!(count("a") > 30 && count("a").abs_diff(count("c")) <= 1);
    let all = count("a") + count("b") + count("c");
    let head =
        format!("// PARTIAL: {all} of 2003 tools are declared; search_tools finds the others.\n");
    assert!(declared.text.starts_with(&head), "{}", declared.text);
    assert!(
        declared
            .text
            .contains("declare function search_tools(query: string)")
    );
}
