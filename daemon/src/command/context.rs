//! `/context [N|json]`: what the model would be sent now.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use super::table::{first_line, table};
use crate::provider::Message;

pub(super) fn command() -> Command {
    let about = "show the conversation as the model sees it, one message of it, or all as JSON";
    Command::new("context", about, run).completing(Candidates::fixed(&["json"]))
}

async fn run(invocation: Invocation) -> Ran {
    let messages = invocation
        .sessions
        .conversation(&invocation.session)
        .await?;
    match invocation.argument() {
        None => {
            let session = invocation.sessions.get(&invocation.session).await?;
            Ok(all(&messages, session.context_percent))
        }
        Some("json") => json(&messages),
        Some(number) => one(&messages, number),
    }
}

fn json<T: serde::Serialize + ?Sized>(value: &T) -> Ran {
    serde_json::to_string_pretty(value).map_err(|error| Failure(error.to_string()))
}

fn one(messages: &[Message], number: &str) -> Ran {
    let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
    let message = index.and_then(|index| messages.get(index));
    let count = messages.len();
    let unknown = || {
        Failure(format!(
            "no message {number:?}: a number from 1 to {count}, or json"
        ))
    };
    json(message.ok_or_else(unknown)?)
}

fn all(messages: &[Message], percent: Option<u8>) -> String {
    let rows = messages.iter().zip(1..).map(|(message, number)| {
        let (role, content) = shape(message);
        let size = format!("{} chars", content.chars().count());
        [
            format!("{number:3}"),
            role.to_owned(),
            size,
            about(message, content),
        ]
    });
    let mut text = table(&rows.collect::<Vec<_>>());
    let chars: usize = messages
        .iter()
        .map(|one| shape(one).1.chars().count())
        .sum();
    text.push_str(&format!("\n{} messages, {chars} chars", messages.len()));
    if let Some(percent) = percent {
        text.push_str(&format!(", {percent}% of the model's window"));
    }
    text
}

fn shape(message: &Message) -> (&'static str, &str) {
    match message {
        Message::System { content } => ("system", content),
        Message::User { content, .. } => ("user", content),
        Message::Assistant { content, .. } => ("assistant", content),
        Message::Tool { content, .. } => ("tool", content),
    }
}

fn about(message: &Message, content: &str) -> String {
    let line = first_line(content, 60);
    let Message::Assistant { tool_calls, .. } = message else {
        return line;
    };
    let calls = tool_calls.iter().map(|call| format!("{}()", call.name));
    let words = std::iter::once(line)
        .chain(calls)
        .filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json as value;

    fn messages() -> Vec<Message> {
        let messages = value!([
            {"role": "system", "content": "You are a terminal coding agent.\nBe brief."},
            {"role": "user", "content": "what is in README.md?"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "read", "arguments": {}}]},
            {"role": "tool", "tool_call_id": "c1", "content": "{\"ok\":true}"},
        ]);
        serde_json::from_value(messages).unwrap()
    }

    #[test]
    fn conversation_is_listed_with_sizes_and_calls() {
        assert_eq!(
            all(&messages(), Some(7)),
            "  1  system     42 chars  You are a terminal coding agent.\n  \
             2  user       21 chars  what is in README.md?\n  \
             3  assistant  0 chars   read()\n  \
             4  tool       11 chars  {\"ok\":true}\n\
             4 messages, 74 chars, 7% of the model's window"
        );
    }

    #[test]
    fn one_message_is_shown_whole_and_a_wrong_number_says_the_range() {
        assert!(one(&messages(), "1").unwrap().contains("Be brief."));
        for wrong in ["0", "5", "x"] {
            let failure = one(&messages(), wrong).unwrap_err();
            assert_eq!(
                failure.0,
                format!("no message \"{wrong}\": a number from 1 to 4, or json")
            );
        }
    }
}
