//! What a model finds, how it calls what it found, and that both go through the gate of the tools behind.

use super::index::Index;
use super::{CALL, FIND, Search};
use crate::presentation::testing::{Scene, boxed, names, tool};
use crate::presentation::{Toolkit, merge, restrict};
use crate::toolbox::permission::Permissions;
use crate::toolbox::tool::{Access, Call, Tool};
use protocol::approval::Answer;
use protocol::tool::Policy;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

const TOOLS: &str = include_str!("../../../../tests/fixtures/tool_search/tools.txt");
const QUERIES: &str = include_str!("../../../../tests/fixtures/tool_search/queries.txt");
const LATER: &str = include_str!("../../../../tests/fixtures/tool_search/later_queries.txt");

fn lines<'a>(text: &'a str, between: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(move |line| line.split_once(between))
}

fn real() -> Vec<Tool> {
    let tools = lines(TOOLS, ": ").map(|(name, about)| {
        let source = name.split("__").next().unwrap();
        tool(&format!("mcp {source}"), name, about)
    });
    tools.collect()
}

/// Two thousand, of which one makes an issue at GitHub.
fn many() -> Vec<Tool> {
    let mut tools = real();
    let verbs = [
        "create", "list", "update", "delete", "get", "open", "find", "sync",
    ];
    let things = [
        "record", "invoice", "widget", "branch", "report", "ticket", "page", "item",
    ];
    for number in 0.. {
        if tools.len() == 2_000 {
            break;
        }
        let (verb, thing) = (verbs[number % 8], things[number / 8 % 8]);
        let name = format!("app{}__{verb}_{thing}_{number}", number % 40);
        let about = format!(
            "{verb} a new {thing} in the application of number {}.",
            number % 40
        );
        tools.push(tool(&format!("mcp app{}", number % 40), &name, &about));
    }
    tools
}

fn search(of: Arc<dyn Toolkit>) -> Arc<dyn Toolkit> {
    Arc::new(Search::new(of, 5, Arc::default()))
}

async fn found(toolkit: &Arc<dyn Toolkit>, question: Value) -> Value {
    Scene::new().gives(toolkit, FIND, question).await
}

fn names_in(answer: &Value) -> Vec<&str> {
    let tools = answer["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap()).collect()
}

/// How many questions have one of their answers among the first five.
fn hits(questions: &str) -> (usize, Vec<&str>) {
    let index = Index::new(lines(TOOLS, ": "));
    let mut missed = Vec::new();
    let mut count = 0;
    for (question, answers) in lines(questions, " => ") {
        count += 1;
        let answers: Vec<&str> = answers.split(' ').collect();
        assert!(
            answers
                .iter()
                .all(|name| index.names().iter().any(|known| known == name)),
            "{answers:?}"
        );
        let first = index.find(question).into_iter().take(5);
        if !first
            .map(|at| index.names()[at].as_str())
            .any(|name| answers.contains(&name))
        {
            missed.push(question);
        }
    }
    (count, missed)
}

#[test]
fn thirty_seven_of_forty_plain_questions_have_their_tool_among_the_first_five() {
    for questions in [QUERIES, LATER] {
        let (count, missed) = hits(questions);
        assert_eq!(count, 40);
        assert!(missed.len() <= 3, "{missed:?}");
    }
}

#[tokio::test]
async fn to_open_a_github_issue_is_found_among_two_thousand() {
    let toolkit = search(boxed(many()));
    let answer = found(&toolkit, json!({"query": "open a new github issue"})).await;
    assert!(
        names_in(&answer).contains(&"github__create_issue"),
        "{answer}"
    );
    assert_eq!(
        (answer["tools"].as_array().unwrap().len(), &answer["more"]),
        (5, &json!(true))
    );
}

#[tokio::test]
async fn an_exact_name_comes_first_with_its_schema_unaltered() {
    let schema = json!({"type": "string", "enum": ["a", "b"], "x-odd": {"kept": true}});
    let exact = tool("mcp x", "x__issue", "Nothing of interest")
        .param("kind", schema.clone())
        .required("kind");
    let mut tools = many();
    tools.push(exact);
    let toolkit = search(boxed(tools));
    for query in ["x__issue", " X__ISSUE "] {
        let answer = found(&toolkit, json!({"query": query})).await;
        let first = json!({"name": "x__issue", "description": "Nothing of interest", "read_only": true,
            "input_schema": {"type": "object", "properties": {"kind": schema}, "required": ["kind"]}});
        assert_eq!(answer["tools"][0], first);
    }
}

#[tokio::test]
async fn a_search_without_a_hit_is_no_failure_and_says_where_there_are_tools_and_what_is_near() {
    let toolkit = search(boxed(real()));
    let answer = found(&toolkit, json!({"query": "zzqq"})).await;
    assert_eq!(
        (&answer["tools"], &answer["total"], &answer["ok"]),
        (&json!([]), &json!(0), &json!(true))
    );
    assert_eq!(
        answer["sources"][0],
        json!({"name": "mcp aws", "tools": 11})
    );
    assert_eq!(answer["near"], json!([]));
    let answer = found(&toolkit, json!({"query": "webserch"})).await;
    assert_eq!(answer["total"], 0);
    let answer = found(&toolkit, json!({"query": "kubectlget"})).await;
    assert_eq!(answer["near"], json!(["kubernetes__kubectl_get"]));
}

#[tokio::test]
async fn an_empty_query_lists_by_name_in_one_line_each_without_schemas() {
    let long = format!("First line.\n{}", "more ".repeat(500));
    let toolkit = search(boxed([
        tool("a", "two", &long),
        tool("a", "one", &"word ".repeat(100)),
    ]));
    let answer = found(&toolkit, json!({"query": " "})).await;
    assert_eq!(names_in(&answer), ["one", "two"]);
    assert_eq!(
        answer["tools"][1],
        json!({"name": "two", "description": "First line."})
    );
    assert_eq!(
        answer["tools"][0]["description"]
            .as_str()
            .unwrap()
            .chars()
            .count(),
        121
    );
    let page = found(&toolkit, json!({"query": "", "limit": 1, "offset": 1})).await;
    assert_eq!(
        (names_in(&page), &page["total"], &page["more"]),
        (vec!["two"], &json!(2), &json!(false))
    );
}

#[tokio::test]
async fn questions_that_do_not_fit_are_failures_of_parameters() {
    let toolkit = search(boxed(real()));
    for bad in [
        json!({"query": "x", "limit": 0}),
        json!({"query": "x", "limit": 21}),
        json!({"query": "x", "offset": -1}),
        json!({"query": "x".repeat(501)}),
        json!({"query": 7}),
        json!({}),
    ] {
        let ran = Scene::new().run(&toolkit, FIND, bad.clone()).await;
        let cause = ran.cause.expect("it fails");
        assert_eq!(cause.code, "invalid_parameters", "{bad}");
        assert_eq!(ran.result["ok"], false);
    }
    let fits = found(
        &toolkit,
        json!({"query": "x".repeat(500), "limit": 20, "offset": null}),
    )
    .await;
    assert_eq!(fits["ok"], true, "{fits}");
}

#[tokio::test]
async fn the_same_search_has_the_same_bytes_whatever_order_the_tools_came_in() {
    let (mut one, mut other) = (many(), many());
    one.reverse();
    other.rotate_left(777);
    let toolkits = [
        search(boxed(many())),
        search(boxed(one)),
        search(boxed(other)),
    ];
    for query in [
        "open a new github issue",
        "list",
        "",
        "report of the day",
        "zzqq",
    ] {
        let mut answers = Vec::new();
        for toolkit in &toolkits {
            for _ in 0..2 {
                answers.push(
                    found(toolkit, json!({"query": query, "limit": 20}))
                        .await
                        .to_string(),
                );
            }
        }
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{query}"
        );
        let shown = toolkits
            .iter()
            .map(|toolkit| json!(&*toolkit.definitions()).to_string());
        assert_eq!(shown.collect::<BTreeSet<_>>().len(), 1);
    }
}

#[tokio::test]
async fn a_large_schema_is_whole_when_alone_and_left_out_of_a_list() {
    let large = json!({"type": "string", "description": "x".repeat(40 * 1024)});
    let tools = [
        tool("a", "big_report", "Make a big report").param("text", large),
        tool("a", "small_report", "Make a small report").param("text", json!({"type": "string"})),
    ];
    let toolkit = search(boxed(tools));
    let alone = found(&toolkit, json!({"query": "big_report", "limit": 1})).await;
    assert!(alone["tools"][0]["input_schema"]["properties"]["text"].is_object());
    let list = found(&toolkit, json!({"query": "report"})).await;
    assert!(list.to_string().len() < 32 * 1024);
    let of = |name: &str| {
        list["tools"]
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(of("big_report")["schema_omitted"], true);
    assert!(of("big_report").get("input_schema").is_none());
    assert!(of("small_report")["input_schema"].is_object());
}

#[tokio::test]
async fn nothing_can_be_found_or_called_in_a_toolkit_that_is_restricted_to_nothing() {
    let toolkit = search(restrict(boxed(real()), &BTreeSet::new()));
    let answer = found(&toolkit, json!({"query": "open a new github issue"})).await;
    assert_eq!(
        (&answer["tools"], &answer["total"]),
        (&json!([]), &json!(0))
    );
    let input = json!({"name": "github__create_issue", "input": {}});
    let given = Scene::new().gives(&toolkit, CALL, input).await;
    assert_eq!(given["code"], "unknown_tool");
}

#[tokio::test]
async fn search_finds_and_calls_nothing_outside_what_it_was_restricted_to_and_has_no_tool_of_another_name()
 {
    let only = BTreeSet::from(["github__get_issue".to_owned()]);
    let toolkit = search(restrict(boxed(real()), &only));
    let answer = found(&toolkit, json!({"query": "github issue", "limit": 20})).await;
    assert_eq!(names_in(&answer), ["github__get_issue"]);
    let outside = restrict(search(boxed(real())), &only);
    assert_eq!(names(&*outside), [""; 0]);
    assert_eq!(outside.unknown_names(), ["github__get_issue"]);
}

#[tokio::test]
async fn a_called_tools_result_is_its_own_and_the_call_is_recorded_under_the_wrapper() {
    let toolkit = search(boxed(real()));
    let scene = Scene::new();
    let input = json!({"name": "github__get_issue", "input": {"number": 7}});
    let given = scene.gives(&toolkit, CALL, input).await;
    assert_eq!(
        given,
        json!({"by": "mcp github", "with": {"number": 7}, "ok": true})
    );
    let told = [
        "doing c1/1 via search github__get_issue {\"number\":7}".to_owned(),
        "started c1/1".to_owned(),
        format!("done c1/1 {given}"),
    ];
    assert_eq!(scene.told(), told);
}

#[tokio::test]
async fn an_input_that_is_a_string_with_an_object_is_that_object_and_any_other_is_refused() {
    let toolkit = search(boxed(real()));
    for (input, with) in [
        (json!("{\"number\": 7}"), json!({"number": 7})),
        (json!(null), json!({})),
        (json!(""), json!({})),
    ] {
        let call = json!({"name": "github__get_issue", "input": input});
        assert_eq!(Scene::new().gives(&toolkit, CALL, call).await["with"], with);
    }
    let whole = json!("{\"name\": \"github__get_issue\"}");
    assert_eq!(Scene::new().gives(&toolkit, CALL, whole).await["ok"], true);
    for input in [
        json!(7),
        json!([1]),
        json!("seven"),
        json!("[1]"),
        json!(true),
    ] {
        let scene = Scene::new();
        let call = json!({"name": "github__get_issue", "input": input});
        let ran = scene.run(&toolkit, CALL, call).await;
        assert_eq!(ran.result["error"], "value at `/input` is not an object");
        assert_eq!(ran.cause.unwrap().code, "invalid_parameters");
        assert_eq!(scene.told(), [""; 0]);
    }
}

#[tokio::test]
async fn names_that_are_no_tools_are_unknown_to_call_tool_and_near_ones_are_told() {
    let toolkit = search(boxed(real()));
    for name in [CALL, FIND, "__proto__", "toString", ""] {
        let scene = Scene::new();
        let given = scene.gives(&toolkit, CALL, json!({"name": name})).await;
        assert_eq!(
            (&given["code"], &given["ok"]),
            (&json!("unknown_tool"), &json!(false)),
            "{name}"
        );
        let begins = format!("unknown tool: {name:?}. Available: ");
        assert!(
            given["error"].as_str().unwrap().starts_with(&begins),
            "{given}"
        );
        assert!(given.get("retryable").is_none());
        assert_eq!(scene.told(), [""; 0]);
    }
    let given = Scene::new()
        .gives(&toolkit, CALL, json!({"name": "create_isue"}))
        .await;
    let error = "unknown tool: \"create_isue\". Available: github__create_issue, linear__create_issue, \
                 mongodb__create-index and 261 more, which search_tools finds.";
    assert_eq!(given["error"], error);
}

#[tokio::test]
async fn a_hidden_tool_that_is_called_by_its_name_is_unknown_and_told_how_it_is_reached() {
    let own = boxed([tool("builtin", "read", "Read a file")]);
    let toolkit = merge(own, search(boxed(real())));
    let given = Scene::new()
        .gives(&toolkit, "github__create_issue", json!({"title": "x"}))
        .await;
    let error = "unknown tool: \"github__create_issue\". Available: read, search_tools, call_tool. \
                 \"github__create_issue\" is reached by call_tool with {\"name\":\"github__create_issue\",\"input\":{...}}.";
    assert_eq!(
        given,
        json!({"error": error, "code": "unknown_tool", "ok": false})
    );
    let direct = Scene::new().gives(&toolkit, "read", json!({})).await;
    assert_eq!(direct["by"], "builtin");
    let reached = Scene::new()
        .gives(&toolkit, CALL, json!({"name": "github__get_me"}))
        .await;
    assert_eq!(reached["code"], "unknown_tool");
    let reached = Scene::new()
        .gives(&toolkit, CALL, json!({"name": "github__get_issue"}))
        .await;
    assert_eq!(reached["by"], "mcp github");
}

/// Both ways to a tool: by its name, and by `call_tool`.
fn both_ways(tools: Vec<Tool>, name: &str, input: Value) -> [(Arc<dyn Toolkit>, String, Value); 2] {
    let direct = boxed(tools);
    let call = json!({"name": name, "input": input});
    [
        (Arc::clone(&direct), name.to_owned(), input),
        (search(direct), CALL.to_owned(), call),
    ]
}

#[tokio::test]
async fn a_tools_failure_is_the_same_directly_and_through_search() {
    let failing = |_: Call, _: Map<String, Value>| async {
        let failure = json!({"error": "no such page", "code": "not_found", "details": {"page": 7}});
        Ok(failure.as_object().unwrap().clone())
    };
    let tool = Tool::new("page", "x")
        .access(Access::Nothing)
        .handler(failing);
    for (toolkit, name, input) in both_ways(vec![tool], "page", json!({})) {
        let given = Scene::new().gives(&toolkit, &name, input).await;
        let failure = json!({"error": "no such page", "code": "not_found", "details": {"page": 7}, "ok": false});
        assert_eq!(given, failure);
    }
}

#[tokio::test]
async fn the_tool_inside_asks_once_by_its_own_name_whatever_the_way_and_a_no_keeps_it_from_running()
{
    let no = "User denied permission: pay: too much";
    for (answer, ok) in [(Answer::Allow, true), (Answer::Deny, false)] {
        let pay = tool("mcp bank", "pay", "x")
            .param("sum", json!({"type": "integer"}))
            .access(Access::Network);
        for (toolkit, name, input) in both_ways(vec![pay], "pay", json!({"sum": 7})) {
            let mut scene = Scene::new();
            scene.permissions = Permissions::default().with_policy(Policy::Ask);
            scene.answer = (answer, Some("too much"));
            let ran = scene.run(&toolkit, &name, input).await;
            let told = scene.told();
            let asked: Vec<&String> = told.iter().filter(|line| line.starts_with("ask")).collect();
            assert_eq!(asked, ["ask pay {\"sum\":7}"]);
            assert_eq!(told.iter().any(|line| line.starts_with("started")), ok);
            assert_eq!(ran.result["ok"], ok);
            if !ok {
                let expected = json!({"error": no, "name": "pay", "args": {"sum": 7}, "ok": false});
                assert_eq!(Value::Object(ran.result), expected);
                assert_eq!(ran.cause.unwrap().code, "denied");
            }
        }
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_told_before_anybody_is_asked() {
    let pay = tool("mcp bank", "pay", "x")
        .param("sum", json!({"type": "integer"}))
        .access(Access::Network);
    for (toolkit, name, input) in both_ways(vec![pay], "pay", json!({"sum": "7"})) {
        let mut scene = Scene::new();
        scene.permissions = Permissions::default().with_policy(Policy::Ask);
        let ran = scene.run(&toolkit, &name, input).await;
        let error = json!({"error": "value at `/sum` is not an integer", "ok": false});
        assert_eq!(Value::Object(ran.result), error);
        assert_eq!(ran.cause.unwrap().code, "invalid_parameters");
        assert!(!scene.told().iter().any(|line| line.starts_with("ask")));
    }
}

#[tokio::test]
async fn a_hook_that_raises_blocks_the_call_whatever_the_way() {
    let mut toolbox = crate::toolbox::Toolbox::new();
    toolbox.add(tool("builtin", "write", "x"));
    let hook = crate::toolbox::hook::Hook::sync("guard", |_: &_| Err("not today".to_owned()));
    toolbox.before(Some("write"), hook);
    let direct: Arc<dyn Toolkit> = Arc::new(toolbox);
    let wrapped = search(Arc::clone(&direct));
    let by_search = json!({"name": "write", "input": {}});
    for (toolkit, name, input) in [(direct, "write", json!({})), (wrapped, CALL, by_search)] {
        let scene = Scene::new();
        let given = scene.gives(&toolkit, name, input).await;
        assert_eq!(
            given,
            json!({"error": "not today", "name": "write", "args": {}, "ok": false})
        );
        assert!(!scene.told().iter().any(|line| line.starts_with("started")));
    }
}

#[tokio::test]
async fn a_cancelled_call_of_a_tool_inside_is_cancelled() {
    let slow = |call: Call, _: Map<String, Value>| async move {
        call.cancel.cancelled().await;
        Err("gone".to_owned())
    };
    let slow = Tool::new("slow", "x").access(Access::Nothing).handler(slow);
    let toolkit = search(boxed([slow]));
    let scene = Scene::new();
    let cancel = scene.cancel.clone();
    let running = scene.run(&toolkit, CALL, json!({"name": "slow"}));
    let (ran, ()) = tokio::join!(running, async { cancel.cancel() });
    assert_eq!(ran.result["error"], "cancelled");
}

#[test]
fn two_thousand_tools_are_indexed_in_a_tenth_of_a_second_and_asked_in_two_milliseconds() {
    let tools = many();
    let named = || tools.iter().map(|tool| (tool.name(), tool.description()));
    let best = |rounds: usize, work: &dyn Fn()| {
        let time = |_| {
            let begun = std::time::Instant::now();
            work();
            begun.elapsed()
        };
        (0..rounds).map(time).min().unwrap()
    };
    // Without optimisation, and beside other tests, a few times as long.
    let slow = if cfg!(debug_assertions) { 4 } else { 1 };
    let indexing = best(5, &|| drop(Index::new(named())));
    assert!(
        indexing < std::time::Duration::from_millis(100 * slow),
        "{indexing:?}"
    );
    let index = Index::new(named());
    let asking = best(20, &|| drop(index.find("open a new github issue")));
    assert!(asking < std::time::Duration::from_millis(2), "{asking:?}");
}
