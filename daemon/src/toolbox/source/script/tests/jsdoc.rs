//! Blocks of JSDoc as people write them: typedefs apart, defaults, exports of every form, and what is refused.

use super::*;

fn found(text: &str) -> Result<Value, Problem> {
    let declared = declare(Language::JavaScript, Kind::Tool, "t", text.as_bytes())?;
    Ok(declared.declarations[0].to_value()["parameters"].clone())
}

const USE: &str = "/**\n * D.\n * @param {Args} args\n */\nexports.run = (args) => 1;\n";

#[test]
fn a_typedef_in_a_block_of_its_own_is_found_in_every_form() {
    for typedef in [
        "/**\n * @typedef Args\n * @property {string} a\n * @property {number} [b]\n */\n",
        "/**\n * @typedef Args\n * @type {Object}\n * @property {string} a\n * @property {number} [b]\n */\n",
        "/**\n * @typedef Args\n * @type {{a: string, b?: number}}\n */\n",
        "/** @typedef {{a: string, b?: number}} Args */\n",
        "/**\n * @typedef {{\n *   a: string, // it's } one\n *   b?: number, // note\n * }} Args\n */\n",
        "/** @typedef {{a: string, b?: number}} Inner */\n/** @typedef {Inner} Args */\n",
    ] {
        let found = found(&format!("{typedef}{USE}")).unwrap();
        assert_eq!(
            found["properties"],
            json!({"a": {"type": "string"}, "b": {"type": "number"}}),
            "{typedef}"
        );
        assert_eq!(found["required"], json!(["a"]), "{typedef}");
    }
}

#[test]
fn an_argument_whose_type_says_nothing_is_refused_with_its_line() {
    for (before, line) in [
        ("", 3),
        ("/** @typedef {{a: string}} Arg */\n", 4),
        ("/** @typedef {import('./types').Args} Args */\n", 4),
        ("/** @typedef {Args} Args */\n", 4),
        ("/** @typedef {{a: string, : }} Args */\n", 1),
    ] {
        let problem = found(&format!("{before}{USE}")).unwrap_err();
        assert_eq!(problem.line, line, "{before}{problem:?}");
    }
    let problem = found(&USE.replace("Args", "import('./types').Args")).unwrap_err();
    assert_eq!(problem.line, 3, "{problem:?}");
    // What is taken by its name is a property, and its type allows everything.
    let two = "/**\n * D.\n * @param {Elsewhere} a\n * @param {string} b\n */\nexports.run = ({ a, b }) => 1;\n";
    assert_eq!(
        found(two).unwrap()["properties"],
        json!({"a": {}, "b": {"type": "string"}})
    );
}

#[test]
fn a_second_parameter_takes_nothing_from_the_first() {
    let text = "/** @typedef {{a: string}} Args */\n/**\n * D.\n * @param {Args} args\n * @param {Context} context\n */\nexports.run = (args, context) => 1;\n";
    assert_eq!(
        found(text).unwrap()["properties"],
        json!({"a": {"type": "string"}})
    );
}

#[test]
fn a_default_is_a_value_of_its_type_or_none() {
    for (kind, default, expected) in [
        ("string", "undefined", None),
        ("string", "null", None),
        ("number", "null", None),
        ("string", "hello there", Some(json!("hello there"))),
        ("string", "'it\\'s'", Some(json!("it's"))),
        ("string", "5", Some(json!("5"))),
        ("string", "true", Some(json!("true"))),
        ("string", "process.cwd()", None),
        ("string", "new Date()", None),
        ("string[]", "['a', \"b]\"]", Some(json!(["a", "b]"]))),
        ("string[]", "[]", Some(json!([]))),
        ("string[]", "[1]", None),
        ("number", "0x10", Some(json!(16))),
        ("number", ".5", Some(json!(0.5))),
        ("number", "-1_000", Some(json!(-1000))),
        ("number", "1e-3", serde_json::from_str("1e-3").ok()),
        ("number", "Infinity", None),
        ("number", "DEFAULT", None),
        ("{a: number}", "{a: 1}", Some(json!({"a": 1}))),
        ("{a: number}", "{a: 'x'}", None),
        ("boolean", "yes", None),
        ("boolean", "false", Some(json!(false))),
        ("'red'|'green'", "red", Some(json!("red"))),
        ("'red'|'green'", "'blue'", None),
        ("string|number", "3", Some(json!(3))),
    ] {
        let text = format!(
            "/**\n * D.\n * @property {{{kind}}} [p={default}] - P\n */\nexports.run = (args) => 1;\n"
        );
        let found = found(&text).unwrap();
        let property = &found["properties"]["p"];
        assert_eq!(
            property.get("default"),
            expected.as_ref(),
            "{kind} {default}"
        );
        assert_eq!(property["description"], "P", "{kind} {default}");
        assert_eq!(found["required"], json!([]), "{kind} {default}");
    }
}

#[test]
fn every_way_to_export_a_function_by_its_name_is_one() {
    for export in [
        "exports[\"run\"] = function ({ a }) {};",
        "module.exports['run'] = ({ a }) => a;",
        "module[\"exports\"].run = ({ a }) => a;",
        "const run = exports.run = ({ a }) => a;",
        "exports.run = module.exports.other = function ({ a }) {};",
        "exports.other = exports.run = async ({ a }) => a;",
        "const run = module.exports.run = module.exports.main = ({ a }) => a;",
        "module.exports = exports = { 'run': ({ a }) => a };",
    ] {
        let text = format!("/**\n * D.\n * @property {{string}} a\n */\n{export}\n");
        assert_eq!(
            found(&text).unwrap()["properties"],
            json!({"a": {"type": "string"}}),
            "{export}"
        );
    }
    let other = "/**\n * D.\n */\nexports[run] = () => 1;\nexports.inner.run = () => 1;\n";
    assert_eq!(
        found(other).unwrap_err().message,
        "no exported function run"
    );
}

#[test]
fn texts_in_types_may_hold_quotes_and_brackets() {
    let text = "/**\n * D.\n * @property {\"it's\"|\"say \\\"x\\\"\"|'}'} a\n * @property {?} b\n * @property {Array<?>} c\n * @property {{'x-\\'y': string}} d\n */\nexports.run = (args) => 1;\n";
    assert_eq!(
        found(text).unwrap()["properties"],
        json!({
            "a": {"type": "string", "enum": ["it's", "say \"x\"", "}"]},
            "b": {},
            "c": {"type": "array", "items": {}},
            "d": {"type": "object", "properties": {"x-'y": {"type": "string"}}, "required": ["x-'y"]},
        })
    );
}
