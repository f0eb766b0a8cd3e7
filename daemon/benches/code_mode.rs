//! What a program costs, its process included: `cargo bench -p dwelld --bench code_mode`. Each figure stands beside its target.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[path = "port/nobody.rs"]
mod nobody;

use daemon::presentation::Toolkit;
use daemon::presentation::code_mode::{Cell, CodeMode, RUN_CODE, Rules, Settings, runner};
use daemon::process::nursery;
use daemon::toolbox::Toolbox;
use daemon::toolbox::gate::Run;
use daemon::toolbox::tool::{Access, Call, Tool};
use nobody::Nobody;
use protocol::expression::{CodeApproval, CodeLimits};
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 100;
/// What a program without end may have.
const WALL: u64 = 500;

/// Programs that never end by themselves, each in another way.
const RUNAWAYS: &[&str] = &[
    "for (;;) {}",
    "try { for (;;) {} } catch { }",
    "try { throw 1 } catch { for (;;) {} }",
    "try { return 1 } finally { for (;;) {} }",
    "for (;;) await null",
    "new Array(2 ** 31).join('')",
    "String.raw({raw: {length: 2 ** 31}})",
    "const a = 'a'.repeat(1 << 20); for (;;) a.indexOf(a.slice(1) + 'b')",
    "/(a+)+b/.test('a'.repeat(40))",
    "await tools.sleep({ms: 60000})",
];

fn main() {
    nursery::main_if_asked();
    runner::main_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    runtime.block_on(async {
        median("an empty program", 10, ROUNDS, "return 1").await;
        let calls = "for (let i = 0; i < 1000; i++) await tools.nothing({})";
        median("1,000 calls, one after the other", 100, ROUNDS / 5, calls).await;
        let calls = "await Promise.all(Array.from({length: 1000}, () => tools.nothing({})))";
        median("1,000 calls at once", 100, ROUNDS / 5, calls).await;
        let calls = "await Promise.all(Array.from({length: 10}, () => tools.sleep({ms: 100})))";
        median("10 calls of 100 ms at once", 130, ROUNDS / 5, calls).await;
        let (took, _) = run_over(many(2000), "return 1", json!({})).await;
        figure(
            "an empty program beside 2,000 tools, the first of them",
            took,
            50,
        );
        for code in RUNAWAYS {
            let (took, result) = run(code, json!({"wall_ms": WALL})).await;
            assert_eq!(result["code"], "timeout", "{code}: {result:?}");
            figure(&format!("dead: {code}"), took, WALL + 300);
        }
    });
}

async fn median(what: &str, target: u64, rounds: usize, code: &str) {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let (took, result) = run(code, json!({"calls": 1000})).await;
        assert_eq!(result["ok"], true, "{result:?}");
        times.push(took);
    }
    times.sort();
    figure(what, times[times.len() / 2], target);
}

fn figure(what: &str, took: Duration, target: u64) {
    let holds = if took <= Duration::from_millis(target) {
        "holds"
    } else {
        "MISSED"
    };
    println!("{what:72} {took:>12.2?}  at most {target} ms  {holds}");
}

async fn run(code: &str, limits: Value) -> (Duration, Map<String, Value>) {
    run_over(toolbox(), code, limits).await
}

/// With the declarations made anew, as at the first turn of a session.
async fn run_over(
    toolbox: Arc<Toolbox>,
    code: &str,
    limits: Value,
) -> (Duration, Map<String, Value>) {
    let began = Instant::now();
    let limits: CodeLimits = serde_json::from_value(limits).expect("they are limits");
    let rules = Rules::of(&limits, CodeApproval::Ask, Settings::default(), "code");
    let rules = rules.expect("programs run here");
    let presented = Arc::new(CodeMode::new(toolbox, rules, &Cell::default(), |inner| {
        inner
    }));
    let run = Run {
        session: "bench".into(),
        call: "c1".into(),
        name: RUN_CODE.to_owned(),
        arguments: json!({"code": code}),
        cwd: PathBuf::from("/"),
        env: Arc::default(),
        cancel: CancellationToken::new(),
        spill_dir: PathBuf::from("/nowhere"),
        port: Arc::new(Nobody),
        permissions: Arc::default(),
    };
    let ran = presented.run(run).await;
    (began.elapsed(), ran.result)
}

fn toolbox() -> Arc<Toolbox> {
    let mut toolbox = Toolbox::new();
    let nothing = |_: Call, _: Map<String, Value>| async { Ok(Map::new()) };
    toolbox.add(
        Tool::new("nothing", "Does nothing")
            .access(Access::Nothing)
            .handler(nothing),
    );
    let sleep = |_: Call, arguments: Map<String, Value>| async move {
        let ms = arguments.get("ms").and_then(Value::as_u64).unwrap_or(0);
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(Map::new())
    };
    toolbox.add(
        Tool::new("sleep", "Sleeps")
            .access(Access::Nothing)
            .handler(sleep),
    );
    Arc::new(toolbox)
}

fn many(count: usize) -> Arc<Toolbox> {
    let mut toolbox = Toolbox::new();
    for at in 0..count {
        let nothing = |_: Call, _: Map<String, Value>| async { Ok(Map::new()) };
        let text = json!({"type": "string", "description": "What it is about"});
        let tool = Tool::new(
            &format!("source_{}__tool_{at}", at % 7),
            "Does one thing or another",
        );
        toolbox.add(
            tool.param("text", text)
                .access(Access::Nothing)
                .handler(nothing),
        );
    }
    Arc::new(toolbox)
}
