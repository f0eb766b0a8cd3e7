//! Calls of a program that need an approval.

use super::*;

#[tokio::test]
async fn a_call_waits_for_a_person_while_the_clock_stands_and_others_go_on() {
    let bench = Bench::limits(json!({"wall_ms": 400}));
    let port = Arc::clone(&bench.port);
    let answering = tokio::spawn(async move {
        port.until_asked(1).await;
        // Far beyond the program's time.
        tokio::time::sleep(Duration::from_millis(900)).await;
        port.answer(yes(None));
    });
    let code = "const other = tools.echo({n: 1});
        const [changed, echoed] = await Promise.all([tools.change({what: 'x'}), other]); return [changed, echoed]";
    let result = bench.run(code).await;
    answering.await.unwrap();
    let expected = json!([{"got": {"what": "x"}, "ok": true}, {"got": {"n": 1}, "ok": true}]);
    assert_eq!(result["result"], expected);
    let asked = bench.port.asked.lock().unwrap().clone();
    assert_eq!(asked, [("change".to_owned(), json!({"what": "x"}))]);
}

#[tokio::test]
async fn a_no_is_a_tool_failure_and_the_tool_does_not_run() {
    let bench = Bench::new();
    bench.port.answer(no("not today"));
    let code =
        "try { await tools.change({what: 'x'}) } catch (e) { return [e.code, e.message, e.tool] }";
    let result = bench.run(code).await;
    let message = "User denied permission: change: not today";
    assert_eq!(result["result"], json!(["denied", message, "change"]));
    assert_eq!(result["calls"][0]["ok"], false);
}

#[tokio::test]
async fn an_answer_for_the_program_covers_its_other_calls_those_that_wait_already_included() {
    let bench = Bench::new();
    let port = Arc::clone(&bench.port);
    let answering = tokio::spawn(async move {
        port.until_asked(3).await;
        port.answer(yes(Some("*")));
    });
    let code = "await Promise.all(['a', 'b', 'c'].map((what) => tools.change({what})));
        return (await tools.change({what: 'd'})).got.what";
    let result = bench.run(code).await;
    answering.await.unwrap();
    assert_eq!(result["result"], "d");
    assert_eq!(bench.port.asked.lock().unwrap().len(), 3);
    // The next program is another one.
    bench.port.answer(no("again?"));
    assert_eq!(
        bench.run("await tools.change({what: 'e'})").await["code"],
        "denied"
    );
}

#[tokio::test]
async fn where_programs_may_not_ask_the_call_fails_and_says_what_to_do() {
    let bench = Bench {
        approval: CodeApproval::Refuse,
        ..Bench::new()
    };
    let failed = bench.run("await tools.change({what: 'x'})").await;
    assert_eq!(failed["code"], "denied");
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .ends_with("call change directly"),
        "{failed}"
    );
    assert!(bench.port.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_cancel_ends_a_program_that_waits_for_a_person() {
    let bench = Bench::new();
    let (port, cancel) = (Arc::clone(&bench.port), bench.cancel.clone());
    let cancelling = tokio::spawn(async move {
        port.until_asked(1).await;
        cancel.cancel();
    });
    let failed = bench.run("await tools.change({what: 'x'})").await;
    cancelling.await.unwrap();
    assert_eq!(failed["code"], "cancelled");
}
