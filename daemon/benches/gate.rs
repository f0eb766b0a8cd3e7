//! What the gate adds to a call, without hooks and with one: `cargo bench -p dwelld --bench gate`. Prints; judges nothing.

#![allow(clippy::print_stdout, reason = "it reports to a terminal")]

#[path = "port/nobody.rs"]
mod nobody;

use daemon::process::nursery;
use daemon::toolbox::Toolbox;
use daemon::toolbox::gate::Run;
use daemon::toolbox::hook::Hook;
use daemon::toolbox::permission::Permissions;
use daemon::toolbox::tool::{Access, Call, Tool};
use daemon::workspace::hooks::Users;
use daemon::workspace::plugins::{Means, Settings};
use daemon::workspace::{Places, Workspaces};
use nobody::Nobody;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Plugins in each language, each with one hook before `nothing`.
const PYTHON: &str = "import dwell\n@dwell.setup\ndef all(session):\n  session.toolbox.before('nothing')(lambda args: None)\n";
const JAVASCRIPT: &str = "import { setup } from 'dwell';\nsetup((session) => session.toolbox.before('nothing', () => {}));\n";

fn main() {
    nursery::main_if_asked();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made");
    println!(
        "{:34} {:>12} {:>12} {:>12}",
        "a call", "median", "99th", "target"
    );
    runtime.block_on(async {
        let bare = with(Toolbox::new());
        report("with no hooks", bare, 20_000, "20 us").await;
        let mut toolbox = Toolbox::new();
        toolbox.before(None, Hook::sync("nothing", |_| Ok(())));
        report(
            "with one hook of the daemon's own",
            with(toolbox),
            20_000,
            "",
        )
        .await;
        for (name, text) in [("a.py", PYTHON), ("a.mjs", JAVASCRIPT)] {
            let home = tempfile::tempdir().expect("the temporary directory takes a plugin");
            let plugins = home.path().join(".agents/plugins");
            std::fs::create_dir_all(&plugins).expect("the temporary directory takes a plugin");
            std::fs::write(plugins.join(name), text)
                .expect("the temporary directory takes a plugin");
            let workspaces = workspaces(home.path());
            let workspace = workspaces.get(home.path());
            let toolbox = Toolbox::clone(&*workspace.current().await);
            match toolbox.problems() {
                [] => {}
                [problem, ..] => {
                    println!("with one plugin hook ({name}): not measured: {problem}");
                    continue;
                }
            }
            let title = format!("with one plugin hook ({name})");
            report(&title, with(toolbox), 3_000, "300 us").await;
        }
    });
}

fn workspaces(home: &Path) -> Workspaces {
    let env: BTreeMap<String, String> = std::env::vars().collect();
    Workspaces::new(Places {
        home: home.to_owned(),
        state_dir: home.join("state"),
        script_tools: daemon::toolbox::source::script::load::Settings::default(),
        plugins: Means::new(Settings::default(), env, home.join("sdk")),
        servers: daemon::workspace::servers::Means::default(),
        hooks: Users::new(Vec::new(), || Ok((Vec::new(), Vec::new()))),
    })
}

fn with(mut toolbox: Toolbox) -> Arc<Toolbox> {
    let nothing = |_: Call, _: Map<String, Value>| async { Ok(Map::new()) };
    toolbox.add(
        Tool::new("nothing", "Does nothing")
            .param("path", json!({"type": "string"}))
            .required("path")
            .access(Access::Nothing)
            .handler(nothing),
    );
    Arc::new(toolbox)
}

async fn report(title: &str, toolbox: Arc<Toolbox>, rounds: usize, target: &str) {
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let run = run();
        let began = Instant::now();
        let ran = toolbox.run(run).await;
        let took = began.elapsed();
        assert_eq!(ran.result["ok"], true, "{:?}", ran.result);
        // The first ones warm up.
        if round >= rounds / 10 {
            times.push(took);
        }
    }
    times.sort();
    let at = |part: f64| shown(times[(times.len() as f64 * part) as usize]);
    println!("{title:34} {:>12} {:>12} {target:>12}", at(0.5), at(0.99));
}

fn shown(time: Duration) -> String {
    format!("{:.1} us", time.as_secs_f64() * 1e6)
}

fn run() -> Run {
    Run {
        session: "bench".into(),
        call: "c1".into(),
        name: "nothing".to_owned(),
        arguments: json!({"path": "README.md"}),
        cwd: "/".into(),
        env: Arc::default(),
        cancel: CancellationToken::new(),
        spill_dir: "/nonexistent".into(),
        port: Arc::new(Nobody),
        permissions: Arc::new(Permissions::default()),
    }
}
