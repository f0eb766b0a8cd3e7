//! What a call goes through, and what comes out.

use super::{Ran, Run, nearest};
use crate::toolbox::hook::{Hook, HookCall};
use crate::toolbox::permission::Permissions;
use crate::toolbox::tool::{Access, Call, Handler, Outcome, Tool};
use crate::toolbox::{BoxFuture, CallPort, Question, Toolbox, Verdict, Via};
use protocol::approval::Answer;
use protocol::id::CallId;
use protocol::tool::Policy;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

type Trace = Arc<Mutex<Vec<String>>>;

/// A session that writes down what it is told.
struct Port {
    trace: Trace,
    answer: Option<Result<Verdict, String>>,
    disk: Result<(), String>,
}

impl CallPort for Port {
    fn ask<'a>(&'a self, question: Question<'a>) -> BoxFuture<'a, Result<Verdict, String>> {
        note(
            &self.trace,
            &format!("ask {} {}", question.tool, question.arguments),
        );
        let answer = self.answer.clone();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }
    fn started<'a>(&'a self, call: &'a CallId, _: Access) -> BoxFuture<'a, Result<(), String>> {
        note(&self.trace, &format!("started {call}"));
        let disk = self.disk.clone();
        Box::pin(async move { disk })
    }
    fn output(&self, _: &CallId, text: &str) {
        note(&self.trace, &format!("output {text}"));
    }
    fn child<'a>(
        &'a self,
        parent: &'a CallId,
        _: Via,
        name: &'a str,
        arguments: &'a Value,
    ) -> BoxFuture<'a, Result<CallId, String>> {
        note(&self.trace, &format!("child {name} {arguments}"));
        let child = format!("{parent}/1");
        Box::pin(async move { Ok(child.into()) })
    }
    fn child_done<'a>(
        &'a self,
        call: &'a CallId,
        result: &'a Map<String, Value>,
        _: u64,
    ) -> BoxFuture<'a, Result<(), String>> {
        note(&self.trace, &format!("child done {call} {}", text(result)));
        Box::pin(async { Ok(()) })
    }
    fn warn(&self, text: &str) {
        note(&self.trace, &format!("warn {text}"));
    }
}

fn note(trace: &Trace, text: &str) {
    trace.lock().unwrap().push(text.to_owned());
}

fn text(result: &Map<String, Value>) -> String {
    Value::Object(result.clone()).to_string()
}

/// A toolbox and the session that calls it.
struct Scene {
    toolbox: Toolbox,
    trace: Trace,
    answer: Option<Result<Verdict, String>>,
    disk: Result<(), String>,
    permissions: Permissions,
    cancel: CancellationToken,
}

impl Scene {
    fn new() -> Self {
        Self {
            toolbox: Toolbox::new(),
            trace: Trace::default(),
            answer: None,
            disk: Ok(()),
            permissions: Permissions::default().with_policy(Policy::Allow),
            cancel: CancellationToken::new(),
        }
    }

    /// A tool that writes down that it ran and gives this object.
    fn tool(&mut self, name: &str, result: Value) {
        let trace = Arc::clone(&self.trace);
        let handler = move |_: Call, arguments: Map<String, Value>| {
            note(&trace, &format!("handler {}", text(&arguments)));
            let result = result.as_object().unwrap().clone();
            async move { Ok(result) }
        };
        self.toolbox.add(plain(name).handler(handler));
    }

    fn hook(&self, name: &str) -> Hook {
        let trace = Arc::clone(&self.trace);
        let name_ = name.to_owned();
        Hook::sync(name, move |call: &HookCall| {
            let result = call.result.as_ref().map(|result| text(result));
            note(
                &trace,
                &format!("{name_} {} {}", call.tool, result.unwrap_or_default()),
            );
            Ok(())
        })
    }

    fn hooks(&mut self) {
        let hooks = [
            "one before",
            "all before",
            "all after",
            "one after",
            "other",
            "alias",
        ]
        .map(|name| self.hook(name));
        let [one_before, all_before, all_after, one_after, other, alias] = hooks;
        self.toolbox.before(Some("wc"), one_before);
        self.toolbox.before(None, all_before);
        self.toolbox.after(Some("wc"), one_after);
        self.toolbox.after(None, all_after);
        self.toolbox.before(Some("else"), other);
        self.toolbox.before(Some("count"), alias);
    }

    fn asks(&mut self, answer: Option<Result<Verdict, String>>) {
        self.permissions = Permissions::default().with_policy(Policy::Ask);
        self.answer = answer;
    }

    async fn run(&self, name: &str, arguments: Value) -> Ran {
        let port = Port {
            trace: Arc::clone(&self.trace),
            answer: self.answer.clone(),
            disk: self.disk.clone(),
        };
        let run = Run {
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
        };
        Arc::new(self.toolbox.clone()).run(run).await
    }

    async fn result(&self, name: &str, arguments: Value) -> String {
        text(&self.run(name, arguments).await.result)
    }

    fn trace(&self) -> Vec<String> {
        std::mem::take(&mut self.trace.lock().unwrap())
    }
}

fn plain(name: &str) -> Tool {
    Tool::new(name, "Count")
        .param("path", json!({"type": "string"}))
        .required("path")
        .alias("count")
}

fn said(answer: Answer, reason: Option<&str>) -> Option<Result<Verdict, String>> {
    Some(Ok(Verdict {
        answer,
        reason: reason.map(str::to_owned),
        grant: None,
    }))
}

#[tokio::test]
async fn a_call_goes_through_everything_in_order() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({"lines": 2}));
    scene.hooks();
    scene.asks(said(Answer::Allow, None));
    assert_eq!(
        scene.result("count", json!({"path": "a"})).await,
        r#"{"lines":2,"ok":true}"#
    );
    let expected = [
        "all before wc ",
        "one before wc ",
        r#"ask wc {"path":"a"}"#,
        "started c1",
        r#"handler {"path":"a"}"#,
        r#"all after wc {"lines":2}"#,
        r#"one after wc {"lines":2}"#,
    ];
    assert_eq!(scene.trace(), expected);
}

#[tokio::test]
async fn a_failure_is_an_error_and_after_hooks_see_it() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({"error": "not found: nope"}));
    scene.hooks();
    assert_eq!(
        scene.result("wc", json!({"path": "nope"})).await,
        r#"{"error":"not found: nope","ok":false}"#
    );
    assert!(
        scene
            .trace()
            .contains(&r#"one after wc {"error":"not found: nope"}"#.to_owned())
    );
}

#[tokio::test]
async fn invalid_arguments_and_unknown_tools_reach_nothing() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.tool("execute", json!({}));
    scene.hooks();
    let table = [
        (
            "wc",
            json!({"path": 1}),
            r#"{"error":"value at `/path` is not a string","ok":false}"#,
        ),
        (
            "wc",
            json!({}),
            r#"{"error":"object at root is missing required properties: path","ok":false}"#,
        ),
        (
            "wc",
            json!([1]),
            r#"{"error":"value at root is not an object","ok":false}"#,
        ),
        (
            "wc",
            json!("text"),
            r#"{"error":"value at root is not an object","ok":false}"#,
        ),
        (
            "nothing",
            json!({}),
            r#"{"error":"unknown tool: \"nothing\". Available: wc, execute.","ok":false}"#,
        ),
        (
            "exceute",
            json!({}),
            r#"{"error":"unknown tool: \"exceute\". Available: wc, execute. Did you mean \"execute\"?","ok":false}"#,
        ),
    ];
    for (name, arguments, expected) in table {
        assert_eq!(scene.result(name, arguments).await, expected);
        assert_eq!(scene.trace(), Vec::<String>::new(), "{name}");
    }
}

#[tokio::test]
async fn arguments_may_come_as_text_empty_or_null() {
    let mut scene = Scene::new();
    let trace = Arc::clone(&scene.trace);
    scene.toolbox.add(Tool::new("any", "").handler(
        move |_: Call, arguments: Map<String, Value>| {
            note(&trace, &text(&arguments));
            async { Ok(Map::new()) }
        },
    ));
    for (arguments, expected) in [
        (json!(r#"{"a": 1}"#), r#"started c1,{"a":1}"#),
        (json!(""), "started c1,{}"),
        (json!(" \n"), "started c1,{}"),
        (json!(null), "started c1,{}"),
        (json!({"extra": [1]}), r#"started c1,{"extra":[1]}"#),
    ] {
        assert_eq!(scene.result("any", arguments).await, r#"{"ok":true}"#);
        assert_eq!(scene.trace().join(","), expected);
    }
}

#[tokio::test]
async fn what_raises_carries_the_tools_name_and_arguments() {
    let mut scene = Scene::new();
    let raise = |_: Call, _: Map<String, Value>| async { Outcome::Err("no such thing".to_owned()) };
    scene.toolbox.add(plain("wc").handler(raise));
    let expected = r#"{"error":"no such thing","name":"wc","args":{"path":"a"},"ok":false}"#;
    assert_eq!(scene.result("count", json!({"path": "a"})).await, expected);
}

#[tokio::test]
async fn a_before_hook_that_raises_stops_the_call() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.toolbox.before(
        Some("wc"),
        Hook::sync("guard", |_| Err("refusing".to_owned())),
    );
    scene.hooks();
    let expected = r#"{"error":"refusing","name":"wc","args":{"path":"a"},"ok":false}"#;
    assert_eq!(scene.result("wc", json!({"path": "a"})).await, expected);
    assert_eq!(
        scene.trace(),
        [
            "all before wc ",
            r#"warn the hook "guard" before wc raised: refusing"#
        ]
    );
}

#[tokio::test]
async fn an_after_hook_that_raises_fails_the_call_and_ends_the_hooks() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({"lines": 1}));
    scene.toolbox.after(
        None,
        Hook::new("check", |_| async { Err("too few".to_owned()) }),
    );
    scene.hooks();
    let expected = r#"{"error":"too few","name":"wc","args":{"path":"a"},"ok":false}"#;
    assert_eq!(scene.result("wc", json!({"path": "a"})).await, expected);
    let trace = scene.trace();
    assert_eq!(
        trace.last().unwrap(),
        r#"warn the hook "check" after wc raised: too few"#
    );
    assert!(!trace.iter().any(|line| line.starts_with("one after")));
}

#[tokio::test]
async fn a_panic_is_a_failure_of_that_call_alone() {
    let mut scene = Scene::new();
    fn early(_: Call, _: Map<String, Value>) -> std::future::Ready<Outcome> {
        panic!("at once")
    }
    scene.toolbox.add(Tool::new("early", "").handler(early));
    let late = |_: Call, _: Map<String, Value>| async {
        tokio::task::yield_now().await;
        assert_eq!(1 + 1, 3, "late");
        Outcome::Ok(Map::new())
    };
    scene.toolbox.add(Tool::new("late", "").handler(late));
    scene.tool("wc", json!({}));
    scene
        .toolbox
        .before(Some("wc"), Hook::sync("broken", |_| panic!("in the hook")));
    for (name, expected) in [
        ("early", "early failed: at once"),
        ("wc", "the hook \"broken\" failed: in the hook"),
    ] {
        let ran = scene.run(name, json!({"path": "a"})).await;
        assert_eq!(
            (ran.result["error"].as_str(), ran.result["ok"].as_bool()),
            (Some(expected), Some(false))
        );
    }
    assert!(
        scene
            .result("late", json!({}))
            .await
            .contains("late failed: ")
    );
}

#[tokio::test]
async fn a_no_stops_the_call_before_it_starts() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    let table = [
        (said(Answer::Deny, None), "User denied permission: wc"),
        (said(Answer::Deny, Some(" ")), "User denied permission: wc"),
        (
            said(Answer::Deny, Some("use ls")),
            "User denied permission: wc: use ls",
        ),
    ];
    for (answer, expected) in table {
        scene.asks(answer);
        let result = scene.result("wc", json!({"path": "a"})).await;
        let all = json!({"error": expected, "name": "wc", "args": {"path": "a"}, "ok": false});
        assert_eq!(result, all.to_string());
        assert_eq!(scene.trace(), [r#"ask wc {"path":"a"}"#]);
    }
    scene.permissions = Permissions::default().with_policy(Policy::Deny);
    assert!(
        scene
            .result("wc", json!({"path": "a"}))
            .await
            .contains(r#""Permission denied: wc""#)
    );
    assert_eq!(scene.trace(), Vec::<String>::new());
    scene.asks(Some(Err("the session was deleted".to_owned())));
    let result = scene.result("wc", json!({"path": "a"})).await;
    assert!(
        result.contains("the question about wc was withdrawn: the session was deleted"),
        "{result}"
    );
}

#[tokio::test]
async fn a_start_that_cannot_be_recorded_does_not_happen() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.disk = Err("storage full".to_owned());
    let expected = r#"{"error":"cannot record that wc starts: storage full","code":"storage","retryable":true,"ok":false}"#;
    assert_eq!(scene.result("wc", json!({"path": "a"})).await, expected);
    assert_eq!(scene.trace(), ["started c1"]);
}

/// Tells when it runs, and what it does when it is cancelled.
struct Slow {
    running: CancellationToken,
    outcome: Option<Outcome>,
    dropped: CancellationToken,
}

impl Handler for Slow {
    fn run<'a>(&'a self, call: Call, _: Map<String, Value>) -> BoxFuture<'a, Outcome> {
        let guard = self.dropped.clone().drop_guard();
        Box::pin(async move {
            let _guard = guard;
            self.running.cancel();
            match &self.outcome {
                Some(outcome) => {
                    call.cancel.cancelled().await;
                    outcome.clone()
                }
                None => std::future::pending().await,
            }
        })
    }
}

async fn cancelled(outcome: Option<Outcome>) -> (String, Duration) {
    let mut scene = Scene::new();
    let (running, dropped) = (CancellationToken::new(), CancellationToken::new());
    let slow = Slow {
        running: running.clone(),
        outcome,
        dropped: dropped.clone(),
    };
    scene.toolbox.add(Tool::new("slow", "").handler(slow));
    let cancel = scene.cancel.clone();
    let call = async {
        let result = scene.result("slow", json!({})).await;
        assert!(dropped.is_cancelled());
        result
    };
    let stop = async {
        running.cancelled().await;
        cancel.cancel();
        Instant::now()
    };
    let (result, begun) = tokio::join!(call, stop);
    (result, begun.elapsed())
}

#[tokio::test]
async fn a_cancelled_handler_may_end_by_itself_or_is_dropped() {
    let gone = r#"{"error":"cancelled","code":"cancelled","ok":false}"#;
    let (result, took) = cancelled(None).await;
    assert_eq!(result, gone);
    assert!(took < Duration::from_millis(1_000), "{took:?}");
    assert_eq!(cancelled(Some(Err("stopped".to_owned()))).await.0, gone);
    let object = |value: Value| Some(Ok(value.as_object().unwrap().clone()));
    let partial = object(json!({"error": "killed", "content": "so far"}));
    assert_eq!(
        cancelled(partial).await.0,
        r#"{"error":"cancelled","content":"so far","ok":false}"#
    );
    assert_eq!(
        cancelled(object(json!({"lines": 1}))).await.0,
        r#"{"lines":1,"ok":true}"#
    );
}

#[tokio::test]
async fn a_question_or_hook_that_waits_ends_with_the_cancel() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.asks(None);
    scene.cancel.cancel();
    let gone = r#"{"error":"cancelled","code":"cancelled","ok":false}"#;
    assert_eq!(scene.result("wc", json!({"path": "a"})).await, gone);
    scene
        .toolbox
        .before(None, Hook::new("stuck", |_| std::future::pending()));
    assert_eq!(scene.result("wc", json!({"path": "a"})).await, gone);
    assert!(
        !scene
            .trace()
            .iter()
            .any(|line| line.starts_with("handler") || line.starts_with("started"))
    );
}

#[tokio::test]
async fn a_tool_calls_another_through_the_gate() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({"lines": 2}));
    scene.hooks();
    let outer = |call: Call, _: Map<String, Value>| async move {
        Ok(call.run("count", json!({"path": "b"})).await)
    };
    scene.toolbox.add(Tool::new("outer", "").handler(outer));
    assert_eq!(
        scene.result("outer", json!({})).await,
        r#"{"lines":2,"ok":true}"#
    );
    let expected = [
        "all before outer ",
        "started c1",
        r#"child count {"path":"b"}"#,
        "all before wc ",
        "one before wc ",
        "started c1/1",
        r#"handler {"path":"b"}"#,
        r#"all after wc {"lines":2}"#,
        r#"one after wc {"lines":2}"#,
        r#"child done c1/1 {"lines":2,"ok":true}"#,
        r#"all after outer {"lines":2,"ok":true}"#,
    ];
    assert_eq!(scene.trace(), expected);
}

#[tokio::test]
async fn tools_that_call_each_other_without_end_are_stopped() {
    let mut scene = Scene::new();
    let again =
        |call: Call, _: Map<String, Value>| async move { Ok(call.run("again", json!({})).await) };
    scene.toolbox.add(Tool::new("again", "").handler(again));
    assert!(
        scene
            .result("again", json!({}))
            .await
            .contains("more than 8 deep")
    );
}

#[test]
fn replacing_a_tool_keeps_its_place_and_drops_its_aliases() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.tool("ls", json!({}));
    scene.hooks();
    let handler = |_: Call, _: Map<String, Value>| async { Ok(Map::new()) };
    scene.toolbox.add(
        Tool::new("wc", "New")
            .alias("words")
            .source("plugin x")
            .handler(handler),
    );
    let toolbox = &scene.toolbox;
    let names: Vec<&str> = toolbox.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, ["wc", "ls"]);
    assert_eq!(
        json!(toolbox.aliases()),
        json!({"words": "wc", "count": "ls"})
    );
    let shown = json!({
        "before": {"*": ["all before"], "count": ["alias"], "else": ["other"], "wc": ["one before"]},
        "after": {"*": ["all after"], "wc": ["one after"]},
    });
    assert_eq!(json!(toolbox.hooks()), shown);
    let list = toolbox.list(&Permissions::default());
    assert_eq!(
        json!(list.shadowed),
        json!([{"name": "wc", "kept": "plugin x", "dropped": "builtin"}])
    );
    assert_eq!(
        (list.tools[0].source.as_str(), list.tools[0].approval),
        ("plugin x", Policy::Ask)
    );
    assert_eq!(toolbox.tool_for("words").name(), "wc");
    assert_eq!(toolbox.tool_for("nothing").name(), "nothing?");
}

#[test]
fn a_real_name_wins_over_an_alias() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    scene.tool("count", json!({}));
    assert_eq!(scene.toolbox.tool_for("count").name(), "count");
}

#[test]
fn definitions_have_the_function_shape_without_aliases() {
    let mut scene = Scene::new();
    scene.tool("wc", json!({}));
    let expected = json!([{
        "type": "function",
        "function": {
            "name": "wc",
            "description": "Count",
            "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
    }]);
    assert_eq!(
        json!(scene.toolbox.definitions()).to_string(),
        expected.to_string()
    );
}

#[test]
fn a_tool_that_cannot_work_is_left_out_and_told() {
    let mut toolbox = Toolbox::new();
    let handler = |_: Call, _: Map<String, Value>| async { Ok(Map::new()) };
    toolbox.add(
        Tool::new("bad", "")
            .param("a", json!({"type": "strin"}))
            .handler(handler),
    );
    toolbox.add(Tool::new("", "").handler(handler));
    toolbox.add(Tool::new("empty", "").access(Access::Read));
    let list = toolbox.list(&Permissions::default());
    assert_eq!(list.tools.len(), 0);
    assert!(
        list.problems[0]
            .contains(r#"the tool "bad" has a schema that cannot be used: at /properties/a/type"#)
    );
    assert_eq!(
        list.problems[1..],
        ["a tool needs a name", r#"the tool "empty" has no handler"#]
    );
}

#[test]
fn near_misses_are_few_letters_away() {
    let names: Vec<String> = ["execute", "read", "git", "todo_list"]
        .map(str::to_owned)
        .into();
    let table = [
        ("exceute", Some("execute")),
        ("Execute", Some("execute")),
        ("reed", Some("read")),
        ("todo-list", Some("todo_list")),
        ("TodoList", Some("todo_list")),
        ("write", None),
        ("x", None),
        ("", None),
    ];
    for (name, expected) in table {
        assert_eq!(nearest(name, names.iter()).as_deref(), expected, "{name}");
    }
}
