//! Events for the unit tests of this crate, from the JSON they travel as.

use protocol::event::Event;
use serde_json::{Value, json};

/// An event of the session `s` and the turn `s.t1`.
pub fn event(seq: u64, kind: Value) -> Event {
    let mut whole = json!({"session": "s", "seq": seq, "at": 0, "turn": "s.t1"});
    let (Some(whole_object), Value::Object(kind)) = (whole.as_object_mut(), kind) else {
        panic!("an event is an object");
    };
    whole_object.extend(kind);
    serde_json::from_value(whole).unwrap()
}
