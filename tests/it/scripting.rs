//! The client for programs: forms that do not change, exit codes, waiting, schemas, completions, the manual, the doctor.

use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::model::{Answer, FakeModel};
use harness::sandbox::{Sandbox, set_mode};
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::fs;

fn dwell(daemon: &TestDaemon, args: &[&str]) -> harness::dwell::Ran {
    Dwell::new(daemon).args(args.iter().copied()).run()
}

#[test]
fn wait_gives_the_reply_and_the_turns_exit_code() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let idle = dwell(&daemon, &["wait", &session]);
    assert_eq!((idle.code, idle.stdout.as_str()), (Some(0), ""));
    assert!(idle.stderr.contains("nothing has run"), "{}", idle.stderr);
    client.start(&session, "wait 3000\nsay the end");
    let done = dwell(&daemon, &["wait", &session]);
    assert_eq!(
        (done.code, done.stdout.as_str()),
        (Some(0), "the end\n"),
        "{}",
        done.stderr
    );
    client.start(&session, "wait 60000");
    let late = dwell(&daemon, &["wait", "--timeout", "0", &session]);
    assert_eq!(late.code, Some(124), "{}", late.stderr);
    client.call("turn/cancel", json!({"session": session}));
    client.attach(&session, Some(0));
    client.events_until("the second turn's end", |event| {
        event["status"] == "cancelled"
    });
    client.start(&session, "wait 3000\nfail no such luck");
    let failed = dwell(&daemon, &["wait", "--json", &session]);
    assert_eq!(failed.code, Some(1));
    let ended: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(ended["status"], "failed");
    assert!(failed.stderr.contains("no such luck"), "{}", failed.stderr);
}

#[test]
fn wait_tells_of_a_turn_that_is_over_what_it_would_have_told() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for (prompt, code, stdout) in [
        ("say quick", Some(0), "quick\n"),
        ("fail boom", Some(1), ""),
        ("say again", Some(0), "again\n"),
    ] {
        client.turn(&session, prompt);
        let over = dwell(&daemon, &["wait", &session]);
        assert_eq!(
            (over.code, over.stdout.as_str()),
            (code, stdout),
            "{prompt}"
        );
    }
    client.attach(&session, None);
    client.start(&session, "wait 60000");
    client.call("turn/cancel", json!({"session": session}));
    client.until_ended();
    assert_eq!(dwell(&daemon, &["wait", &session]).code, Some(130));
    let by_its_id = dwell(&daemon, &["wait", &format!("{session}.t2")]);
    assert_eq!(by_its_id.code, Some(1), "{}", by_its_id.stderr);
    assert_eq!(
        dwell(&daemon, &["wait", &format!("{session}.t99")]).code,
        Some(4)
    );
}

#[test]
fn each_end_has_its_exit_code_and_each_code_is_documented() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let (runs, stopped) = (
        client.session(&daemon.work()),
        client.session(&daemon.work()),
    );
    client.start(&runs, "wait 60000");
    client.attach(&stopped, None);
    client.start(&stopped, "wait 60000");
    client.call("turn/cancel", json!({"session": stopped}));
    client.until_ended();
    let missing = daemon.path("nobody.sock");
    let nobody = missing.to_str().unwrap();
    // 141 has a test of its own, with the readers that go away.
    let mut codes = vec![141];
    for (args, code) in [
        (&["ask", "-p", "script", "say done"][..], 0),
        (&["wait", &session], 0),
        (&["ask", "-p", "script", "fail"], 1),
        (&["ask", "-p", "script", "line "], 1),
        (&["run", "-s", &session, "no_such_tool"], 4),
        (&["ask", "--no-such-option"], 2),
        (&["ask", "--retries", "2", "x"], 2),
        (&["ask", "--schema", "no-such-file", "x"], 2),
        (&["send", &session], 2),
        (&["--socket", nobody, "daemon", "status"], 3),
        (&["--socket", nobody, "ls", "--no-start"], 3),
        (&["log", "no-such-session"], 4),
        (&["ask", "-s", "no-such-session", "x"], 4),
        (&["send", "no-such-session", "x"], 4),
        (&["wait", "no-such-session"], 4),
        (&["wait", "no-such-session.t1"], 4),
        (&["rpc", "no/such/method"], 4),
        (&["wait", "--timeout", "0", &runs], 124),
        (&["wait", &stopped], 130),
    ] {
        let ran = dwell(&daemon, args);
        assert_eq!(
            ran.code,
            Some(code),
            "{args:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
        codes.push(code);
    }
    codes.sort_unstable();
    codes.dedup();
    let help = Dwell::alone(&daemon).args(["--help"]).ok();
    let document = include_str!("../../client/docs/scripting.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| "));
    let documented: Vec<i32> = rows
        .filter_map(|row| row.split(' ').next()?.parse().ok())
        .collect();
    assert_eq!(documented, codes);
    let listed = help.split("Exit codes:").nth(1).unwrap();
    for code in codes {
        assert!(listed.contains(&format!("\n  {code} ")), "{code}: {help}");
    }
}

#[test]
fn wait_takes_several_and_tells_each_as_it_ends() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let [slow, quick, bad] = [(); 3].map(|()| client.session(&daemon.work()));
    client.start(&slow, "wait 1500\nsay slow one");
    client.turn(&quick, "say quick one");
    let both = dwell(&daemon, &["wait", &slow, &quick]);
    assert_eq!(both.code, Some(0), "{}", both.stderr);
    let told = format!("==> {quick}.t1 <==\nquick one\n==> {slow}.t1 <==\nslow one\n");
    assert_eq!((both.stdout, both.stderr), (told, String::new()));
    client.turn(&bad, "fail boom");
    let three = dwell(&daemon, &["wait", "--json", &slow, &bad, &quick]);
    assert_eq!(three.code, Some(1));
    let ends: Vec<Value> = three
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(ends.len(), 3, "{ends:?}");
    assert_eq!(three.stderr, format!("{bad}.t1: boom\n"));
    client.start(&slow, "wait 60000");
    let late = dwell(&daemon, &["wait", "--timeout", "1", &slow, &quick]);
    assert_eq!(late.code, Some(124), "{}", late.stderr);
    assert!(
        late.stdout.contains("quick one"),
        "what ended is told: {}",
        late.stdout
    );
}

#[test]
fn wait_says_that_a_session_waits_for_an_answer() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "do execute {\"command\": \"true\"}");
    client.until_type("approval_asked");
    let ran = dwell(&daemon, &["wait", "--timeout", "1", &session]);
    assert_eq!(ran.code, Some(124));
    let told = format!("{session} waits for an approval: execute true");
    assert!(ran.stderr.contains(&told), "{}", ran.stderr);
}

#[test]
fn a_list_for_programs_keeps_its_fields_in_their_places() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.call(
        "session/rename",
        json!({"session": session, "title": "a\ttab\nand more"}),
    );
    let other = client.session(&daemon.work());
    client.start(&other, "wait 60000");
    let all = Dwell::new(&daemon).args(["ls", "--tsv"]).ok();
    let row = all.lines().find(|line| line.starts_with(&session)).unwrap();
    let fields: Vec<&str> = row.split('\t').collect();
    assert_eq!(fields.len(), 5, "{row:?}");
    assert_eq!(fields[1], "idle");
    assert!(fields[2].parse::<u64>().is_ok(), "{row:?}");
    assert_eq!(
        (fields[3], fields[4]),
        ("a tab and more", daemon.work().to_str().unwrap())
    );
    let objects = Dwell::new(&daemon).args(["ls", "--json"]).ok();
    assert_eq!(objects.matches("\"clients\":0").count(), 2, "{objects}");
    client.attach(&session, None);
    let objects = Dwell::new(&daemon).args(["ls", "--json"]).ok();
    let attached = objects.lines().find(|line| line.contains("\"clients\":1"));
    assert!(attached.unwrap().contains(&session), "{objects}");
    let running = Dwell::new(&daemon)
        .args(["ls", "--tsv", "--state", "running"])
        .ok();
    assert_eq!(running.lines().count(), 1, "{running}");
    assert!(running.starts_with(&other), "{running}");
}

#[test]
fn a_reply_that_its_schema_refuses_is_asked_for_again() {
    let model = FakeModel::start([
        Answer::text(["sure, here: {}"]),
        Answer::text(["```json\n{\"n\": \"three\"}\n```"]),
        Answer::text(["{\"n\": 3}"]),
    ]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let file = daemon.write("schema.json", &schema.to_string());
    let file = file.to_str().unwrap();
    let ran = dwell(
        &daemon,
        &[
            "ask",
            "-p",
            "openai",
            "--model",
            "fake",
            "--schema",
            file,
            "how many?",
        ],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "{\"n\":3}\n"),
        "{}",
        ran.stderr
    );
    let requests = model.requests();
    let last = |request: &Value| {
        let messages = request["messages"].as_array().unwrap();
        messages.last().unwrap()["content"].to_string()
    };
    assert!(last(&requests[0]).contains("how many?") && last(&requests[0]).contains("required"));
    assert!(
        last(&requests[1]).contains("it is no JSON"),
        "{}",
        last(&requests[1])
    );
    assert!(last(&requests[2]).contains("/n"), "{}", last(&requests[2]));
}

#[test]
fn a_reply_that_never_fits_its_schema_is_a_failure_and_prints_nothing() {
    let model = FakeModel::start([Answer::text(["no"]), Answer::text(["never"])]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let file = daemon.write("schema.json", "{\"type\": \"object\"}");
    let file = file.to_str().unwrap();
    let args = [
        "ask",
        "-p",
        "openai",
        "--model",
        "fake",
        "--schema",
        file,
        "--retries",
        "1",
        "x",
    ];
    let ran = dwell(&daemon, &args);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), ""),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("does not fit the schema"),
        "{}",
        ran.stderr
    );
    daemon.write("schema.json", "{\"type\": 3}");
    let slip = dwell(&daemon, &args);
    assert_eq!(slip.code, Some(2), "{}", slip.stderr);
}

#[test]
fn watch_tells_what_begins_waits_and_is_done_in_all_sessions() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (one, two) = (
        client.session(&daemon.work()),
        client.session(&daemon.work()),
    );
    let out = daemon.path("watch.txt");
    let file = std::fs::File::create(&out).unwrap();
    let mut command = std::process::Command::new(&harness::binaries::binaries().client);
    daemon.apply(&mut command);
    let command = command
        .env("DWELL_SOCKET", daemon.socket())
        .arg("watch")
        .stdout(file);
    let mut watch = command.spawn().unwrap();
    let told = |line: &str| {
        std::fs::read_to_string(&out)
            .unwrap()
            .lines()
            .any(|one| one.starts_with(line))
    };
    // Until it watches, nothing is told: a session that is made again and again shows when it does.
    until_true("watch to watch", SOON, || {
        client.session(&daemon.work());
        !std::fs::read_to_string(&out).unwrap().is_empty()
    });
    client.start(&one, "wait 100\nsay x");
    client.start(&two, "do execute {\"command\": \"echo x\"}");
    for line in [
        format!("{one}  running"),
        format!("{one}  done"),
        format!("{two}  waiting"),
    ] {
        until_true(&line, SOON, || told(&line));
    }
    watch.kill().unwrap();
    watch.wait().unwrap();
}

#[test]
fn completions_and_the_manual_come_from_the_table_of_commands() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = Dwell::alone(&sandbox).args(["completions", shell]).ok();
        for word in ["attach", "doctor", "schema"] {
            assert!(script.contains(word), "{shell} lacks {word}");
        }
    }
    let folder = sandbox.path("man");
    Dwell::alone(&sandbox)
        .args(["man", folder.to_str().unwrap()])
        .ok();
    let ask = std::fs::read_to_string(folder.join("dwell-ask.1")).unwrap();
    assert!(ask.contains("schema"), "{ask}");
    let first = std::fs::read_to_string(folder.join("dwell.1")).unwrap();
    assert!(
        first.contains("Exit codes") && first.contains("124"),
        "{first}"
    );
    assert_eq!(Dwell::alone(&sandbox).args(["man"]).ok(), first);
}

#[test]
fn shells_complete_what_only_the_daemon_knows_and_start_none_for_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, "do execute {\"command\": \"true\"}");
    client.until_type("approval_asked");
    for (kind, word) in [
        ("sessions", session.as_str()),
        ("providers", "script\t"),
        ("local-models", "smollm2\t"),
        ("models", "smollm2\t"),
        ("tools", "execute\t"),
        ("toolboxes", "default\t"),
        ("approvals", &format!("{session}.a1\texecute true")),
        ("methods", "session/list\t"),
    ] {
        let words = || Dwell::new(&daemon).args(["complete", kind]).ok();
        // A machine that is busy with other tests may be too slow for a key once.
        until_true(kind, SOON, || {
            words().lines().any(|one| one.starts_with(word))
        });
    }
    let agents = Dwell::new(&daemon).args(["complete", "agents"]).run();
    assert_eq!((agents.code, agents.stdout.as_str()), (Some(0), ""));
    let sandbox = Sandbox::new();
    for kind in ["sessions", "providers", "tools"] {
        let alone = Dwell::alone(&sandbox).args(["complete", kind]).run();
        let nothing = (Some(0), String::new(), String::new());
        assert_eq!((alone.code, alone.stdout, alone.stderr), nothing);
    }
    assert!(!sandbox.path("run").join("dwell").exists(), "none began");
    let help = Dwell::alone(&sandbox).args(["--help"]).ok();
    assert!(!help.contains("  complete "), "{help}");
}

#[test]
fn each_shell_asks_for_the_kind_of_word_that_stands_there() {
    let sandbox = Sandbox::new();
    let script = |shell| {
        let text = Dwell::alone(&sandbox).args(["completions", shell]).ok();
        let file = sandbox.write(&format!("{shell}.completions"), &text);
        file.to_str().unwrap().to_owned()
    };
    // A stand-in says which kind it was asked for.
    let folder = sandbox.path("bin");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("dwell"), "#!/bin/sh\necho \"kind-$2\tx\"\n").unwrap();
    set_mode(&folder.join("dwell"), 0o755);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let ask = |shell: &str, code: &str| {
        let mut command = std::process::Command::new(shell);
        let ran = command.args(["-c", code]).env("PATH", &path).output();
        ran.ok().map(|out| String::from_utf8(out.stdout).unwrap())
    };
    let (bash, fish) = (script("bash"), script("fish"));
    for (words, kind) in [
        ("attach ", "sessions"),
        ("ask -s ", "sessions"),
        ("ask -p ", "providers"),
        ("ask --provider ", "providers"),
        ("new --model ", "models"),
        ("new -a ", "agents"),
        ("new --toolbox ", "toolboxes"),
        ("wait --allow ", "tools"),
        ("run ", "tools"),
        ("answer ", "approvals"),
        ("model rm ", "local-models"),
    ] {
        let all: Vec<&str> = words.split(' ').collect();
        let code = format!(
            "source {bash}; COMP_WORDS=(dwell {}\"\"); COMP_CWORD={}; _dwell dwell '' {}; echo \"${{COMPREPLY[*]}}\"",
            words,
            all.len(),
            all.get(all.len().wrapping_sub(2)).unwrap_or(&"dwell"),
        );
        let wanted = format!("kind-{kind}");
        let told = ask("bash", &code).expect("there is a bash");
        assert!(told.contains(&wanted), "bash, {words:?}: {told}");
        let code = format!("source {fish}; complete -C 'dwell {words}'");
        if let Some(told) = ask("fish", &code) {
            assert!(told.contains(&wanted), "fish, {words:?}: {told}");
        }
    }
    let zsh = script("zsh");
    let text = fs::read_to_string(zsh).unwrap();
    for action in [
        "':session -- Which session: _dwell_values sessions'",
        ":NAME: _dwell_values providers'",
        ":TOOL: _dwell_values tools'",
        ": _dwell_values approvals'",
        "shows them: _dwell_values local-models'",
    ] {
        assert!(text.contains(action), "zsh lacks {action}");
    }
}

#[test]
fn the_doctor_finds_what_is_wrong_and_says_how_to_mend_it() {
    let daemon = TestDaemon::start();
    let well = dwell(&daemon, &["doctor"]);
    assert_eq!(well.code, Some(0), "{}", well.stdout);
    assert!(well.stdout.contains("socket"), "{}", well.stdout);
    let missing = Dwell::new(&daemon)
        .env("DWELL_PROVIDER", "nobody")
        .args(["doctor", "--json"])
        .run();
    assert_eq!(missing.code, Some(1), "{}", missing.stdout);
    let wrong: Vec<Value> = missing
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|check: &Value| check["state"] == "wrong")
        .collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert_eq!(wrong[0]["hint"], "`dwell providers` lists them");
    set_mode(daemon.socket(), 0o666);
    set_mode(daemon.socket().parent().unwrap(), 0o755);
    let open = dwell(&daemon, &["doctor"]);
    assert_eq!(open.code, Some(1), "{}", open.stdout);
    assert!(open.stdout.contains("chmod 600"), "{}", open.stdout);
}

#[test]
fn the_doctor_looks_at_files_that_keep_a_daemon_from_starting() {
    let sandbox = Sandbox::new();
    let doctor = || Dwell::alone(&sandbox).args(["doctor"]).run();
    let folder = |path: &str| {
        let folder = sandbox.path(path);
        fs::create_dir_all(&folder).unwrap();
        folder
    };
    let well = doctor();
    assert_eq!(well.code, Some(0), "{}", well.stdout);
    let files = [
        (
            folder("config").join("config.toml"),
            "nosuch = 1",
            "config.toml",
        ),
        (
            folder("data").join("sessions.db"),
            "garbage garbage",
            "sessions.db",
        ),
        (
            folder("home/.agents").join("permissions.json"),
            "{bad",
            "permissions.json",
        ),
    ];
    for (path, text, named) in files {
        fs::write(&path, text).unwrap();
        let found = doctor();
        assert_eq!(found.code, Some(1), "{named}: {}", found.stdout);
        let told = found.stdout.lines().find(|line| line.contains(named));
        let told = told.unwrap_or_else(|| panic!("{named}: {}", found.stdout));
        assert!(told.starts_with("wrong"), "{told}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "it mends nothing");
        fs::remove_file(&path).unwrap();
    }
    assert_eq!(doctor().code, Some(0), "nothing is left behind");
    fs::write(folder("home/.agents").join("mcp.json"), "{bad").unwrap();
    let servers = doctor();
    assert_eq!(
        servers.code,
        Some(0),
        "dwell works without: {}",
        servers.stdout
    );
    assert!(
        servers.stdout.contains("mcp.json:1: "),
        "{}",
        servers.stdout
    );
}

#[test]
fn the_doctor_tells_of_a_daemon_that_hangs_and_of_a_server_that_is_not_there() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let mut sandbox = Sandbox::new();
    sandbox.set("OPENAI_BASE_URL", format!("http://{address}/v1"));
    let daemon = TestDaemon::start_in(sandbox);
    let far = dwell(&daemon, &["doctor"]);
    assert_eq!(far.code, Some(1), "{}", far.stdout);
    let told = format!("OPENAI_BASE_URL names {address}, where nobody answers");
    assert!(far.stdout.contains(&told), "{}", far.stdout);
    daemon.signal(rustix::process::Signal::STOP);
    let hangs = dwell(&daemon, &["doctor"]);
    daemon.signal(rustix::process::Signal::CONT);
    assert_eq!(hangs.code, Some(1), "{}", hangs.stdout);
    assert!(hangs.stdout.contains("does not answer"), "{}", hangs.stdout);
}

#[test]
fn an_interrupted_run_ends_its_call() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let call = r#"{"command": "echo begun; sleep 1000; echo over >> over"}"#;
    let mut command = std::process::Command::new(&harness::binaries::binaries().client);
    daemon.apply(&mut command);
    command
        .env("DWELL_SOCKET", daemon.socket())
        .args(["run", "--yes", "--session", &session, "execute", call])
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    client.until_type("call_started");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = harness::daemon::wait_child(&mut child, harness::wait::SOON).expect("it ends");
    assert_eq!(status.code(), Some(130));
    let done = client.until_type("done");
    assert_eq!(done.last()["result"]["ok"], false, "{done:?}");
}

#[test]
fn the_version_is_that_of_both_sides() {
    let daemon = TestDaemon::start();
    let both = Dwell::new(&daemon).args(["--version"]).ok();
    let lines: Vec<&str> = both.lines().collect();
    assert!(
        lines[0].starts_with("dwell ") && lines[1].starts_with("dwelld "),
        "{both}"
    );
    let sandbox = Sandbox::new();
    let alone = Dwell::alone(&sandbox).args(["-V"]).ok();
    assert!(alone.ends_with("dwelld does not run\n"), "{alone}");
}

#[test]
fn a_fork_may_leave_out_the_last_exchanges() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for text in ["say one", "say two", "say three"] {
        client.turn(&session, text);
    }
    let fork = Dwell::new(&daemon)
        .args(["fork", "--back", "2", &session])
        .ok();
    let log = Dwell::new(&daemon).args(["log", fork.trim()]).ok();
    assert!(log.contains("one") && !log.contains("two"), "{log}");
    let too_far = dwell(&daemon, &["fork", "--back", "9", &session]);
    assert_eq!(too_far.code, Some(2));
    assert!(
        too_far.stderr.contains("has 3 exchanges"),
        "{}",
        too_far.stderr
    );
}

#[test]
fn a_cancel_where_nothing_runs_says_that_and_one_of_a_tool_by_hand_says_what_it_stopped() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let idle = Dwell::new(&daemon).args(["cancel", &session]).run();
    assert_eq!(idle.code, Some(0), "{}", idle.stderr);
    assert_eq!(idle.stderr, format!("nothing runs in {session}\n"));

    client.attach(&session, None);
    let command = r#"{"command": "sleep 600"}"#;
    let words = ["run", "-s", &session, "execute", command];
    std::thread::scope(|scope| {
        let running = scope.spawn(|| Dwell::new(&daemon).args(words).run());
        client.until_type("doing");
        let stopped = Dwell::new(&daemon).args(["cancel", &session]).run();
        assert!(
            stopped.stderr.contains("was run there by hand is stopped"),
            "{}",
            stopped.stderr
        );
        assert_ne!(running.join().unwrap().code, Some(0));
    });
}
