//! What the script provider does with a prompt that is no script: it reads a file and tells how it begins.

use super::parse::Step;
use crate::provider::ProviderEvent;
use protocol::tool::Definition;
use serde_json::{Map, Value, json};

/// How many lines of the file are told.
const LINES: usize = 5;

const HINT: &str = "(No model is connected: the provider `script` plays a prompt whose lines are `say TEXT`, \
                    `think TEXT`, `do TOOL {json}`, `wait MS` or `fail TEXT`. For a model, set OPENAI_API_KEY or \
                    OPENAI_BASE_URL, and use `-p openai`.)";

pub(super) fn steps(prompt: &str, results: Vec<&str>, tools: &[Definition]) -> Vec<Step> {
    let file = file_name(prompt);
    let can_read = tools.iter().any(|tool| tool.function.name == "read");
    match results.last() {
        Some(result) => say(&format!("{}\n\n{HINT}", told(file, result))),
        None if !can_read => say(HINT),
        None => first(file),
    }
}

fn first(file: &str) -> Vec<Step> {
    let thought = ProviderEvent::Thinking(format!("{file} will tell."));
    let mut steps = vec![emit(thought)];
    steps.extend(say(&format!("let me read {file}.")));
    steps.push(Step::Call(ProviderEvent::Doing {
        id: None,
        name: "read".to_owned(),
        arguments: json!({ "path": file }),
    }));
    steps
}

/// A word of the prompt that looks like a file's name.
fn file_name(prompt: &str) -> &str {
    let is_edge = |c: char| !c.is_alphanumeric() && !"/_-".contains(c);
    let words = prompt
        .split_whitespace()
        .map(|word| word.trim_matches(is_edge));
    let mut names = words.filter(|word| word.contains('.') && !word.contains("://"));
    names.next().unwrap_or("README.md")
}

fn told(file: &str, result: &str) -> String {
    let result: Map<String, Value> = serde_json::from_str(result).unwrap_or_default();
    if let Some(error) = result.get("error") {
        let error = error
            .as_str()
            .map_or_else(|| error.to_string(), str::to_owned);
        return format!("{file} cannot be read: {error}");
    }
    let content = result.get("content").and_then(Value::as_str);
    let lines = content.unwrap_or_default().lines();
    let lines: Vec<_> = lines
        .filter(|line| !line.trim().is_empty())
        .take(LINES)
        .collect();
    match lines.is_empty() {
        true => format!("{file} is empty."),
        false => format!("{file} begins:\n\n{}", lines.join("\n")),
    }
}

/// Word by word, as models do.
fn say(text: &str) -> Vec<Step> {
    let words = text.split_inclusive(' ');
    words
        .map(|word| emit(ProviderEvent::Saying(word.to_owned())))
        .collect()
}

fn emit(event: ProviderEvent) -> Step {
    Step::Emit { event, times: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::tool::{Function, FunctionTag};

    fn text(steps: &[Step]) -> String {
        let texts = steps.iter().map(|step| match step {
            Step::Emit {
                event: ProviderEvent::Saying(text),
                ..
            } => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    fn read() -> Definition {
        Definition {
            kind: FunctionTag::Function,
            function: Function {
                name: "read".to_owned(),
                description: String::new(),
                parameters: Value::Null,
            },
        }
    }

    #[test]
    fn file_that_the_prompt_names_is_read() {
        let steps = steps("what does README.md say?", Vec::new(), &[read()]);
        assert_eq!(text(&steps), "let me read README.md.");
        let call = ProviderEvent::Doing {
            id: None,
            name: "read".to_owned(),
            arguments: json!({"path": "README.md"}),
        };
        assert_eq!(steps.last(), Some(&Step::Call(call)));
        assert_eq!(file_name("and (src/a_b.rs)?"), "src/a_b.rs");
        assert_eq!(file_name("hello there..."), "README.md");
    }

    #[test]
    fn first_lines_of_the_file_or_its_trouble_are_told() {
        let result = r##"{"content": "# dwell\n\nkeeps\nsessions\n", "ok": true}"##;
        let said = text(&steps("README.md", vec![result], &[read()]));
        assert!(said.starts_with("README.md begins:\n\n# dwell\nkeeps\nsessions\n\n(No model"));
        let said = text(&steps("", vec![r#"{"error": "not found"}"#], &[read()]));
        assert!(said.starts_with("README.md cannot be read: not found"));
    }

    #[test]
    fn without_a_tool_to_read_it_says_what_it_is() {
        assert_eq!(text(&steps("hello", Vec::new(), &[])), HINT);
    }
}
