//! Prompts and resources as texts, and a prompt's arguments out of a line that somebody typed. Must never put more before a
//! model than a bound says.

use super::inventory::{Argument, Prompt};
use super::{Connection, outcome};
use crate::toolbox::builtin::capture::CAP;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ReadResourceRequest,
    ReadResourceRequestParams,
};
use serde_json::{Map, Value};
use std::time::Duration;

/// How long a prompt or a resource may take.
const LIMIT: Duration = Duration::from_secs(30);

impl Connection {
    /// A prompt as the text of a turn. Where it has an answer of its own in it, each part says whose it is.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: Map<String, Value>,
    ) -> Result<String, String> {
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        let result = self.ask(request, LIMIT).await?;
        let Some(messages) = result["messages"].as_array().filter(|all| !all.is_empty()) else {
            return Err(format!(
                "{} gave no messages for the prompt {name}",
                self.label()
            ));
        };
        let alone = messages.iter().all(|message| message["role"] == "user");
        let parts = messages.iter().map(|message| {
            let text = outcome::text_of(&message["content"]);
            match alone {
                true => text,
                false => format!("{}: {text}", message["role"].as_str().unwrap_or("user")),
            }
        });
        Ok(parts.collect::<Vec<_>>().join("\n\n"))
    }

    /// The text of a resource; what is no text is only named.
    pub async fn resource(&self, uri: &str) -> Result<String, String> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        let result = self.ask(request, LIMIT).await?;
        let contents = result["contents"].as_array().into_iter().flatten();
        let text = contents
            .map(outcome::resource)
            .collect::<Vec<_>>()
            .join("\n");
        Ok(bounded(text))
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > CAP {
        let end = (0..=CAP).rev().find(|at| text.is_char_boundary(*at));
        let end = end.unwrap_or_default();
        let left = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("\n[{left} bytes cut here]"));
    }
    text
}

/// `name=value` gives an argument by its name, other words give them in their order, and the last one takes the rest.
pub fn arguments(prompt: &Prompt, line: &str) -> Result<Map<String, Value>, String> {
    let mut given = Map::new();
    let mut rest = line.trim();
    while !rest.is_empty() {
        let (word, behind) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let by_name = word.split_once('=').filter(|(name, _)| {
            let mut all = prompt.arguments.iter();
            all.any(|argument| argument.name == *name)
        });
        if let Some((name, value)) = by_name {
            given.insert(name.to_owned(), Value::from(value));
            rest = behind.trim_start();
            continue;
        }
        let mut free = prompt
            .arguments
            .iter()
            .filter(|one| !given.contains_key(&one.name));
        let Some(next) = free.next() else {
            return Err(format!("{rest:?} is more than it takes"));
        };
        let is_last = free.next().is_none();
        let (value, left) = if is_last {
            (rest, "")
        } else {
            (word, behind.trim_start())
        };
        given.insert(next.name.clone(), Value::from(value));
        rest = left;
    }
    let missing = |argument: &&Argument| argument.required && !given.contains_key(&argument.name);
    match prompt.arguments.iter().find(missing) {
        Some(missing) => Err(format!("{} is missing", missing.name)),
        None => Ok(given),
    }
}

impl Prompt {
    /// What stands behind its name.
    pub fn usage(&self) -> String {
        let words = self
            .arguments
            .iter()
            .map(|argument| match argument.required {
                true => argument.name.clone(),
                false => format!("[{}]", argument.name),
            });
        words.collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::{arguments, bounded};
    use crate::toolbox::builtin::capture::CAP;
    use crate::toolbox::source::mcp::inventory::{Argument, Prompt};
    use serde_json::{Value, json};

    fn check(declared: &[(&str, bool)], line: &str, expected: Result<Value, &str>) {
        let argument = |(name, required): &(&str, bool)| Argument {
            name: (*name).to_owned(),
            required: *required,
        };
        let prompt = Prompt {
            name: "p".to_owned(),
            description: String::new(),
            arguments: declared.iter().map(argument).collect(),
        };
        let given = arguments(&prompt, line).map(Value::Object);
        assert_eq!(given, expected.map_err(str::to_owned), "{line}");
    }

    #[test]
    fn words_become_arguments_by_name_or_in_their_order() {
        let two = [("a", true), ("b", false)];
        check(&two, "x", Ok(json!({"a": "x"})));
        check(&two, " x  y z ", Ok(json!({"a": "x", "b": "y z"})));
        check(&two, "b=1 x y", Ok(json!({"b": "1", "a": "x y"})));
        check(&two, "c=1", Ok(json!({"a": "c=1"})));
        check(&two, "a=1 b=2 more", Err("\"more\" is more than it takes"));
        check(&two, "", Err("a is missing"));
        check(&[], "", Ok(json!({})));
        check(&[], "x", Err("\"x\" is more than it takes"));
        check(&[("a", true)], "all of it", Ok(json!({"a": "all of it"})));
    }

    #[test]
    fn long_resource_is_cut_at_a_character() {
        let text = "ä".repeat(CAP);
        let cut = bounded(text.clone());
        assert!(
            cut.ends_with(&format!("[{} bytes cut here]", text.len() - CAP)),
            "{}",
            &cut[CAP..]
        );
        assert_eq!(bounded("short".to_owned()), "short");
    }
}
