//! The calls that a plugin works on, so that what it calls meanwhile is theirs: recorded as their child, and no deeper than
//! tools may call tools. Must never outlive a call.

use super::held;
use crate::toolbox::tool::Call;
use protocol::id::{CallId, SessionId};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex};

/// Held for a look only; the newest last.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<(u64, Call)>>>);

/// A call is worked on while this lives.
pub(super) struct Working(Calls, u64);

/// `tool/run` as a plugin says it.
#[derive(Deserialize)]
pub(super) struct Asked {
    session: SessionId,
    pub(super) name: String,
    #[serde(default)]
    arguments: Option<Value>,
    /// The call that it is made for: null is none, and left out it is the newest one of the session.
    #[serde(default, deserialize_with = "given")]
    call: Option<Option<CallId>>,
}

fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<CallId>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl Asked {
    pub(super) fn arguments(&self) -> Value {
        self.arguments
            .clone()
            .unwrap_or_else(|| Value::Object(Map::new()))
    }
}

impl Calls {
    pub(super) fn work_on(&self, call: Call) -> Working {
        let mut calls = held(&self.0);
        let number = calls.last().map_or(0, |(number, _)| number + 1);
        calls.push((number, call));
        Working(self.clone(), number)
    }

    /// The call that this one is made for.
    pub(super) fn parent_of(&self, asked: &Asked) -> Option<Call> {
        let fits = |call: &Call| {
            call.session == asked.session
                && match &asked.call {
                    None => true,
                    Some(given) => given.as_ref() == Some(&call.call),
                }
        };
        let calls = held(&self.0);
        let found = calls.iter().rev().find(|(_, call)| fits(call));
        found.map(|(_, call)| call.clone())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        held(&self.0.0).retain(|(number, _)| *number != self.1);
    }
}
