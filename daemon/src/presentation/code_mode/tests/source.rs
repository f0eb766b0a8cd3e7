//! What a program may look like, and what is said of one that cannot be read.

use super::*;

#[tokio::test]
async fn a_program_is_the_body_of_an_async_function() {
    for (code, result) in [
        ("return {a: 1}", json!({"a": 1})),
        (
            "const x = await Promise.resolve(2);\nreturn x // the last line",
            json!(2),
        ),
        ("if (true) {\n  return 'in a block'\n}", json!("in a block")),
        ("function f() { return 3 }\nreturn f() + 1", json!(4)),
        (
            "return [typeof this, (function () { return this })()]",
            json!(["undefined", null]),
        ),
    ] {
        assert_eq!(run(code).await["result"], result, "{code}");
    }
}

#[tokio::test]
async fn a_fence_is_stripped_and_lines_keep_their_numbers() {
    assert_eq!(run("```js\nreturn 5\n```").await["result"], 5);
    assert_eq!(
        run("\n````javascript\nreturn '```'\n````\n").await["result"],
        "```"
    );
    for code in [
        "  ```js\n  return 5\n  ```",
        "```js\nreturn 5```",
        "~~~\nreturn 5\n~~~\n",
    ] {
        assert_eq!(run(code).await["result"], 5, "{code}");
    }
    let failed = run("```js\nlet a;\nthrow new Error('x')\n```").await;
    assert_eq!(failed["at"].as_str().unwrap().split(':').next(), Some("3"));
}

#[tokio::test]
async fn a_function_that_is_the_whole_program_is_called() {
    for code in [
        "async () => { return 7 }",
        "() => 7",
        "x => 7",
        "async () => 7;",
        "function main() { return 7 }",
        "async function () { return 7 };\n",
        "// why\n/* and how */ async () => {\n  return 7;\n}",
        "```\nasync () => 7\n```",
        "async () => 7 // seven",
        "() => { return 7 }\n// c\n/* d */",
        "(async () => { return 7 })",
        "( /* a */ (() => 7) )  ;",
    ] {
        assert_eq!(run(code).await["result"], 7, "{code}");
    }
}

#[tokio::test]
async fn what_only_begins_like_a_function_is_a_program() {
    let bench = Bench::new();
    let result = bench.run("(await tools.echo({}));\nreturn 1").await;
    assert_eq!(result["result"], 1);
    // A function and a call of another one, which a parser could take for one expression.
    let result = bench
        .run("function f() {}\n(async () => { await tools.echo({}) })()")
        .await;
    assert_eq!(result["calls"].as_array().unwrap().len(), 1);
    assert_eq!(bench.port.made.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_program_that_cannot_be_read_says_where_and_that_it_is_plain_javascript() {
    let failed = run("let a = 1;\nlet b = = 2").await;
    assert_eq!(
        (&failed["code"], &failed["ok"]),
        (&json!("syntax"), &json!(false))
    );
    assert_eq!(failed["at"].as_str().unwrap().split(':').next(), Some("2"));
    for code in [
        "const a: number = 1",
        "import fs from 'fs'",
        "export const a = 1",
    ] {
        let failed = run(code).await;
        assert_eq!(failed["code"], "syntax", "{code}");
        let error = failed["error"].as_str().unwrap();
        assert!(error.contains("plain JavaScript"), "{error}");
    }
    let failed = run("let a;\nreturn '\0'").await;
    assert_eq!(failed["code"], "syntax");
    assert!(
        failed["error"]
            .as_str()
            .unwrap()
            .contains("NUL character on line 2")
    );
}

#[tokio::test]
async fn an_empty_program_and_one_that_is_too_large_do_not_run() {
    for code in ["", "  \n", "// nothing\n/* at all */", "```js\n```"] {
        assert_eq!(run(code).await["code"], "empty_program", "{code:?}");
    }
    let bench = Bench::limits(json!({"source": 10}));
    assert_eq!(
        bench.run("return 'too large'").await["code"],
        "program_too_large"
    );
}

#[tokio::test]
async fn code_that_is_no_text_is_refused_as_any_tools_input_is() {
    for arguments in [json!({}), json!({"code": 1}), json!(["return 1"])] {
        let ran = Bench::new().ran(arguments).await;
        let origin = ran.cause.map(|cause| cause.origin);
        assert_eq!(origin, Some(Origin::Parameters), "{:?}", ran.result);
    }
    let ran = Bench::new().ran(json!("{\"code\": \"return 1\"}")).await;
    assert_eq!(ran.result["result"], 1);
}
