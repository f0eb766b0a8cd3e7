//! What a person's own commands gave, in the words in which the model reads it with the next prompt. Pure.

use serde_json::{Map, Value};

/// How much of an output the model is shown; it can run the command itself for more.
const LONGEST: usize = 16 << 10;

/// A call that is over, and of which the model has not been told.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The command, or the tool where it has none: for people.
    pub command: String,
    /// For the model.
    pub text: String,
}

impl Told {
    /// Fenced, and cut where it is long.
    pub fn new(tool: &str, arguments: &Value, result: &Map<String, Value>) -> Self {
        let command = arguments.get("command").and_then(Value::as_str);
        let command = command.unwrap_or(tool).to_owned();
        let text = |name: &str| result.get(name).and_then(Value::as_str);
        let output = text("content").or_else(|| text("error"));
        let output =
            output.map_or_else(|| Value::Object(result.clone()).to_string(), str::to_owned);
        let text = fenced(&command, &output, result.get("exit_status"));
        Self { command, text }
    }
}

/// A prompt, with what goes before it.
pub fn prompt_with(told: Vec<Told>, prompt: String) -> String {
    if told.is_empty() {
        return prompt;
    }
    let mut texts: Vec<String> = told.into_iter().map(|told| told.text).collect();
    texts.push(prompt);
    texts.join("\n\n")
}

fn fenced(command: &str, output: &str, status: Option<&Value>) -> String {
    let mut end = output.len().min(LONGEST);
    while !output.is_char_boundary(end) {
        end -= 1;
    }
    let more = if end < output.len() { "\n[cut]" } else { "" };
    let status = match status.and_then(Value::as_i64) {
        Some(0) | None => String::new(),
        Some(status) => format!(" (exit status {status})"),
    };
    let fence = "`".repeat(3.max(longest_run(output) + 1));
    let kept = output[..end].trim_end();
    format!("I ran `{command}`{status}:\n{fence}\n{kept}{more}\n{fence}")
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Told, prompt_with};
    use serde_json::json;

    fn told(arguments: &serde_json::Value, result: &serde_json::Value) -> Told {
        Told::new("execute", arguments, result.as_object().unwrap())
    }

    #[test]
    fn the_model_reads_what_ran_and_what_it_printed_before_the_prompt() {
        let made = told(
            &json!({"command": "make"}),
            &json!({"exit_status": 2, "content": "a\n```\n", "ok": true}),
        );
        let listed = told(
            &json!({"command": "ls"}),
            &json!({"error": "cancelled", "ok": false}),
        );
        assert_eq!(
            prompt_with(vec![made, listed], "fix it".into()),
            "I ran `make` (exit status 2):\n````\na\n```\n````\n\nI ran `ls`:\n```\ncancelled\n```\n\nfix it"
        );
        assert_eq!(prompt_with(Vec::new(), "fix it".into()), "fix it");
    }

    #[test]
    fn a_long_output_is_cut_between_characters() {
        let long = "ä".repeat(LONGEST);
        let text = told(&json!({"command": "x"}), &json!({"content": long})).text;
        assert!(
            text.len() < LONGEST + 100 && text.ends_with("\n[cut]\n```"),
            "{}",
            text.len()
        );
    }
}
