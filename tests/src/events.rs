//! Reading what a session told: text put together by offsets, events by type. Must never be kinder than a real reader.

use serde_json::Value;
use std::collections::BTreeMap;

/// Events as they arrived.
#[derive(Clone, Debug, Default)]
pub struct Events(pub Vec<Value>);

impl Events {
    /// Their types in order.
    pub fn types(&self) -> Vec<&str> {
        self.0
            .iter()
            .map(|event| event["type"].as_str().unwrap_or_default())
            .collect()
    }

    /// Their types in order, neighbours of one type once.
    pub fn outline(&self) -> Vec<&str> {
        let mut types = self.types();
        types.dedup();
        types
    }

    /// Those of one type.
    pub fn of(&self, kind: &str) -> Vec<&Value> {
        self.0
            .iter()
            .filter(|event| event["type"] == kind)
            .collect()
    }

    /// The one event of a type.
    pub fn one(&self, kind: &str) -> &Value {
        let found = self.of(kind);
        assert_eq!(found.len(), 1, "one {kind} in {:?}", self.types());
        found[0]
    }

    pub fn last(&self) -> &Value {
        self.0.last().expect("there are events")
    }

    /// All texts by their key (message or call), put together as a reader does: what lies beyond what it has.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let mut texts = BTreeMap::<String, String>::new();
        for event in &self.0 {
            let key = match event["type"].as_str() {
                Some("saying" | "thinking") => &event["message"],
                Some("tool_output") => &event["call"],
                _ => continue,
            };
            let text = texts.entry(key.as_str().unwrap().to_owned()).or_default();
            let have = text.chars().count();
            let offset = usize::try_from(event["offset"].as_u64().unwrap()).unwrap();
            assert!(offset <= have, "a piece is missing before {event}");
            text.extend(event["text"].as_str().unwrap().chars().skip(have - offset));
        }
        texts
    }

    /// All that the model said, message after message.
    pub fn said(&self) -> String {
        let texts = self.texts();
        let mut seen = Vec::new();
        for event in self.of("saying") {
            let message = event["message"].as_str().unwrap();
            if !seen.contains(&message) {
                seen.push(message);
            }
        }
        seen.iter()
            .map(|message| texts[*message].as_str())
            .collect()
    }

    /// Fails unless the numbers follow `after` without a gap; folded pieces stand for all they replace.
    #[track_caller]
    pub fn assert_consecutive(&self, after: u64) {
        let mut last = after;
        for event in &self.0 {
            let seq = event["seq"].as_u64().unwrap();
            let first = event["first_seq"].as_u64().unwrap_or(seq);
            assert!(
                first <= last + 1 && seq > last,
                "{last} is followed by {event}"
            );
            last = seq;
        }
    }

    pub fn newest(&self) -> u64 {
        self.last()["seq"].as_u64().unwrap()
    }
}
