//! The declarations of the recorded scripts, and noise for the three readers.

mod hints;
mod jsdoc;
mod noise;
mod types;

use super::*;
use std::path::PathBuf;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/script_tools")
}

/// Order of properties and of `required` says nothing; no `required` is an empty one.
fn comparable(declaration: &Value) -> Value {
    let mut declaration = declaration.clone();
    let parameters = &mut declaration["parameters"];
    if parameters["required"].is_null() {
        parameters["required"] = json!([]);
    }
    declaration
}

fn check(record: &Value) -> Result<(), String> {
    let name = record["file"].as_str().unwrap();
    let path = fixtures().join(name);
    let kind = match record["kind"].as_str() {
        Some("agent") => Kind::Agent,
        _ => Kind::Tool,
    };
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let found = declare(Language::of(&path).unwrap(), kind, stem, &bytes);
    match (record["error"].as_str(), found) {
        (Some(expected), Err(problem)) => {
            let line = expected
                .strip_prefix("line ")
                .and_then(|rest| rest.split(':').next());
            match line {
                Some(line) if line != problem.line.to_string() => {
                    Err(format!("{name}: {problem:?}"))
                }
                _ => Ok(()),
            }
        }
        (None, Ok(found)) => {
            let found: Vec<_> = found
                .declarations
                .iter()
                .map(Declaration::to_value)
                .collect();
            let found: Vec<_> = found.iter().map(comparable).collect();
            let expected = record["declarations"].as_array().unwrap();
            let expected: Vec<_> = expected.iter().map(comparable).collect();
            match found == expected {
                true => Ok(()),
                false => Err(format!(
                    "{name}:\n  {}\n  {}",
                    json!(found),
                    json!(expected)
                )),
            }
        }
        (expected, found) => Err(format!("{name}: {expected:?} but {found:?}")),
    }
}

#[test]
fn recorded_scripts_declare_what_is_expected_of_them() {
    let expected = std::fs::read_to_string(fixtures().join("expected.json")).unwrap();
    let records: Vec<Value> = serde_json::from_str(&expected).unwrap();
    assert_eq!(records.len(), 154);
    let wrong: Vec<_> = records
        .iter()
        .filter_map(|record| check(record).err())
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn a_record_in_the_place_of_the_argument_gives_its_members() {
    let text = "module.exports = {\n/** D.\n * @param {{a: string, b?: number[]}} args - A */\nasync run({ a }) {} };\n";
    let declared = declare(Language::JavaScript, Kind::Tool, "t", text.as_bytes()).unwrap();
    let tool = &declared.declarations[0];
    assert_eq!(
        Value::Object(tool.properties.clone()),
        json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"type": "number"}}})
    );
    assert_eq!(tool.required, ["a"]);
}

fn properties(language: Language, text: &str) -> Value {
    let declared = declare(language, Kind::Tool, "t", text.as_bytes()).unwrap();
    Value::Object(declared.declarations[0].properties.clone())
}

#[test]
fn a_type_that_the_file_defines_is_what_it_was_defined_as() {
    let text = "/** @typedef {{x: string, y?: number}} Point */\n/** @typedef {'red'|'green'} Colour */\n\
                /**\n * @typedef {Object} Node\n * @property {string} id - I\n * @property {Node[]} [inner]\n */\n\
                /**\n * D.\n * @param {Object} args\n * @param {Point[]} args.all - Many\n * @param {Colour} [args.c]\n \
                * @param {Node} args.n\n * @param {Elsewhere} args.e\n */\nexports.run = (args) => 1;\n";
    let node = json!({"type": "object", "properties": {"id": {"type": "string", "description": "I"}, "inner": {"type": "array", "items": {}}},
        "required": ["id"]});
    let point = json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "number"}}, "required": ["x"]});
    assert_eq!(
        properties(Language::JavaScript, text),
        json!({
            "all": {"type": "array", "items": point, "description": "Many"},
            "c": {"type": "string", "enum": ["red", "green"]},
            "n": node,
            "e": {},
        })
    );
    let whole = "/** @typedef {{a: string}} Args */\n/** D.\n * @param {Args} args */\nexports.run = (args) => 1;\n";
    assert_eq!(
        properties(Language::JavaScript, whole),
        json!({"a": {"type": "string"}})
    );
}

#[test]
fn definitions_that_name_each_other_many_times_stay_small() {
    let mut text = String::new();
    for number in 0..9 {
        let next = (0..9).map(|other| format!(" * @property {{T{}}} p{other}\n", number + 1));
        text += &format!(
            "/**\n * @typedef {{Object}} T{number}\n{} */\n",
            next.collect::<String>()
        );
    }
    text += "/**\n * D.\n * @param {T0} args\n */\nexports.run = (args) => 1;\n";
    let told = properties(Language::JavaScript, &text).to_string();
    assert!(told.len() < 256 * 1024, "{}", told.len());
}

#[test]
fn choices_of_numpys_form_are_choices() {
    let text = "def run(c=None):\n    \"\"\"D.\n\n    Parameters\n    ----------\n    c : {'x', 'y'}, optional\n        The c.\n    \"\"\"\n";
    assert_eq!(
        properties(Language::Python, text),
        json!({"c": {"type": "string", "enum": ["x", "y"], "description": "The c."}})
    );
}

#[test]
fn parameters_by_position_are_refused_where_one_object_is_passed() {
    let doc = "/**\n * D.\n * @param {string} city - C\n * @param {number} [days=1] - N\n */\n";
    for run in [
        "exports.run = function (city, days) {};\n",
        "exports.run = city => 1;\n",
        "export const run = async (city, days = 1) => 1;\n",
        "function run(city, days) {}\nmodule.exports = { run };\n",
    ] {
        let text = format!("{doc}{run}");
        let problem = declare(Language::JavaScript, Kind::Tool, "t", text.as_bytes()).unwrap_err();
        assert_eq!(problem.line, 3, "{run}");
        assert!(
            problem
                .told(Path::new("t.js"))
                .contains("run({ city, days })"),
            "{problem:?}"
        );
    }
    for run in [
        "exports.run = function ({ city, days }) {};\n",
        "exports.run = (args) => args.city;\n",
    ] {
        assert_eq!(
            properties(Language::JavaScript, &format!("{doc}{run}")),
            json!({
                "city": {"type": "string", "description": "C"},
                "days": {"type": "number", "default": 1, "description": "N"},
            })
        );
    }
}
