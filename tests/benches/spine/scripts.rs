//! Script tools: reading two hundred files, and what a call costs over the same interpreter started by hand.

use super::figure::{Report, Target, median, ms};
use harness::binaries::Binaries;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FILES: usize = 200;
const LOADS: usize = 9;
const CALLS: usize = 41;

/// One language: a tool that says its argument, and the same said without the daemon.
struct Language {
    name: &'static str,
    file: &'static str,
    tool: &'static str,
    by_hand: fn(&Path) -> Command,
    limit: f64,
}

const LANGUAGES: &[Language] = &[
    Language {
        name: "bash",
        file: "say_sh.sh",
        tool: "# @describe Say.\n# @option --text! T\nmain() { echo \"$argc_text\"; }\n\
               if [ -n \"$BY_HAND\" ]; then argc_text=x; main; else eval \"$(argc --argc-eval \"$0\" \"$@\")\"; fi\n",
        by_hand: |file| {
            let mut command = Command::new("bash");
            command.arg(file).env("BY_HAND", "1");
            command
        },
        limit: 5.0,
    },
    Language {
        name: "python",
        file: "say_py.py",
        tool: "def run(text: str):\n    \"\"\"Say.\"\"\"\n    return {\"said\": text}\n",
        by_hand: |file| {
            let folder = file.parent().unwrap().display();
            let code = format!(
                "import sys; sys.path[0] = '{folder}'; import say_py; print(say_py.run('x'))"
            );
            let mut command = Command::new("python3");
            command.args(["-B", "-c", &code]);
            command
        },
        limit: 10.0,
    },
    Language {
        name: "node",
        file: "say_js.js",
        tool: "/**\n * Say.\n * @param {Object} args\n * @param {string} args.text - T\n */\n\
               exports.run = ({ text }) => ({ said: text });\n",
        by_hand: |file| {
            let code = format!(
                "console.log(require('{}').run({{ text: 'x' }}))",
                file.display()
            );
            let mut command = Command::new("node");
            command.args(["-e", &code]);
            command
        },
        limit: 10.0,
    },
];

/// Everything that a list costs is in it: the trust of the directory, the other sources of tools, and the answer itself. A
/// further look is what a call of a built-in tool takes longer where there are scripts.
pub(super) fn two_hundred_files(binaries: &Binaries, report: &mut Report) {
    let (mut cold, mut warm, mut none) = (Vec::new(), Vec::new(), Vec::new());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..LOADS {
        let daemon = start(binaries, |_| {});
        let (took, mut client, session) = first_list(&daemon);
        none.push(took);
        without.extend(looks(&mut client, &session));
        let daemon = start(binaries, |tools| {
            for number in 0..FILES {
                let (end, text) = sample(number);
                fs::write(tools.join(format!("tool_{number}.{end}")), text).unwrap();
            }
        });
        let (took, mut client, session) = first_list(&daemon);
        cold.push(took);
        // Within this time a file's times do not show whether it was changed again, so that its content is looked at.
        std::thread::sleep(Duration::from_millis(3500));
        list(&mut client, &session);
        warm.push(timed(|| assert!(list(&mut client, &session) >= FILES)));
        with.extend(looks(&mut client, &session));
    }
    let look = ms(median(with)) - ms(median(without));
    for (what, value, target) in [
        (
            "first list of tools, none of scripts",
            ms(median(none)),
            Target::None,
        ),
        (
            "200 script tools, first list",
            ms(median(cold)),
            Target::AtMost(100.0),
        ),
        (
            "200 script tools, further lists",
            ms(median(warm)),
            Target::None,
        ),
        (
            "200 script tools, a further look",
            look,
            Target::AtMost(5.0),
        ),
    ] {
        report.line(what, value, "ms", target);
    }
}

/// Each of these calls begins with a look at the files.
fn looks(client: &mut TestClient, session: &str) -> Vec<Duration> {
    let call = |_| timed(|| drop(run(client, session, "list", &json!({}))));
    (0..LOADS).map(call).collect()
}

/// The whole way of a call: request, gate, commits with their sync, the script, and the answer.
pub(super) fn calls(binaries: &Binaries, report: &mut Report) {
    let daemon = start(binaries, |tools| {
        for language in LANGUAGES {
            fs::write(tools.join(language.file), language.tool).unwrap();
        }
    });
    let mut client = daemon.client();
    let session = session(&mut client, &daemon);
    for (name, arguments) in [
        ("list", json!({})),
        ("execute", json!({"command": "echo x"})),
    ] {
        let times =
            (0..CALLS).map(|_| timed(|| drop(run(&mut client, &session, name, &arguments))));
        report.line(
            &format!("built-in tool {name}"),
            ms(median(times.collect())),
            "ms",
            Target::None,
        );
    }
    for language in LANGUAGES {
        let file = tools(&daemon.path("home")).join(language.file);
        let tool = file.file_stem().unwrap().to_str().unwrap().to_owned();
        let by_hand = || {
            let mut command = (language.by_hand)(&file);
            command
                .current_dir(daemon.work())
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            assert!(command.status().unwrap().success());
        };
        let mut call = || {
            let result = run(&mut client, &session, &tool, &json!({"text": "x"}));
            assert!(result.to_string().contains("\"x\""), "{result}");
        };
        by_hand();
        call();
        let (hand, called): (Vec<_>, Vec<_>) = (0..CALLS)
            .map(|_| (timed(by_hand), timed(&mut call)))
            .unzip();
        let (hand, called) = (ms(median(hand)), ms(median(called)));
        let name = language.name;
        report.line(&format!("{name} by hand"), hand, "ms", Target::None);
        report.line(&format!("{name} as a tool"), called, "ms", Target::None);
        report.line(
            &format!("{name}, a tool over by hand"),
            called - hand,
            "ms",
            Target::AtMost(language.limit),
        );
    }
}

fn tools(home: &Path) -> PathBuf {
    home.join(".agents/tools")
}

fn start(binaries: &Binaries, fill: impl FnOnce(&Path)) -> TestDaemon {
    let sandbox = Sandbox::new();
    let folder = tools(&sandbox.path("home"));
    fs::create_dir_all(&folder).unwrap();
    fill(&folder);
    sandbox.permissions(&json!({"*": "allow", "execute": "allow"}));
    let mut daemon = TestDaemon::stopped(sandbox, &binaries.daemon);
    daemon.restart();
    daemon
}

fn session(client: &mut TestClient, daemon: &TestDaemon) -> String {
    let env: Value = std::env::vars()
        .filter(|(name, _)| ["PATH", "HOME"].contains(&name.as_str()))
        .collect();
    client.session_with(json!({"cwd": daemon.work(), "env": env}))
}

fn first_list(daemon: &TestDaemon) -> (Duration, TestClient, String) {
    let mut client = daemon.client();
    let session = session(&mut client, daemon);
    let took = timed(|| assert!(list(&mut client, &session) > 0));
    (took, client, session)
}

fn list(client: &mut TestClient, session: &str) -> usize {
    let listed = client.call(
        "tool/list",
        json!({"session": session, "toolbox": "default"}),
    );
    assert_eq!(listed["problems"], json!([]));
    listed["tools"].as_array().unwrap().len()
}

fn run(client: &mut TestClient, session: &str, name: &str, arguments: &Value) -> Value {
    client.call(
        "tool/run",
        json!({"session": session, "name": name, "arguments": arguments}),
    )
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// As somebody might have written it, in one of the three languages.
fn sample(number: usize) -> (&'static str, String) {
    match number % 3 {
        0 => (
            "sh",
            format!(
                "#!/usr/bin/env bash\nset -e\n\n# @describe Do thing {number}.\n# @option --text! The text\n\
                 # @option --many* <INT> Some numbers\n# @flag --dry Only say what would be done\n\
                 # @env LLM_OUTPUT=/dev/stdout The output path\n\nmain() {{\n    for one in \"${{argc_many[@]}}\"; do\n        \
                 echo \"$one $argc_text\" >> \"$LLM_OUTPUT\"\n    done\n}}\n\neval \"$(argc --argc-eval \"$0\" \"$@\")\"\n"
            ),
        ),
        1 => (
            "js",
            format!(
                "const fs = require('fs');\n\n/**\n * Do thing {number}.\n * @typedef {{Object}} Args\n \
                 * @property {{string}} text - The text\n * @property {{number[]}} [many] - Some numbers\n * @param {{Args}} args\n \
                 */\nexports.run = function ({{ text, many }}) {{\n  const all = (many ?? []).map((one) => `${{one}} ${{text}}`);\n  \
                 return all.join('\\n');\n}};\n"
            ),
        ),
        _ => (
            "py",
            format!(
                "import os\nfrom typing import List, Optional\n\n\ndef run(text: str, many: Optional[List[int]] = None, dry: bool = False):\n    \
                 \"\"\"Do thing {number}.\n\n    Args:\n        text: The text\n        many: Some numbers\n        dry: Only say what would be done\n    \
                 \"\"\"\n    return [f\"{{one}} {{text}}\" for one in many or []]\n"
            ),
        ),
    }
}
