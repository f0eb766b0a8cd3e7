//! The terminal in every state that it can be in: what Ctrl-C does there, and what is left of it after a signal. Skipped by
//! name where there is no tmux.

use crate::screen::{Scene, WHY, attach, is_sane, shell};
use crate::terminal::command;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::procfs::{alive, descendants};
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// Waits until the window does not show a text any more.
#[track_caller]
pub fn is_rid_of(tmux: &Tmux<'_>, name: &str, text: &str) {
    until(&format!("{text:?} to be gone"), SOON, || {
        let window = tmux.window(name);
        if window.contains(text) {
            Err(window)
        } else {
            Ok(())
        }
    });
}

#[test]
fn control_c_leaves_the_menu_the_search_the_list_and_the_pager_and_nothing_else() {
    let name = "control_c_leaves_the_menu_the_search_the_list_and_the_pager_and_nothing_else";
    let daemon = TestDaemon::allowing();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.tmux.type_line("it", "say an older line");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.type_text("it", "/ren");
    scene.tmux.shows("it", "/rename  ");
    scene.tmux.press("it", "C-c");
    is_rid_of(&scene.tmux, "it", "/ren");
    scene.tmux.press("it", "C-r");
    scene.tmux.shows("it", "(history: )");
    scene.tmux.type_text("it", "older");
    scene.tmux.shows("it", "(history: older) say an older line");
    scene.tmux.press("it", "C-c");
    is_rid_of(&scene.tmux, "it", "(history");
    scene.tmux.press("it", "C-u");
    scene.tmux.type_line("it", "/attach");
    scene.tmux.shows("it", "Esc leaves");
    scene.tmux.press("it", "C-c");
    is_rid_of(&scene.tmux, "it", "Esc leaves");
    scene.start("do execute {\"command\": \"seq 9\"}");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.shows("it", "9 lines");
    scene.tmux.press("it", "M-o");
    scene.tmux.shows("it", "(END)");
    scene.tmux.press("it", "C-c");
    scene.tmux.press("it", "q");
    scene.tmux.type_line("it", "say still here");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.shows("it", "still here");
}

#[test]
fn control_c_stops_the_call_that_runs_with_its_turn() {
    let name = "control_c_stops_the_call_that_runs_with_its_turn";
    let daemon = TestDaemon::allowing();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("do execute {\"command\": \"echo begun; sleep 1000\"}\nsay never");
    scene.tmux.shows("it", "begun");
    scene.tmux.press("it", "C-c");
    let events = scene.client.until_ended();
    assert_eq!(events.last()["status"], "cancelled");
    scene.tmux.shows("it", "cancelled");
}

#[test]
fn two_control_c_that_come_together_cancel_the_turn_and_leave() {
    let name = "two_control_c_that_come_together_cancel_the_turn_and_leave";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    attach(&tmux, &daemon, &mut client, &session);
    client.start(&session, "say begun\nwait 60000");
    tmux.shows("sh", "begun");
    tmux.type_text("sh", "\u{3}\u{3}");
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    tmux.shows("sh", "detached from");
    is_sane(&tmux, "two Ctrl-C at once");
}

#[test]
fn control_c_ends_a_command_of_ones_own_and_the_turn_goes_on() {
    let name = "control_c_ends_a_command_of_ones_own_and_the_turn_goes_on";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("say begun\nwait 60000");
    scene.tmux.shows("it", "begun");
    scene.tmux.type_line("it", "!echo mine; sleep 1000");
    scene.tmux.shows("it", "Ctrl-C stops the command");
    scene.tmux.shows("it", "  mine\n");
    scene.tmux.press("it", "C-c");
    scene
        .tmux
        .shows("it", "execute echo mine; sleep 1000 · cancelled");
    let window = scene.tmux.screen("it");
    assert!(
        !window.contains("allow execute?"),
        "what one typed oneself is no question: {window}"
    );
    let state = scene
        .client
        .call("session/get", json!({"session": scene.session}));
    assert_eq!(state["state"], "running", "{state}");
    scene.tmux.press("it", "C-c");
    assert_eq!(scene.client.until_ended().last()["status"], "cancelled");
}

#[test]
fn a_command_of_ones_own_stands_once_with_what_it_printed_whatever_comes_between() {
    let name = "a_command_of_ones_own_stands_once_with_what_it_printed_whatever_comes_between";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (100, 40)) else {
        return;
    };
    let waits = |file: &str| {
        format!("until [ -e {file} ]; do sleep 0.05; done; echo from-$((1 + 1))-{file}")
    };
    let (one, two) = (waits("one"), waits("two"));
    scene.tmux.type_line("it", &format!("!{one}"));
    scene.client.until_type("call_started");
    scene.tmux.type_line("it", "say between");
    scene.client.until_ended();
    scene.tmux.type_line("it", &format!("!{two}"));
    scene.client.until_type("call_started");
    let line = command(&daemon, &format!("attach {}", scene.session));
    scene.tmux.open_sized("late", &line, 100, 40);
    scene.clients(2);
    daemon.write("two", "");
    scene.client.until_type("done");
    daemon.write("one", "");
    scene.client.until_type("done");
    scene
        .tmux
        .type_line("it", "!echo cut-$((1 + 1)); sleep 600");
    scene.tmux.shows("it", "  cut-2\n");
    scene.tmux.shows("it", "Ctrl-C stops the command");
    scene.tmux.press("it", "C-c");
    scene.client.until_type("done");
    scene.tmux.type_line("it", "say the end");
    scene.client.until_ended();
    for terminal in ["it", "late"] {
        scene.tmux.shows(terminal, "the end\n");
        let window = scene.tmux.window(terminal);
        let rows: Vec<&str> = window.lines().collect();
        for (command, printed) in [
            (&*two, "  from-2-two"),
            (&*one, "  from-2-one"),
            ("echo cut-$((1 + 1)); sleep 600", "  cut-2"),
        ] {
            let named = format!(" execute {command} · ");
            let at: Vec<usize> = (0..rows.len())
                .filter(|at| rows[*at].contains(&named))
                .collect();
            assert_eq!(
                at.len(),
                1,
                "{command} stands once in {terminal}:\n{window}"
            );
            assert_eq!(rows.get(at[0] + 1), Some(&printed), "{terminal}:\n{window}");
            let times = rows.iter().filter(|row| row.trim() == printed.trim());
            assert_eq!(times.count(), 1, "{printed} once in {terminal}:\n{window}");
        }
        assert!(
            !window.contains("allowed by"),
            "what is typed is not asked:\n{window}"
        );
    }
    let log = Dwell::new(&daemon).args(["log", &scene.session]).ok();
    for block in [
        format!("-> execute {two}\n  from-2-two\n  ok "),
        format!("-> execute {one}\n  from-2-one\n  ok "),
        "-> execute echo cut-$((1 + 1)); sleep 600\n  cut-2\n  failed cancelled".to_owned(),
    ] {
        assert_eq!(log.matches(&block).count(), 1, "{block}\n{log}");
    }
}

#[test]
fn what_was_queued_comes_back_into_the_line() {
    let name = "what_was_queued_comes_back_into_the_line";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("say begun\nwait 60000");
    scene.tmux.shows("it", "begun");
    for text in ["say one", "say two"] {
        scene.tmux.type_line("it", text);
        scene.tmux.shows("it", &format!("queued: {text}"));
    }
    scene.tmux.press("it", "M-Up");
    scene.tmux.shows("it", "> say two");
    is_rid_of(&scene.tmux, "it", "queued: say two");
    scene.tmux.press("it", "Enter");
    scene.tmux.shows("it", "queued: say two");
    scene.tmux.press("it", "C-c");
    assert_eq!(scene.client.until_ended().last()["status"], "cancelled");
    scene.tmux.shows("it", "> say one\n  say two\n");
    let waiting = scene
        .client
        .call("queue/list", json!({"session": scene.session}));
    assert_eq!(waiting, json!([]));
    // What another client queued is held, and says so.
    scene.tmux.press("it", "C-c");
    scene.start("say again\nwait 60000");
    scene.tmux.shows("it", "again");
    let session = scene.session.clone();
    let queued = json!({"session": session, "text": "say theirs", "queue": true});
    scene.client.call("turn/start", queued);
    scene
        .client
        .call("turn/cancel", json!({"session": session}));
    scene.tmux.shows("it", "held: say theirs");
    scene
        .tmux
        .shows("it", "held until your next prompt, Ctrl-C takes it back");
    scene.tmux.press("it", "C-c");
    scene.tmux.shows("it", "> say theirs");
}

#[test]
fn a_key_that_came_too_early_answers_nothing_and_is_no_prompt() {
    let name = "a_key_that_came_too_early_answers_nothing_and_is_no_prompt";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    // Typed before there is a question: it stays text, and the question says what to do.
    scene.tmux.type_text("it", "yy");
    scene.tmux.shows("it", "> yy");
    scene.start("do execute {\"command\": \"echo ran\"}\nsay done");
    scene.client.until_type("approval_asked");
    scene.tmux.shows("it", "the line is not empty");
    scene.tmux.press("it", "Enter");
    scene.tmux.shows("it", "yy is no answer: press one key");
    // Once there was time to read it, a key counts.
    until("the question to be answered", SOON, || {
        scene.tmux.press("it", "y");
        let window = scene.tmux.window("it");
        match window.lines().any(|line| line.starts_with("allow?")) {
            true => Err(window),
            false => Ok(()),
        }
    });
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    let history = scene.client.history(&scene.session);
    assert_eq!(history.of("turn_started").len(), 1);
}

/// A state: the turn that runs, the keys that lead there from an empty line, and what shows that it is reached.
type State = (&'static str, &'static [&'static str], &'static str);

const STATES: [State; 6] = [
    ("", &["h", "a", "l", "f"], "> half"),
    ("", &["/", "r", "e", "n"], "/rename  "),
    ("", &["C-r"], "(history: )"),
    (
        "",
        &["/", "a", "t", "t", "a", "c", "h", "Enter"],
        "Esc leaves",
    ),
    (
        "do execute {\"command\": \"echo begun; sleep 1000\"}",
        &[],
        "  begun",
    ),
    (
        "",
        &["!", "s", "l", "e", "e", "p", "Space", "9", "Enter"],
        "Ctrl-C stops the command",
    ),
];

#[test]
fn a_client_that_is_ended_in_a_menu_a_search_or_a_call_leaves_a_sane_terminal() {
    let name = "a_client_that_is_ended_in_a_menu_a_search_or_a_call_leaves_a_sane_terminal";
    let daemon = TestDaemon::allowing();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    for (prompt, keys, shows) in STATES {
        for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
            attach(&tmux, &daemon, &mut client, &session);
            if !prompt.is_empty() {
                client.start(&session, prompt);
            }
            keys.iter().for_each(|key| tmux.press("sh", key));
            tmux.shows("sh", shows);
            end(&tmux, signal);
            is_sane(&tmux, &format!("{signal:?} in {shows:?}"));
            if !prompt.is_empty() {
                client.call("turn/cancel", json!({"session": session}));
                assert_eq!(client.until_ended().last()["status"], "cancelled");
            }
        }
    }
}

/// Ends the program that the shell runs, and waits until it is gone.
pub fn end(tmux: &Tmux<'_>, signal: Signal) {
    let pid = the_client(tmux);
    kill_process(pid, signal).unwrap();
    let raw = u32::try_from(pid.as_raw_nonzero().get()).unwrap();
    until_true("the client to be gone", SOON, || !alive(raw));
}

fn the_client(tmux: &Tmux<'_>) -> Pid {
    let children = descendants(tmux.pid("sh"));
    assert_eq!(children.len(), 1, "the shell runs the client");
    Pid::from_raw(i32::try_from(children[0]).unwrap()).unwrap()
}

#[test]
fn the_list_that_a_person_starts_with_is_ended_in_good_order_too() {
    let name = "the_list_that_a_person_starts_with_is_ended_in_good_order_too";
    let daemon = TestDaemon::start();
    let Some((tmux, _client, _session)) = shell(&daemon, name) else {
        return;
    };
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let line = command(&daemon, "pick");
        tmux.type_line(
            "sh",
            &format!("clear; {}", line.trim_start_matches("exec ")),
        );
        tmux.shows("sh", "Esc leaves");
        end(&tmux, signal);
        is_rid_of(&tmux, "sh", "Esc leaves");
        is_sane(&tmux, &format!("{signal:?} in the list"));
    }
}

#[test]
fn control_z_gives_the_shell_its_terminal_and_fg_takes_it_again() {
    let name = "control_z_gives_the_shell_its_terminal_and_fg_takes_it_again";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    attach(&tmux, &daemon, &mut client, &session);
    tmux.type_text("sh", "half a thought");
    tmux.shows("sh", "> half a thought");
    tmux.press("sh", "C-z");
    tmux.shows("sh", "Stopped");
    is_sane(&tmux, "Ctrl-Z");
    tmux.type_line("sh", "clear; fg");
    tmux.shows("sh", "> half a thought");
    // Stopped by somebody else, without a word before: the same.
    let pid = the_client(&tmux);
    kill_process(pid, Signal::STOP).unwrap();
    tmux.shows("sh", "Stopped");
    tmux.type_line("sh", "clear; fg");
    tmux.shows("sh", "> half a thought");
    tmux.press("sh", "C-c");
    is_rid_of(&tmux, "sh", "half a thought");
    tmux.type_text("sh", "say whole");
    tmux.shows("sh", "> say whole");
    tmux.press("sh", "Enter");
    assert_eq!(client.until_ended().last()["reply"], "whole");
}

#[test]
fn what_is_typed_is_written_in_the_persons_editor() {
    let name = "what_is_typed_is_written_in_the_persons_editor";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let script = daemon.write(
        "editor",
        "echo x >> edits; echo; echo editing $(wc -l < edits); read -r what < /dev/tty\ncase $what in\nkill) echo saved >> \"$1\"; kill -9 $$ ;;\n\
         fail) exit 3 ;;\nesac\necho \"$what\" >> \"$1\"\n",
    );
    let line = command(&daemon, &format!("attach {session}"));
    let editor = format!("EDITOR='sh {}' TERM=", script.display());
    tmux.open_sized("it", &line.replace("TERM=", &editor), 80, 24);
    tmux.shows("it", "script");
    let mut count = 0;
    let mut edits = |keys: &[&str], answer: &str| {
        count += 1;
        keys.iter().for_each(|key| tmux.press("it", key));
        tmux.shows("it", &format!("editing {count}"));
        tmux.type_line("it", answer);
    };
    tmux.type_text("it", "say from the line, ");
    edits(&["C-g"], "fail");
    tmux.shows("it", "ended with exit status: 3");
    tmux.shows("it", "> say from the line,");
    tmux.press("it", "C-l");
    edits(&["C-x", "C-e"], "kill");
    tmux.shows("it", "ended with exit status: 137");
    tmux.shows("it", "what was written is in ");
    tmux.shows("it", "> say from the line,");
    tmux.press("it", "C-l");
    edits(&["C-g"], "say and from the editor");
    tmux.shows("it", "> say from the line, say and from the editor");
    tmux.press("it", "Enter");
    let events = client.until_ended();
    assert_eq!(
        events.one("turn_started")["text"],
        "say from the line, say and from the editor"
    );
}

#[test]
fn a_window_that_shrinks_leaves_one_copy_of_what_streams() {
    let name = "a_window_that_shrinks_leaves_one_copy_of_what_streams";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (120, 40)) else {
        return;
    };
    let row = |n: u32| format!("line | row{n} | {} |\n", "value ".repeat(15));
    let rows: String = (0..3).map(row).collect();
    let ask = "do execute {\"command\": \"echo x\"}";
    let session = scene.session.clone();
    scene.start(&format!("line | k | v |\nline |---|---|\n{rows}wait 60000"));
    scene.tmux.shows("it", "row2 │");
    scene.tmux.resize("it", 40, 15);
    // The same three columns of text need more rows now.
    until("the table to be drawn anew", SOON, || {
        let window = scene.tmux.window("it");
        let narrow = window.lines().all(|line| line.chars().count() <= 40);
        if narrow && window.contains("     │ value") {
            Ok(())
        } else {
            Err(window)
        }
    });
    scene
        .client
        .call("turn/cancel", json!({"session": session}));
    assert_eq!(scene.client.until_ended().last()["status"], "cancelled");
    scene.start(ask);
    scene.tmux.shows("it", "[y] once");
    let screen = scene.tmux.screen("it");
    assert_eq!(screen.matches("row2 │").count(), 1, "{screen}");
    assert_eq!(screen.matches("2 clients").count(), 1, "{screen}");
}
