//! `dwell ask` for programs: one JSON object a line, replies that fit a schema, what is said on stderr, what may be piped in.

use harness::binaries::binaries;
use harness::daemon::{TestDaemon, wait_child};
use harness::dwell::{Dwell, Ran};
use harness::model::{Answer, FakeModel};
use harness::wait::SOON;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

fn ask(daemon: &TestDaemon, args: &[&str]) -> Ran {
    let all = ["ask", "-p", "script"].iter().chain(args).copied();
    Dwell::new(daemon).args(all).run()
}

/// Every line of an output as JSON.
#[track_caller]
fn lines(stdout: &str) -> Vec<Value> {
    let parsed = stdout.lines().map(serde_json::from_str);
    parsed.collect::<Result<_, _>>().expect(stdout)
}

/// `ask --json` that runs, with the lines that it writes.
fn begun(daemon: &TestDaemon, prompt: &str) -> (Child, BufReader<ChildStdout>) {
    let mut command = Command::new(&binaries().client);
    daemon.apply(&mut command);
    let command = command
        .env("DWELL_SOCKET", daemon.socket())
        .args(["ask", "-p", "script", "--json", prompt])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("saying") {
        line.clear();
        assert!(
            stdout.read_line(&mut line).unwrap() > 0,
            "it says something"
        );
    }
    (child, stdout)
}

/// What came after that, and the exit code.
fn ended((mut child, mut stdout): (Child, BufReader<ChildStdout>)) -> (Option<i32>, Value) {
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    let status = wait_child(&mut child, SOON).expect("it ends");
    (status.code(), lines(&rest).pop().expect("an end"))
}

#[test]
fn each_line_is_an_event_and_the_last_one_tells_how_it_ended() {
    let daemon = TestDaemon::start();
    let call = "do execute {\"command\": \"printf 'a\\\\nb\\\\033[1m'\"}\nsay done";
    for (args, code, status, reply) in [
        (&["--json", "say hello"][..], 0, "completed", "hello"),
        (&["--json", "--yes", call], 0, "completed", "done"),
        (&["--json", call], 0, "completed", "done"),
        (
            &["--json", "do no_such_tool {}\nsay on"],
            0,
            "completed",
            "on",
        ),
        (
            &["--json", "say half\nfail boom"],
            1,
            "failed",
            "Error: boom",
        ),
    ] {
        let ran = ask(&daemon, args);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
        let events = lines(&ran.stdout);
        let last = events.last().unwrap();
        assert_eq!(
            (&last["type"], &last["status"], &last["reply"]),
            (&json!("turn_ended"), &json!(status), &json!(reply)),
            "{args:?}"
        );
        assert!(events.iter().all(|event| event["type"].is_string()));
        assert!(!ran.stderr.contains("Error: "), "said once: {}", ran.stderr);
    }
}

#[test]
fn an_interrupt_ends_the_lines_with_a_cancelled_turn() {
    let daemon = TestDaemon::start();
    let running = begun(&daemon, "say begun\nwait 60000");
    kill_process(Pid::from_child(&running.0), Signal::INT).unwrap();
    let (code, last) = ended(running);
    assert_eq!((code, &last["status"]), (Some(130), &json!("cancelled")));
}

#[test]
fn a_daemon_that_is_killed_in_mid_stream_ends_the_lines_when_it_is_back() {
    let mut daemon = TestDaemon::start();
    let running = begun(&daemon, "say begun\nwait 60000");
    daemon.kill9();
    daemon.restart();
    let (code, last) = ended(running);
    assert_eq!((code, &last["type"]), (Some(1), &json!("turn_ended")));
    assert_eq!(last["status"], "interrupted");
}

#[test]
fn what_goes_well_is_quiet_and_what_does_not_tells_all_that_led_there() {
    let daemon = TestDaemon::start();
    let call = "think hm\ndo execute {\"command\": \"true\"}\nsay done";
    let well = ask(&daemon, &["--yes", call]);
    assert_eq!((well.stdout.as_str(), well.stderr.as_str()), ("done\n", ""));
    let told = ask(&daemon, &["--yes", "--verbose", call]);
    assert_eq!(told.stdout, "done\n");
    assert!(told.stderr.contains("session ") && told.stderr.contains("execute true"));
    let failed = ask(
        &daemon,
        &["--yes", &format!("{call}\ndo list {{}}\nfail boom")],
    );
    assert_eq!(failed.code, Some(1));
    for part in ["session ", "execute true", "boom"] {
        assert!(failed.stderr.contains(part), "{part}: {}", failed.stderr);
    }
    let denied = ask(&daemon, &[call]);
    assert_eq!((denied.code, denied.stdout.as_str()), (Some(0), "done\n"));
    assert!(denied.stderr.contains("denied"), "{}", denied.stderr);
}

#[test]
fn a_schema_may_refer_within_itself_and_a_reply_may_stand_in_a_fence() {
    let prose = "Here it is:\n\n```json\n{\"items\": [{\"n\": 1}]}\n```\nAnything else?";
    let model = FakeModel::start([Answer::text([prose]), Answer::text(["[]"])]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let schema = json!({
        "type": "object", "required": ["items"],
        "properties": {"items": {"items": {"$ref": "#/$defs/one"}, "minItems": 1}},
        "$defs": {"one": {"required": ["n"], "properties": {"n": {"type": "integer"}}}},
    });
    let file = daemon.write("schema.json", &schema.to_string());
    let base = [
        "-p",
        "openai",
        "--model",
        "fake",
        "--schema",
        file.to_str().unwrap(),
    ];
    let with = |rest: &[&str]| {
        let all = ["ask"].iter().chain(&base).chain(rest).copied();
        Dwell::new(&daemon).args(all).run()
    };
    let fits = with(&["x"]);
    assert_eq!(fits.stdout, "{\"items\":[{\"n\":1}]}\n", "{}", fits.stderr);
    let never = with(&["--retries", "0", "--json", "x"]);
    assert_eq!(never.code, Some(1));
    let last = lines(&never.stdout).pop().unwrap();
    assert_eq!(
        (&last["type"], &last["fits"]),
        (&json!("schema"), &json!(false))
    );
    let asked = model.requests().len();
    daemon.write("schema.json", "{\"items\": {\"$ref\": \"#/$defs/none\"}}");
    let slip = with(&["x"]);
    assert_eq!(slip.code, Some(2), "{}", slip.stderr);
    assert!(
        !slip.stderr.contains("cannot use the schema: "),
        "said once"
    );
    assert!(slip.stderr.contains("#/$defs/none"), "{}", slip.stderr);
    assert_eq!(
        model.requests().len(),
        asked,
        "no model is asked for nothing"
    );
}

#[test]
fn with_json_and_a_schema_the_last_line_has_the_value() {
    let model = FakeModel::start([Answer::text(["no"]), Answer::text(["```\n7\n```"])]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let file = daemon.write("schema.json", "{\"type\": \"integer\"}");
    let file = file.to_str().unwrap();
    let args = [
        "ask", "-p", "openai", "--model", "fake", "--json", "--schema", file, "x",
    ];
    let ran = Dwell::new(&daemon).args(args).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last = lines(&ran.stdout).pop().unwrap();
    assert_eq!(last, json!({"type": "schema", "fits": true, "value": 7}));
}

#[test]
fn whatever_is_piped_in_is_taken_or_refused_with_a_reason() {
    let daemon = TestDaemon::start();
    let piped = |bytes: &[u8]| {
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        let command = command
            .env("DWELL_SOCKET", daemon.socket())
            .args(["ask", "-p", "script"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // A reader that has had enough is no fault of the writer.
        let _ = child.stdin.take().unwrap().write_all(bytes);
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    assert_eq!(
        piped(b"say caf\xc3\xa9\n"),
        (Some(0), "café\n".into(), String::new())
    );
    let (code, stdout, stderr) = piped(b"say caf\xe9\n");
    assert_eq!((code, stdout.as_str()), (Some(0), "caf\u{fffd}\n"));
    assert!(stderr.contains("byte 8"), "{stderr}");
    let (code, _, stderr) = piped(b"say \0\n");
    assert!(code == Some(2) && stderr.contains("zero bytes"), "{stderr}");
    let (code, _, stderr) = piped(&vec![b'a'; 10_000_000]);
    assert!(code == Some(2) && stderr.contains("8 MiB"), "{stderr}");
    let comment = [&b"say long\n#"[..], &vec![b'a'; 7_000_000]].concat();
    assert_eq!(piped(&comment), (Some(0), "long\n".into(), String::new()));
}

#[test]
fn a_schema_may_say_all_that_the_standard_knows_and_more() {
    let model = FakeModel::start([Answer::text(["\"b1\""]), Answer::text(["\"a1\""])]);
    let (daemon, ..) = TestDaemon::with_model(&model);
    let schema = json!({
        "$comment": "a key", "x-note": 1, "type": "string", "pattern": "^a[0-9]$",
        "if": {"minLength": 1}, "then": {"maxLength": 2},
    });
    let file = daemon.write("schema.json", &schema.to_string());
    let file = file.to_str().unwrap();
    let args = [
        "ask", "-p", "openai", "--model", "fake", "--schema", file, "x",
    ];
    let ran = Dwell::new(&daemon).args(args).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, "\"a1\"\n");
    assert_eq!(model.requests().len(), 2, "the first does not fit");
}
