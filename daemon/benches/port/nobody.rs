//! A session that keeps nothing and has nobody to ask: what is measured is what stands above it, not the store. Must never
//! take time.

use daemon::toolbox::tool::Access;
use daemon::toolbox::{BoxFuture, CallPort, Question, Verdict, Via};
use protocol::id::CallId;
use serde_json::{Map, Value};

pub struct Nobody;

impl CallPort for Nobody {
    fn ask<'a>(&'a self, _: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        Box::pin(async { Err("nobody is there".to_owned()) })
    }
    fn started<'a>(&'a self, _: &'a CallId, _: Access) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn output(&self, _: &CallId, _: &str) {}
    fn child<'a>(
        &'a self,
        _: &'a CallId,
        _: Via,
        _: &'a str,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        Box::pin(async { Ok("c1/1".into()) })
    }
    fn child_done<'a>(
        &'a self,
        _: &'a CallId,
        _: &'a Map<String, Value>,
        _: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn warn(&self, _: &str) {}
}
