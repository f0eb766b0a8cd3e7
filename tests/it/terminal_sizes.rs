//! The terminal in each state and at each size: what Ctrl-C does, what is left after a kill, and that a window may change
//! its size. One daemon and one tmux a test. Skipped by name where there is no tmux.

use crate::screen::{WHY, attach, is_sane, masked, shell_sized};
use crate::terminal::command;
use crate::terminal_states::{end, is_rid_of};
use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::sandbox::Sandbox;
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until};
use rustix::process::Signal;
use serde_json::json;

const SMALL: (u16, u16) = (40, 15);
const USUAL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 40);

/// Runs commands unasked, and asks before it writes.
fn daemon() -> TestDaemon {
    let sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    // One whose client was killed ends with the sandbox.
    let editor = "echo editing; while [ -e \"$0\" ]; do sleep 0.2; done\n";
    let editor = sandbox.write("editor", editor);
    let mut sandbox = sandbox;
    sandbox.set("EDITOR", format!("sh {}", editor.display()));
    TestDaemon::start_in(sandbox)
}

/// What a turn is at when the key comes or the client goes.
#[derive(Clone, Copy, PartialEq)]
enum Turn {
    /// There is none.
    None,
    /// This prompt runs.
    Runs(&'static str),
    /// This one has run.
    Ran(&'static str),
}

/// A state: the turn, the keys that lead there from an empty line, what shows that it is reached, and what goes when it is
/// left by Ctrl-C.
struct State {
    turn: Turn,
    keys: &'static [&'static str],
    shows: &'static str,
    goes: &'static str,
}

const fn state(
    turn: Turn,
    keys: &'static [&'static str],
    shows: &'static str,
    goes: &'static str,
) -> State {
    State {
        turn,
        keys,
        shows,
        goes,
    }
}

const STREAMS: &str = "say streams\nwait 60000";

const STATES: [State; 12] = [
    state(Turn::None, &[], "· script", ""),
    state(Turn::None, &["half"], "> half", "half"),
    state(Turn::None, &["/ren"], "/rename  ", "/ren"),
    state(Turn::None, &["C-r"], "(history: )", "(history"),
    state(
        Turn::None,
        &["/attach", "Enter"],
        "Esc leaves",
        "Esc leaves",
    ),
    state(
        Turn::Ran("do execute {\"command\": \"seq 6\"}"),
        &["M-o"],
        "(END)",
        "",
    ),
    state(Turn::None, &["kept", "C-g"], "editing", ""),
    state(Turn::Runs(STREAMS), &[], "streams", ""),
    state(Turn::Runs("think deeply\nwait 60000"), &[], "deeply", ""),
    state(
        Turn::Runs("do execute {\"command\": \"echo begun; sleep 1000\"}"),
        &[],
        "  begun",
        "",
    ),
    state(
        Turn::Runs("do write {\"path\": \"a\", \"content\": \"x\"}"),
        &[],
        "[y] once",
        "[y] once",
    ),
    state(
        Turn::Runs(STREAMS),
        &["say later", "Enter"],
        "queued: say later",
        "queued:",
    ),
];

/// One's own command, which ends before a turn does.
const COMMAND: &[&str] = &["!echo mine; sleep 1000", "Enter"];

/// Keys by tmux's names; what is longer than a name is text.
fn type_keys(tmux: &Tmux<'_>, keys: &[&str]) {
    for key in keys {
        match *key {
            "Enter" | "C-r" | "C-g" | "M-o" => tmux.press("sh", key),
            text => tmux.type_text("sh", text),
        }
    }
}

/// Leads an attached client into a state.
#[track_caller]
fn enter(tmux: &Tmux<'_>, client: &mut TestClient, session: &str, state: &State) {
    match state.turn {
        Turn::None => {}
        Turn::Runs(prompt) => {
            client.start(session, prompt);
        }
        Turn::Ran(prompt) => {
            client.start(session, prompt);
            assert_eq!(client.until_ended().last()["status"], "completed");
            tmux.shows("sh", "6 lines");
        }
    }
    if !state.keys.is_empty() && matches!(state.turn, Turn::Runs(_)) {
        tmux.shows("sh", "streams");
    }
    type_keys(tmux, state.keys);
    until(&format!("{:?} to be shown", state.shows), SOON, || {
        let window = tmux.window("sh");
        match window.contains(state.shows) {
            true => Ok(()),
            false => Err(window),
        }
    });
}

fn control_c(test: &str, size: (u16, u16)) {
    let daemon = daemon();
    let Some((tmux, mut client, session)) = shell_sized(&daemon, test, size) else {
        return;
    };
    attach(&tmux, &daemon, &mut client, &session);
    for state in &STATES[1..] {
        enter(&tmux, &mut client, &session, state);
        tmux.press("sh", "C-c");
        match (state.turn, state.shows) {
            (Turn::Runs(_), _) => {
                assert_eq!(client.until_ended().last()["status"], "cancelled");
            }
            (_, "(END)") => until("the pager to be left", SOON, || {
                tmux.press("sh", "q");
                let window = tmux.window("sh");
                match window.contains("(END)") {
                    true => Err(window),
                    false => Ok(()),
                }
            }),
            (_, "editing") => {
                tmux.shows("sh", "editor ended");
                until("the line to stand below", SOON, || {
                    let window = tmux.window("sh");
                    let line = window.rsplit("signal: 2").next();
                    match line.is_some_and(|line| line.contains("> kept")) {
                        true => Ok(()),
                        false => Err(window),
                    }
                });
                tmux.press("sh", "C-c");
            }
            _ => {}
        }
        if state.shows.starts_with("queued") {
            // What was queued comes back, to be sent again or dropped.
            tmux.shows("sh", "> say later");
            tmux.press("sh", "C-c");
        }
        if !state.goes.is_empty() {
            is_rid_of(&tmux, "sh", state.goes);
        }
        // What the search had found stays in the line.
        tmux.press("sh", "C-u");
    }
    // A command of one's own ends, and the turn goes on.
    client.start(&session, STREAMS);
    tmux.shows("sh", "streams");
    type_keys(&tmux, COMMAND);
    tmux.shows("sh", "  mine\n");
    tmux.press("sh", "C-c");
    let done = client.until_type("done");
    assert_eq!(done.last()["result"]["ok"], false);
    let asked = json!({"session": session});
    assert_eq!(client.call("session/get", asked)["state"], "running");
    tmux.press("sh", "C-c");
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    // Nothing is left to end but the client.
    tmux.press("sh", "C-c");
    tmux.shows("sh", "Ctrl-C again");
    tmux.press("sh", "C-c");
    tmux.shows("sh", "detached from");
    is_sane(&tmux, "Ctrl-C twice");
}

#[test]
fn control_c_means_the_nearest_thing_at_80_by_24() {
    control_c("control_c_means_the_nearest_thing_at_80_by_24", USUAL);
}

#[test]
fn control_c_means_the_nearest_thing_at_120_by_40() {
    control_c("control_c_means_the_nearest_thing_at_120_by_40", LARGE);
}

#[test]
fn control_c_means_the_nearest_thing_at_40_by_15() {
    control_c("control_c_means_the_nearest_thing_at_40_by_15", SMALL);
}

fn killed(test: &str, size: (u16, u16)) {
    let daemon = daemon();
    let Some((tmux, mut client, session)) = shell_sized(&daemon, test, size) else {
        return;
    };
    for state in &STATES {
        attach(&tmux, &daemon, &mut client, &session);
        enter(&tmux, &mut client, &session, state);
        end(&tmux, Signal::KILL);
        if state.shows == "(END)" {
            // The pager has the terminal until a key tells it that it is alone.
            tmux.press("sh", "q");
            is_rid_of(&tmux, "sh", "(END)");
        }
        is_sane(&tmux, &format!("a kill at {:?}", state.shows));
        if let Turn::Runs(_) = state.turn {
            client.call("turn/cancel", json!({"session": session}));
            assert_eq!(client.until_ended().last()["status"], "cancelled");
        }
        if state.shows.starts_with("queued") {
            let queue = client.call("queue/list", json!({"session": session}));
            assert_eq!(queue[0]["text"], "say later", "it waits for the next one");
        }
    }
}

#[test]
fn a_client_that_is_killed_leaves_a_sane_terminal_at_80_by_24() {
    killed(
        "a_client_that_is_killed_leaves_a_sane_terminal_at_80_by_24",
        USUAL,
    );
}

#[test]
fn a_client_that_is_killed_leaves_a_sane_terminal_at_120_by_40() {
    killed(
        "a_client_that_is_killed_leaves_a_sane_terminal_at_120_by_40",
        LARGE,
    );
}

#[test]
fn a_client_that_is_killed_leaves_a_sane_terminal_at_40_by_15() {
    killed(
        "a_client_that_is_killed_leaves_a_sane_terminal_at_40_by_15",
        SMALL,
    );
}

/// What has ended, and what is at work. Wide letters stand where no row breaks: tmux (3.3a) loses the place of the cursor
/// when it breaks a row before one and joins it again.
const ENDED: &str = "\
line # Heading 一
line 日本語, 👩‍👩‍👧 and e\u{301} begin a paragraph of words that is wider than a narrow window will be.
line
line ```rust
line fn main() { println!(\"a line of code that is wider than the narrow window\"); }
line ```
line
line | name | what it is |
line |---|---|
line | 表👍 | a cell of words that break where there is no room |
line
say The end of it.
# it was asked";

const GROWS: &str = "\
line Before it grows.
line
say - an item that grows and is wider than the narrow window will ever be, with 日本語 in it
wait 60000
# it was asked";

/// How each prompt ends, which is shown above what comes of it.
const ASKED: &str = "# it was asked";

/// A state in which a window changes its size: what leads there, and what must stand there once whatever the size is.
struct Resized {
    name: &'static str,
    prompt: &'static str,
    keys: &'static str,
    once: &'static [&'static str],
}

const RESIZED: [Resized; 4] = [
    Resized {
        name: "a reply",
        prompt: ENDED,
        keys: "half a thought",
        once: &[
            "Heading 一",
            "fn main()",
            "The end of it.",
            "> half a thought",
            "表👍 │",
        ],
    },
    Resized {
        name: "a menu",
        prompt: "",
        keys: "/ren",
        once: &["> /ren", "/rename  "],
    },
    Resized {
        name: "a stream",
        prompt: GROWS,
        keys: "half a thought",
        once: &["Before it grows.", "item", "ever", "> half a thought"],
    },
    Resized {
        name: "a question",
        prompt: "say I ask.\ndo write {\"path\": \"a.txt\", \"content\": \"one\\n日本語\\n\"}\n# it was asked",
        keys: "",
        once: &["I ask.", "+ one", "+ 日本語", "[y] once", "allow?\n"],
    },
];

/// A state in a window of its own.
struct Window<'a> {
    tmux: &'a Tmux<'a>,
    name: &'static str,
    session: String,
    once: &'a [&'a str],
}

impl Window<'_> {
    /// All that was ever shown, without what differs from one moment to the next.
    fn text(&self) -> String {
        let shown = masked(&self.tmux.screen(self.name), &self.session);
        let lines: Vec<&str> = shown.lines().map(str::trim_end).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    }

    /// Waits until each part stands in all that was ever shown exactly once.
    #[track_caller]
    fn stands_once(&self, size: (u16, u16)) {
        until(&format!("{} at {size:?}", self.name), SOON, || {
            let (text, window) = (self.text(), self.tmux.window(self.name));
            let asked = text.matches(ASKED).count();
            let told = text.rsplit(ASKED).next().unwrap_or(&text);
            let once = |part: &&&str| told.matches(**part).count() != 1;
            let wrong = self.once.iter().find(once);
            match wrong {
                None if asked < 2 && text.contains("SESSION") => Ok(()),
                wrong => Err(format!(
                    "{wrong:?}\n{text}\n=== and in the window ===\n{window}"
                )),
            }
        });
    }
}

/// Each state, from one size through others and back.
fn resizes(test: &str, size: (u16, u16), through: [(u16, u16); 3]) {
    let daemon = daemon();
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(test, WHY);
    };
    let mut client = daemon.client();
    let open = |one: &'static Resized| {
        let session = client.session(&daemon.work());
        let line = command(&daemon, &format!("attach {session}"));
        tmux.open_sized(one.name, &line, size.0, size.1);
        tmux.shows(one.name, "script");
        if !one.prompt.is_empty() {
            client.start(&session, one.prompt);
        }
        let window = Window {
            tmux: &tmux,
            name: one.name,
            session,
            once: one.once,
        };
        tmux.type_text(one.name, one.keys);
        window.stands_once(size);
        window
    };
    let windows: Vec<Window<'_>> = RESIZED.iter().map(open).collect();
    let before: Vec<String> = windows.iter().map(Window::text).collect();
    for (columns, rows) in through.into_iter().chain([size]) {
        for window in &windows {
            tmux.resize(window.name, columns, rows);
        }
        for window in &windows {
            // A letter shows that the new size is known.
            tmux.type_text(window.name, "~");
            until("the letter", SOON, || {
                let shown = tmux.window(window.name);
                match shown.contains('~') {
                    true => Ok(()),
                    false => Err(shown),
                }
            });
            tmux.press(window.name, "BSpace");
            is_rid_of(&tmux, window.name, "~");
            window.stands_once((columns, rows));
        }
    }
    for (window, before) in windows.iter().zip(before) {
        until(&format!("{} to look as it did", window.name), SOON, || {
            let now = window.text();
            match now == before {
                true => Ok(()),
                false => Err(format!("{now}\n=== before ===\n{before}")),
            }
        });
    }
}

#[test]
fn a_window_that_changes_its_size_loses_and_doubles_nothing_at_80_by_24() {
    resizes(
        "a_window_that_changes_its_size_loses_and_doubles_nothing_at_80_by_24",
        USUAL,
        [SMALL, LARGE, (63, 20)],
    );
}

#[test]
fn a_window_that_changes_its_size_loses_and_doubles_nothing_at_120_by_40() {
    resizes(
        "a_window_that_changes_its_size_loses_and_doubles_nothing_at_120_by_40",
        LARGE,
        [USUAL, SMALL, USUAL],
    );
}

#[test]
fn a_window_that_changes_its_size_loses_and_doubles_nothing_at_40_by_15() {
    resizes(
        "a_window_that_changes_its_size_loses_and_doubles_nothing_at_40_by_15",
        SMALL,
        [LARGE, (31, 12), USUAL],
    );
}
