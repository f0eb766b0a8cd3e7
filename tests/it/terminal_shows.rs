//! What a terminal is told and shown besides the replies, and what never reaches it. Skipped by name where there is no tmux.

use crate::screen::{Scene, WHY};
use crate::terminal::command;
use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::pty::Pty;
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until};
use serde_json::json;
use std::process::Command;

/// A client in a terminal whose bytes can be read.
fn attach(daemon: &TestDaemon, session: &str, notify: &str) -> Pty {
    let mut command = Command::new(&binaries().client);
    daemon.apply(&mut command);
    command
        .env("DWELL_SOCKET", daemon.socket())
        .env("TERM", "xterm-256color")
        .env("DWELL_NOTIFY", notify)
        .args(["attach", session]);
    let mut pty = Pty::spawn(command);
    pty.until("script", SOON).expect("it is attached");
    pty
}

#[test]
fn a_question_and_the_end_of_a_long_turn_ring_and_send_a_message() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let mut pty = attach(&daemon, &session, "1");
    client.start(
        &session,
        "wait 1100\ndo execute {\"command\": \"echo x\"}\nsay end",
    );
    let asks = format!("\x1b]9;{session} waits: allow execute?\x07\x07");
    pty.until(&asks, SOON).expect("a question rings");
    pty.until("[y] once", SOON).expect("it is shown");
    pty.write("\x03");
    let ends = format!("\x1b]9;{session} is cancelled\x07\x07");
    pty.until(&ends, SOON).expect("a long turn's end rings");
    client.start(&session, "say brief");
    pty.until("brief", SOON).expect("it is shown");
    client.start(&session, "say and the next");
    let brief = format!("{session} is done");
    assert_eq!(
        pty.which(&[&brief, "and the next"], SOON),
        Some(1),
        "a short turn's end is nothing to ring for"
    );
}

#[test]
fn a_command_that_goes_on_when_one_leaves_is_told_and_ended_from_the_next_terminal() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let mut first = attach(&daemon, &session, "off");
    first.write("!sleep 600\r");
    client.until_type("call_started");
    first.write("\x04");
    first
        .until("`sleep 600` goes on", SOON)
        .expect("it is told");
    let mut second = attach(&daemon, &session, "off");
    second.until("Ctrl-C stops", SOON).expect("it is shown");
    second.write("\x03");
    let done = client.until_type("done").last().clone();
    assert_eq!(done["result"]["ok"], false, "{done}");
}

#[test]
fn nothing_rings_for_who_wants_quiet_or_looks() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let mut quiet = attach(&daemon, &session, "off");
    let mut looks = attach(&daemon, &session, "unfocused");
    // The terminal says that it has the focus; what is typed behind that shows that it was read.
    looks.write("\x1b[Ihello");
    looks.until("hello", SOON).expect("it is typed");
    client.start(&session, "do execute {\"command\": \"echo x\"}\nsay end");
    for pty in [&mut quiet, &mut looks] {
        assert_eq!(
            pty.which(&["waits: allow", "[y] once", "line is not empty"], SOON)
                .map(|at| at > 0),
            Some(true)
        );
    }
}

#[test]
fn a_pattern_is_offered_changed_refused_and_mended_before_it_is_given() {
    let name = "a_pattern_is_offered_changed_refused_and_mended_before_it_is_given";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("do execute {\"command\": \"git log -1\"}\nsay end");
    scene.client.until_type("approval_asked");
    scene.tmux.shows("it", "[a] always");
    offers(&scene, "always: git log *");
    scene.tmux.shows(
        "it",
        "Enter: allow it for good  in .agents/permissions.json",
    );
    scene.tmux.press("it", "Tab");
    scene.tmux.shows("it", "allow? always: git log -1\n");
    scene.tmux.press("it", "Up");
    scene.tmux.shows("it", "allow? always: git log *\n");
    scene.tmux.press("it", "Escape");
    scene.tmux.shows("it", "[y] once");
    offers(&scene, "always: git log *");
    scene.tmux.press("it", "C-c");
    scene.tmux.shows("it", "[y] once");
    offers(&scene, "always: git log *");
    scene.tmux.press("it", "BSpace");
    scene.tmux.type_line("it", "x");
    scene
        .tmux
        .shows("it", "would not allow this call of execute");
    scene.tmux.shows("it", "allow? always: git log x\n");
    assert_eq!(daemon.read(".agents/permissions.json"), "");
    scene.tmux.press("it", "Tab");
    scene.tmux.shows("it", "allow? always: git log *\n");
    scene.tmux.press("it", "Enter");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene
        .tmux
        .shows("it", "allowed from here on: execute git log *");
    until("the rule to be written", SOON, || {
        let written = daemon.read(".agents/permissions.json");
        if written.contains("git log *") {
            Ok(())
        } else {
            Err(written)
        }
    });
}

#[test]
fn a_file_that_is_written_over_is_asked_about_with_what_changes_in_it() {
    let name = "a_file_that_is_written_over_is_asked_about_with_what_changes_in_it";
    let daemon = TestDaemon::start();
    let old: String = (0..3000).map(|n| format!("line {n}\n")).collect();
    daemon.write("long.txt", &old);
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    let new = old.replace("line 1500\n", "another\n");
    let call = json!({"path": "long.txt", "content": new});
    scene.start(&format!("do write {call}\nsay end"));
    scene.client.until_type("approval_asked");
    let shown = scene.tmux.shows("it", "[y] once");
    for part in [
        "    1501 - line 1500\n",
        "    1501 + another\n",
        "    1502   line 1501\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("line 1000"), "{shown}");
    scene.tmux.press("it", "M-o");
    scene.tmux.shows("it", "(END)");
    scene.tmux.press("it", "q");
    scene.tmux.shows("it", "[y] once");
    scene.tmux.type_line("it", "y");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    assert_eq!(daemon.read("long.txt"), new);
}

#[test]
fn what_is_typed_for_a_question_that_another_client_answers_goes_nowhere() {
    let name = "what_is_typed_for_a_question_that_another_client_answers_goes_nowhere";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("do execute {\"command\": \"git log -1\"}\nwait 600000");
    let asked = scene.client.until_type("approval_asked").last().clone();
    scene.tmux.shows("it", "[a] always");
    offers(&scene, "always: git log *");
    scene.client.answer(&asked["approval"], "deny").unwrap();
    scene
        .tmux
        .shows("it", "the question that the pattern was for is answered");
    scene.tmux.shows("it", "\n> \n");
    scene.tmux.press("it", "C-c");
    scene.client.until_ended();
    scene.start("do execute {\"command\": \"git log -1\"}\nwait 600000");
    let asked = scene.client.until_type("approval_asked").last().clone();
    scene.tmux.shows("it", "[a] always");
    scene.tmux.type_text("it", "r use the other");
    scene.tmux.shows("it", "allow? r use the other");
    scene.client.answer(&asked["approval"], "deny").unwrap();
    scene.tmux.shows("it", "\n> r use the other");
    scene.tmux.press("it", "Enter");
    scene.tmux.shows("it", "that question is answered");
    scene.tmux.shows("it", "\n> r use the other");
    let params = json!({"session": scene.session});
    let waiting = scene.client.call("queue/list", params);
    assert_eq!(waiting, json!([]), "nothing went to the model");
}

/// Presses the key for a pattern until it is taken: one that comes with its question stands in the line first.
fn offers(scene: &Scene<'_>, line: &str) {
    let offered = format!("allow? {line}\n");
    scene.tmux.press("it", "a");
    until("the pattern to stand in the line", SOON, || {
        let window = scene.tmux.window("it");
        if window.contains("allow? a\n") {
            scene.tmux.press("it", "a");
        }
        if window.contains(&offered) {
            Ok(())
        } else {
            Err(window)
        }
    });
}

#[test]
fn who_comes_and_goes_is_seen_at_once() {
    let name = "who_comes_and_goes_is_seen_at_once";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.tmux.shows("it", "2 clients");
    let line = command(&daemon, &format!("attach {}", scene.session));
    scene.tmux.open("other", &line);
    scene.tmux.shows("it", "3 clients");
    scene.tmux.close("other");
    scene.clients(2);
    until("one fewer", SOON, || {
        let window = scene.tmux.window("it");
        match window.contains("2 clients") {
            true => Ok(()),
            false => Err(window),
        }
    });
}

#[test]
fn a_log_looks_as_it_did_on_a_terminal_and_is_plain_elsewhere() {
    let name = "a_log_looks_as_it_did_on_a_terminal_and_is_plain_elsewhere";
    let daemon = TestDaemon::allowing();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(
        &session,
        "think so deep\nline a **bold** word\ndo execute {\"command\": \"seq 100 108\"}\nsay - last",
    );
    let log = command(&daemon, &format!("log {session}; sleep 60"));
    tmux.open_sized("it", log.trim_start_matches("exec "), 60, 20);
    let shown = tmux.shows("it", "• last");
    for part in [
        "∴ thought for",
        "\na bold word\n",
        "✓ execute seq 100 108 · 9 lines",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let plain = harness::dwell::Dwell::new(&daemon)
        .args(["log", &session])
        .ok();
    for part in ["so deep", "a **bold** word", "108", "- last"] {
        assert!(plain.contains(part), "{part}: {plain}");
    }
}

#[test]
fn names_of_files_and_folders_steer_no_terminal() {
    let name = "names_of_files_and_folders_steer_no_terminal";
    let daemon = TestDaemon::start();
    daemon.write("deep/e\u{1b}]0;STEERED\u{7}vil.txt", "");
    let folder = daemon.work().join("d\u{1b}]0;STEERED\u{7}x");
    std::fs::create_dir(&folder).unwrap();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let steered = client.session(&folder);
    let mut pty = attach(&daemon, &session, "off");
    pty.write("see @vil");
    let at = pty.which(&["\x1b]0;STEERED", "@deep/e]0;STEEREDvil.txt"], SOON);
    assert_eq!(at, Some(1));
    pty.write("\t");
    let at = pty.which(&["\x1b]0;STEERED", "see @deep/e]0;STEEREDvil.txt"], SOON);
    assert_eq!(at, Some(1));
    // The session's own header, the list of all, and a document.
    client.turn(&steered, "say an \u{1b}]0;STEERED\u{7}end");
    for rest in [
        format!("attach {steered}"),
        "ls".into(),
        format!("export {steered}"),
    ] {
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        command
            .env("DWELL_SOCKET", daemon.socket())
            .env("TERM", "xterm-256color")
            .args(rest.split(' '));
        let mut pty = Pty::spawn(command);
        let at = pty.which(&["\x1b]0;STEERED", "]0;STEERED"], SOON);
        assert_eq!(at, Some(1), "{rest}");
    }
    let _ = name;
}

#[test]
fn a_broken_mark_of_a_paste_goes_with_all_of_it() {
    let name = "a_broken_mark_of_a_paste_goes_with_all_of_it";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    let paste: String = (1..=214).map(|n| format!("# line {n}\n")).collect();
    scene.tmux.type_text("it", "say kept");
    scene.tmux.shows("it", "> say kept");
    scene.tmux.paste("it", &paste);
    scene.tmux.shows("it", "> say kept[pasted 214 lines]");
    scene.tmux.press("it", "BSpace");
    until("all of the mark to go", SOON, || {
        let window = scene.tmux.window("it");
        match window.contains("> say kept\n") {
            true => Ok(()),
            false => Err(window),
        }
    });
    scene.tmux.press("it", "Enter");
    assert_eq!(scene.client.until_ended().last()["reply"], "kept");
}

#[test]
fn a_call_of_a_program_may_be_allowed_for_the_program() {
    let name = "a_call_of_a_program_may_be_allowed_for_the_program";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let session = client.session_with(json!({
        "cwd": daemon.work(), "provider": "script", "toolbox": {"code": {"of": "default"}}
    }));
    client.attach(&session, None);
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open_sized("it", &line, 100, 30);
    tmux.shows("it", "2 clients");
    let code = "for (const n of [1, 2, 3]) await tools.execute({command: `echo ${n} >> ran`}); return 'all'";
    client.start(
        &session,
        &format!("do run_code {}\nsay done", json!({"code": code})),
    );
    tmux.shows("it", "[p] this program");
    until("the program to be allowed", SOON, || {
        tmux.press("it", "p");
        let screen = tmux.screen("it");
        match screen.contains("allowed for this program by") {
            true => Ok(()),
            false => Err(screen),
        }
    });
    let events = client.until_ended();
    assert_eq!(events.of("approval_asked").len(), 1);
    assert_eq!(daemon.read("ran"), "1\n2\n3\n");
}

#[test]
fn progress_that_a_tool_draws_over_itself_is_shown_as_it_stands() {
    let name = "progress_that_a_tool_draws_over_itself_is_shown_as_it_stands";
    let daemon = TestDaemon::allowing();
    let Some(mut scene) = Scene::open(&daemon, name, (40, 15)) else {
        return;
    };
    let program = "printf '10%%\\r20%%\\r30%%'; sleep 1000";
    scene.start(&format!("do execute {}", json!({"command": program})));
    scene.tmux.shows("it", "\n  30%\n");
    scene.tmux.press("it", "C-c");
    assert_eq!(scene.client.until_ended().last()["status"], "cancelled");
    let program = "printf '\\033[2J1%%\\r99%%\\r\\ndone\\r\\n'; exit 3";
    scene.start(&format!("do execute {}", json!({"command": program})));
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.shows("it", "\n  99%\n  done\n");
    scene.tmux.press("it", "C-o");
    let whole = scene.tmux.shows("it", "exit_status: 3");
    let whole = whole.rsplit("result:").next().unwrap();
    assert!(whole.contains("\n  99%\n  done\n"), "{whole}");
}

/// Markdown that is easily got wrong, in pieces of three letters.
fn tricky() -> String {
    let text = "\
Steered: \u{1b}[2J\u{1b}[H\u{1b}]0;t\u{7} no.

| 名前 | what it is | n |
|:--|:-:|--:|
| 日本語 | a description that is wider than this | 1 |
| 👍 | see [it](http://x.y/a/long/path/to/it) | 22222 |

1. a
   - b

     ```sh
     echo in a list
     ```
";
    let mut script = String::new();
    for line in text.lines() {
        let letters: Vec<char> = line.chars().collect();
        let (whole, rest) = letters.split_at(letters.len() / 3 * 3);
        for piece in whole.chunks(3) {
            script.push_str(&format!("say {}\n", String::from_iter(piece)));
        }
        script.push_str(&format!("line {}\n", String::from_iter(rest)));
    }
    script
}

fn reads_tricky(test: &str, size: (u16, u16), golden: &str) {
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, test, size) else {
        return;
    };
    scene.start(&tricky());
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.shows("名前   │", golden);
}

#[test]
fn tables_and_fences_in_small_pieces_are_read_at_40_by_15() {
    reads_tricky(
        "tables_and_fences_in_small_pieces_are_read_at_40_by_15",
        (40, 15),
        "
名前   │       what it is       │     n
───────┼────────────────────────┼──────
日本語 │ a description that is  │     1
       │    wider than this     │
👍     │         see it         │ 22222
       │ (http://x.y/a/long/pat │
       │        h/to/it)        │

1. a
   • b
       echo in a list

>
SESSION · script
",
    );
}

#[test]
fn tables_and_fences_in_small_pieces_are_read_at_80_by_24() {
    reads_tricky(
        "tables_and_fences_in_small_pieces_are_read_at_80_by_24",
        (80, 24),
        "
名前   │              what it is               │     n
───────┼───────────────────────────────────────┼──────
日本語 │ a description that is wider than this │     1
👍     │ see it (http://x.y/a/long/path/to/it) │ 22222

1. a
   • b
       echo in a list

>
SESSION · script
",
    );
}
