//! What holds in every language.

use super::*;

const ECHO: [(&str, &str); 3] = [
    (
        "echo.sh",
        "# @describe Echo.\n# @option --text! T\nmain() { printf '%s' \"$argc_text\" > \"$LLM_OUTPUT.raw\"; \
         printf '%s.' \"$argc_text\" | sha256sum >> \"$LLM_OUTPUT\"; }\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
    ),
    (
        "echo.py",
        "import hashlib\ndef run(text: str):\n    \"\"\"Echo.\"\"\"\n    return hashlib.sha256((text + '.').encode()).hexdigest()\n",
    ),
    (
        "echo.js",
        "const crypto = require('crypto');\n/**\n * Echo.\n * @param {Object} args\n * @param {string} args.text - T\n \
         */\nexports.run = ({ text }) => crypto.createHash('sha256').update(text + '.').digest('hex');\n",
    ),
];

fn digest(text: &str) -> String {
    use sha2::Digest;
    let sum = sha2::Sha256::digest(format!("{text}."));
    sum.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn every_word_arrives_byte_for_byte() {
    for (name, content) in ECHO {
        let bench = Bench::new();
        for word in hard_words() {
            let result = run_in(&bench, name, content, json!({"text": word})).await;
            let output = result["output"].as_str().unwrap_or_default();
            let shown: String = word.chars().take(40).collect();
            assert!(
                output.starts_with(&digest(&word)),
                "{name} {shown:?}: {result}"
            );
        }
        assert!(!bench.cwd().join("PWNED").exists());
    }
}

#[tokio::test]
async fn a_nul_and_a_name_that_is_not_declared_are_refused_by_name() {
    for (name, content) in ECHO {
        let result = run(name, content, json!({"text": "a\0b"})).await;
        let why = result["error"].as_str().unwrap();
        assert!(why.contains("\"text\"") && why.contains("NUL"), "{why}");
        let bench = Bench::new();
        for bad in ["x 'y'; touch PWNED; #", "$(touch PWNED)"] {
            let result = run_in(&bench, name, content, json!({"text": "t", bad: "1"})).await;
            let why = result["error"].as_str().unwrap();
            assert!(
                why.contains(&format!("{bad:?}")) && why.ends_with("it has: text"),
                "{why}"
            );
        }
        assert!(!bench.cwd().join("PWNED").exists());
    }
}

#[tokio::test]
async fn a_missing_interpreter_is_named() {
    for ((name, content), program) in ECHO.into_iter().zip(["bash", "python3", "node"]) {
        let mut bench = Bench::new();
        bench.env.insert("PATH".into(), "/none".into());
        let result = run_in(&bench, name, content, json!({"text": ""})).await;
        let why = result["error"].as_str().unwrap();
        assert!(
            why.contains(&format!("cannot start {program}: not found on PATH")),
            "{why}"
        );
    }
}

fn body(name: &str, body: &str) -> String {
    match name {
        "t.sh" => format!(
            "# @describe T.\nmain() {{ {body}\n}}\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
        ),
        "t.py" => format!("def run():\n    \"\"\"T.\"\"\"\n    {body}\n"),
        _ => format!("/** T. */\nexports.run = async () => {{ {body} }};\n"),
    }
}

async fn check(name: &str, code: &str, expected: Value) {
    let result = run(name, &body(name, code), json!({})).await;
    assert_eq!(result, expected, "{name}: {code}");
}

#[tokio::test]
async fn what_a_script_says_becomes_fields_or_output() {
    check(
        "t.sh",
        "echo '{\"a\": 1}' >> \"$LLM_OUTPUT\"",
        json!({"a": 1, "ok": true}),
    )
    .await;
    check(
        "t.sh",
        "echo hi; echo there >> \"$LLM_OUTPUT\"",
        json!({"output": "there", "ok": true}),
    )
    .await;
    check("t.sh", "echo hi", json!({"output": "hi", "ok": true})).await;
    check("t.sh", "echo 007", json!({"output": "007", "ok": true})).await;
    check(
        "t.sh",
        "echo '[1, 2]'",
        json!({"output": [1, 2], "ok": true}),
    )
    .await;
    check("t.sh", ":", json!({"output": "(no output)", "ok": true})).await;
    check(
        "t.py",
        "return {'a': [1, (2, 3)]}",
        json!({"a": [1, [2, 3]], "ok": true}),
    )
    .await;
    check(
        "t.py",
        "return 'text'",
        json!({"output": "text", "ok": true}),
    )
    .await;
    check(
        "t.py",
        "print('printed')",
        json!({"output": "printed", "ok": true}),
    )
    .await;
    check(
        "t.py",
        "return {2, 1}",
        json!({"output": [1, 2], "ok": true}),
    )
    .await;
    check(
        "t.py",
        "import datetime; return {'d': datetime.date(2020, 1, 2), 1: b'x', 'n': float('nan')}",
        json!({"d": "2020-01-02", "1": "x", "n": "nan", "ok": true}),
    )
    .await;
    check("t.js", "return { d: new Date(0), m: new Map([['k', new Set([1])]]), b: 10n, u: undefined, n: NaN };",
        json!({"d": "1970-01-01T00:00:00.000Z", "m": {"k": [1]}, "b": 10, "n": "NaN", "ok": true})).await;
    check(
        "t.js",
        "console.log('printed');",
        json!({"output": "printed", "ok": true}),
    )
    .await;
    check("t.js", "return [1];", json!({"output": [1], "ok": true})).await;
}

#[tokio::test]
async fn what_cannot_be_json_is_reported() {
    for (name, code) in [
        ("t.py", "return {'f': print}"),
        ("t.py", "a = []; a.append(a); return a"),
        ("t.js", "return { f() {} };"),
        ("t.js", "const a = []; a.push(a); return a;"),
    ] {
        let result = run(name, &body(name, code), json!({})).await;
        assert_eq!(result["exit_status"], 1, "{name} {code}: {result}");
        assert!(
            result["stderr"].as_str().unwrap().contains("the result"),
            "{result}"
        );
    }
}

#[tokio::test]
async fn a_failure_carries_its_status_and_what_was_said() {
    check(
        "t.sh",
        "echo half; echo 'no such city' >&2; exit 3",
        json!({"error": "exit status 3: no such city", "exit_status": 3, "stderr": "no such city\n", "output": "half\n", "ok": false}),
    )
    .await;
    let result = run(
        "t.py",
        &body("t.py", "raise ValueError('no such city')"),
        json!({}),
    )
    .await;
    assert_eq!(result["error"], "exit status 1: ValueError: no such city");
    let result = run(
        "t.js",
        &body("t.js", "throw new Error('no such city');"),
        json!({}),
    )
    .await;
    assert_eq!(result["error"], "exit status 1: Error: no such city");
    let stderr = result["stderr"].as_str().unwrap();
    assert!(stderr.contains("t.js:"), "{result}");
    assert!(!stderr.contains("[eval]"), "{result}");
}

#[tokio::test]
async fn what_javascript_throws_is_the_error_wherever_it_is_thrown() {
    for code in [
        "return Promise.reject(new TypeError('no such city'));",
        "Promise.reject(new TypeError('no such city')); return new Promise(() => {});",
        "return new Promise(() => setTimeout(() => { throw new TypeError('no such city'); }));",
    ] {
        let result = run("t.js", &body("t.js", code), json!({})).await;
        assert_eq!(
            result["error"], "exit status 1: TypeError: no such city",
            "{code}"
        );
    }
}

#[tokio::test]
async fn a_promise_that_nothing_settles_is_a_failure() {
    let modules = ["t.js", "t.mjs"].map(|name| {
        let export = match name {
            "t.js" => "exports.run =",
            _ => "export const run =",
        };
        let code = format!("/** T. */\n{export} () => new Promise(() => {{}});\n");
        (name, code)
    });
    for (name, code) in modules {
        let result = run(name, &code, json!({})).await;
        let why = result["error"].as_str().unwrap_or_default();
        assert!(why.contains("never ended"), "{name}: {result}");
    }
}

#[tokio::test]
async fn a_signal_is_named_and_what_was_written_is_marked() {
    check(
        "t.sh",
        "echo partial > \"$LLM_OUTPUT\"; kill -9 $$",
        json!({"error": "killed by signal 9 (SIGKILL)", "stderr": "", "output": "partial\n", "partial": true, "ok": false}),
    )
    .await;
}

#[tokio::test]
async fn time_ends_a_script_and_all_that_it_started() {
    let bench = Bench::new();
    let code = body(
        "t.sh",
        "setsid sleep 600 & echo $! > pid; echo half; sleep 600",
    );
    let tool = tool_of(&bench, "t.sh", &code, Duration::from_millis(700));
    let result = bench.run(move || tool, json!({})).await;
    assert_eq!(result["error"], "timed out after 0.7 s");
    assert_eq!(result["output"], "half\n");
    let pid = std::fs::read_to_string(bench.cwd().join("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[tokio::test]
async fn the_environment_says_which_call_it_is() {
    let bench = Bench::new();
    bench.write("my root/.env", "FROM_FILE=two words\nLANG=never\n");
    let mut bench = bench;
    bench.env.insert("LANG".into(), "C".into());
    let code = "import os\n    names = ['LLM_ROOT_DIR', 'LLM_TOOL_NAME', 'LLM_TOOL_CACHE_DIR', 'FROM_FILE', 'LANG']\n    \
                return {n: os.environ[n] for n in names} | {'dir': os.path.isdir(os.environ['LLM_TOOL_CACHE_DIR']), \
                'cwd': os.getcwd()}";
    let result = run_in(&bench, "t.py", &body("t.py", code), json!({})).await;
    let root = bench.cwd().join("my root");
    let expected = json!({
        "LLM_ROOT_DIR": root, "LLM_TOOL_NAME": "t", "LLM_TOOL_CACHE_DIR": root.join("cache/t"),
        "FROM_FILE": "two words", "LANG": "C", "dir": true, "cwd": bench.cwd(), "ok": true,
    });
    assert_eq!(result, expected);
}

#[tokio::test]
async fn a_call_leaves_no_folder_behind() {
    let bench = Bench::new();
    run_in(&bench, "t.sh", &body("t.sh", "echo x"), json!({})).await;
    let left = std::fs::read_dir(bench.spill_dir()).unwrap().count();
    assert_eq!(left, 0);
}

#[tokio::test]
async fn modules_of_both_kinds_run() {
    let doc = "/**\n * D.\n * @param {Object} args\n * @param {string} args.a - A\n */\n";
    for (name, code) in [
        ("c.js", "module.exports = { run: ({ a }) => a };"),
        ("e.mjs", "export async function run({ a }) { return a; }"),
        (
            "c.cjs",
            "module.exports.run = function (args) { return args.a; };",
        ),
    ] {
        let result = run(name, &format!("{doc}{code}\n"), json!({"a": "x"})).await;
        assert_eq!(result, json!({"output": "x", "ok": true}), "{name}");
    }
}

#[tokio::test]
async fn python_gets_the_records_that_it_asks_for() {
    let tool = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import NamedTuple, Optional, TypedDict\n\n\
        @dataclass\nclass Point:\n    x: int\n    y: int = 2\n\n\
        class Line(NamedTuple):\n    a: Point\n    b: Optional[Point] = None\n\n\
        class Plain(TypedDict):\n    k: str\n\n\
        def run(p: Point, many: list[Point], line: Line | None = None, plain: Plain = None):\n    \"\"\"T.\"\"\"\n    \
            return [p.x + p.y, [one.x for one in many], line.a.y, line.b.x, plain['k']]\n";
    let arguments = json!({
        "p": {"x": 1}, "many": [{"x": 3}, {"x": 4, "y": 5}], "line": {"a": {"x": 1, "y": 9}, "b": {"x": 8}}, "plain": {"k": "v"},
    });
    let result = run("t.py", tool, arguments).await;
    assert_eq!(result["output"], json!([3, [3, 4], 9, 8, "v"]), "{result}");
    let result = run("t.py", tool, json!({"p": {"y": 1}, "many": []})).await;
    assert!(result["error"].as_str().unwrap().contains('x'), "{result}");
}

#[tokio::test]
async fn python_gets_defaults_and_none_for_what_is_optional() {
    let code = "from typing import Optional\nasync def run(a: Optional[str], b: int = 3, *, c: str = 'x'):\n    \
                \"\"\"D.\"\"\"\n    return [a, b, c]\n";
    let result = run("t.py", code, json!({})).await;
    assert_eq!(result["output"], json!([null, 3, "x"]));
}

/// A script whose file says something else by the time that it runs.
async fn run_after_edit(name: &str, content: &str, edit: impl FnOnce(&Path)) -> Value {
    let bench = Bench::new();
    bench.write("my root/tools/beside.js", "exports.word = 'beside';\n");
    bench.write("my root/tools/beside.py", "word = 'beside'\n");
    bench.write("my root/tools/beside.sh", "word=beside\n");
    let tool = tool_of(&bench, name, content, TIMEOUT);
    edit(&bench.cwd().join("my root/tools").join(name));
    Value::Object(bench.run(move || tool, json!({})).await)
}

#[tokio::test]
async fn what_was_read_runs_though_the_file_was_edited_since() {
    let scripts = [
        (
            "t.sh",
            "# @describe T.\nhere=\"$(dirname \"${BASH_SOURCE[0]}\")\"\nmain() { . \"$here/beside.sh\"; echo \"$word $(basename \"$0\")\"; }\n\
             eval \"$(argc --argc-eval \"$0\" \"$@\")\"\n",
        ),
        (
            "t.py",
            "import os\nimport beside\ndef run():\n    \"\"\"T.\"\"\"\n    return beside.word + ' ' + os.path.basename(__file__)\n",
        ),
        (
            "t.js",
            "const beside = require('./beside.js');\n/** T. */\nexports.run = () => beside.word + ' ' + require('path').basename(__filename);\n",
        ),
        (
            "t.mjs",
            "import beside from './beside.js';\n/** T. */\nexport const run = () => beside.word + ' ' + import.meta.url.split('/').pop();\n",
        ),
    ];
    for (name, content) in scripts {
        for edit in ["nonsense ((\n", "", "exit 7\n"] {
            let result = run_after_edit(name, content, |file| {
                std::fs::write(file, edit).unwrap();
            });
            assert_eq!(
                result.await["output"],
                format!("beside {name}"),
                "{name} {edit:?}"
            );
        }
        let gone = run_after_edit(name, content, |file| std::fs::remove_file(file).unwrap()).await;
        assert_eq!(gone["output"], format!("beside {name}"), "{gone}");
    }
}

#[tokio::test]
async fn javascript_of_every_kind_is_loaded_once() {
    let mark = "require('fs').appendFileSync('loaded', 'x');\n";
    let mark_new = "import fs from 'node:fs';\nfs.appendFileSync('loaded', 'x');\n";
    let scripts = [
        ("a.js", format!("{mark}/** T. */\nexports.run = () => 1;\n")),
        (
            "b.js",
            format!(
                "{mark}/** T. */\nmodule.exports = {{ helper: () => 1, run() {{ return this.helper(); }} }};\n"
            ),
        ),
        (
            "c.cjs",
            format!("{mark}/** T. */\nexports.run = () => 1;\n"),
        ),
        (
            "d.mjs",
            format!("{mark_new}/** T. */\nexport function run() {{ return 1; }}\n"),
        ),
        (
            "e.js",
            format!("{mark_new}await 0;\n/** T. */\nexport const run = async () => 1;\n"),
        ),
    ];
    for (name, content) in scripts {
        let bench = Bench::new();
        let result = run_in(&bench, name, &content, json!({})).await;
        assert_eq!(result["output"], 1, "{name}: {result}");
        let loaded = std::fs::read_to_string(bench.cwd().join("loaded")).unwrap();
        assert_eq!(loaded, "x", "{name}");
    }
}

#[tokio::test]
async fn what_is_refused_is_named_as_a_model_knows_it() {
    let tool =
        "/** T.\n * @param {{\"c d\": number, e: string}} args */\nexports.run = () => 'ran';\n";
    let result = run("t.js", tool, json!({"c_d": "x", "e": "y"})).await;
    assert_eq!(
        result["error"], "value at `/c_d` is not a number",
        "{result}"
    );
    let result = run("t.js", tool, json!({"e": "y"})).await;
    let why = result["error"].as_str().unwrap();
    assert!(why.ends_with("missing required properties: c_d"), "{why}");
    let result = run("t.js", tool, json!({"c_d": 1, "e": "y", "f": 1})).await;
    let why = result["error"].as_str().unwrap();
    assert!(why.ends_with("it has: c_d, e"), "{why}");
    assert_eq!(
        run("t.js", tool, json!({"c_d": 1, "e": "y"})).await["output"],
        "ran"
    );
}

#[tokio::test]
async fn what_is_no_json_is_converted_or_named() {
    let js = "/**\n * D.\n * @param {Object} args\n * @param {string} args.k - K\n */\nexports.run = ({ k }) => eval(k);\n";
    let py = "def run(k: str):\n    \"\"\"D.\"\"\"\n    return eval(k)\n";
    for (name, text, expression, expected) in [
        (
            "k.js",
            js,
            "[new String('s'), new Number(5), new Boolean(false), Object(5n)]",
            json!(["s", 5, false, 5]),
        ),
        (
            "k.js",
            js,
            "new Map([[1, 'a'], ['2', 'b']])",
            json!({"1": "a", "2": "b"}),
        ),
        (
            "k.js",
            js,
            "({a: Object.create(null), b: new (class A {})()})",
            json!({"a": {}, "b": {}}),
        ),
        (
            "k.js",
            js,
            "({ok: 'text'})",
            json!({"output": {"ok": "text"}}),
        ),
        ("k.py", py, "'a\\ud800b'", json!("a\u{fffd}b")),
        (
            "k.py",
            py,
            "{'ok': 'text'}",
            json!({"output": {"ok": "text"}}),
        ),
        (
            "k.py",
            py,
            "{1: 'a', '2': 'b'}",
            json!({"1": "a", "2": "b"}),
        ),
    ] {
        let mut result = run(name, text, json!({"k": expression})).await;
        result.as_object_mut().unwrap().remove("ok");
        let expected = match expected {
            Value::Object(_) => expected,
            value => json!({"output": value}),
        };
        assert_eq!(result, expected, "{name} {expression}");
    }
    for (name, text, expression, named) in [
        ("k.js", js, "new WeakMap()", "WeakMap"),
        ("k.js", js, "new Response('x')", "Response"),
        ("k.js", js, "({p: Promise.resolve(1)})", "Promise"),
        ("k.js", js, "new Map([[1, 'a'], ['1', 'b']])", "two keys"),
        ("k.py", py, "{1: 'a', '1': 'b'}", "two keys"),
        ("k.py", py, "{None: 1, 'None': 2}", "two keys"),
    ] {
        let result = run(name, text, json!({"k": expression})).await;
        let why = result["error"].as_str().unwrap_or_default();
        assert!(why.contains(named), "{name} {expression}: {result}");
    }
}

#[tokio::test]
async fn a_tool_of_python_never_stands_in_the_place_of_a_library() {
    let bench = Bench::new();
    bench.write(
        "my root/tools/typing.py",
        "raise RuntimeError('not the library')\n",
    );
    bench.write(
        "my root/tools/helper.py",
        "def help():\n    return 'helped'\n",
    );
    let email = "import smtplib\nimport email.message\nimport helper\nfrom typing import Optional\n\
        def run(a: Optional[str] = None):\n    \"\"\"D.\"\"\"\n    return helper.help() + email.message.__name__\n";
    let result = run_in(&bench, "email.py", email, json!({})).await;
    assert_eq!(result["output"], "helpedemail.message", "{result}");
    let weather = "import urllib.request\nimport email.parser\ndef run():\n    \"\"\"D.\"\"\"\n    return email.parser.__name__\n";
    let result = run_in(&bench, "weather.py", weather, json!({})).await;
    assert_eq!(result["output"], "email.parser", "{result}");
}
