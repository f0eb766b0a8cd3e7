//! Reads a file on a stack of its own: what a file nests without end must cost that file, never the daemon.
//! Must never let a declaration out that is too deep for everybody else to walk.

use super::{Declared, Problem};
use serde_json::Value;
use std::thread::{Builder, scope};

/// Reserved, and touched only as far as a file needs it. The largest file can nest no further.
const STACK: usize = 256 * 1024 * 1024;

/// Schemas inside schemas beyond this are no declarations that somebody wrote.
const DEEPEST: usize = 100;

/// None when it panicked.
pub(super) fn on_own_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    scope(|scope| {
        let reading = Builder::new()
            .name("script".to_owned())
            .stack_size(STACK)
            .spawn_scoped(scope, work);
        reading.ok()?.join().ok()
    })
}

/// Still on that stack, where what is too deep can be let go of.
pub(super) fn checked(declared: Declared) -> Result<Declared, Problem> {
    let schemas = declared.declarations.iter().flat_map(|one| &one.properties);
    let deep = schemas
        .into_iter()
        .find(|(_, schema)| depth(schema) > DEEPEST);
    match deep {
        Some((name, _)) => Err(Problem::new(
            1,
            format!("the type of {name} nests more than {DEEPEST} deep"),
        )),
        None => Ok(declared),
    }
}

/// How many values stand around the innermost one.
fn depth(value: &Value) -> usize {
    let (mut deepest, mut left) = (0, vec![(value, 0)]);
    while let Some((value, depth)) = left.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(values) => left.extend(values.iter().map(|value| (value, depth + 1))),
            Value::Object(values) => left.extend(values.values().map(|value| (value, depth + 1))),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, Language, declare};

    fn refused(language: Language, text: &str) -> String {
        let declared = declare(language, Kind::Tool, "t", text.as_bytes());
        declared.expect_err("it is too deep").message
    }

    fn script(types: &str, last: &str) -> String {
        format!(
            "{types}\n/**\n * T.\n * @param {{object}} args\n * @param {{{last}}} args.a A\n */\nexports.run = (args) => 1;\n"
        )
    }

    #[test]
    fn a_type_that_nests_without_end_is_refused_whatever_it_is_made_of() {
        for count in [200, 5_000] {
            let lists = format!("string{}", "[]".repeat(count));
            refused(Language::JavaScript, &script("", &lists));
            let lists = format!("{}string{}", "Array<".repeat(count), ">".repeat(count));
            refused(Language::JavaScript, &script("", &lists));
        }
        let some = "[]".repeat(30);
        let within = format!("{}string{}", "(".repeat(30), format!("{some})").repeat(30));
        refused(Language::JavaScript, &script("", &within));
    }

    /// Whether it is refused or anything is taken: a stack that overflows would end this process.
    #[test]
    fn names_that_lead_to_names_without_end_end_nobody() {
        let named: String = (1..300)
            .map(|n| format!("/** @typedef {{{{a: T{}}}}} T{n} */\n", n - 1))
            .collect();
        let text = script(&format!("/** @typedef {{string}} T0 */\n{named}"), "T299");
        drop(declare(
            Language::JavaScript,
            Kind::Tool,
            "t",
            text.as_bytes(),
        ));
        let classes: String = (1..300)
            .map(|n| format!("@dataclass\nclass C{n}:\n    a: C{}\n", n - 1))
            .collect();
        let text = format!(
            "from dataclasses import dataclass\n@dataclass\nclass C0:\n    a: str\n{classes}\ndef run(x: C299):\n    \"\"\"T.\"\"\"\n"
        );
        drop(declare(Language::Python, Kind::Tool, "t", text.as_bytes()));
    }

    #[test]
    fn a_notation_without_end_is_refused_with_its_line() {
        for inner in ["X".repeat(200_000), "<".repeat(200_000)] {
            let text = format!("# @describe T.\n# @option --a <{inner}> A\nmain() {{ :; }}\n");
            let declared = declare(Language::Bash, Kind::Tool, "t", text.as_bytes());
            let problem = declared.unwrap_err();
            assert_eq!(problem.line, 2);
            assert!(
                problem.message.contains("characters"),
                "{}",
                problem.message
            );
        }
        let long = format!(
            "# @describe T.\n# @option --a <X> {}\nmain() {{ :; }}\n",
            "words ".repeat(3_000)
        );
        declare(Language::Bash, Kind::Tool, "t", long.as_bytes()).unwrap();
    }
}
