//! JSDoc's types that are more than a name.

use super::*;

fn parameters(text: &str) -> Value {
    let declared = declare(Language::JavaScript, Kind::Tool, "t", text.as_bytes()).unwrap();
    declared.declarations[0].to_value()["parameters"].clone()
}

#[test]
fn an_intersection_of_records_has_the_properties_of_all() {
    let text = "/**\n * @typedef {Object} Base\n * @property {string} q - Q\n * @property {number} [n]\n */\n\
        /** @typedef {Base & {extra: number, more?: string}} Args */\n\
        /**\n * D.\n * @param {Args} args\n */\nexports.run = (args) => 1;\n";
    let found = parameters(text);
    assert_eq!(
        found["properties"],
        json!({
            "q": {"type": "string", "description": "Q"},
            "n": {"type": "number"},
            "extra": {"type": "number"},
            "more": {"type": "string"},
        })
    );
    assert_eq!(found["required"], json!(["q", "extra"]));
}

#[test]
fn the_type_of_the_function_itself_tells_its_argument() {
    let text = "/**\n * D.\n * @type {(args: {q: string, n?: number}, more: any) => Promise<string>}\n */\n\
        export const run = async ({ q }) => q;\n";
    let found = parameters(text);
    assert_eq!(
        found["properties"],
        json!({"q": {"type": "string"}, "n": {"type": "number"}})
    );
    assert_eq!(found["required"], json!(["q"]));
}

#[test]
fn types_that_are_rare_lose_nothing_and_invent_nothing() {
    let numbers = json!({"type": "array", "items": {"type": "number"}});
    for (kind, expected) in [
        (
            "[number, number]",
            json!({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            "[x: number, y?: number]",
            json!({"type": "array", "items": {"type": "number"}, "minItems": 1, "maxItems": 2}),
        ),
        (
            "[string, ...number[]]",
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}, "minItems": 1,
                "prefixItems": [{"type": "string"}]}),
        ),
        (
            "T extends string ? 'a' : 'b'",
            json!({"type": "string", "enum": ["a", "b"]}),
        ),
        (
            "(T extends (infer U)[] ? (U extends string ? number : boolean) : null)[]",
            json!({"type": "array", "items": {"anyOf": [{"type": "number"}, {"type": "boolean"}]}}),
        ),
        ("number[][]", json!({"type": "array", "items": numbers})),
        (
            "readonly string[]",
            json!({"type": "array", "items": {"type": "string"}}),
        ),
        ("import('fs').Stats", json!({})),
        ("null[]", json!({"type": "array", "items": {}})),
        ("typeof Color", json!({})),
        ("keyof typeof Color", json!({})),
        ("Args['q']", json!({})),
        ("(a: string, b: number) => void", json!({})),
        ("function(string): number", json!({})),
        (
            "(string | number)[]",
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}]}}),
        ),
        ("string & Brand", json!({"type": "string"})),
        (
            "{[key: string]: number}",
            json!({"type": "object", "additionalProperties": {"type": "number"}}),
        ),
    ] {
        let text = format!(
            "/**\n * D.\n * @param {{{{p: {kind}, readonly z: string}}}} args\n */\nexports.run = (args) => 1;\n"
        );
        let found = parameters(&text);
        assert_eq!(
            found["properties"],
            json!({"p": expected, "z": {"type": "string"}}),
            "{kind}"
        );
        assert_eq!(found["required"], json!(["p", "z"]), "{kind}");
    }
}

#[test]
fn a_function_is_described_by_the_type_that_it_is_said_to_be() {
    let args = "/**\n * @typedef {Object} Args\n * @property {string} q - Q\n * @property {number} [n]\n */\n";
    for (before, kind) in [
        (String::new(), "(args: Args) => string"),
        ("/** @typedef {(args: Args) => string} Handler */\n".to_owned(), "Handler"),
        ("/** @typedef {function(Args): string} Handler */\n".to_owned(), "Handler"),
        ("/**\n * @callback Handler\n * @param {Args} args\n * @returns {string}\n */\n".to_owned(), "Handler"),
        (
            "/**\n * @callback Inner\n * @param {Object} o\n * @param {string} o.q - Q\n * @param {number} [o.n]\n */\n\
             /** @typedef {Inner} Handler */\n"
                .to_owned(),
            "Handler",
        ),
    ] {
        let text = format!("{args}{before}/**\n * D.\n * @type {{{kind}}}\n */\nexports.run = (args) => args;\n");
        let found = parameters(&text);
        assert_eq!(
            found["properties"],
            json!({"q": {"type": "string", "description": "Q"}, "n": {"type": "number"}}),
            "{before}{kind}"
        );
        assert_eq!(found["required"], json!(["q"]));
    }
}
