//! Real MCP servers from the registries, which `.ci/run` installs: what people have is what is used.

use harness::binaries::{binaries, root};
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use harness::wait::skip;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names the folder with `node_modules` and `venv`.
const VARIABLE: &str = "DWELL_TEST_MCP";

fn folder(test: &str) -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let found =
        named.filter(|folder| folder.join("node_modules").is_dir() && folder.join("venv").is_dir());
    if found.is_none() {
        skip(
            test,
            &format!("{VARIABLE} names no folder with the servers: see .ci/run"),
        );
    }
    found
}

fn daemon(servers: &Value, allow: &[&str]) -> (TestDaemon, TestClient, String) {
    let sandbox = Sandbox::new();
    let agents = sandbox.path("home").join(".agents");
    fs::create_dir_all(&agents).unwrap();
    let text = json!({"mcpServers": servers}).to_string();
    fs::write(agents.join("mcp.json"), text).unwrap();
    let rules = allow
        .iter()
        .map(|tool| ((*tool).to_owned(), json!("allow")));
    sandbox.permissions(&Value::Object(rules.collect()));
    let config = "[mcp]\nwait_ms = 60000\n";
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    client.set_limit(std::time::Duration::from_secs(90));
    let session = client.session(&daemon.work());
    (daemon, client, session)
}

fn run(client: &mut TestClient, session: &str, name: &str, arguments: Value) -> Value {
    let params = json!({"session": session, "name": name, "arguments": arguments});
    client.call("tool/run", params)
}

fn content(result: &Value) -> &str {
    result["content"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
}

fn node(folder: &Path, package: &str, args: &[&Path]) -> Value {
    let script = folder
        .join("node_modules/@modelcontextprotocol")
        .join(package)
        .join("dist/index.js");
    let args: Vec<_> = std::iter::once(script.as_path())
        .chain(args.iter().copied())
        .collect();
    json!({"command": "node", "args": args})
}

#[test]
fn everything_that_the_reference_server_has_is_used() {
    let Some(folder) = folder("everything_that_the_reference_server_has_is_used") else {
        return;
    };
    let server = node(&folder, "server-everything", &[]);
    let allowed = [
        "all__echo",
        "all__get-sum",
        "all__get-tiny-image",
        "all__trigger-long-running-operation",
        "all__get-structured-content",
        "all__get-annotated-message",
        "all__get-resource-reference",
    ];
    let (_daemon, mut client, session) = daemon(&json!({"all": server}), &allowed);
    let list = client.call("tool/list", json!({"session": session}));
    assert_eq!(list["problems"], json!([]));
    let echo = run(&mut client, &session, "all__echo", json!({"message": "hi"}));
    assert_eq!(content(&echo), "Echo: hi");
    let sum = run(
        &mut client,
        &session,
        "all__get-sum",
        json!({"a": 2, "b": 3}),
    );
    assert!(content(&sum).contains('5'), "{sum}");
    let image = run(&mut client, &session, "all__get-tiny-image", json!({}));
    assert!(content(&image).contains("[image, image/png,"), "{image}");
    let structured = run(
        &mut client,
        &session,
        "all__get-structured-content",
        json!({"location": "New York"}),
    );
    assert!(
        structured["structured"]["temperature"].is_number(),
        "{structured}"
    );
    client.attach(&session, None);
    run(
        &mut client,
        &session,
        "all__trigger-long-running-operation",
        json!({"duration": 1, "steps": 2}),
    );
    let output = client.until_type("tool_output");
    assert!(
        output.last()["text"].as_str().unwrap().starts_with("1/2"),
        "{:?}",
        output.last()
    );
    let shown = client.call(
        "command/run",
        json!({"session": session, "line": "/mcp all"}),
    );
    let shown = shown["output"].as_str().unwrap().to_owned();
    assert!(
        shown.contains("prompt    /all:") && shown.contains("resource  @all:"),
        "{shown}"
    );
    let prompt = json!({"session": session, "line": "/all:simple-prompt"});
    assert_eq!(client.call("command/run", prompt)["ran"], true);
    let events = client.until_ended();
    assert!(
        !events.one("turn_started")["text"]
            .as_str()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn servers_of_files_repositories_and_time_do_their_work() {
    let Some(folder) = folder("servers_of_files_repositories_and_time_do_their_work") else {
        return;
    };
    let venv = folder.join("venv/bin");
    let servers = json!({
        "files": node(&folder, "server-filesystem", &[Path::new("${workspaceFolder}")]),
        "git": {"command": venv.join("mcp-server-git"), "args": ["--repository", "${workspaceFolder}"]},
        "time": {"command": venv.join("mcp-server-time"), "args": ["--local-timezone", "UTC"]},
    });
    let allowed = [
        "files__read_text_file",
        "git__git_log",
        "time__convert_time",
    ];
    let (daemon, mut client, session) = daemon(&servers, &allowed);
    let work = daemon.work();
    daemon.write("a.txt", "the text");
    let git = |args: &[&str]| {
        let ran = Command::new("git")
            .args(args)
            .current_dir(&work)
            .output()
            .unwrap();
        assert!(ran.status.success(), "{ran:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "a.txt"]);
    git(&[
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "commit",
        "-qm",
        "the first",
    ]);
    let list = client.call("tool/list", json!({"session": session}));
    assert_eq!(list["problems"], json!([]));
    let path = json!({"path": work.join("a.txt")});
    let read = run(&mut client, &session, "files__read_text_file", path);
    let text = read
        .get("structured")
        .map_or(&read["content"], |value| &value["content"]);
    assert_eq!(text, "the text", "{read}");
    // It was told where the work is, and keeps to it.
    let outside = run(
        &mut client,
        &session,
        "files__read_text_file",
        json!({"path": "/etc/hostname"}),
    );
    assert_eq!(outside["ok"], false, "{outside}");
    let log = run(
        &mut client,
        &session,
        "git__git_log",
        json!({"repo_path": work}),
    );
    assert!(content(&log).contains("the first"), "{log}");
    let time = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let time = run(&mut client, &session, "time__convert_time", time);
    assert!(time.to_string().contains("21:00"), "{time}");
}

/// Scenarios of the protocol's own tests of clients, and whether dwell passes.
const SCENARIOS: &[(&str, bool)] = &[
    ("initialize", true),
    ("tools_call", true),
    ("elicitation-sep1034-client-defaults", false),
    ("sse-retry", true),
    ("auth/metadata-default", true),
    ("auth/metadata-var1", true),
    ("auth/metadata-var2", true),
    ("auth/metadata-var3", true),
    ("auth/basic-cimd", false),
    ("auth/scope-from-www-authenticate", true),
    ("auth/scope-from-scopes-supported", true),
    ("auth/scope-omitted-when-undefined", true),
    ("auth/scope-step-up", false),
    ("auth/scope-retry-limit", true),
    ("auth/token-endpoint-auth-basic", true),
    ("auth/token-endpoint-auth-post", true),
    ("auth/token-endpoint-auth-none", true),
    ("auth/resource-mismatch", true),
    ("auth/pre-registration", true),
    ("auth/2025-03-26-oauth-metadata-backcompat", true),
    ("auth/2025-03-26-oauth-endpoint-fallback", true),
    ("auth/client-credentials-jwt", false),
    ("auth/client-credentials-basic", false),
];
/// How many are played at once.
const AT_ONCE: usize = 4;

/// What fails is in the table of `daemon/docs/mcp.md`, with the reason.
#[test]
fn the_protocols_own_tests_of_clients_pass_but_for_those_that_the_page_names() {
    let test = "the_protocols_own_tests_of_clients_pass_but_for_those_that_the_page_names";
    let Some(folder) = folder(test) else {
        return;
    };
    let page = fs::read_to_string(root().join("daemon/docs/mcp.md")).unwrap();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let play = || {
        while let Some((scenario, passes)) = SCENARIOS.get(next.fetch_add(1, Ordering::Relaxed)) {
            assert!(
                *passes || page.contains(&format!("`{scenario}`")),
                "{scenario}"
            );
            let (passed, said) = conformance(&folder, scenario);
            if passed != *passes {
                wrong
                    .lock()
                    .unwrap()
                    .push(format!("{scenario}: {passed}\n{said}"));
            }
        }
    };
    std::thread::scope(|scope| (0..AT_ONCE).for_each(|_| drop(scope.spawn(play))));
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn conformance(folder: &Path, scenario: &str) -> (bool, String) {
    let driver = root().join("tests/servers/mcp/drive.py");
    let script = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let out = tempfile::tempdir().unwrap();
    let ran = Command::new("node")
        .arg(script)
        .args([
            "client",
            "--timeout",
            "60000",
            "--scenario",
            scenario,
            "--command",
        ])
        .arg(format!("python3 {}", driver.display()))
        .current_dir(out.path())
        .env("DWELL_TEST_BINARIES", binaries().daemon.parent().unwrap())
        .output()
        .unwrap();
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said)
        .chars()
        .take(20_000)
        .collect();
    (ran.status.success(), said)
}
