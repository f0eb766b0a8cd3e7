//! The declarations of the recorded scripts, and noise for the three readers.

mod noise;

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
