//! Calls of a program: names, inputs, failures, and how many at once.

use super::*;
use crate::presentation::search::Search;

#[tokio::test]
async fn tools_are_called_by_any_name_and_await_tools_is_the_object() {
    let code = "return [
        await tools.echo({a: 1}), await tools['a-b']({}), await tools.a_b({}), await tools.__proto__({}),
        await tools.then({b: 2}), await tools.toJSON({c: 3}), (await tools) === tools, Object.isFrozen(tools),
        Object.getPrototypeOf(tools), await tools.echo(), 'nope' in tools,
    ]";
    let result = Bench::new().run(code).await;
    let got = |input: Value| json!({"got": input, "ok": true});
    let empty = || got(json!({}));
    assert_eq!(
        result["result"],
        json!([
            got(json!({"a": 1})),
            empty(),
            empty(),
            empty(),
            got(json!({"b": 2})),
            got(json!({"c": 3})),
            true,
            true,
            null,
            empty(),
            false
        ])
    );
    assert_eq!(result["calls"].as_array().unwrap().len(), 7);
    assert_eq!(result["calls"][2]["tool"], "a-b");
}

#[tokio::test]
async fn every_call_is_recorded_as_one_of_the_program() {
    let bench = Bench::new();
    bench
        .run("await tools.echo({}); await tools.fail({})")
        .await;
    let made = bench.port.made.lock().unwrap().clone();
    assert_eq!(
        made,
        [
            (Via::Code, "echo".to_owned()),
            (Via::Code, "fail".to_owned())
        ]
    );
    assert_eq!(bench.port.done.lock().unwrap()[1]["code"], "not_found");
}

#[tokio::test]
async fn a_name_that_is_no_tools_is_named() {
    let failed = run("const r = 1;\nawait tools.nope({})").await;
    assert_eq!(failed["code"], "unknown_tool");
    assert_eq!(failed["tool"], "nope");
    assert_eq!(failed["at"].as_str().unwrap().split(':').next(), Some("2"));
    let error = failed["error"].as_str().unwrap();
    assert!(
        error.starts_with("unknown tool: \"nope\". Available: echo, a-b,"),
        "{error}"
    );
}

#[tokio::test]
async fn a_failure_is_a_tool_failure_with_all_that_the_tool_said() {
    let code = "try { await tools.fail({}) } catch (e) {
        return [e instanceof ToolFailure, e instanceof Error, e.name, e.code, e.message, e.tool, e.retryable, e.details]
    }";
    let result = run(code).await;
    let expected =
        json!([true, true, "ToolFailure", "not_found", "no such page", "fail", true, {"page": 7}]);
    assert_eq!(result["result"], expected);
    assert_eq!(result["calls"][0]["ok"], false);
}

#[tokio::test]
async fn uncaught_the_program_fails_as_the_tool_did() {
    let failed = run("console.log('so far');\nawait tools.fail({})").await;
    let at = failed["at"].as_str().unwrap().to_owned();
    assert!(at.starts_with("2:"), "{at}");
    let mut expected = json!({
        "error": "no such page", "code": "not_found", "retryable": true, "tool": "fail", "at": at, "details": {"page": 7},
        "logs": "so far", "calls": [{"tool": "fail", "ok": false, "ms": 0}], "ok": false,
    });
    expected["calls"][0]["ms"] = failed["calls"][0]["ms"].clone();
    assert_eq!(failed, expected);
}

#[tokio::test]
async fn an_input_that_does_not_fit_fails_before_anybody_is_asked() {
    let bench = Bench::new();
    let failed = bench.run("await tools.change({what: 1})").await;
    assert_eq!(failed["code"], "invalid_parameters");
    assert!(bench.port.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_input_that_is_no_plain_object_is_told_where_the_call_is() {
    for (input, code) in [
        ("{p: tools.echo({})}", "unserialisable"),
        ("tools.echo({})", "unserialisable"),
        ("1n", "unserialisable"),
        ("() => 1", "parameters"),
        ("'text'", "invalid_parameters"),
        ("[1]", "invalid_parameters"),
    ] {
        let failed = run(&format!("await tools.change({input})")).await;
        assert_eq!(failed["code"], code, "{input}: {failed}");
        assert_eq!(failed["tool"], "change");
    }
    let bench = Bench::limits(json!({"input": 100}));
    let failed = bench.run("await tools.echo({a: 'x'.repeat(200)})").await;
    assert_eq!(failed["code"], "parameters");
    assert!(bench.port.made.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_output_that_is_too_long_is_cut_and_no_failure() {
    let bench = Bench::limits(json!({"output": 1000}));
    let result = bench
        .run("const r = await tools.big({}); return [r.truncated, r.text.length, r.ok]")
        .await;
    assert_eq!(result["result"], json!([true, 1000, true]));
    assert!(
        result["notes"][0]
            .as_str()
            .unwrap()
            .contains("was cut to 1000")
    );
}

#[tokio::test]
async fn sixteen_calls_run_at_once_and_the_others_wait_without_an_error() {
    let bench = Bench::new();
    let code = "const all = []; for (let i = 0; i < 40; i++) all.push(tools.slow({ms: 20}));
        return (await Promise.all(all)).length";
    let result = bench.run(code).await;
    assert_eq!(result["result"], 40);
    assert_eq!(bench.running.most.load(Ordering::SeqCst), 16);
}

#[tokio::test]
async fn the_call_beyond_the_limit_fails_and_no_other() {
    let bench = Bench::limits(json!({"calls": 3}));
    let code = "let n = 0; try { for (;;) { await tools.echo({n}); n++ } } catch (e) { return [n, e.code] }";
    let result = bench.run(code).await;
    assert_eq!(result["result"], json!([3, "too_many_calls"]));
    let failed = bench
        .run("for (let i = 0; i < 4; i++) await tools.echo({})")
        .await;
    assert_eq!(failed["code"], "too_many_calls");
    assert_eq!(failed["calls"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn calls_that_are_not_awaited_are_waited_for_and_told() {
    let bench = Bench::new();
    let result = bench
        .run("tools.slow({ms: 50}); tools.slow({ms: 60}); return 1")
        .await;
    assert_eq!(result["result"], 1);
    assert_eq!(bench.running.ended.load(Ordering::SeqCst), 2);
    assert_eq!(
        result["notes"],
        json!(["2 calls were not awaited by the program: add await"])
    );
    assert_eq!(result["calls"][1]["ok"], true);
    // As are those beside one that failed.
    let failed = bench
        .run("await Promise.all([tools.slow({ms: 50}), tools.fail({})])")
        .await;
    assert_eq!(failed["code"], "not_found");
    assert_eq!(bench.running.ended.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_cancelled_program_cancels_its_calls_and_lists_them() {
    let bench = Bench::new();
    let code = "await Promise.all([1, 2, 3].map(() => tools.slow({ms: 60000})))";
    let cancel = bench.cancel.clone();
    let running = Arc::clone(&bench.running);
    let cancelling = tokio::spawn(async move {
        while running.now.load(Ordering::SeqCst) < 3 {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    let failed = bench.run(code).await;
    cancelling.await.unwrap();
    assert_eq!(failed["code"], "cancelled");
    assert_eq!(failed["calls"].as_array().unwrap().len(), 3);
    let done = bench.port.done.lock().unwrap();
    assert_eq!(done.len(), 3);
    assert!(
        done.iter().all(|done| done["code"] == "cancelled"),
        "{done:?}"
    );
}

#[tokio::test]
async fn a_hidden_tool_is_told_how_it_is_reached() {
    let bench = Bench::new();
    let mut run = bench.call(json!({}));
    run.name = "echo".to_owned();
    let ran = bench.presented().run(run).await;
    let error = ran.result["error"].as_str().unwrap();
    assert!(
        error.starts_with("unknown tool: \"echo\". Available: run_code."),
        "{error}"
    );
    assert!(
        error.contains("\"echo\" is reached by run_code with {\"code\":"),
        "{error}"
    );
}

#[tokio::test]
async fn where_not_all_are_declared_programs_find_and_call_the_others() {
    let bench = Bench::new();
    let inner = many(2000);
    let rules = Rules::of(&bench.limits, bench.approval, Settings::default(), "code").unwrap();
    let search = |of| Arc::new(Search::new(of, 5, Default::default())) as Arc<dyn Toolkit>;
    let presented = Arc::new(CodeMode::new(inner, rules, &Cell::default(), search));
    let names: Vec<&str> = presented.tools().iter().map(|tool| tool.name()).collect();
    assert_eq!(names, [RUN_CODE, FIND]);
    let code = "const found = await search_tools('widget 1234');
        const again = await tools.search_tools({query: 'widget 1234'});
        const name = found.tools[0].name;
        return [name, again.tools[0].name, (await tools[name]({n: 1})).got]";
    let run = bench.call(json!({"code": code}));
    let ran = Arc::clone(&presented).run(run).await;
    let name = "shop__widget_1234";
    assert_eq!(
        ran.result["result"],
        json!([name, name, {"n": 1}]),
        "{:?}",
        ran.result
    );
    // As a model does that looks before it writes a program.
    let mut run = bench.call(json!({"query": "widget 1234"}));
    run.name = FIND.to_owned();
    assert_eq!(presented.run(run).await.result["tools"][0]["name"], name);
}

fn many(count: usize) -> Arc<Toolbox> {
    let mut toolbox = Toolbox::new();
    for at in 0..count {
        let name = format!("shop__widget_{at}");
        let tool = Tool::new(&name, "Handles one of the widgets").source("shop");
        toolbox.add(tool.access(Access::Nothing).handler(echo));
    }
    Arc::new(toolbox)
}
