//! How programs end: results, what cannot be one, and those that must be ended.

use super::*;

#[tokio::test]
async fn what_is_nothing_is_null_and_a_note() {
    for code in ["1", "return", "return undefined", "return () => 1"] {
        let result = run(code).await;
        assert_eq!(result["result"], Value::Null, "{code}");
        let note = "the program returned nothing and logged nothing: add return";
        assert_eq!(result["notes"], json!([note]), "{code}");
        assert_eq!(
            (&result["ok"], &result["calls"]),
            (&json!(true), &json!([]))
        );
    }
    let result = run("console.log('a', {b: 1}, [null]); console.error(new Error('c'))").await;
    assert_eq!(result["logs"], "a {\"b\":1} [null]\nError: c");
    assert_eq!(result.get("notes"), None);
}

#[tokio::test]
async fn promises_and_errors_in_a_result_are_told_as_what_they_are() {
    let result = run("return [tools.echo({}), new Error('e'), new Date(0)]").await;
    let expected = json!([
        "[promise: add await]",
        "Error: e",
        "1970-01-01T00:00:00.000Z"
    ]);
    assert_eq!(result["result"], expected);
    assert_eq!(
        run("return new TypeError('t')").await["result"],
        "TypeError: t"
    );
}

#[tokio::test]
async fn time_is_told_though_no_file_of_time_zones_can_be_read() {
    let code = "const now = new Date(); return [typeof now.toString(), now.getTimezoneOffset(), Date.now() > 1.7e12,
        Math.random() < 1, 'é'.normalize('NFD').length, /\\p{L}+/u.test('ä')]";
    assert_eq!(
        run(code).await["result"],
        json!(["string", 0, true, true, 2, true])
    );
}

#[tokio::test]
async fn a_result_that_cannot_be_json_fails_with_its_calls_listed() {
    for code in [
        "const a = {}; a.a = a; await tools.echo({}); return a",
        "await tools.echo({}); return {n: 1n}",
        "await tools.echo({}); let a = 1; for (let i = 0; i < 200; i++) a = [a]; return a",
        "await tools.echo({}); return {toJSON() { throw new Error('no') }}",
    ] {
        let failed = run(code).await;
        assert_eq!(failed["code"], "unserialisable", "{failed}");
        assert_eq!(failed["calls"][0]["tool"], "echo");
    }
}

#[tokio::test]
async fn half_of_a_surrogate_pair_becomes_a_replacement_character() {
    let code = r"const s = '\ud800'; console.log(s);
        return [s, '\ud83d\ude00', {[s]: s + 'x'}, (await tools.echo({s})).got.s, '\\ud800']";
    let result = run(code).await;
    let bad = "\u{fffd}";
    assert_eq!(
        result["result"],
        json!([bad, "😀", {bad: format!("{bad}x")}, bad, "\\ud800"])
    );
    assert_eq!(result["logs"], bad);
}

#[tokio::test]
async fn a_result_that_is_too_long_is_cut_and_no_failure() {
    for code in [
        "return 'ä'.repeat(3e6)",
        "return new Array(1e6).fill('abc')",
    ] {
        let result = run(code).await;
        assert_eq!(
            (&result["truncated"], &result["ok"]),
            (&json!(true), &json!(true))
        );
        let length = result["result"].as_str().unwrap().len();
        assert!((60_000..=65_536).contains(&length), "{length}");
    }
    let result = run("for (let i = 0; i < 1e4; i++) console.log('0123456789'); return 1").await;
    assert_eq!(result["result"], 1);
    let logs = result["logs"].as_str().unwrap();
    assert!(
        logs.len() < 70_000 && logs.ends_with("[the log is cut here]"),
        "{}",
        logs.len()
    );
}

#[tokio::test]
async fn what_is_thrown_says_what_and_where() {
    for (code, error, line) in [
        (
            "let a;\nlet b;\nthrow new Error('boom')",
            "Error: boom",
            Some("3"),
        ),
        ("let a;\nnull.x", "TypeError", Some("2")),
        ("throw 'text'", "the program threw text", None),
        ("throw null", "the program threw null", None),
        ("throw {a: 1}", "the program threw {\"a\":1}", None),
    ] {
        let failed = run(code).await;
        assert_eq!(
            (&failed["code"], &failed["ok"]),
            (&json!("thrown"), &json!(false)),
            "{code}"
        );
        assert!(
            failed["error"].as_str().unwrap().starts_with(error),
            "{failed}"
        );
        let at = failed.get("at").and_then(Value::as_str);
        assert_eq!(at.and_then(|at| at.split(':').next()), line, "{code}");
    }
}

#[tokio::test]
async fn a_rejection_that_nobody_handles_is_a_note() {
    let result = run("Promise.reject(new Error('lost')); return 1").await;
    assert_eq!(result["result"], 1);
    assert_eq!(
        result["notes"],
        json!(["a rejected promise was handled by nobody: lost"])
    );
    let handled = run("const p = Promise.reject(1); await null; p.catch(() => {}); return 1").await;
    assert_eq!(handled.get("notes"), None);
}

#[tokio::test]
async fn a_program_that_can_never_end_is_ended_at_once() {
    let failed = run("console.log('here'); await new Promise(() => {})").await;
    assert_eq!(failed["code"], "never_settles");
    assert_eq!(failed["logs"], "here");
}

#[tokio::test]
async fn a_program_without_end_is_stopped_wherever_it_hides() {
    for code in [
        "await tools.echo({});\nfor (;;) {}",
        "await tools.echo({});\ntry { for (;;) {} } catch { return 1 }",
        "await tools.echo({});\ntry { throw 1 } catch { for (;;) {} }",
        "await tools.echo({});\ntry { return 1 } finally { for (;;) {} }",
        "await tools.echo({});\nfor (;;) await null",
        "await tools.echo({});\nnew Array(2 ** 31).join('')",
        "await tools.echo({});\nString.raw({raw: {length: 2 ** 31}})",
        "await tools.echo({});\nconst a = 'a'.repeat(1 << 20); for (;;) a.indexOf(a.slice(1) + 'b')",
        "await tools.echo({});\nawait tools.slow({ms: 60000})",
    ] {
        let bench = Bench::limits(json!({"wall_ms": 300}));
        let failed = bench.run(code).await;
        assert_eq!(failed["code"], "timeout", "{code}: {failed}");
        assert_eq!(failed["calls"][0]["tool"], "echo", "{code}");
        assert_eq!(bench.run("return 1").await["result"], 1);
    }
}

#[tokio::test]
async fn a_result_that_was_there_in_time_counts() {
    let bench = Bench::limits(json!({"wall_ms": 300}));
    let result = bench.run("tools.slow({ms: 60000}); return 5").await;
    assert_eq!(
        (&result["result"], &result["ok"]),
        (&json!(5), &json!(true))
    );
    let notes = json!([
        "1 call was not awaited by the program: add await",
        "1 call was cancelled while running: the outcome is not known"
    ]);
    assert_eq!(result["notes"], notes);
}

#[tokio::test]
async fn processor_time_is_limited_by_itself() {
    let bench = Bench::limits(json!({"cpu_ms": 100}));
    let failed = bench.run("let n = 0;\nfor (;;) n++").await;
    assert_eq!(failed["code"], "cpu");
}

#[tokio::test]
async fn what_heeds_no_interrupt_dies_of_the_limit_of_the_system() {
    let bench = Bench::limits(json!({"cpu_ms": 10}));
    let failed = bench
        .run("await tools.echo({}); for (;;) new Array(2 ** 31).join('')")
        .await;
    assert_eq!(failed["code"], "cpu", "{failed}");
    assert_eq!(failed["calls"][0]["tool"], "echo");
}

#[tokio::test]
async fn memory_and_stack_are_limited_and_a_program_may_catch_that() {
    let memory = "the program needs more memory than it may have";
    for (code, failure) in [
        (
            "const a = []; for (;;) a.push(new Array(1000).fill(1))",
            "memory",
        ),
        ("let s = 'ab'; for (;;) s += s", "memory"),
        ("new ArrayBuffer(2 ** 30)", "memory"),
        ("function f() { return f() + 1 }\nf()", "stack"),
    ] {
        let failed = run(code).await;
        assert_eq!(failed["code"], failure, "{code}: {failed}");
        assert!(failure != "memory" || failed["error"] == memory, "{failed}");
    }
    let caught = run("try { new ArrayBuffer(2 ** 30) } catch (e) { return 'caught' }").await;
    assert_eq!(caught["result"], "caught");
    let caught = run("const f = () => f() + 1; try { f() } catch { return 'caught' }").await;
    assert_eq!(caught["result"], "caught");
}

#[tokio::test]
async fn what_is_thrown_is_cut_and_never_a_crash() {
    for code in [
        "await tools.echo({}); throw 'x'.repeat(4e6)",
        "await tools.echo({}); throw new Error('x'.repeat(4e6))",
        "await tools.echo({}); throw new ToolFailure({code: 'y'.repeat(4e6), message: 'x'.repeat(4e6), details: 'z'.repeat(4e6)})",
        "await tools.echo({}); await tools['n'.repeat(4e6)]({})",
    ] {
        let failed = run(code).await;
        assert_ne!(failed["code"], "crashed", "{}", &failed.to_string()[..200]);
        assert!(failed.to_string().len() < 100_000);
        assert_eq!(failed["calls"][0]["tool"], "echo");
    }
}

#[tokio::test]
async fn a_program_that_has_no_memory_left_is_told_so_however_it_ends() {
    let build = "await tools.echo({}); const o = {}; for (let i = 0; i < 6e5; i++) o['key' + i] = i; return o";
    for code in [
        build,
        "await tools.echo({}); return Array.from({length: 400000}, (_, i) => ({id: i, name: 'item ' + i}))",
        "await tools.echo({}); return {a: 'x'.repeat(3e7)}",
    ] {
        let failed = run(code).await;
        assert_eq!(failed["code"], "memory", "{failed}");
    }
    // What caught it, and goes on, ends as it says.
    let caught = "try { 'x'.repeat(1e9).split('') } catch { } throw 'mine'";
    assert_eq!(run(caught).await["code"], "thrown");
}

#[tokio::test]
async fn the_deepest_result_comes_whole_and_a_deeper_one_is_no_null() {
    let nested =
        |deep: usize| format!("let x = 1; for (let i = 0; i < {deep}; i++) x = {{a: x}}; return x");
    let mut bench = Bench::new();
    bench.limits.depth = Some(100);
    let whole = bench.run(&nested(100)).await;
    let mut inner = &whole["result"];
    for _ in 0..100 {
        inner = &inner["a"];
    }
    assert_eq!(inner, 1);
    assert_eq!(bench.run(&nested(101)).await["code"], "unserialisable");
    let input = "let x = 1; for (let i = 0; i < 130; i++) x = {a: x};
        try { return await tools.echo({x}) } catch (e) { return e.message }";
    let told = "cannot call echo: its input is more than 100 deep";
    assert_eq!(run(input).await["result"], told);
}

#[tokio::test]
async fn notes_say_of_open_calls_what_is_true() {
    let mut bench = Bench::new();
    bench.limits.wall_ms = Some(200);
    let failed = bench.run("return await tools.slow({ms: 60000})").await;
    assert_eq!(failed["code"], "timeout");
    let ran = "1 call was cancelled while running: the outcome is not known";
    assert_eq!(failed["notes"], json!([ran]));
    bench.limits.in_flight = Some(1);
    let code = "return await Promise.all([tools.slow({ms: 60000}), tools.slow({})])";
    let waited = "1 call was still waiting and not run";
    assert_eq!(bench.run(code).await["notes"], json!([ran, waited]));
}
