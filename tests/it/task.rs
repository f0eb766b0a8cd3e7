//! The tool `task`: a session of its own for a call, its questions, and how both end.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::model::{Answer, FakeModel, Step};
use harness::wait::{SOON, until_true};
use serde_json::{Value, json};

/// A round trip that hands a task over.
fn hands(prompt: &str) -> Answer {
    let arguments = json!({"prompt": prompt}).to_string();
    Answer::call("t", "task", &arguments, 1)
}

fn says(text: &str) -> Answer {
    Answer::text([text])
}

fn writes() -> Answer {
    Answer::call("w", "write", r#"{"path": "new.txt", "content": "x"}"#, 1)
}

fn children(client: &mut TestClient, of: &str) -> Vec<Value> {
    let list = client.call("session/list", json!({}));
    let sessions = list["sessions"].as_array().unwrap().clone();
    let own = |one: &Value| one["parent"] == *of && !one["task"].is_null();
    sessions.into_iter().filter(own).collect()
}

/// The last message that the model was sent in a request.
fn last(request: &Value) -> &Value {
    request["messages"].as_array().unwrap().last().unwrap()
}

#[test]
fn task_runs_in_a_session_of_its_own_and_its_last_reply_is_the_result() {
    let model = FakeModel::start([
        hands("count the files"),
        Answer::call("l", "list", "{}", 1),
        says("there are 3"),
        says("three, it says"),
    ]);
    let (daemon, mut client, session) = TestDaemon::with_model(&model);
    let events = client.turn(&session, "how many files?");
    assert_eq!(events.said(), "three, it says");
    let child = children(&mut client, &session).pop().unwrap();
    let id = child["id"].as_str().unwrap();
    let doing = events.one("doing");
    assert_eq!(
        (&doing["name"], &child["task"]),
        (&json!("task"), &doing["call"])
    );
    let result = &events.one("done")["result"];
    assert_eq!(
        *result,
        json!({"content": "there are 3", "session": id, "ok": true})
    );
    let shown = events.texts()[doing["call"].as_str().unwrap()].clone();
    assert_eq!(shown, format!("session {id}\nlist\n"));

    let log = client.history(id);
    assert_eq!(log.of("turn_started")[0]["text"], "count the files");
    assert_eq!(log.said(), "there are 3");
    let requests = model.requests();
    assert!(
        !requests[1].to_string().contains("how many files?"),
        "it begins with nothing"
    );
    assert_eq!(requests[1]["model"], requests[0]["model"]);
    let ls = Dwell::new(&daemon).args(["ls", "--here"]).ok();
    assert!(
        ls.contains(&format!("(task of {session}) count the files")),
        "{ls}"
    );
    let goes_on = Dwell::new(&daemon).args(["send", "more"]).run();
    assert!(
        goes_on.stdout.contains(&session) || !goes_on.stdout.contains(id),
        "{goes_on:?}"
    );
    assert_eq!(
        client.call("session/list", json!({}))["sessions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn question_of_a_task_tells_what_becomes_of_its_file_and_not_of_another() {
    let write = |path: &str| {
        let arguments = json!({"path": path, "content": "x"}).to_string();
        Answer::call("w", "write", &arguments, 1)
    };
    let model = FakeModel::start([
        hands("write them"),
        write("old.txt"),
        write("free/old.txt"),
        write("new.txt"),
        says("written"),
        says("all done"),
    ]);
    let (daemon, mut client, session) = TestDaemon::with_model(&model);
    daemon.write("old.txt", "was here\n");
    daemon.write("free/old.txt", "was too\n");
    daemon.permissions(&json!({"task": "allow", "write": {"free/*": "allow"}}));
    client.attach(&session, None);
    client.call("turn/start", json!({"session": session, "text": "go"}));
    for (path, lost) in [("old.txt", true), ("new.txt", false)] {
        let events = client.until_type("approval_asked");
        assert_eq!(events.last()["arguments"]["path"], path);
        let told = events.of("changing");
        assert_eq!(told.len(), usize::from(lost), "{path}: {told:?}");
        for of in [json!({"session": session}), json!({})] {
            let listed = client.call("approval/list", of);
            let diff = &listed[0]["change"]["diff"];
            let shown = diff.as_str().is_some_and(|diff| diff.contains("-was here"));
            assert_eq!(shown, lost, "{path}: {listed}");
        }
        client.answer(&events.last()["approval"], "allow").unwrap();
    }
    client.until_ended();
    assert_eq!(daemon.read("free/old.txt"), "x");
}

#[test]
fn question_of_a_task_is_asked_in_its_parent_and_answered_there_or_in_the_task_once() {
    let answers = || {
        [
            hands("write it"),
            writes(),
            says("written"),
            says("all done"),
        ]
    };
    for there in [true, false] {
        let model = FakeModel::start(answers());
        let (daemon, mut client, session) = TestDaemon::with_model(&model);
        client.attach(&session, None);
        client.call("turn/start", json!({"session": session, "text": "go"}));
        let asked = client.until_type("approval_asked");
        let asked = asked.last();
        let child = children(&mut client, &session).pop().unwrap()["id"].clone();
        assert_eq!(
            (&asked["session"], &asked["tool"]),
            (&json!(session), &json!("write"))
        );
        assert_eq!(asked["arguments"]["path"], "new.txt");
        let why = asked["why"].as_str().unwrap();
        assert!(
            why.starts_with(&format!("the task {} asks: ", child.as_str().unwrap())),
            "{why}"
        );
        for of in [json!(session), child.clone()] {
            assert_eq!(
                client.call("session/get", json!({"session": of}))["state"],
                "waiting"
            );
            let listed = client.call("approval/list", json!({"session": of}));
            assert_eq!(listed[0]["approval"], asked["approval"]);
        }
        let all = client.call("approval/list", json!({}));
        assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
        assert_eq!(all[0]["session"], child);

        let mut other = daemon.client();
        let answerer = if there { &mut client } else { &mut other };
        answerer.answer(&asked["approval"], "allow").unwrap();
        let rest = client.until_ended();
        assert_eq!(rest.one("approval_answered")["approval"], asked["approval"]);
        assert_eq!(rest.said(), "all done");
        assert_eq!(daemon.read("new.txt"), "x");
        let late = client.answer(&asked["approval"], "deny").unwrap_err();
        assert_eq!(late.code, -32004);
    }
}

#[test]
fn what_is_allowed_for_the_session_is_allowed_for_its_later_tasks_too() {
    let model = FakeModel::start([
        hands("write it"),
        writes(),
        says("written"),
        hands("again"),
        writes(),
        says("written again"),
        says("all done"),
    ]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    client.call("turn/start", json!({"session": session, "text": "go"}));
    let asked = client.until_type("approval_asked");
    let answer =
        json!({"approval": asked.last()["approval"], "answer": "allow", "scope": "session"});
    client.call("approval/answer", answer);
    let rest = client.until_ended();
    assert!(rest.of("approval_asked").is_empty());
    assert_eq!(rest.said(), "all done");
}

#[test]
fn cancel_of_the_parent_cancels_the_task_while_it_works_and_while_it_asks() {
    let stalls = Answer::open().say("well").step(Step::Stall);
    for (second, until) in [(stalls, "tool_output"), (writes(), "approval_asked")] {
        let model = FakeModel::start([hands("work"), second]);
        let (_daemon, mut client, session) = TestDaemon::with_model(&model);
        client.attach(&session, None);
        client.call("turn/start", json!({"session": session, "text": "go"}));
        client.until_type(until);
        client.call("turn/cancel", json!({"session": session}));
        let rest = client.until_ended();
        assert_eq!(rest.last()["status"], "cancelled");
        let child = children(&mut client, &session).pop().unwrap()["id"].clone();
        until_true("the task has ended", SOON, || {
            client.call("session/get", json!({"session": child}))["state"] == "idle"
        });
        let log = client.history(child.as_str().unwrap());
        assert_eq!(log.last()["status"], "cancelled", "{until}");
        let waiting = client.call("approval/list", json!({}));
        assert_eq!(waiting, json!([]));
    }
}

#[test]
fn daemon_that_dies_leaves_parent_and_task_interrupted_and_no_question_open() {
    let model = FakeModel::start([hands("write it"), writes(), says("fine")]);
    let (mut daemon, mut client, session) = TestDaemon::with_model(&model);
    client.attach(&session, None);
    client.call("turn/start", json!({"session": session, "text": "go"}));
    client.until_type("approval_asked");
    let child = children(&mut client, &session).pop().unwrap()["id"].clone();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    for id in [session.as_str(), child.as_str().unwrap()] {
        let log = client.history(id);
        assert_eq!(log.last()["status"], "interrupted", "{id}");
        assert_eq!(log.of("approval_withdrawn").len(), 1, "{id}");
        let error = log.of("done").last().unwrap()["result"]["error"].to_string();
        assert!(error.contains("interrupted: the daemon stopped"), "{error}");
    }
    assert_eq!(client.call("approval/list", json!({})), json!([]));
    assert_eq!(client.turn(&session, "and now?").said(), "fine");
    let told = model.requests().pop().unwrap().to_string();
    assert!(told.contains("outcome unknown"), "{told}");
}

#[test]
fn tasks_start_tasks_three_deep_and_no_deeper() {
    let model = FakeModel::start([
        hands("1"),
        hands("2"),
        hands("3"),
        hands("4"),
        says("too deep"),
        says("so it is"),
        says("I see"),
        says("well"),
    ]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    assert_eq!(client.turn(&session, "go").said(), "well");
    let refused = last(&model.requests()[4])["content"].to_string();
    assert!(
        refused.contains("tasks may start tasks 3 deep"),
        "{refused}"
    );
    let list = client.call("session/list", json!({}));
    assert_eq!(list["sessions"].as_array().unwrap().len(), 4);
}

#[test]
fn task_that_fails_is_a_failed_call_and_the_turn_goes_on() {
    let model = FakeModel::start([
        hands("work"),
        Answer::status(400, "no such model"),
        says("it failed"),
    ]);
    let (_daemon, mut client, session) = TestDaemon::with_model(&model);
    let events = client.turn(&session, "go");
    let result = &events.one("done")["result"];
    assert_eq!(result["ok"], false);
    assert!(
        result["error"].as_str().unwrap().contains("no such model"),
        "{result}"
    );
    assert_eq!(events.said(), "it failed");
    let empty = json!({"session": session, "name": "task", "arguments": {"prompt": " "}});
    let empty = client.call("tool/run", empty);
    assert_eq!(empty["error"], "prompt is empty: say what is to be done");
}
