//! Approvals: they park, survive everything but an answer or a cancel, and the first answer is the only one.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::events::Events;
use serde_json::{Value, json};
use std::sync::{Arc, Barrier};
use std::thread;

/// A turn whose tool leaves a line in `ran` each time it runs.
const MARKS: &str = "do execute {\"command\": \"echo ran >> ran\"}\nsay done";

#[test]
fn a_call_that_needs_a_yes_parks_and_then_runs_once() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    assert_eq!(asked["tool"], "execute");
    assert_eq!(asked["arguments"], json!({"command": "echo ran >> ran"}));
    let now = client.call("session/get", json!({"session": session}));
    assert_eq!(now["state"], "waiting");
    assert_eq!(now["approvals"][0]["approval"], asked["approval"]);
    assert_eq!(
        client.call("session/list", json!({}))["sessions"][0]["state"],
        "waiting"
    );
    let listed = client.call("approval/list", json!({"session": session}));
    assert_eq!(listed[0]["approval"], asked["approval"]);
    assert_eq!(daemon.read("ran"), "", "it waits");
    client.answer(&asked["approval"], "allow").unwrap();
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "completed");
    assert_eq!(events.one("approval_answered")["answer"], "allow");
    assert_eq!(daemon.read("ran"), "ran\n");
    assert_eq!(client.call("approval/list", json!({})), json!([]));
}

#[test]
fn a_no_with_a_reason_is_what_the_model_reads() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (_, asked) = asking(&daemon, &mut client);
    let params =
        json!({"approval": asked["approval"], "answer": "deny", "reason": "not on a Friday"});
    client.call("approval/answer", params);
    let events = client.until_ended();
    let result = &events.one("done")["result"];
    assert_eq!(result["ok"], false);
    let error = result["error"].as_str().unwrap();
    assert!(
        error.starts_with("User denied permission: execute"),
        "{error}"
    );
    assert!(error.contains("not on a Friday"), "{error}");
    assert!(events.of("call_started").is_empty(), "it never began");
    assert_eq!(events.last()["status"], "completed", "the turn goes on");
    assert_eq!(daemon.read("ran"), "");
}

#[test]
fn reading_inside_the_workspace_needs_no_answer_and_outside_it_does() {
    let daemon = TestDaemon::start();
    daemon.write("note.txt", "inside\n");
    std::fs::write(daemon.path("secret.txt"), "outside\n").unwrap();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(&session, "do read {\"path\": \"note.txt\"}\nsay done");
    assert_eq!(events.one("done")["result"]["ok"], true);
    client.attach(&session, None);
    client.start(&session, "do read {\"path\": \"../secret.txt\"}\nsay done");
    let asked = client.until_type("approval_asked");
    client.answer(&asked.last()["approval"], "deny").unwrap();
    assert_eq!(client.until_ended().one("done")["result"]["ok"], false);
}

#[test]
fn a_denied_tool_is_not_asked_about() {
    let sandbox = harness::sandbox::Sandbox::new();
    sandbox.permissions(&json!({"execute": {"rm *": "deny", "*": "allow"}}));
    let daemon = TestDaemon::start_in(sandbox);
    daemon.write("keep", "");
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let events = client.turn(
        &session,
        "do execute {\"command\": \"echo a && rm keep\"}\nsay done",
    );
    assert_eq!(
        events.one("done")["result"]["error"],
        "Permission denied: execute",
        "{:?}",
        events.0
    );
    assert!(daemon.work().join("keep").exists());
    assert!(events.of("approval_asked").is_empty());
    let events = client.turn(&session, "do execute {\"command\": \"echo a\"}\nsay done");
    assert_eq!(events.one("done")["result"]["ok"], true);
}

#[test]
fn a_parked_question_survives_crashes_with_its_id_and_the_turn_goes_on() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    for _ in 0..2 {
        daemon.kill9();
        daemon.restart();
        let mut client = daemon.client();
        let now = client.call("session/get", json!({"session": session}));
        assert_eq!(
            (&now["state"], &now["approvals"][0]["approval"]),
            (&json!("waiting"), &asked["approval"])
        );
    }
    let mut client = daemon.client();
    client.attach(&session, Some(asked["seq"].as_u64().unwrap()));
    client.answer(&asked["approval"], "allow").unwrap();
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "completed");
    assert_eq!(events.said().trim(), "done", "the next round trip follows");
    assert_eq!(daemon.read("ran"), "ran\n");
    client.history(&session).assert_consecutive(0);
    assert_eq!(
        client.history(&session).of("approval_asked").len(),
        1,
        "asked once"
    );
}

#[test]
fn a_parked_question_survives_an_orderly_stop_too() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    daemon.term();
    daemon.restart();
    let mut client = daemon.client();
    client.attach(&session, Some(asked["seq"].as_u64().unwrap()));
    client.answer(&asked["approval"], "allow").unwrap();
    assert_eq!(client.until_ended().last()["status"], "completed");
    assert_eq!(daemon.read("ran"), "ran\n");
}

#[test]
fn of_two_answers_at_once_the_first_counts_and_the_tool_runs_once() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let mut allowed = 0;
    for round in 0..50 {
        client.start(&session, MARKS);
        let asked = client.until_type("approval_asked").last().clone();
        let barrier = Arc::new(Barrier::new(2));
        let racers: Vec<_> = ["allow", "deny"]
            .into_iter()
            .map(|answer| {
                let (mut client, barrier) = (daemon.client(), Arc::clone(&barrier));
                let approval = asked["approval"].clone();
                thread::spawn(move || {
                    barrier.wait();
                    client.answer(&approval, answer)
                })
            })
            .collect();
        let answers: Vec<_> = racers
            .into_iter()
            .map(|racer| racer.join().unwrap())
            .collect();
        assert_eq!(
            answers.iter().filter(|answer| answer.is_ok()).count(),
            1,
            "{answers:?}"
        );
        let won = if answers[0].is_ok() { "allow" } else { "deny" };
        let late = answers.into_iter().find_map(Result::err).unwrap();
        assert_eq!(
            (late.code, &late.data["kind"]),
            (-32004, &json!("already_answered")),
            "{late}"
        );
        assert_eq!(late.data["answer"], won);
        assert!(late.data["by"].is_string(), "{late}");
        assert_eq!(client.until_ended().one("approval_answered")["answer"], won);
        allowed += usize::from(won == "allow");
        assert_eq!(daemon.read("ran"), "ran\n".repeat(allowed), "round {round}");
    }
}

#[test]
fn cancelling_withdraws_the_question_and_the_tool_never_runs() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    client.call("turn/cancel", json!({"session": session}));
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "cancelled");
    assert_eq!(
        events.one("approval_withdrawn")["approval"],
        asked["approval"]
    );
    assert!(client.answer(&asked["approval"], "allow").is_err());
    assert_eq!(client.call("approval/list", json!({})), json!([]));
    assert_eq!(
        client.turn(&session, "say on").last()["status"],
        "completed"
    );
    assert_eq!(daemon.read("ran"), "");
}

#[test]
fn a_client_that_comes_later_sees_the_question_and_answers_it() {
    let daemon = TestDaemon::start();
    let mut asker = daemon.client();
    let (session, asked) = asking(&daemon, &mut asker);
    drop(asker);
    let mut later = daemon.client();
    later.attach(&session, Some(0));
    let seen = later.until_type("approval_asked");
    assert_eq!(seen.last(), &asked);
    later.answer(&asked["approval"], "allow").unwrap();
    assert_eq!(later.until_ended().last()["status"], "completed");
}

#[test]
fn an_answer_for_the_session_reaches_to_its_end_and_no_further() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    client.call(
        "approval/answer",
        json!({"approval": asked["approval"], "answer": "allow", "scope": "session"}),
    );
    client.until_ended();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let again = client.turn(&session, MARKS);
    assert!(again.of("approval_asked").is_empty(), "{:?}", again.types());
    assert_eq!(daemon.read("ran"), "ran\nran\n");
    let (_, asked) = asking(&daemon, &mut client);
    assert_eq!(asked["type"], "approval_asked", "another session asks");
}

#[test]
fn an_answer_for_good_is_written_to_the_workspace() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    client.call(
        "approval/answer",
        json!({"approval": asked["approval"], "answer": "allow", "scope": "always"}),
    );
    client.until_ended();
    let written: Value = serde_json::from_str(&daemon.read(".agents/permissions.json")).unwrap();
    assert!(written.to_string().contains("allow"), "{written}");
    let again = client.turn(&session, MARKS);
    assert!(again.of("approval_asked").is_empty(), "{:?}", again.types());
}

#[test]
fn a_pattern_for_good_covers_its_kind_and_is_written_to_the_workspace() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, &does("git log -1; true"));
    let asked = client.until_type("approval_asked").last().clone();
    assert_eq!(asked["patterns"], json!(["git log -1; true"]));
    client.answer(&asked["approval"], "deny").unwrap();
    client.until_ended();
    client.start(&session, &does("git log -1"));
    let asked = client.until_type("approval_asked").last().clone();
    assert_eq!(asked["patterns"], json!(["git log *", "git log -1"]));
    let listed = client.call("approval/list", json!({"session": session}));
    assert_eq!(listed[0]["patterns"], asked["patterns"]);
    client.call("approval/answer", always(&asked, "git log *"));
    let events = client.until_ended();
    assert_eq!(events.one("approval_answered")["pattern"], "git log *");
    assert_eq!(events.one("granted")["pattern"], "git log *");
    harness::wait::until_true("the rule to be written", harness::wait::SOON, || {
        daemon
            .read(".agents/permissions.json")
            .contains("git log *")
    });
    let other = client.session(&daemon.work());
    client.attach(&other, None);
    for (line, asks) in [
        ("git log --oneline", false),
        ("git log -1 && rm x", true),
        ("git log -1 > x", true),
        ("git log --output=x", true),
        ("git status", true),
    ] {
        client.start(&other, &does(line));
        let events = client.events_until("a question or the end", |event| {
            ["approval_asked", "turn_ended"].contains(&event["type"].as_str().unwrap_or_default())
        });
        let asked = events.last().clone();
        assert_eq!(asked["type"] == "approval_asked", asks, "{line}");
        if asks {
            client.answer(&asked["approval"], "deny").unwrap();
            client.until_ended();
        }
    }
}

#[test]
fn a_pattern_for_the_session_ends_with_it_and_is_held_to_the_rules_of_patterns() {
    let sandbox = harness::sandbox::Sandbox::new();
    sandbox.permissions(&json!({"execute": {"find * -print": "ask"}}));
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, &does("find . -name x"));
    let asked = client.until_type("approval_asked").last().clone();
    let answer = json!({"approval": asked["approval"], "answer": "allow", "scope": "session", "pattern": "find *"});
    client.call("approval/answer", answer);
    client.until_ended();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let turn = client.turn(&session, &does("find . -name y"));
    assert!(turn.of("approval_asked").is_empty(), "{:?}", turn.types());
    client.attach(&session, None);
    for line in ["find . -delete", "find . -print", "find . -exec rm {} +"] {
        client.start(&session, &does(line));
        let asked = client.until_type("approval_asked").last().clone();
        client.answer(&asked["approval"], "deny").unwrap();
        client.until_ended();
    }
    assert_eq!(daemon.read(".agents/permissions.json"), "");
}

#[test]
fn a_pattern_that_would_not_allow_the_call_is_refused_and_the_question_waits() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let (_, asked) = asking(&daemon, &mut client);
    let exact = asked["patterns"][0].as_str().unwrap().to_owned();
    for (pattern, why) in [
        ("cargo *", "cannot be judged"),
        ("echo *", "cannot be judged"),
        ("*", "cannot be judged"),
        (" ", "empty"),
    ] {
        let params = json!({"approval": asked["approval"], "answer": "allow", "scope": "always", "pattern": pattern});
        let fault = client.fault("approval/answer", params);
        assert_eq!(fault.code, -32602, "{pattern}: {fault}");
        assert!(fault.message.contains(why), "{pattern}: {fault}");
    }
    for params in [
        json!({"answer": "deny", "scope": "always"}),
        json!({"answer": "allow"}),
        json!({"answer": "allow", "scope": "program"}),
    ] {
        let mut params = params;
        params["approval"] = asked["approval"].clone();
        params["pattern"] = json!(exact);
        let fault = client.fault("approval/answer", params);
        assert_eq!(fault.code, -32602, "{fault}");
        assert!(fault.message.contains("leave it out"), "{fault}");
    }
    let waiting = client.call("approval/list", json!({}));
    assert_eq!(waiting[0]["approval"], asked["approval"]);
    client.call("approval/answer", always(&asked, &exact));
    assert_eq!(client.until_ended().last()["status"], "completed");
    let late = client.fault("approval/answer", always(&asked, "cargo *"));
    assert_eq!(late.code, -32004, "{late}");
}

#[test]
fn files_are_offered_with_their_folder_and_what_a_folder_allows_ends_at_its_walls() {
    let daemon = TestDaemon::start();
    daemon.write("src/a.txt", "");
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, &writes("src/a.txt"));
    let asked = client.until_type("approval_asked").last().clone();
    assert_eq!(asked["patterns"], json!(["src/a.txt", "src/*"]));
    client.call("approval/answer", always(&asked, "src/*"));
    client.until_ended();
    let turn = client.turn(&session, &writes("src/deep/b.txt"));
    assert!(turn.of("approval_asked").is_empty(), "{:?}", turn.types());
    client.attach(&session, None);
    for path in [
        "b.txt",
        "src/../c.txt",
        "../src/d.txt",
        ".agents/permissions.json",
        "src/.git/hooks/pre-commit",
        "src/deep/.envrc",
    ] {
        client.start(&session, &writes(path));
        let asked = client.until_type("approval_asked").last().clone();
        client.answer(&asked["approval"], "deny").unwrap();
        client.until_ended();
    }
    client.start(&session, &writes("src/.envrc"));
    let asked = client.until_type("approval_asked").last().clone();
    let why = asked["why"].to_string();
    assert!(why.contains("does not name"), "{why}");
    assert_eq!(asked["patterns"], json!(["src/.envrc"]));
    client.answer(&asked["approval"], "deny").unwrap();
}

#[test]
fn questions_stay_in_their_session() {
    let daemon = TestDaemon::start();
    let (mut one, mut two) = (daemon.client(), daemon.client());
    let (_, first) = asking(&daemon, &mut one);
    let (other, _) = asking(&daemon, &mut two);
    one.answer(&first["approval"], "allow").unwrap();
    let events = one.until_ended();
    assert!(
        events
            .0
            .iter()
            .all(|event| event["session"] == first["session"])
    );
    assert_eq!(
        two.call("approval/list", json!({"session": other}))
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_answer_to_nothing_is_not_found() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let fault = client
        .answer(&json!(format!("{session}.a9")), "allow")
        .unwrap_err();
    assert_eq!(fault.code, -32002, "{fault}");
    let fault = client.answer(&json!("nonsense"), "allow").unwrap_err();
    assert_eq!(fault.code, -32002, "{fault}");
}

#[test]
fn a_tool_run_by_hand_asks_like_a_models_call() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let id = client.send(
        "tool/run",
        json!({"session": session, "name": "bash", "arguments": {"command": "echo by hand"}}),
    );
    let asked = client.until_type("approval_asked").last().clone();
    assert_eq!(
        asked["tool"], "execute",
        "an alias is resolved before it is asked about"
    );
    client.answer(&asked["approval"], "allow").unwrap();
    let result = client.response(id).unwrap();
    assert_eq!(
        result,
        json!({"exit_status": 0, "content": "by hand\n", "ok": true})
    );
}

#[test]
fn a_directorys_own_permissions_count_only_once_it_is_trusted() {
    let daemon = TestDaemon::start();
    daemon.write(".agents/permissions.json", "{\"execute\": \"allow\"}");
    let mut client = daemon.client();
    let (session, asked) = asking(&daemon, &mut client);
    client.answer(&asked["approval"], "deny").unwrap();
    client.until_ended();
    let listed = client.call("trust/list", json!({"cwd": daemon.work()}));
    assert_eq!(listed[0]["state"], "undecided", "{listed}");
    client.call("trust/answer", json!({"cwd": daemon.work(), "allow": true}));
    let trusted = client.turn(&session, MARKS);
    assert!(
        trusted.of("approval_asked").is_empty(),
        "{:?}",
        trusted.types()
    );
    daemon.write(
        ".agents/permissions.json",
        "{\"execute\": \"allow\", \"write\": \"allow\"}",
    );
    let (_, _) = asking(&daemon, &mut client);
    let listed = client.call("trust/list", json!({"cwd": daemon.work()}));
    assert_eq!(listed[0]["state"], "changed", "{listed}");
}

#[test]
fn an_untrusted_directory_can_neither_forbid_nor_make_ask_what_the_user_allows() {
    let daemon = TestDaemon::start();
    daemon.permissions(&json!({"execute": "allow"}));
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for own in ["{\"execute\": \"deny\"}", "{\n\"execute\": }"] {
        daemon.write(".agents/permissions.json", own);
        let turn = client.turn(&session, MARKS);
        assert!(
            turn.of("approval_asked").is_empty(),
            "{own}: {:?}",
            turn.types()
        );
        assert_eq!(
            turn.of("done").last().unwrap()["result"]["ok"],
            true,
            "{own}"
        );
    }
    let listed = client.call("trust/list", json!({"cwd": daemon.work()}));
    let problem = listed[0]["files"][0]["problem"].to_string();
    assert!(problem.contains("line 2"), "{listed}");
    client.call("trust/answer", json!({"cwd": daemon.work(), "allow": true}));
    let (_, asked) = asking(&daemon, &mut client);
    let why = asked["why"].to_string();
    assert!(
        why.contains("work/.agents/permissions.json") && why.contains("line 2"),
        "{why}"
    );
}

fn does(line: &str) -> String {
    format!("do execute {}\nsay done", json!({"command": line}))
}

fn writes(path: &str) -> String {
    format!(
        "do write {}\nsay done",
        json!({"path": path, "content": "x"})
    )
}

/// A yes for good to this pattern.
fn always(asked: &Value, pattern: &str) -> Value {
    json!({"approval": asked["approval"], "answer": "allow", "scope": "always", "pattern": pattern})
}

/// A new session, attached, whose turn waits for a yes; the session and the question.
#[track_caller]
fn asking(daemon: &TestDaemon, client: &mut TestClient) -> (String, Value) {
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    client.start(&session, MARKS);
    let events: Events = client.until_type("approval_asked");
    (session, events.last().clone())
}

#[test]
fn a_question_about_a_file_that_is_there_is_preceded_by_what_becomes_of_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let mut ask = |script: &str, answer: &str| {
        client.start(&session, script);
        let events = client.until_type("approval_asked");
        client
            .answer(&events.last()["approval"], answer)
            .expect("it is taken");
        client.until_ended();
        let told: Vec<Value> = events.of("changing").into_iter().cloned().collect();
        told
    };
    daemon.write("there.txt", "one\ntwo\nthree\n");
    let over = r#"do write {"path": "there.txt", "content": "one\n2\nthree\n"}"#;
    let told = ask(over, "deny");
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["size"], 14);
    assert_eq!(told[0]["diff"], "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n");
    let fresh = r#"do write {"path": "fresh.txt", "content": "one\n"}"#;
    assert_eq!(ask(fresh, "deny"), Vec::<Value>::new());
    std::fs::write(daemon.work().join("blob"), [0, 159, 146, 150]).unwrap();
    daemon.write("many.txt", "a foo\nb\nc\nd\ne\nf\ng foo\n");
    let edit = r#"do edit {"path": "many.txt", "old": "foo", "new": "bar", "all": true}"#;
    let told = ask(edit, "deny");
    let hunks =
        "@@ -1,3 +1,3 @@\n-a foo\n+a bar\n b\n c\n@@ -5,3 +5,3 @@\n e\n f\n-g foo\n+g bar\n";
    assert_eq!(told[0]["diff"], hunks);
    assert_eq!(told[0]["places"], 2);
    let fails = r#"do edit {"path": "many.txt", "old": "nowhere", "new": "bar"}"#;
    assert_eq!(ask(fails, "deny"), Vec::<Value>::new());
    let told = ask(r#"do write {"path": "blob", "content": "one\n"}"#, "deny");
    assert_eq!((&told[0]["size"], told[0].get("diff")), (&json!(4), None));
}

#[test]
fn a_file_that_changes_while_the_question_waits_is_not_written_over() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let mut meanwhile = |script: &str, path: &str, content: &str| {
        client.start(&session, script);
        let asked = client.until_type("approval_asked").last().clone();
        daemon.write(path, content);
        client.answer(&asked["approval"], "allow").expect("taken");
        client.until_ended().one("done")["result"].clone()
    };
    let over = r#"do write {"path": "a.txt", "content": "a\nX\nc\n"}"#;
    for (before, then) in [
        (Some("a\nb\nc\n"), "an hour\nof work\n"),
        (Some("a\nX\nc\n"), "more\n"),
        (None, "new\n"),
    ] {
        match before {
            Some(before) => drop(daemon.write("a.txt", before)),
            None => std::fs::remove_file(daemon.work().join("a.txt")).unwrap(),
        }
        let result = meanwhile(over, "a.txt", then);
        assert_eq!(result["code"], "changed", "{result}");
        let error = result["error"].as_str().unwrap();
        assert!(
            error.contains("a.txt") && error.contains("read it"),
            "{error}"
        );
        assert_eq!(daemon.read("a.txt"), then);
    }
    let result = meanwhile(over, "b.txt", "another");
    assert_eq!(result["ok"], true, "{result}");
    daemon.write("e.txt", "keep\nold 1\nkeep\n");
    let edit = r#"do edit {"path": "e.txt", "old": "old", "new": "new"}"#;
    let result = meanwhile(edit, "e.txt", "keep\nold 2, other\nkeep\n");
    assert_eq!(result["code"], "changed", "{result}");
    let result = meanwhile(edit, "e.txt", "one more\nkept\nold 2, other\nkeep\n");
    assert_eq!(
        result["ok"], true,
        "what it replaces is as it was: {result}"
    );
    assert_eq!(daemon.read("e.txt"), "one more\nkept\nnew 2, other\nkeep\n");
}

#[test]
fn a_question_about_a_link_says_where_that_leads() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let out = daemon.work().parent().unwrap().join("elsewhere");
    std::fs::create_dir_all(&out).unwrap();
    daemon.write("src/real.txt", "");
    let link = |to: &std::path::Path, name: &str| {
        std::os::unix::fs::symlink(to, daemon.work().join("src").join(name)).unwrap();
    };
    link(&out.join("secret"), "link");
    link(&out, "dir");
    link(std::path::Path::new("real.txt"), "inner");
    let out = std::fs::canonicalize(&out).unwrap();
    let out = out.to_str().unwrap();
    for (path, leads) in [
        (
            "src/link",
            Some(format!(
                "src/link leads to {out}/secret, outside the workspace"
            )),
        ),
        (
            "src/dir/new/x",
            Some(format!("leads to {out}/new/x, outside the workspace")),
        ),
        (
            "src/inner",
            Some("src/inner leads to src/real.txt".to_owned()),
        ),
        ("src/plain", None),
    ] {
        client.start(&session, &writes(path));
        let asked = client.until_type("approval_asked").last().clone();
        let why = asked["why"].as_str().unwrap();
        match leads {
            Some(leads) => assert!(why.ends_with(&leads), "{path}: {why}"),
            None => assert!(!why.contains("leads"), "{path}: {why}"),
        }
        client.answer(&asked["approval"], "deny").unwrap();
        client.until_ended();
    }
}

#[test]
fn whoever_asks_what_waits_is_told_what_becomes_of_the_file_also_after_a_crash() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    daemon.write("there.txt", "one\ntwo\nthree\n");
    let over = r#"do write {"path": "there.txt", "content": "one\n2\nthree\n"}"#;
    client.start(&session, over);
    client.until_type("approval_asked");
    let change = json!({"size": 14, "diff": "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"});
    let listed = client.call("approval/list", json!({}));
    assert_eq!(listed[0]["change"], change, "{listed}");
    let now = client.call("session/get", json!({"session": session}));
    assert_eq!(now["approvals"][0]["change"], change, "{now}");
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.call("session/get", json!({"session": session}));
    let listed = client.call("approval/list", json!({}));
    assert_eq!(listed[0]["change"], change, "{listed}");
    let cli = Dwell::new(&daemon).args(["approvals"]).run().stdout;
    assert!(cli.contains("- two") && cli.contains("+ 2"), "{cli}");
    let approval = listed[0]["approval"].clone();
    client.attach(&session, None);
    client.answer(&approval, "allow").unwrap();
    client.until_ended();
    client.start(
        &session,
        r#"do write {"path": "fresh.txt", "content": "one\n"}"#,
    );
    client.until_type("approval_asked");
    let listed = client.call("approval/list", json!({}));
    assert_eq!(listed[0].get("change"), None, "{listed}");
}

#[test]
fn the_question_of_a_persons_own_call_outlives_the_turns_beside_it() {
    let daemon = TestDaemon::start();
    let (mut client, mut other) = (daemon.client(), daemon.client());
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let by_hand =
        json!({"session": session, "name": "execute", "arguments": {"command": "echo mine"}});
    let run = other.send("tool/run", by_hand);
    let asked = client.until_type("approval_asked").last()["approval"].clone();
    assert_eq!(
        client.turn(&session, "say beside").last()["status"],
        "completed"
    );
    client.start(&session, "wait 60000");
    client.until_type("turn_started");
    client.call("turn/cancel", json!({"session": session}));
    assert_eq!(client.until_ended().last()["status"], "cancelled");
    client.answer(&asked, "allow").expect("it waits still");
    let result = other.response(run).expect("it runs");
    assert_eq!(result["content"], "mine\n", "{result}");
}
