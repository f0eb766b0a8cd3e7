//! Work that nobody watches: what `wait` says of a question, what was allowed beforehand, answers from a command line, and
//! what is not deleted by the way.

use harness::binaries::binaries;
use harness::daemon::TestDaemon;
use harness::dwell::{Dwell, Ran};
use harness::pty::Pty;
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};
use std::process::Command;

const ASKS: &str = "do execute {\"command\": \"echo made > made.txt\"}\nsay the end";

fn dwell(daemon: &TestDaemon, args: &[&str]) -> Ran {
    Dwell::new(daemon).args(args.iter().copied()).run()
}

/// A session whose turn waits for an approval, and which.
fn waiting(daemon: &TestDaemon) -> (String, String) {
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, ASKS);
    let asked = client.until_type("approval_asked");
    let approval = asked.last()["approval"].as_str().unwrap().to_owned();
    (session, approval)
}

#[test]
fn what_was_allowed_for_a_wait_is_answered_and_nothing_else() {
    let daemon = TestDaemon::start();
    for consent in [&["--yes"][..], &["--allow", "execute"]] {
        let (session, _) = waiting(&daemon);
        let args = [&["wait", "--timeout", "20"], consent, &[session.as_str()]].concat();
        let done = dwell(&daemon, &args);
        assert_eq!(
            (done.code, done.stdout.as_str(), done.stderr.as_str()),
            (Some(0), "the end\n", "")
        );
        assert_eq!(daemon.read("made.txt"), "made\n");
    }
    let (session, _) = waiting(&daemon);
    let late = dwell(
        &daemon,
        &["wait", "--timeout", "1", "--allow", "write", &session],
    );
    assert_eq!(late.code, Some(124), "{}", late.stdout);
}

#[test]
fn wait_says_which_question_waits_and_how_to_answer_it() {
    let daemon = TestDaemon::start();
    let (session, approval) = waiting(&daemon);
    let late = dwell(&daemon, &["wait", "--timeout", "1", &session]);
    assert_eq!(late.code, Some(124));
    for told in [
        format!("{session} waits for an approval: execute echo made > made.txt"),
        format!("`dwell answer {approval} yes`"),
    ] {
        assert!(late.stderr.contains(&told), "{told}: {}", late.stderr);
    }
}

#[test]
fn a_question_is_answered_from_the_command_line() {
    let daemon = TestDaemon::start();
    let (session, approval) = waiting(&daemon);
    let shown = Dwell::new(&daemon).args(["approvals"]).ok();
    assert!(
        shown.starts_with(&approval) && shown.contains("echo made > made.txt"),
        "{shown}"
    );
    let listed = Dwell::new(&daemon)
        .args(["approvals", "--json", &session])
        .ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["approval"], approval);
    let slip = dwell(&daemon, &["answer", &session, "perhaps"]);
    assert_eq!(slip.code, Some(2), "{}", slip.stderr);
    let answered = Dwell::new(&daemon).args(["answer", &session, "yes"]).ok();
    assert_eq!(answered, format!("{approval}\n"));
    let done = dwell(&daemon, &["wait", &session]);
    assert_eq!(done.stdout, "the end\n", "{}", done.stderr);
    assert_eq!(daemon.read("made.txt"), "made\n");
    for (word, code) in [(&session, 4), (&approval, 1)] {
        let again = dwell(&daemon, &["answer", word, "yes"]);
        assert_eq!(again.code, Some(code), "{}", again.stderr);
    }
}

#[test]
fn a_no_from_the_command_line_tells_the_model_why() {
    let daemon = TestDaemon::start();
    let (session, approval) = waiting(&daemon);
    dwell(&daemon, &["answer", &approval, "no", "use", "the", "other"]);
    dwell(&daemon, &["wait", &session]);
    let log = Dwell::new(&daemon).args(["log", "--json", &session]).ok();
    assert!(log.contains("use the other"), "{log}");
    assert!(!daemon.work().join("made.txt").exists());
}

#[test]
fn of_two_questions_none_is_guessed() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let code =
        "return (await Promise.all([1, 2].map(n => tools.execute({command: 'echo ' + n})))).length";
    let session = client.session_with(json!({
        "cwd": daemon.work(), "provider": "script", "toolbox": {"code": {"of": "default"}}
    }));
    client.attach(&session, None);
    client.start(&session, &format!("do run_code {}", json!({"code": code})));
    client.until_type("approval_asked");
    client.until_type("approval_asked");
    let both = dwell(&daemon, &["answer", &session, "yes"]);
    assert_eq!(both.code, Some(1), "{}", both.stdout);
    assert!(
        both.stderr.contains("execute echo 1") && both.stderr.contains("execute echo 2"),
        "{}",
        both.stderr
    );
}

#[test]
fn a_session_in_use_is_deleted_only_by_force_or_with_a_yes() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let [runs, open, rests] = [(); 3].map(|()| client.session(&daemon.work()));
    client.start(&runs, "wait 60000");
    client.attach(&open, None);
    let there = || {
        let all = Dwell::new(&daemon).args(["ls", "--tsv"]).ok();
        [&runs, &open, &rests].map(|id| all.contains(id.as_str()))
    };
    for (id, why) in [(&runs, "runs"), (&open, "is open in")] {
        let refused = dwell(&daemon, &["rm", &rests, id]);
        assert_eq!(refused.code, Some(1));
        assert!(refused.stderr.contains(why), "{}", refused.stderr);
        assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    }
    assert_eq!(there(), [true; 3], "nothing goes with a refusal");
    Dwell::new(&daemon).args(["rm", &rests]).ok();
    Dwell::new(&daemon).args(["rm", "--force", &open]).ok();
    assert_eq!(there(), [true, false, false]);
    let ask = |answer: &str| {
        let mut command = Command::new(&binaries().client);
        daemon.apply(&mut command);
        command
            .env("DWELL_SOCKET", daemon.socket())
            .env("TERM", "xterm-256color")
            .args(["rm", &runs]);
        let mut pty = Pty::spawn(command);
        pty.until("delete it? [y/N]", SOON).expect("it asks");
        pty.write(answer);
        pty
    };
    let mut kept = ask("\r");
    kept.until("nothing was deleted", SOON).expect("it says so");
    assert!(there()[0]);
    let _gone = ask("y\r");
    until_true("the session to go", SOON, || !there()[0]);
}
