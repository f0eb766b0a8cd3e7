//! `--host`: the other machine's daemon goes while somebody waits for it.

use crate::remote::{cut, dwell, first_session, here};
use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::editor::Editor;
use harness::sandbox::Sandbox;
use harness::ssh::stand_in;
use serde_json::json;
use std::fs;
use std::process::Command;

/// The other machine and this one.
fn two() -> (TestDaemon, Sandbox) {
    let there = TestDaemon::start();
    let sandbox = Sandbox::new();
    let ssh = stand_in(&sandbox, &there);
    let sandbox = here(sandbox, ssh.to_str().unwrap());
    (there, sandbox)
}

#[test]
fn a_daemon_that_died_there_is_started_again_and_whoever_waits_has_his_answer() {
    let (mut there, sandbox) = two();
    let mut other = there.client();
    let asked = dwell(&sandbox, &there, &["ask", "say A \nwait 60000\nsay B"]);
    let ran = std::thread::scope(|scope| {
        let asking = scope.spawn(|| asked.run());
        let session = first_session(&mut other);
        other.attach(&session, Some(0));
        other.until_type("saying");
        there.kill9();
        asking.join().unwrap()
    });
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let why = "interrupted: the daemon stopped";
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    let said = dwell(&sandbox, &there, &["daemon", "stop"]).ok();
    assert!(said.contains("stopped"), "it ran: {said}");
}

#[test]
fn a_daemon_that_was_stopped_there_stays_so_and_whoever_waits_is_told_what_to_do() {
    let (mut there, sandbox) = two();
    let mut command = Command::new(&binaries().client);
    sandbox.apply(&mut command);
    let host = format!("box:{}", there.work().display());
    command.args(["--host", &host, "acp"]);
    let mut editor = Editor::of(command);
    editor.call("initialize", json!({"protocolVersion": 1}));
    let session = editor.session(&there);
    assert!(there.term().success());
    let prompt = editor.prompt(&session, "say late");
    let told = editor.response(prompt).unwrap_err();
    assert_eq!(
        told["message"],
        "on box: the daemon was stopped (`dwell --host box` starts it again and goes on)"
    );
    let none = dwell(&sandbox, &there, &["ls", "--no-start"]).run();
    assert_eq!(none.code, Some(3), "it was not started: {}", none.stderr);
    let told = format!(
        "error: on box: no daemon answers at {}\nhint: `dwell --host box daemon start` starts one\n",
        there.socket().display()
    );
    assert_eq!(none.stderr, told, "once, and for this machine");
}

/// A `dwell` there that does not know how to bring a daemon back still passes on.
#[test]
fn a_link_to_an_older_release_is_made_again() {
    let (there, sandbox) = two();
    let ssh = fs::read_to_string(sandbox.path("ssh")).unwrap();
    let refuses = "#!/bin/sh\ncase \"$*\" in *--revive) echo \"error: unexpected argument '--revive' found\" >&2; exit 2;; esac\n";
    fs::write(sandbox.path("ssh"), ssh.replacen("#!/bin/sh\n", refuses, 1)).unwrap();
    let ran = std::thread::scope(|scope| {
        let asking =
            scope.spawn(|| dwell(&sandbox, &there, &["ask", "say A \nwait 1000\nsay B"]).run());
        let mut other = there.client();
        let session = first_session(&mut other);
        other.attach(&session, Some(0));
        other.until_type("saying");
        cut(&sandbox);
        asking.join().unwrap()
    });
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "A B\n"),
        "{}",
        ran.stderr
    );
}
