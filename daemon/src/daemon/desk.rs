//! Where plugins reach the daemon's methods: the same dispatch as for clients, under the plugin's name.
//! Must never know a method.

use crate::stdio_rpc::{BoxFuture, Refusal};
use crate::transport::Service;
use crate::transport::inside::Inside;
use crate::workspace::plugins::{Desk, Line, Tell};
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;

/// The methods that clients are served.
pub(super) struct Methods(pub(super) Service);

struct Open(Arc<Inside>);

impl Desk for Methods {
    fn open(&self, plugin: &str, tell: Tell) -> Arc<dyn Line> {
        Arc::new(Open(Arc::new(Inside::open(self.0.clone(), plugin, tell))))
    }
}

impl Line for Open {
    fn call(
        &self,
        method: String,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        let inside = Arc::clone(&self.0);
        Box::pin(async move {
            let called = inside.call(&method, &params).await;
            let answer = called.map_err(|error| match error {
                Some(error) => serde_json::from_str(error.get()).unwrap_or_else(|_| ending()),
                None => ending(),
            })?;
            serde_json::from_str(answer.get()).map_err(|_| ending())
        })
    }
}

fn ending() -> Refusal {
    Refusal {
        code: Refusal::OVERLOADED,
        message: "the daemon is stopping".to_owned(),
        data: Value::Null,
    }
}
