//! Examples, as they were on the wire once, from `examples.json`: by method or notification, parameters by name.
//! Must never make one up.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// All examples.
pub(super) struct Examples(BTreeMap<String, Vec<Example>>);

#[derive(Deserialize)]
struct Example {
    name: String,
    params: Map<String, Value>,
    #[serde(default)]
    result: Value,
}

impl Examples {
    pub(super) fn read() -> Self {
        let text = include_str!("../../examples.json");
        Self(serde_json::from_str(text).expect("examples.json is a map of examples"))
    }

    /// Of a method, in the form of its parameters' list.
    pub(super) fn calls(&self, method: &str, params: &[Value]) -> Value {
        let of = self.0.get(method).into_iter().flatten();
        let pairs = of.map(|example| {
            json!({
                "name": example.name,
                "params": example.ordered(method, params),
                "result": {"name": "result", "value": example.result},
            })
        });
        pairs.collect()
    }

    /// Of a notification.
    pub(super) fn notifications(&self, method: &str, params: &[Value]) -> Value {
        let of = self.0.get(method).into_iter().flatten();
        let all = of.map(
            |example| json!({"name": example.name, "params": example.ordered(method, params)}),
        );
        all.collect()
    }
}

impl Example {
    /// In the order of the list, so that readers who count positions find each in its own: null for those left out before the
    /// last.
    fn ordered(&self, method: &str, params: &[Value]) -> Value {
        let name = |param: &Value| param["name"].as_str().unwrap_or_default().to_owned();
        let names: Vec<_> = params.iter().map(name).collect();
        for given in self.params.keys() {
            assert!(
                names.contains(given),
                "an example of {method} has the parameter {given}"
            );
        }
        let last = names
            .iter()
            .rposition(|name| self.params.contains_key(name));
        let counted = names.iter().take(last.map_or(0, |last| last + 1));
        let all = counted.map(|name| json!({"name": name, "value": self.params.get(name)}));
        all.collect()
    }
}
