//! Programs as a model runs them, over a toolbox of a few tools and a session that records.

use super::*;
use crate::toolbox::tool::{Call, Outcome as Handled};
use crate::toolbox::{CallPort, Question, Toolbox, Verdict};
use protocol::approval::Answer;
use protocol::id::CallId;
use serde_json::Map;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

mod approval;
mod calls;
mod confined;
mod ending;
mod source;

/// A test binary's `main` is not ours to change: this runs before it.
#[used]
#[unsafe(link_section = ".init_array")]
static RUNNER: extern "C" fn() = {
    extern "C" fn runner() {
        confined::probe_if_asked();
        runner::main_if_asked();
    }
    runner
};

/// Tools with names of all kinds.
const ECHOES: [&str; 5] = ["echo", "a-b", "__proto__", "then", "toJSON"];

struct Bench {
    port: Arc<Port>,
    limits: CodeLimits,
    approval: CodeApproval,
    cancel: CancellationToken,
    running: Arc<Running>,
}

/// How many `slow` run, and the most that did.
#[derive(Default)]
struct Running {
    now: AtomicUsize,
    most: AtomicUsize,
    ended: AtomicUsize,
}

impl Bench {
    fn new() -> Self {
        Self {
            port: Arc::default(),
            limits: CodeLimits::default(),
            approval: CodeApproval::Ask,
            cancel: CancellationToken::new(),
            running: Arc::default(),
        }
    }

    fn limits(limits: Value) -> Self {
        Self {
            limits: serde_json::from_value(limits).unwrap(),
            ..Self::new()
        }
    }

    fn toolbox(&self) -> Arc<Toolbox> {
        let mut toolbox = Toolbox::new();
        for name in ECHOES {
            toolbox.add(
                Tool::new(name, "Gives its input back")
                    .access(Access::Nothing)
                    .handler(echo),
            );
        }
        toolbox.add(
            Tool::new("fail", "Fails")
                .access(Access::Nothing)
                .handler(fail),
        );
        toolbox.add(
            Tool::new("big", "Gives a lot")
                .access(Access::Nothing)
                .handler(big),
        );
        toolbox.add(
            Tool::new("change", "Needs an approval")
                .param("what", json!({"type": "string"}))
                .required("what")
                .handler(echo),
        );
        let running = Arc::clone(&self.running);
        toolbox.add(
            Tool::new("slow", "Takes its time")
                .access(Access::Nothing)
                .handler(move |_: Call, arguments: Map<String, Value>| {
                    slow(Arc::clone(&running), arguments)
                }),
        );
        Arc::new(toolbox)
    }

    fn presented(&self) -> Arc<CodeMode> {
        let path = "toolbox.code";
        let settings = Settings::default();
        let rules = Rules::of(&self.limits, self.approval, settings, path).unwrap();
        let mut presented = CodeMode::new(self.toolbox(), rules, &Cell::default(), |inner| inner);
        presented.slots = Box::leak(Box::new(Slots::new(4, 8)));
        Arc::new(presented)
    }

    async fn run(&self, code: &str) -> Value {
        Value::Object(self.ran(json!({"code": code})).await.result)
    }

    async fn ran(&self, arguments: Value) -> Ran {
        let run = self.call(arguments);
        let limit = Duration::from_secs(60);
        let ran = tokio::time::timeout(limit, self.presented().run(run)).await;
        ran.expect("a program ends")
    }

    fn call(&self, arguments: Value) -> Run {
        Run {
            session: "test".into(),
            call: "c1".into(),
            name: RUN_CODE.to_owned(),
            arguments,
            cwd: PathBuf::from("/"),
            env: Arc::default(),
            cancel: self.cancel.clone(),
            spill_dir: PathBuf::from("/nowhere"),
            port: Arc::clone(&self.port) as Arc<dyn CallPort>,
            permissions: Arc::default(),
        }
    }
}

/// What a program that calls nothing gives.
async fn run(code: &str) -> Value {
    Bench::new().run(code).await
}

async fn echo(_: Call, arguments: Map<String, Value>) -> Handled {
    Ok(Map::from_iter([(
        "got".to_owned(),
        Value::Object(arguments),
    )]))
}

async fn fail(_: Call, _: Map<String, Value>) -> Handled {
    let failed = json!({"error": "no such page", "code": "not_found", "retryable": true, "details": {"page": 7}});
    Ok(failed.as_object().cloned().unwrap_or_default())
}

async fn big(_: Call, _: Map<String, Value>) -> Handled {
    Ok(Map::from_iter([(
        "output".to_owned(),
        json!("a".repeat(5000)),
    )]))
}

async fn slow(running: Arc<Running>, arguments: Map<String, Value>) -> Handled {
    let now = running.now.fetch_add(1, Ordering::SeqCst) + 1;
    running.most.fetch_max(now, Ordering::SeqCst);
    let ms = arguments.get("ms").and_then(Value::as_u64).unwrap_or(100);
    tokio::time::sleep(Duration::from_millis(ms)).await;
    running.now.fetch_sub(1, Ordering::SeqCst);
    running.ended.fetch_add(1, Ordering::SeqCst);
    Ok(Map::new())
}

/// A session that records, and whose people answer when the test says so.
#[derive(Default)]
struct Port {
    /// `via` and name of the calls.
    made: Mutex<Vec<(Via, String)>>,
    done: Mutex<Vec<Value>>,
    asked: Mutex<Vec<(String, Value)>>,
    answers: Mutex<Vec<Verdict>>,
    changed: Notify,
}

impl Port {
    /// Lets the next question that nobody has answered be answered so.
    fn answer(&self, verdict: Verdict) {
        self.answers.lock().unwrap().push(verdict);
        self.changed.notify_waiters();
    }

    async fn until_asked(&self, count: usize) {
        loop {
            let changed = self.changed.notified();
            if self.asked.lock().unwrap().len() >= count {
                return;
            }
            changed.await;
        }
    }
}

impl CallPort for Port {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        let asked = (question.tool.to_owned(), question.arguments.clone());
        self.asked.lock().unwrap().push(asked);
        self.changed.notify_waiters();
        Box::pin(async {
            loop {
                let changed = self.changed.notified();
                let verdict = self.answers.lock().unwrap().pop();
                if let Some(verdict) = verdict {
                    return Ok(verdict);
                }
                changed.await;
            }
        })
    }
    fn started<'a>(&'a self, _: &'a CallId, _: Access) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Ok(()) })
    }
    fn output(&self, _: &CallId, _: &str) {}
    fn child<'a>(
        &'a self,
        _: &'a CallId,
        via: Via,
        name: &'a str,
        _: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        let mut made = self.made.lock().unwrap();
        made.push((via, name.to_owned()));
        let id = format!("c1/{}", made.len());
        Box::pin(async move { Ok(id.as_str().into()) })
    }
    fn child_done<'a>(
        &'a self,
        _: &'a CallId,
        result: &'a Map<String, Value>,
        _: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        self.done
            .lock()
            .unwrap()
            .push(Value::Object(result.clone()));
        Box::pin(async { Ok(()) })
    }
    fn warn(&self, _: &str) {}
}

fn yes(grant: Option<&str>) -> Verdict {
    Verdict {
        answer: Answer::Allow,
        reason: None,
        grant: grant.map(str::to_owned),
    }
}

fn no(reason: &str) -> Verdict {
    Verdict {
        answer: Answer::Deny,
        reason: Some(reason.to_owned()),
        grant: None,
    }
}
