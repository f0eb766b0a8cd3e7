//! The system prompt: who the agent is, and what the directory's people wrote for it. Pure; never stored.

use crate::provider::Message;

const IDENTITY: &str = "You are a terminal coding agent.";

/// The system prompt: who the agent is, by its own words where it has some, and what the
/// directory's people wrote for it, where they did.
pub fn system(agent: Option<&str>, guidance: Option<&str>) -> String {
    let agent = agent.map(str::trim_end).filter(|text| !text.is_empty());
    let identity = agent.unwrap_or(IDENTITY);
    match guidance.map(str::trim_end).filter(|text| !text.is_empty()) {
        Some(text) => format!("{identity}\n\n{text}"),
        None => identity.to_owned(),
    }
}

/// The conversation as a provider gets it.
pub fn with_system(prompt: String, messages: Vec<Message>) -> Vec<Message> {
    let mut all = Vec::with_capacity(messages.len() + 1);
    all.push(Message::System { content: prompt });
    all.extend(messages);
    all
}
