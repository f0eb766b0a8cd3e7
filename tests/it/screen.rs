//! What stands on the screen, to the character, in windows of three sizes. Skipped by name where there is no tmux.

use crate::terminal::command;
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until, until_true};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

pub const WHY: &str = "tmux is not installed";

const REPLY: &str = "\
line # What it is
line
line A **small** tool with `one` file and a [page](http://x.y), described at some length.
line
line - one
line - two 日本語 👍
line
line ```rust
line fn main() {} // done
line ```
line
line | name | size |
line |---|--:|
line | a.rs | 12 |
line
";

/// A session and a terminal attached to it.
pub struct Scene<'a> {
    pub tmux: Tmux<'a>,
    pub client: TestClient,
    pub session: String,
}

impl<'a> Scene<'a> {
    pub fn open(daemon: &'a TestDaemon, test: &str, size: (u16, u16)) -> Option<Self> {
        let Some(tmux) = Tmux::start(daemon) else {
            skip(test, WHY);
            return None;
        };
        let mut client = daemon.client();
        let session = client.session(&daemon.work());
        client.attach(&session, None);
        let line = command(daemon, &format!("attach {session}"));
        tmux.open_sized("it", &line, size.0, size.1);
        let mut scene = Self {
            tmux,
            client,
            session,
        };
        scene.clients(2);
        Some(scene)
    }

    pub fn clients(&mut self, count: u32) {
        let params = json!({"session": self.session});
        until_true("so many clients", SOON, || {
            self.client.call("session/get", params.clone())["clients"] == count
        });
    }

    pub fn start(&mut self, prompt: &str) {
        let session = self.session.clone();
        self.client.start(&session, prompt);
    }

    /// Waits until the window shows this below the prompt's rows. What differs from run to run has a name instead.
    #[track_caller]
    pub fn shows(&self, from: &str, golden: &str) {
        let golden = golden.trim_matches('\n');
        until("the window to show the golden screen", SOON, || {
            let screen = self.masked();
            let within = || screen.find(&format!("\n{from}"));
            let at = Some(0).filter(|_| screen.starts_with(from));
            let at = at.or_else(within).unwrap_or(0);
            if screen[at..].trim_matches('\n') == golden {
                return Ok(());
            }
            Err(format!("{screen}\n=== instead of ===\n{golden}"))
        });
    }

    fn masked(&self) -> String {
        masked(&self.tmux.window("it"), &self.session)
    }
}

/// A screen without what differs from run to run: names, times, how much of the status there is room for.
pub fn masked(screen: &str, session: &str) -> String {
    let screen = screen.replace(session, "SESSION");
    let lines: Vec<String> = screen.lines().map(without_times).map(cut_status).collect();
    lines.join("\n")
}

/// How much of the status there is room for depends on the session's name.
fn cut_status(line: String) -> String {
    let running = line.strip_prefix("* TIME · ");
    let begins = ["Ctrl-C cancels", "SESSION · script", "script · "];
    let status = |rest: &str| begins.iter().any(|begin| rest.starts_with(begin));
    if let Some(rest) = running.filter(|rest| status(rest) || *rest == "script") {
        assert!(rest.contains("script"), "{line}");
        return "* TIME · SESSION · script".into();
    }
    if line.starts_with("script · ") {
        return "SESSION · script".into();
    }
    match line.split_once("SESSION · script") {
        Some((before, _)) => format!("{before}SESSION · script"),
        None => line,
    }
}

/// `12 ms` and `3.4 s` become `TIME`, a spinner's frame `*`.
fn without_times(line: &str) -> String {
    let frames = ["⠋", "⠙", "⠸", "⠴", "⠦", "⠇", "⠏", "⠟"];
    let words: Vec<&str> = line.split(' ').collect();
    let mut out: Vec<String> = Vec::new();
    for word in words {
        let number = out.last().is_some_and(|last: &String| {
            !last.is_empty() && last.chars().all(|c| c.is_ascii_digit() || c == '.')
        });
        match word {
            "ms" | "s" if number => {
                out.pop();
                out.push("TIME".into());
            }
            word if frames.contains(&word) => out.push("*".into()),
            word => out.push(word.into()),
        }
    }
    out.join(" ")
}

fn reads(test: &str, size: (u16, u16), golden: &str) {
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, test, size) else {
        return;
    };
    scene.start(REPLY);
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.shows("What it is", golden);
}

#[test]
fn a_reply_is_read_at_80_by_24() {
    reads(
        "a_reply_is_read_at_80_by_24",
        (80, 24),
        "
What it is

A small tool with one file and a page (http://x.y), described at some length.

• one
• two 日本語 👍

  fn main() {} // done

name │ size
─────┼─────
a.rs │   12

>
SESSION · script
",
    );
}

#[test]
fn a_reply_is_read_at_120_by_40() {
    reads(
        "a_reply_is_read_at_120_by_40",
        (120, 40),
        "
What it is

A small tool with one file and a page (http://x.y), described at some length.

• one
• two 日本語 👍

  fn main() {} // done

name │ size
─────┼─────
a.rs │   12

>
SESSION · script
",
    );
}

#[test]
fn a_reply_is_read_at_40_by_15() {
    reads(
        "a_reply_is_read_at_40_by_15",
        (40, 15),
        "
A small tool with one file and a page
(http://x.y), described at some length.

• one
• two 日本語 👍

  fn main() {} // done

name │ size
─────┼─────
a.rs │   12

>
SESSION · script
",
    );
}

#[test]
fn a_window_that_shrinks_in_mid_stream_shows_no_garbage() {
    let name = "a_window_that_shrinks_in_mid_stream_shows_no_garbage";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start(
        "line first, whole\nline\nsay a paragraph that grows and is wider than the narrow window will be when\ndo execute \
         {\"command\": \"echo no\"}\nsay \nsay it has shrunk",
    );
    scene.client.until_type("approval_asked");
    scene.tmux.shows("it", "[y] once");
    for (columns, rows) in [(40, 15), (63, 20), (31, 12), (44, 18)] {
        scene.tmux.resize("it", columns, rows);
        let width = usize::from(columns);
        until("one panel and no rest of another", SOON, || {
            let window = scene.tmux.window("it");
            let wide = window.lines().any(|line| line.chars().count() > width);
            let once = |part: &str| window.matches(part).count() == 1;
            let whole = once("2 clients")
                && once("[y] once")
                && window.lines().filter(|line| *line == "allow?").count() == 1;
            if whole && !wide { Ok(()) } else { Err(window) }
        });
    }
    scene.tmux.type_line("it", "n");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.shows("it", "it has shrunk");
}

fn decides(test: &str, size: (u16, u16), golden: &str) {
    let daemon = TestDaemon::start();
    daemon.write("a.txt", "one\ntwo\nthree\n");
    let Some(mut scene) = Scene::open(&daemon, test, size) else {
        return;
    };
    scene.start("do edit {\"path\": \"a.txt\", \"old\": \"two\", \"new\": \"2\\nzwei\"}\nsay done");
    scene.client.until_type("approval_asked");
    scene.shows("? allow", golden);
    scene.tmux.press("it", "Enter");
    scene.tmux.type_line("it", "y");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    assert_eq!(daemon.read("a.txt"), "one\n2\nzwei\nthree\n");
    scene.tmux.shows("it", "done");
}

#[test]
fn a_change_is_decided_on_with_its_diff_at_80_by_24() {
    decides(
        "a_change_is_decided_on_with_its_diff_at_80_by_24",
        (80, 24),
        "
? allow edit?
    a.txt
    1   one
    2 - two
    2 + 2
    3 + zwei
    4   three
  it changes files
→ edit a.txt

? allow edit? a.txt
  [y] once  [s] this session  [a] always  [n] no
  [r REASON] no, and tell the model why
allow?
* TIME · SESSION · script
",
    );
}

#[test]
fn a_change_is_decided_on_with_its_diff_at_120_by_40() {
    decides(
        "a_change_is_decided_on_with_its_diff_at_120_by_40",
        (120, 40),
        "
? allow edit?
    a.txt
    1   one
    2 - two
    2 + 2
    3 + zwei
    4   three
  it changes files
→ edit a.txt

? allow edit? a.txt
  [y] once  [s] this session  [a] always  [n] no  [r REASON] no, and tell the model why
allow?
* TIME · SESSION · script
",
    );
}

#[test]
fn a_change_is_decided_on_with_its_diff_at_40_by_15() {
    decides(
        "a_change_is_decided_on_with_its_diff_at_40_by_15",
        (40, 15),
        "
? allow edit?
    a.txt
    1   one
    2 - two
    2 + 2
    3 + zwei
    4   three
  it changes files
→ edit a.txt
? allow edit? a.txt
  [y] once  [s] this session
  [a] always  [n] no
  [r REASON] no, and tell the model why
allow?
* TIME · SESSION · script
",
    );
}

#[test]
fn several_questions_are_gone_through_at_40_by_15() {
    let name = "several_questions_are_gone_through_at_40_by_15";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (40, 15)) else {
        return;
    };
    let session = scene.session.clone();
    scene.start("do execute {\"command\": \"echo one > one\"}\nsay done");
    scene.client.until_type("approval_asked");
    scene.tmux.shows("it", "[y] once");
    let second = scene.client.send(
        "tool/run",
        json!({"session": session, "name": "execute", "arguments": {"command": "echo two > two"}}),
    );
    scene.client.until_type("approval_asked");
    scene.tmux.shows("it", "(1 of 2, Tab: next)");
    // The key counts once the question has been there for a while.
    until("Tab to show the second", SOON, || {
        scene.tmux.press("it", "Tab");
        let window = scene.tmux.window("it");
        let shown = window.rsplit("(1 of 2, Tab: next)").next();
        if shown.is_some_and(|shown| shown.contains("echo two")) {
            Ok(())
        } else {
            Err(window)
        }
    });
    scene.tmux.type_line("it", "r later, please");
    until_true("the second to be denied", SOON, || {
        scene.tmux.screen("it").contains("later, please")
    });
    scene.tmux.type_line("it", "y");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    let denied = scene.client.response(second).unwrap();
    assert_eq!(denied["ok"], false, "{denied}");
    assert_eq!(
        (daemon.read("one").as_str(), daemon.read("two").as_str()),
        ("one\n", "")
    );
}

#[test]
fn two_terminals_show_what_the_other_one_typed() {
    shared(
        "two_terminals_show_what_the_other_one_typed",
        (80, 24),
        (60, 20),
    );
}

#[test]
fn a_usual_terminal_and_a_small_one_show_what_the_other_one_typed() {
    let name = "a_usual_terminal_and_a_small_one_show_what_the_other_one_typed";
    shared(name, (80, 24), (40, 15));
}

#[test]
fn a_small_terminal_and_a_large_one_show_what_the_other_one_typed() {
    let name = "a_small_terminal_and_a_large_one_show_what_the_other_one_typed";
    shared(name, (40, 15), (120, 40));
}

fn shared(name: &str, size: (u16, u16), other: (u16, u16)) {
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, size) else {
        return;
    };
    let line = command(&daemon, &format!("attach {}", scene.session));
    scene.tmux.open_sized("other", &line, other.0, other.1);
    scene.clients(3);
    scene.tmux.type_text("other", "half a thought");
    scene.tmux.type_line("it", "say from the first");
    scene.tmux.shows("other", "> say from the first  (dwell");
    scene.tmux.shows("other", "from the first");
    scene.tmux.shows("other", "> half a thought");
    for _ in 0.."half a thought".len() {
        scene.tmux.press("other", "BSpace");
    }
    scene.tmux.type_line("other", "say from the second");
    scene.tmux.shows("it", "> say from the second  (dwell");
    let own = scene.tmux.screen("it");
    assert!(
        own.contains("\n> say from the first\n"),
        "one's own words need no name: {own}"
    );
}

#[test]
fn a_large_paste_folds_and_reaches_the_model_whole_at_80_by_24() {
    pastes(
        "a_large_paste_folds_and_reaches_the_model_whole_at_80_by_24",
        (80, 24),
    );
}

#[test]
fn a_large_paste_folds_and_reaches_the_model_whole_at_40_by_15() {
    pastes(
        "a_large_paste_folds_and_reaches_the_model_whole_at_40_by_15",
        (40, 15),
    );
}

#[test]
fn a_large_paste_folds_and_reaches_the_model_whole_at_120_by_40() {
    pastes(
        "a_large_paste_folds_and_reaches_the_model_whole_at_120_by_40",
        (120, 40),
    );
}

fn pastes(name: &str, size: (u16, u16)) {
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, size) else {
        return;
    };
    let paste = (1..=214)
        .map(|n| format!("# line {n}\n"))
        .collect::<String>()
        + "say pasted";
    scene.tmux.paste("it", &paste);
    scene.shows(">", "> [pasted 215 lines]\nSESSION · script");
    scene.tmux.press("it", "Enter");
    let events = scene.client.until_ended();
    let started = events.one("turn_started");
    assert_eq!(started["text"], paste);
    scene.tmux.shows("it", "… 195 more rows");
}

#[test]
fn what_is_typed_while_a_turn_runs_is_queued_or_steers_it() {
    let name = "what_is_typed_while_a_turn_runs_is_queued_or_steers_it";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("do execute {\"command\": \"echo x\"}\nsay one");
    scene.client.until_type("approval_asked");
    scene.tmux.type_line("it", "say two");
    scene.tmux.shows("it", "queued: say two");
    scene.tmux.type_text("it", "be brief");
    scene.tmux.shows("it", "Enter queues, Alt-S steers");
    scene.tmux.press("it", "M-s");
    scene.tmux.shows("it", "steered: be brief");
    scene.tmux.type_line("it", "y");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    // By whom it was sent is said of what somebody else sent.
    scene.tmux.shows("it", "> say two\n");
}

/// A shell in a terminal that runs the client, so that one sees what it leaves behind.
pub fn shell<'a>(daemon: &'a TestDaemon, test: &str) -> Option<(Tmux<'a>, TestClient, String)> {
    shell_sized(daemon, test, (80, 24))
}

/// The same in a window of so many columns and rows.
pub fn shell_sized<'a>(
    daemon: &'a TestDaemon,
    test: &str,
    size: (u16, u16),
) -> Option<(Tmux<'a>, TestClient, String)> {
    let Some(tmux) = Tmux::start(daemon) else {
        skip(test, WHY);
        return None;
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    tmux.open_sized(
        "sh",
        "exec env -i TERM=xterm-256color PATH=\"$PATH\" PS1='sane> ' bash --norc --noprofile -i",
        size.0,
        size.1,
    );
    tmux.shows("sh", "sane>");
    Some((tmux, client, session))
}

pub fn attach(tmux: &Tmux<'_>, daemon: &TestDaemon, client: &mut TestClient, session: &str) {
    let line = command(daemon, &format!("attach {session}"));
    tmux.type_line(
        "sh",
        &format!("clear; {}", line.trim_start_matches("exec ")),
    );
    until_true("the terminal to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 2
    });
    tmux.shows("sh", "script");
}

/// The shell echoes what is typed, ends lines, and shows its cursor.
#[track_caller]
pub fn is_sane(tmux: &Tmux<'_>, after: &str) {
    tmux.type_line("sh", "stty -a | tr ' ' '\\n' | grep -xE -- '-?(icanon|echo|isig|icrnl|opost)' | tr '\\n' ' '; echo \"$((40+2)) told\"");
    let screen = tmux.shows("sh", "42 told");
    assert!(
        screen.contains("icrnl opost isig icanon echo 42 told"),
        "after {after}: {screen}"
    );
}

#[test]
fn control_c_means_the_nearest_thing_and_leaves_a_sane_terminal() {
    let name = "control_c_means_the_nearest_thing_and_leaves_a_sane_terminal";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    attach(&tmux, &daemon, &mut client, &session);
    tmux.type_text("sh", "never sent");
    tmux.shows("sh", "> never sent");
    tmux.press("sh", "C-c");
    until_true("the line to be empty", SOON, || {
        !tmux.window("sh").contains("never sent")
    });
    // A turn that streams.
    client.start(&session, "say begun\nwait 60000");
    tmux.shows("sh", "begun");
    tmux.press("sh", "C-c");
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    // One that waits for an answer.
    client.start(&session, "do execute {\"command\": \"echo x\"}");
    tmux.shows("sh", "[y] once");
    tmux.press("sh", "C-c");
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    until_true("the question to be gone", SOON, || {
        !tmux.window("sh").contains("[y] once")
    });
    // Nothing.
    tmux.press("sh", "C-c");
    tmux.shows("sh", "Ctrl-C again, Ctrl-D or /exit detaches");
    tmux.press("sh", "C-c");
    tmux.shows("sh", "detached from");
    is_sane(&tmux, "Ctrl-C twice");
}

#[test]
fn a_client_that_is_ended_in_any_state_leaves_a_sane_terminal() {
    let name = "a_client_that_is_ended_in_any_state_leaves_a_sane_terminal";
    let daemon = TestDaemon::start();
    let Some((tmux, mut client, session)) = shell(&daemon, name) else {
        return;
    };
    let busy = "say streams\nwait 60000";
    let asks = "do execute {\"command\": \"echo x\"}";
    for (signal, prompt) in [
        (Signal::TERM, ""),
        (Signal::TERM, busy),
        (Signal::TERM, asks),
        (Signal::HUP, busy),
        (Signal::KILL, ""),
        (Signal::KILL, busy),
        (Signal::KILL, asks),
    ] {
        attach(&tmux, &daemon, &mut client, &session);
        if !prompt.is_empty() {
            client.start(&session, prompt);
            tmux.shows("sh", "Ctrl-C cancels");
        }
        tmux.type_text("sh", "typed");
        tmux.shows("sh", "typed");
        let child = harness::procfs::descendants(tmux.pid("sh"));
        assert_eq!(child.len(), 1, "the shell runs the client");
        let child = Pid::from_raw(i32::try_from(child[0]).unwrap()).unwrap();
        kill_process(child, signal).unwrap();
        let raw = u32::try_from(child.as_raw_nonzero().get()).unwrap();
        until_true("the client to be gone", SOON, || {
            !harness::procfs::alive(raw)
        });
        is_sane(&tmux, &format!("{signal:?} in {prompt:?}"));
        if !prompt.is_empty() {
            client.call("turn/cancel", json!({"session": session}));
            assert_eq!(client.until_ended().last()["status"], "cancelled");
        }
    }
}

#[test]
fn a_session_is_picked_from_a_list_with_its_end_in_sight() {
    let name = "a_session_is_picked_from_a_list_with_its_end_in_sight";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let (one, two) = (
        client.session(&daemon.work()),
        client.session(&daemon.work()),
    );
    for (session, title, word) in [
        (&one, "mend the parser", "mended"),
        (&two, "write docs", "written"),
    ] {
        client.turn(session, &format!("say it is {word}"));
        client.call(
            "session/rename",
            json!({"session": session, "title": title}),
        );
    }
    tmux.open_sized("it", &command(&daemon, "pick"), 76, 20);
    tmux.shows("it", "2 of 2");
    tmux.type_text("it", "pars");
    until("the other's end", SOON, || {
        let window = tmux.window("it").replace(&one, "SESSION");
        let rows: Vec<&str> = window.lines().take(3).collect();
        let whole = matches!(rows[..], ["session: pars", row, "1 of 2 · Enter attaches · Esc leaves"]
            if row.starts_with("▸ SESSION  idle     ") && row.contains("s   mend the parser  ") && row.ends_with("/work"))
            && window.contains("│ it is mended");
        if whole { Ok(()) } else { Err(window) }
    });
    tmux.press("it", "Enter");
    until_true("it to be attached", SOON, || {
        client.call("session/get", json!({"session": one}))["clients"] == 1
    });
    // And from there to the other one.
    tmux.type_line("it", "/attach");
    tmux.shows("it", "2 of 2");
    tmux.type_text("it", "docs");
    tmux.shows("it", "1 of 2");
    tmux.press("it", "Enter");
    until_true("the other to be attached", SOON, || {
        client.call("session/get", json!({"session": two}))["clients"] == 1
    });
}

#[test]
fn ask_draws_its_reply_where_its_output_is_a_terminal() {
    let name = "ask_draws_its_reply_where_its_output_is_a_terminal";
    let daemon = TestDaemon::allowing();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let script = daemon.write("play", "line a **bold** word\ndo execute {\"command\": \"echo one; echo two\"}\nline - item\nsay - last");
    let ask = command(
        &daemon,
        &format!("ask -p script \"$(cat '{}')\"; sleep 60", script.display()),
    );
    tmux.open_sized("it", ask.trim_start_matches("exec "), 60, 20);
    until("the reply", SOON, || {
        let window = tmux.window("it");
        let lines: Vec<String> = window.lines().skip(1).map(without_times).collect();
        let golden = "a bold word\n✓ execute echo one; echo two · 2 lines · TIME\n• item\n• last";
        if lines.join("\n") == golden {
            Ok(())
        } else {
            Err(window)
        }
    });
}

#[test]
fn a_folded_result_unfolds_on_the_screen_and_in_the_pager() {
    let name = "a_folded_result_unfolds_on_the_screen_and_in_the_pager";
    let daemon = TestDaemon::allowing();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.start("think deep\ndo execute {\"command\": \"seq 100 108\"}\nsay done");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
    scene.tmux.shows("it", "✓ execute seq 100 108 · 9 lines");
    assert!(!scene.tmux.window("it").contains("  104"), "it is folded");
    scene.tmux.press("it", "C-o");
    scene.tmux.shows("it", "  104\n");
    scene.tmux.press("it", "C-o");
    scene.tmux.shows("it", "  deep\n");
    scene.tmux.press("it", "M-o");
    scene.tmux.shows("it", "(END)");
    scene.tmux.press("it", "q");
    scene.tmux.type_line("it", "say back");
    assert_eq!(scene.client.until_ended().last()["status"], "completed");
}

#[test]
fn a_command_of_ones_own_runs_at_once_and_the_model_reads_what_it_printed() {
    let name = "a_command_of_ones_own_runs_at_once_and_the_model_reads_what_it_printed";
    let daemon = TestDaemon::start();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.tmux.type_line("it", "!echo $((40 + 2)) camels");
    let along = "goes along: the output of `echo $((40 + 2)) camels`";
    scene.tmux.shows("it", along);
    scene.tmux.press("it", "C-d");
    scene.clients(1);
    let line = command(&daemon, &format!("attach {}", scene.session));
    scene.tmux.open("again", &line);
    scene.tmux.shows("again", along);
    scene.tmux.type_line("again", "say seen");
    let events = scene.client.until_ended();
    assert_eq!(events.one("turn_started")["text"], "say seen");
    until_true("the row to go", SOON, || {
        !scene.tmux.window("again").contains("goes along")
    });
    let params = json!({"session": scene.session, "line": "/context json"});
    let read = scene.client.call("command/run", params)["output"].to_string();
    assert!(
        read.contains("I ran `echo $((40 + 2)) camels`") && read.contains("42 camels"),
        "{read}"
    );
}

#[test]
fn a_picture_that_is_named_goes_along() {
    let name = "a_picture_that_is_named_goes_along";
    let daemon = TestDaemon::start();
    std::fs::write(
        daemon.work().join("dot.png"),
        [0x89, b'P', b'N', b'G', 1, 2],
    )
    .unwrap();
    let Some(mut scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.tmux.type_line("it", "say a dot: @dot.png ");
    let events = scene.client.until_ended();
    let images = &events.one("turn_started")["images"];
    assert_eq!(
        images,
        &json!([{"mime_type": "image/png", "data": "iVBORwEC"}])
    );
    scene.tmux.shows("it", "[image/png, 1 KB]");
}

#[test]
fn menus_show_commands_with_what_they_do_and_files_by_a_few_letters() {
    let name = "menus_show_commands_with_what_they_do_and_files_by_a_few_letters";
    let daemon = TestDaemon::start();
    daemon.write("src/deep/actor.rs", "");
    daemon.write("target/actor.rs", "");
    daemon.write(".gitignore", "target\n");
    let Some(scene) = Scene::open(&daemon, name, (80, 24)) else {
        return;
    };
    scene.tmux.type_text("it", "/ren");
    scene.tmux.shows("it", "/rename  ");
    scene.tmux.press("it", "Tab");
    scene.tmux.shows("it", "> /rename");
    scene.tmux.press("it", "C-c");
    scene.tmux.type_text("it", "see @acto");
    scene.tmux.shows("it", "@src/deep/actor.rs");
    assert!(
        !scene.tmux.window("it").contains("target"),
        "what git ignores is left out"
    );
    scene.tmux.press("it", "Tab");
    scene.tmux.shows("it", "> see @src/deep/actor.rs");
}

/// A daemon of another protocol, at a socket: it refuses the handshake, and stops when it is told to.
fn other_daemon(socket: std::path::PathBuf) -> std::thread::JoinHandle<()> {
    use std::io::{BufRead, BufReader, Write};
    std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        // A client connects to list, to stop, and no third time.
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let reader = BufReader::new(stream.try_clone().unwrap());
            for line in reader.lines().map_while(Result::ok) {
                let request: serde_json::Value = serde_json::from_str(&line).unwrap();
                let id = request["id"].clone();
                let answer = match request["method"].as_str() {
                    Some("initialize") => json!({"jsonrpc": "2.0", "id": id, "error": {
                        "code": -32013, "message": "this daemon speaks protocol 0", "data": {"kind": "version"}}}),
                    // As one does that knows no such method.
                    Some("daemon/status") => json!({"jsonrpc": "2.0", "id": id, "error": {
                        "code": -32601, "message": "method not found"}}),
                    _ => {
                        std::fs::remove_file(&socket).unwrap();
                        json!({"jsonrpc": "2.0", "id": id, "result": {}})
                    }
                };
                stream.write_all(format!("{answer}\n").as_bytes()).unwrap();
            }
        }
    })
}

#[test]
fn a_daemon_of_another_protocol_is_replaced_when_a_person_says_so() {
    let name = "a_daemon_of_another_protocol_is_replaced_when_a_person_says_so";
    let sandbox = harness::sandbox::Sandbox::new();
    let _stop = harness::dwell::AutoStarted(&sandbox);
    let Some(tmux) = Tmux::start(&sandbox) else {
        return skip(name, WHY);
    };
    let old = other_daemon(sandbox.path("run").join("dwell/dwell.sock"));
    let mut line = "env -i TERM=xterm-256color".to_owned();
    for (name, value) in sandbox.variables() {
        line.push_str(&format!(" {name}='{value}'"));
    }
    let client = harness::binaries::binaries().client.display().to_string();
    tmux.open_sized("it", &format!("{line} '{client}' ls; sleep 60"), 100, 20);
    tmux.shows("it", "restart it? Sessions are kept");
    tmux.type_line("it", "y");
    tmux.shows("it", "no sessions");
    old.join().unwrap();
}

#[test]
fn without_colours_nothing_is_coloured_and_a_dumb_terminal_gets_plain_lines() {
    let name = "without_colours_nothing_is_coloured_and_a_dumb_terminal_gets_plain_lines";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open_sized(
        "bare",
        &line.replace("TERM=xterm-256color", "TERM=xterm-256color NO_COLOR=1"),
        80,
        24,
    );
    tmux.open_sized(
        "dumb",
        &line.replace("TERM=xterm-256color", "TERM=dumb"),
        80,
        24,
    );
    until_true("both to be attached", SOON, || {
        client.call("session/get", json!({"session": session}))["clients"] == 2
    });
    tmux.type_line("bare", "say **bold** `code`");
    tmux.shows("bare", "\n**bold** `code`");
    let coloured = tmux.coloured("bare");
    assert!(!coloured.contains('\u{1b}'), "{coloured:?}");
    let dumb = tmux.shows("dumb", "**bold** `code`");
    assert!(dumb.contains("> say **bold**"), "{dumb}");
}

#[test]
fn vi_keys_edit_the_line_where_a_person_wants_them() {
    let name = "vi_keys_edit_the_line_where_a_person_wants_them";
    let daemon = TestDaemon::start();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(name, WHY);
    };
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let line = command(&daemon, &format!("attach {session}"));
    tmux.open_sized("it", &line.replace("TERM=", "DWELL_KEYS=vi TERM="), 80, 24);
    tmux.shows("it", "insert · ");
    tmux.type_text("it", "say one two");
    tmux.press("it", "Escape");
    tmux.shows("it", "normal · ");
    tmux.type_text("it", "bcw");
    tmux.shows("it", "insert · ");
    tmux.type_line("it", "three");
    until_true("the turn", SOON, || {
        client.history(&session).said() == "one three"
    });
}
