//! Calls that the client made and that run, by the client's numbers and by the session's. Must never take another's call
//! for one of them.

use protocol::event::{Event, EventKind};
use protocol::id::CallId;
use serde_json::Value;
use std::collections::HashMap;

#[derive(Default)]
pub(super) struct Calls(HashMap<String, Made>);

/// One call.
pub(super) struct Made {
    pub(super) id: Value,
    name: String,
    arguments: Value,
    /// Where progress is told.
    token: Option<Value>,
    told: u64,
    /// The session's number for it, once it is known.
    call: Option<CallId>,
    cancelled: bool,
}

impl Made {
    pub(super) fn new(id: Value, name: &str, arguments: &Value, token: Option<Value>) -> Self {
        Self {
            id,
            name: name.to_owned(),
            arguments: arguments.clone(),
            token,
            told: 0,
            call: None,
            cancelled: false,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }
}

impl Calls {
    /// False when there is one of that number.
    pub(super) fn begin(&mut self, key: &str, made: Made) -> bool {
        let free = !self.0.contains_key(key);
        if free {
            self.0.insert(key.to_owned(), made);
        }
        free
    }

    pub(super) fn end(&mut self, key: &str) -> Option<Made> {
        self.0.remove(key)
    }

    /// Learns a call's number from the event of its beginning. Gives it back when it was cancelled meanwhile. Of two
    /// that are alike it does not matter which is which.
    pub(super) fn claim(&mut self, event: &Event) -> Option<CallId> {
        let EventKind::Doing {
            call,
            name,
            arguments,
            parent: None,
            via: Some(via),
            ..
        } = &event.kind
        else {
            return None;
        };
        if via != "run" {
            return None;
        }
        let fits = |made: &&mut Made| {
            made.call.is_none() && made.name == *name && made.arguments == *arguments
        };
        let made = self.0.values_mut().find(fits)?;
        made.call = Some(call.clone());
        made.cancelled.then(|| call.clone())
    }

    /// Whether a call is one of them, or was made by one.
    pub(super) fn is_ours(&self, call: &CallId) -> bool {
        self.0.values().any(|made| made.holds(call))
    }

    /// Where progress of a call is told, and how often it was.
    pub(super) fn progress(&mut self, call: &CallId) -> Option<(Value, u64)> {
        let made = self.0.values_mut().find(|made| made.holds(call))?;
        let token = made.token.clone()?;
        made.told += 1;
        Some((token, made.told))
    }

    /// Nobody waits for it any more. Gives its number, where that is known already.
    pub(super) fn cancel(&mut self, key: &str) -> Option<CallId> {
        let made = self.0.get_mut(key)?;
        made.cancelled = true;
        made.call.clone()
    }

    /// Whether the client waits for any.
    pub(super) fn are_due(&self) -> bool {
        self.0.values().any(|made| !made.cancelled)
    }

    pub(super) fn running(&self) -> impl Iterator<Item = CallId> {
        self.0.values().filter_map(|made| made.call.clone())
    }
}

impl Made {
    fn holds(&self, call: &CallId) -> bool {
        let Some(own) = &self.call else {
            return false;
        };
        let within = call.as_str().strip_prefix(own.as_str());
        within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::{Calls, Made};
    use crate::testing::event;
    use serde_json::json;

    #[test]
    fn calls_are_known_by_their_beginning_and_others_are_not_taken_for_them() {
        let mut calls = Calls::default();
        let made = |id: u64| Made::new(json!(id), "read", &json!({"path": "a"}), Some(json!("t")));
        assert!(calls.begin("1", made(1)) && !calls.begin("1", made(1)));
        let doing = |call: &str, via: &str, path: &str| {
            event(
                1,
                json!({"type": "doing", "call": call, "name": "read", "arguments": {"path": path}, "via": via}),
            )
        };
        assert_eq!(calls.claim(&doing("c1", "tool", "a")), None);
        assert_eq!(calls.claim(&doing("c2", "run", "b")), None);
        assert!(!calls.is_ours(&"c2".into()));
        assert_eq!(calls.claim(&doing("c3", "run", "a")), None);
        assert!(
            calls.is_ours(&"c3".into())
                && calls.is_ours(&"c3/1".into())
                && !calls.is_ours(&"c31".into())
        );
        assert_eq!(calls.progress(&"c3".into()), Some((json!("t"), 1)));
        assert_eq!(calls.progress(&"c3/1".into()), Some((json!("t"), 2)));
        assert_eq!(calls.cancel("1"), Some("c3".into()));
        assert!(calls.end("1").unwrap().is_cancelled());
        calls.begin("2", made(2));
        assert_eq!(calls.cancel("2"), None);
        assert_eq!(calls.claim(&doing("c4", "run", "a")), Some("c4".into()));
    }
}
