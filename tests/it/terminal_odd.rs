//! Terminals that are odd, or come to an odd end: no size, other widths, late answers, questions by the handful. Skipped by
//! name where there is no tmux.

use crate::screen::{Scene, WHY, shell};
use crate::terminal::command;
use crate::terminal_states::end;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until};
use rustix::process::Signal;
use serde_json::json;

#[test]
fn a_terminal_that_knows_no_size_is_as_wide_as_usual() {
    let name = "a_terminal_that_knows_no_size_is_as_wide_as_usual";
    let daemon = TestDaemon::start();
    let Some((tmux, _client, session)) = shell(&daemon, name) else {
        return;
    };
    let line = |rest: &str| command(&daemon, rest).replace("exec ", "");
    let ask = line("ask -p script 'say some words in one row'");
    tmux.type_line("sh", &format!("clear; stty rows 0 cols 0; {ask}"));
    tmux.shows("sh", "\nsome words in one row\n");
    let attach = line(&format!("attach {session}"));
    tmux.type_line("sh", &format!("clear; {attach}"));
    tmux.shows("sh", &format!("{session} · script"));
}

#[test]
fn a_pager_that_is_not_there_is_told_and_one_that_control_c_ended_is_none_that_failed() {
    let name = "a_pager_that_is_not_there_is_told_and_one_that_control_c_ended_is_none_that_failed";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    client.start(&session, "think deep\nsay done");
    let attach = command(&daemon, &format!("attach {session}")).replace("exec ", "");
    let with = |pager: &str| attach.replace("TERM=", &format!("PAGER='{pager}' TERM="));
    tmux.type_line("sh", &format!("clear; {}", with("no-such-pager")));
    tmux.shows("sh", &format!("{session} · "));
    tmux.press("sh", "M-o");
    tmux.shows("sh", "cannot run no-such-pager: there is no such program\n");
    tmux.shows("sh", "hint: PAGER names it\n");
    tmux.press("sh", "C-d");
    tmux.shows("sh", "detached from");
    let script = daemon.write(
        "pager",
        "echo paging; read -r line < /dev/tty; kill -INT $$\n",
    );
    let pager = with(&format!("sh {}; exit $?", script.display()));
    tmux.type_line("sh", &format!("clear; {pager}"));
    tmux.shows("sh", &format!("{session} · "));
    tmux.press("sh", "M-o");
    tmux.shows("sh", "paging\n");
    tmux.type_line("sh", "");
    tmux.type_line("sh", "say and on");
    let window = tmux.shows("sh", "\nand on\n");
    assert!(!window.contains("ended with"), "{window}");
    end(&tmux, Signal::TERM);
}

#[test]
fn what_is_typed_outlives_the_daemon_that_is_stopped_meanwhile() {
    let name = "what_is_typed_outlives_the_daemon_that_is_stopped_meanwhile";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    let attach = command(&daemon, &format!("attach {session}")).replace("exec ", "");
    tmux.type_line("sh", &format!("clear; {attach}"));
    tmux.shows("sh", &format!("{session} · script"));
    tmux.type_text("sh", "a long thought");
    tmux.shows("sh", "> a long thought");
    client.call("daemon/shutdown", json!({"grace_ms": 0}));
    tmux.shows("sh", "what was typed is in the history");
    tmux.shows("sh", "error: the daemon was stopped");
    let history = daemon.path("state").join("history.jsonl");
    let history = std::fs::read_to_string(&history).unwrap();
    assert!(history.contains("a long thought"), "{history}");
}

#[test]
fn what_the_editor_saved_outlives_the_client_that_is_ended_meanwhile() {
    let name = "what_the_editor_saved_outlives_the_client_that_is_ended_meanwhile";
    let daemon = TestDaemon::start();
    let Some((tmux, _client, session)) = shell(&daemon, name) else {
        return;
    };
    let script = daemon.write(
        "editor",
        "echo editing; read -r what < /dev/tty; echo \"$what\" >> \"$1\"\n",
    );
    let attach = command(&daemon, &format!("attach {session}"));
    let editor = format!("EDITOR='sh {}' TERM=", script.display());
    let attach = attach.replace("exec ", "").replace("TERM=", &editor);
    tmux.type_line("sh", &format!("clear; {attach}"));
    tmux.shows("sh", &format!("{session} · script"));
    tmux.type_text("sh", "say a draft ");
    tmux.press("sh", "C-g");
    tmux.shows("sh", "editing");
    let pids = harness::procfs::descendants(tmux.pid("sh"));
    let client = i32::try_from(pids[0]).unwrap();
    let client = rustix::process::Pid::from_raw(client).unwrap();
    rustix::process::kill_process(client, Signal::TERM).unwrap();
    tmux.type_line("sh", "of an hour");
    tmux.shows("sh", "what was typed is in the history");
    tmux.shows("sh", "detached from");
    tmux.type_line("sh", &format!("clear; {attach}"));
    tmux.shows("sh", &format!("{session} · script"));
    tmux.press("sh", "Up");
    tmux.shows("sh", "> say a draft of an hour");
    tmux.press("sh", "C-u");
    end(&tmux, Signal::TERM);
}

#[test]
fn characters_that_a_terminal_takes_for_wider_leave_no_copies() {
    let name = "characters_that_a_terminal_takes_for_wider_leave_no_copies";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    let word = |n: u32| format!("say w{n} 👍🏽👩🏾‍🚀👨‍👩‍👧‍👦🏳️‍🌈❤️ \nwait 10\n");
    let words: String = (0..40).map(word).collect();
    scene.start(&format!("say beginning \n{words}say end"));
    scene.client.until_ended();
    let screen = scene.tmux.shows("it", "end");
    let copies = screen.lines().filter(|line| line.starts_with("beginning"));
    assert_eq!(copies.count(), 1, "{screen}");
}

#[test]
fn a_late_answer_of_the_terminal_is_nothing_that_was_typed() {
    let name = "a_late_answer_of_the_terminal_is_nothing_that_was_typed";
    let daemon = TestDaemon::start();
    let Some(scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    for answer in [
        "\x1b]11;rgb:0000/0000/0000\x1b\\",
        "\x1b]11;rgb:0000/0000/0000\x07",
        "\x1bP1$r0m\x1b\\",
    ] {
        scene.tmux.type_text("it", answer);
    }
    scene.tmux.type_text("it", "say it");
    scene.tmux.shows("it", "\n> say it\n");
}

#[test]
fn of_several_questions_each_says_which_it_is_and_tab_never_types() {
    let name = "of_several_questions_each_says_which_it_is_and_tab_never_types";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    daemon.write("c.txt", "");
    let mut client = daemon.client();
    let toolbox = json!({"code": {"of": "default"}});
    let params = json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox});
    let session = client.session_with(params);
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open_sized("it", &line, 80, 24);
    tmux.shows("it", "script");
    let code = "await Promise.all([1, 2, 3].map(i => tools.execute({command: 'echo par' + i})))";
    client.start(&session, &format!("do run_code {}", json!({"code": code})));
    tmux.shows("it", "(1 of 3, Tab: next)");
    for which in [2, 3, 1, 2] {
        tmux.press("it", "Tab");
        tmux.shows("it", &format!("({which} of 3, Tab: next)"));
    }
    for _ in 0..5 {
        tmux.press("it", "Tab");
    }
    // Seven times round is one question further.
    until("the line to stay empty", SOON, || {
        let window = tmux.window("it");
        let asked = window.contains("(1 of 3, Tab: next)");
        let empty = window.lines().any(|line| line.trim_end() == "allow?");
        if asked && empty { Ok(()) } else { Err(window) }
    });
}

#[test]
fn a_setting_that_nobody_understands_is_told() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let attached = Dwell::new(&daemon)
        .args(["attach", &session])
        .env("DWELL_KEYS", "bogus")
        .env("DWELL_RESULTS", "5")
        .stdin("")
        .run();
    let told = "warning: DWELL_KEYS=bogus is not understood: it takes `vi` or `emacs`\n";
    assert!(attached.stderr.contains(told), "{attached:?}");
    assert!(!attached.stderr.contains("DWELL_RESULTS"), "{attached:?}");
    let doctor = Dwell::new(&daemon)
        .args(["doctor"])
        .env("DWELL_PAST", "abc")
        .run();
    assert!(
        doctor.stdout.contains("DWELL_PAST=abc is not understood"),
        "{doctor:?}"
    );
}

#[test]
fn a_fork_is_gone_to_and_a_few_letters_name_a_command() {
    let name = "a_fork_is_gone_to_and_a_few_letters_name_a_command";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (100, 30)) else {
        return;
    };
    scene.start("say one");
    scene.client.until_ended();
    scene.tmux.type_text("it", "/fk");
    scene.tmux.shows("it", "/fork");
    scene.tmux.press("it", "Tab");
    scene.tmux.shows("it", "\n> /fork");
    scene.tmux.press("it", "Enter");
    let back = format!("forked; /attach {} comes back here", scene.session);
    let screen = scene.tmux.shows("it", &back);
    assert!(screen.contains("\none\n"), "{screen}");
    until("the fork to be shown", SOON, || {
        let window = scene.tmux.window("it");
        let status = window.lines().rfind(|line| !line.is_empty()).unwrap_or("");
        let there = status.contains("script") && !status.contains(&scene.session);
        if there { Ok(()) } else { Err(window) }
    });
}
