//! A toolbox and a session that writes down what it is told, for tests of presentations.

use super::Toolkit;
use crate::toolbox::gate::{Ran, Run};
use crate::toolbox::permission::Permissions;
use crate::toolbox::tool::{Access, Call, Tool};
use crate::toolbox::{BoxFuture, CallPort, Question, Toolbox, Verdict, Via};
use protocol::approval::Answer;
use protocol::id::CallId;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

pub(super) type Trace = Arc<Mutex<Vec<String>>>;

/// A session that answers every question alike.
pub(super) struct Port {
    trace: Trace,
    answer: (Answer, Option<&'static str>),
    children: Mutex<u32>,
}

/// What runs tools and keeps what it was told.
pub(super) struct Scene {
    pub(super) trace: Trace,
    pub(super) permissions: Permissions,
    pub(super) answer: (Answer, Option<&'static str>),
    pub(super) cancel: CancellationToken,
}

impl Scene {
    pub(super) fn new() -> Self {
        Self {
            trace: Trace::default(),
            permissions: Permissions::default(),
            answer: (Answer::Allow, None),
            cancel: CancellationToken::new(),
        }
    }

    /// Runs it as the call `c1`.
    pub(super) async fn run(
        &self,
        toolkit: &Arc<dyn Toolkit>,
        name: &str,
        arguments: Value,
    ) -> Ran {
        Arc::clone(toolkit).run(self.call(name, arguments)).await
    }

    pub(super) fn call(&self, name: &str, arguments: Value) -> Run {
        let port = Port {
            trace: Arc::clone(&self.trace),
            answer: self.answer,
            children: Mutex::default(),
        };
        Run {
            session: "s".into(),
            call: "c1".into(),
            name: name.to_owned(),
            arguments,
            cwd: "/".into(),
            env: Arc::default(),
            cancel: self.cancel.clone(),
            spill_dir: "/".into(),
            port: Arc::new(port),
            permissions: Arc::new(self.permissions.clone()),
        }
    }

    /// The object that it gives.
    pub(super) async fn gives(
        &self,
        toolkit: &Arc<dyn Toolkit>,
        name: &str,
        arguments: Value,
    ) -> Value {
        Value::Object(self.run(toolkit, name, arguments).await.result)
    }

    pub(super) fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.trace.lock().unwrap())
    }
}

impl Port {
    fn note(&self, text: String) {
        self.trace.lock().unwrap().push(text);
    }
}

impl CallPort for Port {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        self.note(format!("ask {} {}", question.tool, question.arguments));
        let (answer, reason) = self.answer;
        let reason = reason.map(str::to_owned);
        Box::pin(async move {
            Ok(Verdict {
                answer,
                reason,
                grant: None,
            })
        })
    }
    fn started<'a>(&'a self, call: &'a CallId, _: Access) -> BoxFuture<'a, Result<(), String>> {
        self.note(format!("started {call}"));
        Box::pin(async { Ok(()) })
    }
    fn output(&self, call: &CallId, text: &str) {
        self.note(format!("output {call} {text}"));
    }
    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        via: Via,
        name: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        let mut children = self.children.lock().unwrap();
        *children += 1;
        let child = format!("{parent}/{children}");
        self.note(format!(
            "doing {child} via {} {name} {arguments}",
            via.as_str()
        ));
        Box::pin(async move { Ok(child.into()) })
    }
    fn child_done<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Map<String, Value>,
        _: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.note(format!("done {call} {}", Value::Object(result.clone())));
        Box::pin(async { Ok(()) })
    }
    fn warn(&self, text: &str) {
        self.note(format!("warn {text}"));
    }
}

/// A tool that says whose it is and what it was given.
pub(super) fn tool(source: &str, name: &str, about: &str) -> Tool {
    let told = source.to_owned();
    let handler = move |_: Call, arguments: Map<String, Value>| {
        let result = Map::from_iter([
            ("by".to_owned(), json!(told)),
            ("with".to_owned(), Value::Object(arguments)),
        ]);
        async move { Ok(result) }
    };
    Tool::new(name, about)
        .source(source)
        .access(Access::Nothing)
        .handler(handler)
}

pub(super) fn boxed(tools: impl IntoIterator<Item = Tool>) -> Arc<dyn Toolkit> {
    let mut toolbox = Toolbox::new();
    for tool in tools {
        toolbox.add(tool);
    }
    assert!(toolbox.problems().is_empty(), "{:?}", toolbox.problems());
    Arc::new(toolbox)
}

pub(super) fn names(toolkit: &dyn Toolkit) -> Vec<&str> {
    toolkit.tools().iter().map(|tool| tool.name()).collect()
}
