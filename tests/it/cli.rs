//! The client as a person and as a script use it: what goes to which stream, exit codes, every subcommand once.

use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::dwell::{AutoStarted, Dwell, Ran};
use harness::model::{Answer, FakeModel};
use harness::pty::Pty;
use harness::sandbox::Sandbox;
use harness::wait::SOON;
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn on_a_fresh_machine_the_first_command_answers_through_every_part() {
    let sandbox = Sandbox::new();
    let _stop = AutoStarted(&sandbox);
    sandbox.write("README.md", "# A project\n\nIt counts seventeen camels.\n");
    let ran = Dwell::alone(&sandbox)
        .args(["ask", "-p", "script", "what does README.md say?"])
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("seventeen camels"), "{}", ran.stdout);
    assert!(sandbox.path("data").join("sessions.db").is_file());
    let log = Dwell::alone(&sandbox).args(["log", "--json"]).ok();
    let events: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    for kind in [
        "turn_started",
        "doing",
        "call_started",
        "done",
        "saying",
        "turn_ended",
    ] {
        assert!(types.contains(&kind), "no {kind} in {types:?}");
    }
    let read = events
        .iter()
        .find(|event| event["type"] == "doing")
        .unwrap();
    assert_eq!(read["name"], "read");
    let listed = Dwell::alone(&sandbox).args(["ls"]).ok();
    assert!(listed.contains("what does README.md say?"), "{listed}");
}

#[test]
fn only_the_reply_goes_to_stdout_and_progress_to_stderr() {
    let daemon = TestDaemon::start();
    let ran = ask(
        &daemon,
        &[
            "-p",
            "script",
            "--verbose",
            "think hm\nsay looking\ndo list {}\nsay found",
        ],
    );
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "found\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("list"), "{}", ran.stderr);
    assert!(
        !ran.stderr.contains('\u{1b}'),
        "no colours in a pipe: {}",
        ran.stderr
    );
}

#[test]
fn what_is_piped_in_is_added_and_fenced() {
    let model = FakeModel::start([Answer::text(["ok"])]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let ran = Dwell::new(&daemon)
        .args(["ask", "-p", "openai", "--model", "fake", "explain this"])
        .stdin("a ``` b\n")
        .run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let sent = model.requests()[0]["messages"][1]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        sent.starts_with("explain this") && sent.contains("````\na ``` b\n````"),
        "{sent}"
    );
}

#[test]
fn a_failure_and_a_blank_reply_exit_with_one_and_a_message() {
    let daemon = TestDaemon::start();
    let ran = ask(&daemon, &["-p", "script", "say half\nfail the line broke"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("the line broke"), "{}", ran.stderr);
    let ran = ask(&daemon, &["-p", "script", "think nothing to say"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("blank"), "{}", ran.stderr);
    let ran = ask(&daemon, &["-p", "nope", "hello"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("unknown provider: \"nope\""),
        "{}",
        ran.stderr
    );
}

#[test]
fn without_a_terminal_nothing_is_allowed_that_was_not_allowed_beforehand() {
    let daemon = TestDaemon::start();
    let turn = "do execute {\"command\": \"echo ran >> ran\"}\nsay done";
    let ran = ask(&daemon, &["-p", "script", turn]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "the model is told no, and goes on: {}",
        ran.stderr
    );
    assert_eq!(daemon.read("ran"), "");
    assert!(
        ran.stderr.contains("neither --allow execute nor --yes") && !ran.stderr.contains("[y]"),
        "what was denied and how to allow it, and no keys that nobody can press: {}",
        ran.stderr
    );
    ask(&daemon, &["-p", "script", "--allow", "write", turn]);
    assert_eq!(daemon.read("ran"), "");
    ask(&daemon, &["-p", "script", "--allow", "execute", turn]);
    assert_eq!(daemon.read("ran"), "ran\n");
    ask(&daemon, &["-p", "script", "--yes", turn]);
    assert_eq!(daemon.read("ran"), "ran\nran\n");
}

#[test]
fn one_clients_yes_to_all_answers_for_its_own_turn_only() {
    let daemon = TestDaemon::start();
    let mut other = daemon.client();
    let session = other.session(&daemon.work());
    other.attach(&session, None);
    other.start(
        &session,
        "do execute {\"command\": \"echo other >> other\"}\nsay done",
    );
    other.until_type("approval_asked");
    ask(
        &daemon,
        &[
            "-p",
            "script",
            "--yes",
            "do execute {\"command\": \"true\"}\nsay done",
        ],
    );
    assert_eq!(
        other.call("session/get", json!({"session": session}))["state"],
        "waiting"
    );
    assert_eq!(daemon.read("other"), "");
}

#[test]
fn json_is_the_events_of_the_turn_a_line_each() {
    let daemon = TestDaemon::start();
    let ran = ask(&daemon, &["-p", "script", "--json", "say hello"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let events: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(events[0]["type"], "turn_started");
    assert_eq!(events.last().unwrap()["type"], "turn_ended");
}

#[test]
fn a_session_goes_on_where_it_was() {
    let daemon = TestDaemon::start();
    let session = dwell(
        &daemon,
        &[
            "rpc",
            "session/create",
            &json!({"cwd": daemon.work(), "provider": "script"}).to_string(),
        ],
    );
    let session: Value = serde_json::from_str(&session).unwrap();
    let id = session["id"].as_str().unwrap();
    assert_eq!(dwell(&daemon, &["ask", "-s", id, "say one"]), "one\n");
    assert_eq!(dwell(&daemon, &["ask", "-s", id, "say two"]), "two\n");
    assert_eq!(daemon.client().history(id).said(), "onetwo");
}

#[test]
fn every_subcommand_does_its_one_thing() {
    let daemon = TestDaemon::start();
    daemon.write("note.txt", "seventeen camels\n");
    let id = daemon.client().session(&daemon.work());
    dwell(&daemon, &["ask", "-s", &id, "say rhinoceros"]);
    dwell(&daemon, &["rename", &id, "the", "title"]);
    assert!(dwell(&daemon, &["ls"]).contains("the title"));
    assert!(dwell(&daemon, &["log", &id]).contains("rhinoceros"));
    assert!(dwell(&daemon, &["export", &id]).contains("rhinoceros"));
    assert!(dwell(&daemon, &["search", "rhinoceros"]).contains(&id));
    let fork = dwell(&daemon, &["fork", &id]).trim().to_owned();
    assert_ne!(fork, id);
    assert!(dwell(&daemon, &["log", &fork]).contains("rhinoceros"));
    dwell(&daemon, &["send", &id, "wait 60000"]);
    dwell(&daemon, &["send", &id, "say queued"]);
    assert!(dwell(&daemon, &["queue", &id]).contains("say queued"));
    dwell(&daemon, &["cancel", &id]);
    assert!(dwell(&daemon, &["tools", "-s", &id]).contains("execute"));
    assert!(
        dwell(
            &daemon,
            &["run", "-s", &id, "read", "{\"path\": \"note.txt\"}"]
        )
        .contains("seventeen camels")
    );
    assert!(dwell(&daemon, &["commands", "-s", &id]).contains("/help"));
    assert!(dwell(&daemon, &["providers"]).contains("script"));
    assert!(dwell(&daemon, &["daemon", "status"]).contains(&daemon.pid().to_string()));
    dwell(&daemon, &["rm", &fork]);
    assert!(!dwell(&daemon, &["ls"]).contains(&fork));
    assert!(dwell(&daemon, &["--help"]).contains("ask"));
}

#[test]
fn an_unknown_session_exits_with_a_message_that_names_it() {
    let daemon = TestDaemon::start();
    for args in [
        ["log", "no-such"],
        ["cancel", "no-such"],
        ["export", "no-such"],
    ] {
        let ran = Dwell::new(&daemon).args(args).run();
        assert_ne!(ran.code, Some(0));
        assert!(ran.stderr.contains("no-such"), "{}", ran.stderr);
    }
}

#[test]
fn an_interrupted_ask_cancels_its_turn() {
    let daemon = TestDaemon::start();
    let mut command = std::process::Command::new(&harness::binaries::binaries().client);
    daemon.apply(&mut command);
    command
        .env("DWELL_SOCKET", daemon.socket())
        .args(["ask", "-p", "script", "wait 60000"]);
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut client = daemon.client();
    harness::wait::until_true("the turn to run", harness::wait::SOON, || {
        client.call("session/list", json!({}))["sessions"][0]["state"] == "running"
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let status = harness::daemon::wait_child(&mut child, harness::wait::SOON).expect("it ends");
    assert_eq!(status.code(), Some(130));
    assert_ne!(
        client.call("session/list", json!({}))["sessions"][0]["state"],
        "running"
    );
}

#[test]
fn the_daemon_is_started_and_stopped_by_hand() {
    let sandbox = Sandbox::new();
    let _stop = AutoStarted(&sandbox);
    let status = Dwell::alone(&sandbox).args(["daemon", "status"]).run();
    assert_ne!(status.code, Some(0), "{}", status.stdout);
    Dwell::alone(&sandbox).args(["daemon", "start"]).ok();
    Dwell::alone(&sandbox).args(["daemon", "status"]).ok();
    Dwell::alone(&sandbox).args(["daemon", "stop"]).ok();
    let status = Dwell::alone(&sandbox).args(["daemon", "status"]).run();
    assert_ne!(status.code, Some(0), "{}", status.stdout);
}

#[test]
fn a_prompt_behind_dwell_is_said_in_the_newest_session_or_in_a_new_one() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let open = |args: &[&str], shows: &str| {
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        command
            .env("DWELL_SOCKET", daemon.socket())
            .env("TERM", "xterm-256color")
            .args(args);
        let mut pty = Pty::spawn(command);
        pty.until(shows, SOON).expect("the prompt is answered");
        pty.write("/exit\r");
    };
    open(
        &["-p", "script", "-t", "Camels", "say one camel"],
        "one camel",
    );
    open(&["say two camels"], "two camels");
    let listed = client.call("session/list", json!({}))["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed[0]["title"], "Camels");
    open(&["-p", "script", "say three camels"], "three camels");
    let listed = client.call("session/list", json!({}))["sessions"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 2, "{listed}");
}

#[test]
fn a_mistyped_command_is_no_prompt() {
    let daemon = TestDaemon::start();
    for args in [&["lst"][..], &["lst", "--json"], &["lst", "-n", "3"]] {
        let ran = Dwell::new(&daemon).args(args.iter().copied()).run();
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("no command is called \"lst\""),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("`dwell list`"), "{}", ran.stderr);
    }
    for (args, hint) in [
        (&["fix", "the", "build"][..], "`dwell \"fix the build\"`"),
        (&["fix it", "now"], "in quotes"),
        (&["new", "fix it"], "a directory is wanted here"),
    ] {
        let ran = Dwell::new(&daemon).args(args.iter().copied()).run();
        assert!(ran.stderr.contains(hint), "{args:?}: {}", ran.stderr);
    }
    let piped = Dwell::new(&daemon).args(["say one camel"]).run();
    assert_eq!(piped.code, Some(2));
    assert!(piped.stderr.contains("dwell ask"), "{}", piped.stderr);
    let astray = Dwell::new(&daemon).args(["-p", "script", "ls"]).run();
    assert_eq!(astray.code, Some(2));
    assert!(astray.stderr.contains("dwell new -p"), "{}", astray.stderr);
}

#[test]
fn a_client_of_another_home_does_not_see_these_sessions() {
    let (one, two) = (TestDaemon::start(), TestDaemon::start());
    let id = one.client().session(&one.work());
    assert!(!dwell(&two, &["ls"]).contains(&id));
}

#[track_caller]
fn dwell(daemon: &TestDaemon, args: &[&str]) -> String {
    Dwell::new(daemon).args(args.iter().copied()).ok()
}

fn ask(daemon: &TestDaemon, args: &[&str]) -> Ran {
    Dwell::new(daemon)
        .args(std::iter::once("ask").chain(args.iter().copied()))
        .run()
}
