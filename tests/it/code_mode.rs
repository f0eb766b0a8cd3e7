//! Programs of models: the real daemon runs them in children of its own binary, and people see what they do.

use harness::binaries::{binaries, root};
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::events::Events;
use harness::procfs::{alive, descendants};
use harness::sandbox::Sandbox;
use harness::wait::{SOON, pause, skip, until, until_true};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Instant;

/// How a call reaches its tool: the session's toolbox, and the lines that make the call.
type Path = (&'static str, Value, fn(&str, &Value) -> String);

/// Directly, through search and from a program.
fn paths() -> [Path; 3] {
    let direct = |tool: &str, input: &Value| format!("do {tool} {input}\nsay done");
    let search = |tool: &str, input: &Value| {
        format!(
            "do call_tool {}\nsay done",
            json!({"name": tool, "input": input})
        )
    };
    let code = |tool: &str, input: &Value| program(&format!("return await tools.{tool}({input})"));
    [
        ("direct", json!("default"), direct),
        ("search", json!({"search": {"of": "default"}}), search),
        ("code", code_of_all(), code),
    ]
}

fn code_of_all() -> Value {
    json!({"code": {"of": "default"}})
}

fn limited(limits: &Value) -> Value {
    json!({"code": {"of": "default", "limits": limits}})
}

/// A turn that runs it.
fn program(code: &str) -> String {
    format!("do run_code {}\nsay done", json!({"code": code}))
}

fn session(daemon: &TestDaemon, client: &mut TestClient, toolbox: &Value) -> String {
    let params = json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox});
    client.session_with(params)
}

/// What the model reads of its call.
fn result(events: &Events) -> Value {
    events.of("done").last().expect("a call ended")["result"].clone()
}

/// Runs one program in a session of its own.
fn run(daemon: &TestDaemon, toolbox: &Value, code: &str) -> Value {
    let mut client = daemon.client();
    let session = session(daemon, &mut client, toolbox);
    result(&client.turn(&session, &program(code)))
}

/// The processes that run programs of this daemon.
fn runners(daemon: &TestDaemon) -> Vec<u32> {
    let is_one = |pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.ends_with(b"\0code-runner\0"))
    };
    descendants(daemon.pid())
        .into_iter()
        .filter(is_one)
        .collect()
}

fn until_none_is_left(daemon: &TestDaemon) {
    until_true("no program's process is left", SOON, || {
        runners(daemon).is_empty()
    });
}

fn the_runner(daemon: &TestDaemon) -> u32 {
    until("a program's process", SOON, || {
        runners(daemon)
            .first()
            .copied()
            .ok_or_else(|| "none".to_owned())
    })
}

fn uses_processor(pid: u32) -> bool {
    harness::procfs::cpu(pid).as_millis() > 20
}

#[test]
fn people_see_the_calls_of_a_program_as_what_they_are() {
    let daemon = TestDaemon::start();
    daemon.write("a.txt", "alpha\n");
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    let code = "const a = await tools.read({path: 'a.txt'}); const [l] = await Promise.all([tools.list({})]); return a.content";
    let events = client.turn(&session, &program(code));
    let doing = events.of("doing");
    assert_eq!(doing.len(), 3);
    let parent = &doing[0]["call"];
    assert_eq!(doing[0]["name"], "run_code");
    assert_eq!(
        (
            &doing[1]["name"],
            &doing[1]["arguments"],
            &doing[1]["parent"],
            &doing[1]["via"]
        ),
        (
            &json!("read"),
            &json!({"path": "a.txt"}),
            parent,
            &json!("code")
        )
    );
    assert_eq!(doing[2]["name"], "list");
    assert_eq!(events.of("call_started").len(), 2);
    let result = result(&events);
    assert!(
        result["result"].as_str().unwrap().contains("alpha"),
        "{result}"
    );
    let calls = result["calls"].as_array().unwrap();
    assert_eq!(
        (&calls[0]["tool"], &calls[1]["tool"]),
        (&json!("read"), &json!("list"))
    );
    assert_eq!(events.last()["status"], "completed");
}

#[test]
fn a_tool_fails_alike_on_every_path() {
    let daemon = TestDaemon::allowing();
    let input = json!({"path": "missing.txt"});
    let mut failures = Vec::new();
    for (path, toolbox, lines) in paths() {
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, &toolbox);
        let events = client.turn(&session, &lines("read", &input));
        let failed = result(&events);
        assert_eq!(failed["ok"], false, "{path}");
        failures.push(failed["error"].clone());
        // The inner call has the tool's own result, to the letter.
        let own = events.of("done")[0]["result"].clone();
        assert_eq!(
            own,
            json!({"error": "not found: missing.txt", "ok": false}),
            "{path}"
        );
    }
    assert!(failures[0].is_string());
    assert_eq!((&failures[1], &failures[2]), (&failures[0], &failures[0]));
}

#[test]
fn a_call_asks_once_on_every_path_and_runs_after_the_answer_alone() {
    for (path, toolbox, lines) in paths() {
        let daemon = TestDaemon::start();
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, &toolbox);
        client.attach(&session, None);
        let input = json!({"command": "echo ran >> ran"});
        client.start(&session, &lines("execute", &input));
        let asked = client.until_type("approval_asked");
        assert_eq!(asked.last()["tool"], "execute", "{path}");
        assert_eq!(asked.last()["arguments"], input, "{path}");
        assert_eq!(daemon.read("ran"), "", "{path}: it waits");
        client.answer(&asked.last()["approval"], "allow").unwrap();
        let events = client.until_ended();
        assert!(events.of("approval_asked").is_empty(), "{path}: asked once");
        assert_eq!(daemon.read("ran"), "ran\n", "{path}");
        assert_eq!(result(&events)["ok"], true, "{path}");
    }
}

#[test]
fn a_no_is_denied_on_every_path_and_nothing_runs() {
    for (path, toolbox, lines) in paths() {
        let daemon = TestDaemon::start();
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, &toolbox);
        client.attach(&session, None);
        client.start(
            &session,
            &lines("execute", &json!({"command": "echo ran >> ran"})),
        );
        let approval = client.until_type("approval_asked").last()["approval"].clone();
        let no = json!({"approval": approval, "answer": "deny", "reason": "not today"});
        client.call("approval/answer", no);
        let failed = result(&client.until_ended());
        assert_eq!(
            failed["error"], "User denied permission: execute: not today",
            "{path}"
        );
        assert_eq!(daemon.read("ran"), "", "{path}");
    }
}

#[test]
fn a_hook_that_blocks_blocks_on_every_path() {
    let sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    let hook = "[[hooks]]\npoint = \"before\"\ntool = \"execute\"\ncommand = '''echo not here >&2; exit 2'''\n";
    fs::write(sandbox.path("config").join("config.toml"), hook).unwrap();
    let daemon = TestDaemon::start_in(sandbox);
    for (path, toolbox, lines) in paths() {
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, &toolbox);
        let input = json!({"command": "echo ran >> ran"});
        let failed = result(&client.turn(&session, &lines("execute", &input)));
        assert_eq!(failed["error"], "not here", "{path}");
        assert_eq!(daemon.read("ran"), "", "{path}");
    }
}

#[test]
fn an_input_that_does_not_fit_asks_nobody_on_every_path() {
    let daemon = TestDaemon::start();
    for (path, toolbox, lines) in paths() {
        let mut client = daemon.client();
        let session = session(&daemon, &mut client, &toolbox);
        let events = client.turn(&session, &lines("execute", &json!({"command": 1})));
        assert_eq!(result(&events)["ok"], false, "{path}");
        assert!(events.of("approval_asked").is_empty(), "{path}");
        assert!(events.of("call_started").is_empty(), "{path}");
    }
}

#[test]
fn presentations_stand_in_each_other() {
    let daemon = TestDaemon::start();
    daemon.write("a.txt", "alpha\n");
    let code = "return (await tools.call_tool({name: 'read', input: {path: 'a.txt'}})).content";
    let found = run(
        &daemon,
        &json!({"code": {"of": {"search": {"of": "default"}}}}),
        code,
    );
    assert!(
        found["result"].as_str().unwrap().contains("alpha"),
        "{found}"
    );
    let mut client = daemon.client();
    let behind = session(
        &daemon,
        &mut client,
        &json!({"search": {"of": code_of_all()}}),
    );
    let input = json!({"name": "run_code", "input": {"code": "return (await tools.read({path: 'a.txt'})).content"}});
    let events = client.turn(&behind, &format!("do call_tool {input}\nsay done"));
    assert!(
        result(&events)["result"]
            .as_str()
            .unwrap()
            .contains("alpha")
    );
    assert_eq!(events.of("doing").len(), 3);
    let own = json!({"restrict": {"of": "default", "names": ["read"]}});
    let beside = session(
        &daemon,
        &mut client,
        &json!({"merge": [own, code_of_all()]}),
    );
    let lines = format!("do read {{\"path\": \"a.txt\"}}\n{}", program("return 7"));
    let events = client.turn(&beside, &lines);
    assert_eq!(events.of("done").len(), 2);
    assert_eq!(result(&events)["result"], 7);
}

#[test]
fn an_answer_for_the_program_reaches_the_calls_that_wait_beside_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.attach(&session, None);
    let code = "const run = (n) => tools.execute({command: `echo ${n} >> ran`});
        await Promise.all([run(1), run(2), run(3)]); await run(4); return 'all'";
    client.start(&session, &program(code));
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(client.until_type("approval_asked").last()["approval"].clone());
    }
    let yes = json!({"approval": asked[1], "answer": "allow", "scope": "program"});
    client.call("approval/answer", yes);
    let events = client.until_ended();
    assert_eq!(result(&events)["result"], "all");
    assert_eq!(daemon.read("ran").lines().count(), 4);
    assert!(
        events.of("approval_asked").is_empty(),
        "nobody is asked again"
    );
    assert_eq!(events.of("approval_withdrawn").len(), 2);
    assert!(
        events.of("granted").is_empty(),
        "it holds for the program alone"
    );
    client.start(
        &session,
        &program("await tools.execute({command: 'echo 5 >> ran'})"),
    );
    client.until_type("approval_asked");
}

#[test]
fn a_program_can_have_a_sub_session_work() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    let code = "return (await tools.task({prompt: 'say sub done'})).content";
    let events = client.turn(&session, &program(code));
    assert_eq!(result(&events)["result"], "sub done");
}

#[test]
fn programs_within_programs_run_in_the_place_of_the_outermost() {
    let daemon = TestDaemon::start();
    let toolbox = (0..6).fold(json!("builtin"), |of, _| json!({"code": {"of": of}}));
    let code = (1..6).fold("return 1".to_owned(), |inner, _| {
        let inner = json!({"code": inner});
        format!("const both = [tools.run_code({inner}), tools.run_code({inner})]; return (await Promise.all(both))[1].result")
    });
    assert_eq!(run(&daemon, &toolbox, &code)["result"], 1);
}

#[test]
fn a_program_that_computes_while_a_call_asks_uses_up_its_time() {
    let daemon = TestDaemon::start();
    let begun = Instant::now();
    let code = "tools.execute({command: 'echo 1'}); for (;;);";
    let ended = run(&daemon, &limited(&json!({"wall_ms": 500})), code);
    assert_eq!(ended["code"], "timeout", "{ended}");
    assert_eq!(
        ended["notes"],
        json!(["1 call was still waiting and not run"])
    );
    // Far from the ten seconds of processor time that it has.
    assert!(begun.elapsed() < SOON);
}

#[test]
fn what_nests_too_deep_is_refused_and_the_session_can_still_be_read() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let deep = (0..120).fold(json!(1), |inner, _| json!({"a": inner}));
    let params = json!({"session": session, "name": "list", "arguments": {"x": deep}});
    let refused = client.call("tool/run", params);
    assert_eq!(refused["ok"], false);
    let text = refused["error"].as_str().unwrap();
    assert!(text.contains("more than 100 deep"), "{text}");
    let events = client.history(&session);
    assert_eq!(events.of("doing")[0]["name"], "list");
    assert_eq!(events.of("done").len(), 1);
}

#[test]
fn a_restart_ends_a_program_that_waited_and_lists_the_calls_it_made() {
    let mut daemon = TestDaemon::start();
    daemon.write("a.txt", "alpha\n");
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.attach(&session, None);
    let code =
        "await tools.read({path: 'a.txt'}); await tools.execute({command: 'echo ran >> ran'})";
    client.start(&session, &program(code));
    client.until_type("approval_asked");
    let runner = the_runner(&daemon);
    daemon.kill9();
    until_true("the program's process is gone", SOON, || !alive(runner));
    daemon.restart();
    let mut client = daemon.client();
    let events = client.history(&session);
    assert_eq!(events.of("approval_withdrawn").len(), 1);
    assert_eq!(events.last()["status"], "interrupted");
    let ended = result(&events);
    assert_eq!(
        (&ended["code"], &ended["ok"]),
        (&json!("cancelled"), &json!(false))
    );
    let calls = ended["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2);
    assert_eq!(
        (&calls[0]["tool"], &calls[0]["ok"]),
        (&json!("read"), &json!(true))
    );
    assert_eq!(
        (&calls[1]["tool"], &calls[1]["ok"]),
        (&json!("execute"), &json!(false))
    );
    assert_eq!(client.call("approval/list", json!({})), json!([]));
    assert_eq!(daemon.read("ran"), "");
    let again = client.turn(&session, &program("return 'again'"));
    assert_eq!(result(&again)["result"], "again");
}

#[test]
fn a_cancel_ends_the_program_and_its_calls_and_leaves_no_process() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.attach(&session, None);
    let code = "await Promise.all([1, 2, 3].map(() => tools.execute({command: 'sleep 60'})))";
    client.start(&session, &program(code));
    for _ in 0..3 {
        client.until_type("call_started");
    }
    let begun = Instant::now();
    client.call("turn/cancel", json!({"session": session}));
    let events = client.until_ended();
    until_none_is_left(&daemon);
    assert!(begun.elapsed() < SOON);
    assert_eq!(events.last()["status"], "cancelled");
    let ended = events.of("done");
    assert_eq!(ended.len(), 4);
    for done in &ended {
        let text = done["result"].to_string();
        assert!(text.contains("cancelled"), "{text}");
    }
    assert_eq!(result(&events)["calls"].as_array().unwrap().len(), 3);
}

#[test]
fn a_session_that_is_deleted_takes_its_program_with_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.start(&session, &program("for (;;) {}"));
    let runner = the_runner(&daemon);
    until_true("it runs", SOON, || uses_processor(runner));
    client.call("session/delete", json!({"session": session}));
    until_true("the program's process is gone", SOON, || !alive(runner));
}

#[test]
fn runaways_end_in_time_and_leave_no_process() {
    let daemon = TestDaemon::start();
    let short = limited(&json!({"wall_ms": 300}));
    for code in [
        "for (;;) {}",
        "try { return 1 } finally { for (;;) {} }",
        "for (;;) await null",
        "new Array(2 ** 31).join('')",
        "String.raw({raw: {length: 2 ** 31}})",
    ] {
        let failed = run(&daemon, &short, code);
        assert_eq!(failed["code"], "timeout", "{code}");
        // The turn has ended, so nothing may be left: no waiting here.
        assert_eq!(runners(&daemon), &[] as &[u32], "{code}");
    }
    assert_eq!(run(&daemon, &code_of_all(), "return 1")["result"], 1);
}

#[test]
fn a_runner_that_is_killed_is_a_crash_that_harms_nobody_else() {
    let daemon = TestDaemon::start();
    daemon.write("a.txt", "alpha\n");
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.attach(&session, None);
    client.start(
        &session,
        &program("await tools.read({path: 'a.txt'}); for (;;) {}"),
    );
    client.until_type("done");
    let runner = the_runner(&daemon);
    until_true("it runs", SOON, || uses_processor(runner));
    kill(runner);
    let events = client.until_ended();
    let failed = result(&events);
    assert_eq!(failed["code"], "crashed", "{failed}");
    assert_eq!(failed["calls"][0]["tool"], "read");
    assert_eq!(events.last()["status"], "completed", "the turn goes on");
    assert_eq!(run(&daemon, &code_of_all(), "return 1")["result"], 1);
}

#[test]
fn a_program_dies_with_its_daemon() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    client.start(&session, &program("for (;;) {}"));
    let runner = the_runner(&daemon);
    until_true("it runs", SOON, || uses_processor(runner));
    daemon.kill9();
    until_true("the program's process is gone", SOON, || !alive(runner));
}

#[test]
fn a_program_that_its_supervisor_cannot_end_dies_of_its_own_limit() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let toolbox = limited(&json!({"cpu_ms": 60000}));
    let session = session(&daemon, &mut client, &toolbox);
    client.start(&session, &program("for (;;) {}"));
    let runner = the_runner(&daemon);
    until_true("it runs", SOON, || uses_processor(runner));
    let limits = fs::read_to_string(format!("/proc/{runner}/limits")).unwrap();
    let of = |name: &str| {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let numbers = line[name.len()..].split_whitespace();
        numbers.take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of("Max cpu time"), ["61", "62"]);
    let space = (2 * 64 + 256) * 1024 * 1024;
    assert_eq!(
        of("Max address space"),
        [space.to_string(), space.to_string()]
    );
    for (name, limit) in [
        ("Max core file size", "0"),
        ("Max file size", "0"),
        ("Max open files", "3"),
    ] {
        assert_eq!(of(name), [limit, limit]);
    }
    let status = fs::read_to_string(format!("/proc/{runner}/status")).unwrap();
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2"] {
        assert!(status.contains(line), "{line}: {status}");
    }
    let link = fs::read_link(format!("/proc/{runner}/cwd"));
    assert!(link.is_err() || link.is_ok_and(|cwd| cwd.as_os_str() == "/"));
    let environ = fs::read(format!("/proc/{runner}/environ"));
    assert!(environ.is_err() || environ.is_ok_and(|environ| environ.is_empty()));
    client.call("turn/cancel", json!({"session": session}));
    until_none_is_left(&daemon);
}

#[test]
fn of_thirteen_programs_four_run_eight_wait_and_one_is_told_to_try_later() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = session(&daemon, &mut client, &code_of_all());
    let wait = "while [ ! -e go ]; do sleep 0.02; done";
    let code = format!(
        "await tools.execute({}); return 1",
        json!({"command": wait})
    );
    let params = json!({"session": session, "name": "run_code", "arguments": {"code": code}, "toolbox": code_of_all()});
    let calls: Vec<u64> = (0..13)
        .map(|_| client.send("tool/run", params.clone()))
        .collect();
    until_true("four run", SOON, || runners(&daemon).len() == 4);
    let busy = client.take("the answer of the one too many", |line| {
        line["result"]["code"] == "busy"
    });
    assert_eq!(runners(&daemon).len(), 4);
    daemon.write("go", "");
    let others = calls.iter().filter(|id| busy["id"] != **id);
    let results: Vec<Value> = others.map(|id| client.response(*id).unwrap()).collect();
    assert_eq!(results.len(), 12);
    assert!(
        results.iter().all(|result| result["result"] == 1),
        "{results:?}"
    );
}

#[test]
fn programs_run_after_an_upgrade_replaced_the_binary() {
    let sandbox = Sandbox::new();
    let copy = sandbox.path("dwelld");
    fs::copy(&binaries().daemon, &copy).unwrap();
    let mut daemon = TestDaemon::stopped(sandbox, &copy);
    daemon.restart();
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(&daemon, &code_of_all(), "return 1")["result"], 1);
}

#[test]
fn limits_beyond_their_caps_are_refused_with_their_path() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    for (toolbox, path) in [
        (
            limited(&json!({"wall_ms": 600_001})),
            "toolbox.code.limits.wall_ms",
        ),
        (
            json!({"merge": [limited(&json!({"memory": 1}))]}),
            "toolbox.merge[0].code.limits.memory",
        ),
        (limited(&json!({"speed": 1})), "toolbox.code.limits.speed"),
        (
            json!({"code": {"of": "default", "approval": "perhaps"}}),
            "toolbox.code.approval",
        ),
    ] {
        let params = json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox});
        let fault = client.fault("session/create", params);
        assert_eq!(fault.code, -32602);
        let told = format!("{fault:?}");
        assert!(told.contains(path), "{told}");
    }
    assert_eq!(
        client.call("session/list", json!({}))["sessions"],
        json!([])
    );
}

/// The declarations of the daemon's own tools, as a model reads them.
fn declared(daemon: &TestDaemon) -> String {
    let mut client = daemon.client();
    let session = session(daemon, &mut client, &code_of_all());
    let list = client.call("tool/list", json!({"session": session}));
    let tools = list["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(
        (&tools[0]["function"]["name"], &tools[0]["approval"]),
        (&json!("run_code"), &json!("allow"))
    );
    let text = tools[0]["function"]["description"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(text.contains("COMPLETE: all"), "{text}");
    text
}

#[test]
fn what_a_model_reads_has_the_same_bytes_every_time() {
    let daemon = TestDaemon::start();
    assert_eq!(declared(&daemon), declared(&daemon));
}

#[test]
fn declarations_are_typescript() {
    let Some(tsc) = typescript() else {
        return skip(
            "declarations_are_typescript",
            "there is no tsc (npm install typescript)",
        );
    };
    let daemon = TestDaemon::start();
    let text = declared(&daemon);
    let (_, fenced) = text.split_once("```ts\n").unwrap();
    let own = fenced.strip_suffix("```").unwrap();
    let golden = root().join("daemon/src/presentation/code_mode/declare/golden.ts");
    let golden = fs::read_to_string(golden).unwrap();
    let check = |name: &str, text: &str| {
        let file = daemon.write(name, text);
        let checked = Command::new(&tsc)
            .args([
                "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022", "--types", "",
            ])
            .arg(file)
            .output()
            .unwrap();
        (
            checked.status.success(),
            String::from_utf8_lossy(&checked.stdout).into_owned(),
        )
    };
    for (name, text) in [("own.ts", own), ("golden.ts", golden.as_str())] {
        let (well, told) = check(name, text);
        assert!(well, "{name}: {told}");
    }
    // A compiler that takes everything would prove nothing.
    let used = "\ntools.github__create_issue({title: 1});\n";
    let (well, told) = check("wrong.ts", &format!("{golden}{used}"));
    assert!(!well && told.contains("not assignable"), "{told}");
}

fn typescript() -> Option<std::path::PathBuf> {
    let named = std::env::var_os("DWELL_TEST_TSC").map(std::path::PathBuf::from);
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path)
            .map(|folder| folder.join("tsc"))
            .find(|file| file.is_file())
    };
    named.or_else(on_path)
}

fn kill(pid: u32) {
    let pid = libc::pid_t::try_from(pid).unwrap();
    // SAFETY: a child of the daemon's that this test found and that still runs.
    assert_eq!(unsafe { libc::kill(pid, libc::SIGKILL) }, 0);
    pause();
}
