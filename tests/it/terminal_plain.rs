//! Terminals that cannot be drawn on, lines that are piped in, and links that are down.

use crate::screen::shell;
use crate::terminal::command;
use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::sandbox::Sandbox;
use harness::ssh::{remote_dwell, stand_in};
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until, until_true};
use serde_json::json;
use std::fs;

const WHY: &str = "tmux (apt install tmux) is not here";

#[test]
fn a_command_of_ones_own_runs_where_nothing_can_be_drawn() {
    let name = "a_command_of_ones_own_runs_where_nothing_can_be_drawn";
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let played = Dwell::new(&daemon)
        .args(["attach", &session])
        .stdin("!echo piped > made; cat made\nsay what was that\n")
        .ok();
    let together = "-> execute echo piped > made; cat made\n  piped\n  ok ";
    assert!(played.contains(together), "{played}");
    assert_eq!(played.matches("piped\n").count(), 1, "{played}");
    assert_eq!(daemon.read("made"), "piped\n");
    let params = json!({"session": session, "line": "/context json"});
    let read = client.call("command/run", params)["output"].to_string();
    assert!(
        read.contains("I ran `echo piped"),
        "the model reads what it printed: {read}"
    );
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open("dumb", &line.replace("TERM=xterm-256color", "TERM=dumb"));
    until_true("the terminal to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 1
    });
    tmux.type_line("dumb", "!echo typed > begun; sleep 1000");
    until_true("the command to run", SOON, || {
        daemon.read("begun") == "typed\n"
    });
    tmux.press("dumb", "C-c");
    tmux.shows("dumb", "cancelled");
    tmux.type_line("dumb", "!echo still here");
    tmux.shows("dumb", "\n  still here\n  ok ");
}

#[test]
fn what_is_typed_while_a_plain_turn_runs_is_queued_and_a_cancel_says_what_was_not_sent() {
    let name =
        "what_is_typed_while_a_plain_turn_runs_is_queued_and_a_cancel_says_what_was_not_sent";
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open("dumb", &line.replace("TERM=xterm-256color", "TERM=dumb"));
    until_true("the terminal to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 1
    });
    tmux.type_line("dumb", "say begun\nwait 600000");
    tmux.type_line("dumb", "wait 600000");
    tmux.type_line("dumb", "say never");
    tmux.shows("dumb", ": say never\n");
    tmux.press("dumb", "C-c");
    tmux.shows("dumb", "\nnot sent: say never\n");
    let queue = client.call("queue/list", json!({"session": session}));
    assert_eq!(queue, json!([]), "nothing waits unseen");
    // Behind a command of one's own, and behind a turn that goes on to its end.
    tmux.type_line(
        "dumb",
        "!until [ -e over ]; do sleep 0.05; done; echo was here",
    );
    tmux.type_line("dumb", "say meanwhile");
    tmux.shows("dumb", "\nmeanwhile\n");
    daemon.write("over", "");
    tmux.shows("dumb", "\n  was here\n");
    tmux.type_line("dumb", "do execute {\"command\": \"true\"}");
    tmux.shows("dumb", "allow? ");
    tmux.press("dumb", "C-c");
    tmux.shows("dumb", "question withdrawn");
    tmux.type_line("dumb", "say and on");
    tmux.shows("dumb", "\nand on\n");
}

#[test]
fn a_terminal_that_cannot_be_drawn_on_breaks_between_words_and_a_pipe_nowhere() {
    let name = "a_terminal_that_cannot_be_drawn_on_breaks_between_words_and_a_pipe_nowhere";
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let words = "- a list's item that is wider than the window, with 日本語のテキスト and 👍 in it";
    let code = "let of_code = \"that is wider than the window and stays as it is\";";
    let script = format!("line {words}\nline ```\nline {code}\nline ```\nsay end");
    let piped = Dwell::new(&daemon)
        .args(["ask", "-s", &session])
        .stdin(&script)
        .ok();
    assert!(piped.contains(words) && piped.contains(code), "{piped}");
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let dumb = |rest: &str| command(&daemon, rest).replace("TERM=xterm-256color", "TERM=dumb");
    daemon.write("script", &script);
    let line = dumb(&format!("attach {session}"));
    tmux.open_sized("attach", &line, 40, 15);
    let line = dumb("ask -p script \"$(cat script)\"; sleep 60");
    let work = daemon.work();
    let cd = format!("cd '{}'; ", work.display());
    tmux.open_sized("ask", &(cd + line.trim_start_matches("exec ")), 40, 15);
    let golden = "\
- a list's item that is wider than the
  window, with 日本語のテキスト and 👍
  in it
```
let of_code = \"that is wider than the wi
ndow and stays as it is\";
```
end";
    for terminal in ["attach", "ask"] {
        until("rows that break between words", SOON, || {
            let window = tmux.window(terminal);
            match window.contains(golden) {
                true => Ok(()),
                false => Err(window),
            }
        });
    }
}

#[test]
fn a_fresh_session_plays_the_lines_that_are_piped_in() {
    let name = "a_fresh_session_plays_the_lines_that_are_piped_in";
    let daemon = TestDaemon::start();
    let Some((tmux, _, _)) = shell(&daemon, name) else {
        return;
    };
    let line =
        command(&daemon, "new -p script").replace("exec ", "printf 'say uno\\nsay dos\\n' | ");
    tmux.type_line("sh", &format!("clear; {line}"));
    tmux.shows("sh", "uno\ndos\n");
}

#[test]
fn lines_that_are_piped_in_end_as_the_last_of_them_that_did_not_end_well() {
    let daemon = TestDaemon::start();
    let id = daemon.client().session(&daemon.work());
    let attach = |lines: &str| {
        let ran = Dwell::new(&daemon).args(["attach", &id]).stdin(lines).run();
        (ran.code, ran.stdout)
    };
    assert_eq!(attach("say fine\n").0, Some(0));
    let (code, stdout) = attach("fail boom\nsay and on\n");
    assert_eq!(code, Some(1), "{stdout}");
    assert!(stdout.contains("and on"), "all lines are played: {stdout}");
    for line in ["!false", "!exit 7", "/nonsense", "/attach nobody-at-all"] {
        let (code, stdout) = attach(&format!("{line}\nsay went on\n/exit\n"));
        let expected = if line.starts_with("/attach") { 4 } else { 1 };
        assert_eq!(code, Some(expected), "{line}: {stdout}");
        assert!(stdout.contains("went on"), "{line}: {stdout}");
    }
    assert_eq!(
        attach("/attach nobody-at-all\n!false\n").0,
        Some(1),
        "the last decides"
    );
    assert_eq!(
        attach("say fine again\n!true\n").0,
        Some(0),
        "what failed before is past"
    );
}

#[test]
fn a_link_that_is_down_is_told_in_one_line_with_what_ssh_says() {
    let name = "a_link_that_is_down_is_told_in_one_line_with_what_ssh_says";
    let there = TestDaemon::start();
    let here = Sandbox::new();
    let Some(tmux) = Tmux::start(&here) else {
        return skip(name, WHY);
    };
    let ssh = stand_in(&here, &there);
    let well = fs::read_to_string(&ssh).unwrap();
    let mut line = "exec env -i TERM=xterm-256color".to_owned();
    for (name, value) in here.variables() {
        line.push_str(&format!(" {name}='{value}'"));
    }
    line.push_str(&format!(
        " DWELL_SSH='{}' DWELL_REMOTE='{}' '{}' --host 'box:{}' new -p script",
        ssh.display(),
        remote_dwell().display(),
        binaries().client.display(),
        there.work().display(),
    ));
    tmux.open_sized("it", &line, 100, 24);
    tmux.shows("it", "· script");
    tmux.type_line("it", "say before");
    tmux.shows("it", "\nbefore");
    // From now on ssh finds no way; then the way that there was ends.
    let broken = "#!/bin/sh\necho 'ssh: No route to host' >&2\nexit 255\n";
    fs::write(here.path("next"), broken).unwrap();
    harness::sandbox::set_mode(&here.path("next"), 0o755);
    fs::rename(here.path("next"), &ssh).unwrap();
    let log = fs::read_to_string(here.path("ssh.log")).unwrap();
    let pid = log.split_whitespace().next().unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let down = "no connection, trying again: ssh did not reach box: ssh: No route to host";
    let screen = tmux.shows("it", down);
    assert_eq!(screen.matches("No route").count(), 1, "{screen}");
    fs::write(here.path("next"), well).unwrap();
    harness::sandbox::set_mode(&here.path("next"), 0o755);
    fs::rename(here.path("next"), &ssh).unwrap();
    until_true("the line to go", SOON, || {
        !tmux.screen("it").contains("no connection")
    });
    tmux.type_line("it", "say after");
    tmux.shows("it", "\nafter");
}
