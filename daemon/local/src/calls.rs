//! Telling calls from words in what a model writes, as it comes: tags, fenced JSON, bare JSON, and thoughts.
//! Must never hold back words for longer than they could still become a call.

use protocol::plugin::ProviderNotification;
use serde_json::{Map, Value};

const CALL: (&str, &str) = ("<tool_call>", "</tool_call>");
const THOUGHT: (&str, &str) = ("<think>", "</think>");
const FENCE: &str = "```";

/// What is held back at most; a call that is longer is taken for words.
const LONGEST: usize = 64 * 1024;

/// Splits an answer into events.
pub struct Calls {
    tools: Vec<String>,
    state: State,
    /// What is not told yet.
    held: String,
    /// Blank space that is told only when words follow.
    blank: String,
    told: bool,
    /// Within a fence that holds no call.
    code: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Words,
    Thought,
    Tag,
    Fence,
    Bare,
}

type Emit<'a> = &'a mut dyn FnMut(ProviderNotification);

impl Calls {
    /// `tools` are the names that a call without a tag must have.
    pub fn new(tools: Vec<String>) -> Self {
        Self {
            tools,
            state: State::Words,
            held: String::new(),
            blank: String::new(),
            told: false,
            code: false,
        }
    }

    pub fn push(&mut self, text: &str, emit: Emit<'_>) {
        self.held.push_str(text);
        while self.step(emit) {}
    }

    /// What is left: a call that was never closed may be whole all the same.
    pub fn finish(&mut self, emit: Emit<'_>) {
        let held = std::mem::take(&mut self.held);
        let inside = match self.state {
            State::Words => None,
            State::Thought => return self.think(&held, emit),
            State::Tag => held.strip_prefix(CALL.0),
            State::Fence => fenced(&held),
            State::Bare => Some(held.as_str()),
        };
        let calls = inside.and_then(|inside| self.calls(inside));
        match calls {
            Some(calls) => calls.into_iter().for_each(emit),
            None => self.say(&held, emit),
        }
    }

    /// One step; false when there is nothing to do until more comes.
    fn step(&mut self, emit: Emit<'_>) -> bool {
        match self.state {
            State::Words => self.words(emit),
            State::Thought => {
                let Some(at) = self.held.find(THOUGHT.1) else {
                    let safe = self.held.len() - overlap(&self.held, THOUGHT.1);
                    let thought: String = self.held.drain(..safe).collect();
                    self.think(&thought, emit);
                    return false;
                };
                let thought: String = self.held.drain(..at).collect();
                self.held.drain(..THOUGHT.1.len());
                self.think(&thought, emit);
                self.state = State::Words;
                true
            }
            State::Tag => {
                let end = self.held.find(CALL.1).map(|at| (at, at + CALL.1.len()));
                self.close(end, CALL.0.len(), emit)
            }
            State::Fence => {
                let first = self.held.find('\n').map_or(self.held.len(), |at| at + 1);
                let inside = self.held[first..].trim_start();
                if !inside.is_empty() && !inside.starts_with(['{', '[']) {
                    self.state = State::Words;
                    self.code = true;
                    let fence: String = self.held.drain(..first).collect();
                    self.say(&fence, emit);
                    return true;
                }
                let end = self.held[first..].find(FENCE).map(|at| first + at);
                self.close(end.map(|at| (at, at + FENCE.len())), first, emit)
            }
            State::Bare => {
                let mut stream =
                    serde_json::Deserializer::from_str(&self.held).into_iter::<Value>();
                let end = match stream.next() {
                    Some(Ok(_)) => stream.byte_offset(),
                    Some(Err(error)) if error.is_eof() => return self.close(None, 0, emit),
                    // No JSON: words up to the end of what is here.
                    _ => self.held.len(),
                };
                self.close(Some((end, end)), 0, emit)
            }
        }
    }

    /// The held part is whole: calls, or words after all.
    fn close(&mut self, end: Option<(usize, usize)>, from: usize, emit: Emit<'_>) -> bool {
        let (inner, outer) = match end {
            Some(end) => end,
            None if self.held.len() > LONGEST => (self.held.len(), self.held.len()),
            None => return false,
        };
        let calls = self
            .held
            .get(from..inner)
            .and_then(|inside| self.calls(inside));
        let part: String = self.held.drain(..outer).collect();
        self.state = State::Words;
        match calls {
            Some(calls) => calls.into_iter().for_each(emit),
            None => self.say(&part, emit),
        }
        true
    }

    /// Code is told as it comes, up to the end of its fence.
    fn code(&mut self, emit: Emit<'_>) -> bool {
        let end = self.held.find(FENCE).map(|at| at + FENCE.len());
        let safe = end.unwrap_or(self.held.len() - overlap(&self.held, FENCE));
        let text: String = self.held.drain(..safe).collect();
        self.say(&text, emit);
        self.code = end.is_none();
        !self.code
    }

    fn words(&mut self, emit: Emit<'_>) -> bool {
        if self.code {
            return self.code(emit);
        }
        let line_start = |at: usize| {
            self.held[..at]
                .rsplit('\n')
                .next()
                .is_some_and(|line| line.trim().is_empty())
                && (!self.told || self.blank.contains('\n') || self.held[..at].contains('\n'))
        };
        let mut marks = vec![(self.held.find(THOUGHT.0), State::Thought)];
        if !self.tools.is_empty() {
            let of_line = |mark: &str| {
                self.held
                    .match_indices(mark)
                    .map(|(at, _)| at)
                    .find(|at| line_start(*at))
            };
            marks.push((self.held.find(CALL.0), State::Tag));
            marks.push((of_line(FENCE), State::Fence));
            marks.push((of_line("{"), State::Bare));
        }
        let first = marks
            .into_iter()
            .filter_map(|(at, state)| Some((at?, state)))
            .min_by_key(|(at, _)| *at);
        if let Some((at, state)) = first {
            let before: String = self.held.drain(..at).collect();
            self.say(&before, emit);
            if state == State::Thought {
                self.held.drain(..THOUGHT.0.len());
            }
            self.state = state;
            return true;
        }
        let mut kept = overlap(&self.held, THOUGHT.0);
        if !self.tools.is_empty() {
            kept = kept
                .max(overlap(&self.held, CALL.0))
                .max(overlap(&self.held, FENCE));
        }
        let safe: String = self.held.drain(..self.held.len() - kept).collect();
        self.say(&safe, emit);
        false
    }

    fn say(&mut self, text: &str, emit: Emit<'_>) {
        let words = text.trim_end();
        let mut all = std::mem::take(&mut self.blank);
        if words.is_empty() {
            all.push_str(text);
            self.blank = all;
            return;
        }
        all.push_str(words);
        self.blank.push_str(&text[words.len()..]);
        let text = match self.told {
            true => all,
            false => all.trim_start().to_owned(),
        };
        self.told = true;
        emit(ProviderNotification::Saying { text });
    }

    fn think(&self, text: &str, emit: Emit<'_>) {
        if !text.is_empty() {
            let text = text.to_owned();
            emit(ProviderNotification::Thinking { text });
        }
    }

    /// One call or several, if the text is nothing else.
    fn calls(&self, text: &str) -> Option<Vec<ProviderNotification>> {
        let stream = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut calls = Vec::new();
        for value in stream {
            match value.ok()? {
                Value::Array(values) => {
                    for value in values {
                        calls.push(self.call(value)?);
                    }
                }
                value => calls.push(self.call(value)?),
            }
        }
        Some(calls).filter(|calls| !calls.is_empty())
    }

    fn call(&self, value: Value) -> Option<ProviderNotification> {
        let Value::Object(mut object) = value else {
            return None;
        };
        if let Some(Value::Object(inner)) = object.get_mut("function") {
            object = std::mem::take(inner);
        }
        let Some(Value::String(name)) = object.remove("name") else {
            return None;
        };
        let known = self.tools.contains(&name) || self.state == State::Tag;
        let arguments = ["arguments", "parameters"]
            .iter()
            .find_map(|key| object.remove(*key));
        known.then(|| ProviderNotification::Doing {
            id: None,
            name,
            arguments: arguments.unwrap_or_else(|| Value::Object(Map::new())),
        })
    }
}

/// What lies in a fence that is not closed.
fn fenced(text: &str) -> Option<&str> {
    text.split_once('\n').map(|(_, inside)| inside)
}

/// Bytes at the end of the text that may be the beginning of `mark`.
fn overlap(text: &str, mark: &str) -> usize {
    let most = mark.len().saturating_sub(1).min(text.len());
    (1..=most)
        .rev()
        .find(|length| text.ends_with(&mark[..*length]))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text as it is, thoughts in parentheses, calls in brackets; the same at every cut.
    fn check(text: &str, expected: &str) {
        for size in 1..=text.chars().count().max(1) {
            let mut calls = Calls::new(vec!["read".to_owned()]);
            let mut told = String::new();
            let mut emit = |event| match event {
                ProviderNotification::Saying { text } => told.push_str(&text),
                ProviderNotification::Thinking { text } => told.push_str(&text.to_uppercase()),
                ProviderNotification::Doing {
                    name, arguments, ..
                } => {
                    told.push_str(&format!("[{name} {arguments}]"));
                }
                _ => {}
            };
            let letters: Vec<char> = text.chars().collect();
            for part in letters.chunks(size) {
                calls.push(&part.iter().collect::<String>(), &mut emit);
            }
            calls.finish(&mut emit);
            assert_eq!(told, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn words_are_words() {
        check("hello world\n", "hello world");
        check(
            "  a < b, a {b} and <tool> `c`",
            "a < b, a {b} and <tool> `c`",
        );
        check(
            "```rust\nfn f() {}\n```\nthat's it",
            "```rust\nfn f() {}\n```\nthat's it",
        );
        check("{not json}", "{not json}");
        check(
            r#"{"name": "other", "arguments": {}}"#,
            r#"{"name": "other", "arguments": {}}"#,
        );
        check("say {\"name\": \"read\"}", "say {\"name\": \"read\"}");
        check("caf\u{e9} <thi\u{e9}", "caf\u{e9} <thi\u{e9}");
    }

    #[test]
    fn code_is_told_as_it_comes() {
        let mut calls = Calls::new(vec!["read".to_owned()]);
        let mut told = String::new();
        calls.push("```rust\nfn f() {", &mut |event| {
            if let ProviderNotification::Saying { text } = event {
                told.push_str(&text);
            }
        });
        assert_eq!(told, "```rust\nfn f() {");
        let call = r#"{"name": "read", "arguments": {}}"#;
        check(&format!("```\nx\n```\n{call}"), "```\nx\n```[read {}]");
        check(&format!("```\n\n{call}\n```"), "[read {}]");
        check("```\n```\nx", "```\n```\nx");
    }

    #[test]
    fn calls_come_in_many_forms() {
        let call = r#"{"name": "read", "arguments": {"path": "a"}}"#;
        let told = r#"[read {"path":"a"}]"#;
        check(call, told);
        check(&format!("<tool_call>\n{call}\n</tool_call>"), told);
        check(&format!("<tool_call>{call}"), told);
        check(&format!("```json\n{call}\n```\n"), told);
        check(&format!("```json\n{call}"), told);
        check(
            &format!("I will look.\n{call}\n"),
            &format!("I will look.{told}"),
        );
        check(
            &format!("<tool_call>{call}</tool_call>\n<tool_call>{call}</tool_call>"),
            &format!("{told}{told}"),
        );
        check(&format!("[{call}]"), &format!("[{call}]"));
        check(
            &format!("<tool_call>[{call}, {call}]</tool_call>"),
            &format!("{told}{told}"),
        );
        check(r#"{"name": "read", "parameters": {}}"#, "[read {}]");
        check(r#"<tool_call>{"name": "odd"}</tool_call>"#, "[odd {}]");
        check(
            "<tool_call>nonsense</tool_call> and on",
            "<tool_call>nonsense</tool_call> and on",
        );
    }

    #[test]
    fn thoughts_are_told_apart() {
        check("<think>hm</think>\n\nyes", "HMyes");
        check("<think>hm", "HM");
    }
}
