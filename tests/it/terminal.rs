//! The client in real terminals, several on one session. Skipped by name where there is no tmux.

use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until, until_true};
use serde_json::json;

const WHY: &str = "tmux is not installed";

#[test]
fn two_terminals_see_the_same_one_dies_and_a_third_sees_all_of_it() {
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(
            "two_terminals_see_the_same_one_dies_and_a_third_sees_all_of_it",
            WHY,
        );
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let attach = command(&daemon, &format!("attach {session}"));
    tmux.open("one", &attach);
    tmux.open("two", &attach);
    until_true("both to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 3
    });
    let turn = "say alpha \nwait 200\nsay beta \nsay gamma\nwait 1500\ndo list {}\nsay delta \nwait 200\nsay omega";
    client.start(&session, turn);
    for terminal in ["one", "two"] {
        tmux.shows(terminal, "alpha beta gamma");
    }
    tmux.close("one");
    tmux.open("three", &attach);
    let whole = ["alpha beta gamma", "list", "delta omega"];
    for terminal in ["two", "three"] {
        for part in whole {
            tmux.shows(terminal, part);
        }
    }
    assert_eq!(client.until_ended().last()["status"], "completed");
    let body = |screen: &str| -> Vec<String> {
        let lines = screen
            .lines()
            .map(str::trim_end)
            .filter(|line| whole.iter().any(|part| line.contains(part)));
        lines.map(str::to_owned).collect()
    };
    let screens = until("both terminals to show the same", SOON, || {
        let (two, three) = (tmux.screen("two"), tmux.screen("three"));
        if body(&two) == body(&three) {
            Ok(two)
        } else {
            Err(format!("{two}\n=====\n{three}"))
        }
    });
    assert_eq!(
        screens.matches("alpha").count(),
        screens.matches("omega").count()
    );
}

#[test]
fn a_person_types_sees_the_reply_and_leaves_and_the_session_stays() {
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(
            "a_person_types_sees_the_reply_and_leaves_and_the_session_stays",
            WHY,
        );
    };
    tmux.open("person", &command(&daemon, "new -p script"));
    let mut client = daemon.client();
    until_true("the session", SOON, || {
        client.call("session/list", json!({}))["sessions"][0]["id"].is_string()
    });
    let session = client.call("session/list", json!({}))["sessions"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    until_true("the terminal to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 1
    });
    tmux.type_line("person", "say good morning");
    until_true("the turn", SOON, || {
        client.history(&session).said() == "good morning"
    });
    tmux.shows("person", "good morning");
    tmux.press("person", "C-d");
    until_true("the terminal to be gone", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 0
    });
    assert_eq!(
        client.turn(&session, "say and on").last()["status"],
        "completed"
    );
}

#[test]
fn a_person_is_asked_in_line_and_only_a_yes_is_a_yes() {
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip("a_person_is_asked_in_line_and_only_a_yes_is_a_yes", WHY);
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    tmux.open("person", &command(&daemon, &format!("attach {session}")));
    until_true("the terminal to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 2
    });
    client.start(
        &session,
        "do execute {\"command\": \"echo ran >> ran\"}\nsay finished",
    );
    client.until_type("approval_asked");
    tmux.shows("person", "echo ran");
    tmux.press("person", "Enter");
    tmux.shows("person", "echo ran");
    assert_eq!(daemon.read("ran"), "", "Enter is no yes");
    tmux.type_line("person", "y");
    assert_eq!(client.until_ended().last()["status"], "completed");
    assert_eq!(daemon.read("ran"), "ran\n");
    tmux.shows("person", "finished");
}

#[test]
fn a_terminal_comes_back_by_itself_when_the_daemon_was_killed() {
    let mut daemon = TestDaemon::start();
    let session = daemon.client().session(&daemon.work());
    let sandbox = harness::sandbox::Sandbox::new();
    let Some(tmux) = Tmux::start(&sandbox) else {
        return skip(
            "a_terminal_comes_back_by_itself_when_the_daemon_was_killed",
            WHY,
        );
    };
    tmux.open("person", &command(&daemon, &format!("attach {session}")));
    let attached = |daemon: &TestDaemon| {
        daemon
            .client()
            .call("session/get", json!({"session": session}))["clients"]
            .clone()
    };
    until_true("the terminal to be attached", SOON, || {
        attached(&daemon) == 1
    });
    daemon.client().turn(&session, "say before");
    tmux.shows("person", "before");
    daemon.kill9();
    daemon.restart();
    until_true("the terminal to be back", SOON, || attached(&daemon) == 1);
    daemon.client().turn(&session, "say after");
    let screen = tmux.shows("person", "after");
    assert_eq!(
        screen
            .lines()
            .filter(|line| line.trim() == "before")
            .count(),
        1,
        "{screen}"
    );
}

/// A command line for a terminal: the sandbox's environment and nothing else.
pub fn command(daemon: &TestDaemon, rest: &str) -> String {
    let variables = daemon.variables();
    let mut line = "exec env -i TERM=xterm-256color".to_owned();
    for (name, value) in variables {
        line.push_str(&format!(" {name}='{value}'"));
    }
    line.push_str(&format!(
        " DWELL_SOCKET='{}' '{}' {rest}",
        daemon.socket().display(),
        binaries().client.display()
    ));
    line
}
