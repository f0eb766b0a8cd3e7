//! `dwell acp`: what an editor asks in order counts in order, over a daemon that dies, stops or is replaced.

use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::editor::{Editor, words};
use serde_json::{Value, json};

/// A daemon that the agent may have started again ends with the test.
struct Here(TestDaemon);

impl Here {
    fn start() -> Self {
        Self(TestDaemon::start())
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        Dwell::new(&self.0).args(["daemon", "stop"]).run();
    }
}

/// What the agent said in turns, from a place of the log on.
fn said(editor: &Editor) -> String {
    words(&editor.updates(0), "agent_message_chunk")
}

/// One turn runs and four wait when the daemon goes.
#[track_caller]
fn queue_goes_on(go: impl FnOnce(&mut Here)) {
    let mut here = Here::start();
    let mut editor = Editor::start(&here.0);
    let session = editor.session(&here.0);
    let running = editor.prompt(&session, "say A \nwait 60000");
    editor.update("agent_message_chunk");
    let waiting: Vec<u64> = (0..4)
        .map(|n| editor.prompt(&session, &format!("say B{n} ")))
        .collect();
    let mut other = here.0.client();
    other.attach(&session, Some(0));
    for _ in &waiting {
        other.until_type("queued");
    }
    drop(other);
    go(&mut here);
    let why = editor.response(running).unwrap_err();
    assert_eq!(why["message"], "interrupted: the daemon stopped");
    for id in waiting {
        assert_eq!(editor.response(id).unwrap()["stopReason"], "end_turn");
    }
    assert_eq!(said(&editor), "A B0 B1 B2 B3 ");
}

#[test]
fn prompts_that_wait_run_in_their_order_after_the_daemon_died() {
    queue_goes_on(|here| here.0.kill9());
}

#[test]
fn prompts_that_wait_run_in_their_order_after_the_daemon_was_replaced() {
    queue_goes_on(|here| {
        let restart = Dwell::new(&here.0).args(["daemon", "restart"]);
        let restarting = std::thread::spawn(move || restart.ok());
        // It ends for good when its parent has looked.
        here.0.wait_exit();
        restarting.join().unwrap();
    });
}

#[test]
fn prompts_under_way_when_the_daemon_dies_run_once_each_in_their_order() {
    let mut here = Here::start();
    let mut editor = Editor::start(&here.0);
    let session = editor.session(&here.0);
    editor.turn(&session, "say warm ");
    let mut ids = Vec::new();
    for n in 0..12 {
        ids.push(editor.prompt(&session, &format!("say k{n} ")));
        if n == 4 {
            here.0.kill9();
        }
    }
    // One that ran when the daemon died is told so.
    let interrupted = ids
        .into_iter()
        .filter(|id| editor.response(*id).is_err())
        .count();
    assert!(interrupted <= 1, "{interrupted}");
    let said = said(&editor);
    let numbers: Vec<u32> = said
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('k')?.parse().ok())
        .collect();
    let mut once = numbers.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(numbers, once, "{said}");
    assert!(numbers.len() + interrupted >= 12, "{said}");
}

#[test]
fn a_prompt_behind_a_choice_of_provider_goes_to_that_provider() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for n in 0..20 {
        let provider = ["stub", "script"][n % 2];
        editor.send(
            "session/set_config_option",
            json!({"sessionId": session, "configId": "provider", "value": provider}),
        );
        let text = format!("say w{n}.");
        let (_, updates) = editor.turn(&session, &text);
        let by_script = words(&updates, "agent_message_chunk") == format!("w{n}.");
        assert_eq!(by_script, provider == "script", "{updates:?}");
    }
}

#[test]
fn a_prompt_behind_the_opening_of_its_session_runs_and_a_cancel_behind_both_stops_it() {
    let daemon = TestDaemon::start();
    let session = Editor::start(&daemon).session(&daemon);
    let asked = json!({"sessionId": session, "cwd": daemon.work(), "mcpServers": []});
    for open in ["session/resume", "session/load"] {
        let mut editor = Editor::start(&daemon);
        // The second time it is open already.
        for _ in 0..2 {
            let opening = editor.send(open, asked.clone());
            let prompted = editor.prompt(&session, "say hello");
            editor.response(opening).unwrap();
            let stop = editor.response(prompted).unwrap();
            assert_eq!(stop["stopReason"], "end_turn", "{open}");
            assert!(said(&editor).ends_with("hello"));
        }
        let mut editor = Editor::start(&daemon);
        editor.send(open, asked.clone());
        let long = editor.prompt(&session, "wait 60000");
        editor.notify("session/cancel", json!({"sessionId": session}));
        let stop: Value = editor.response(long).unwrap();
        assert_eq!(stop["stopReason"], "cancelled", "{open}");
    }
}

#[test]
fn a_prompt_behind_a_slash_command_waits_for_it() {
    let daemon = TestDaemon::start();
    let mut editor = Editor::start(&daemon);
    let session = editor.session(&daemon);
    for n in 0..10 {
        let provider = ["stub", "script"][n % 2];
        editor.prompt(&session, &format!("/provider {provider}"));
        let (_, updates) = editor.turn(&session, &format!("say w{n}."));
        let said = words(&updates, "agent_message_chunk");
        let by_script = said.ends_with(&format!("w{n}."));
        assert_eq!(by_script, provider == "script", "{said}");
    }
}

#[test]
fn a_session_is_made_though_the_daemon_has_just_died() {
    let mut here = Here::start();
    let mut editor = Editor::start(&here.0);
    here.0.kill9();
    let session = editor.session(&here.0);
    let (stop, _) = editor.turn(&session, "say hello");
    assert_eq!(stop, "end_turn");
}
