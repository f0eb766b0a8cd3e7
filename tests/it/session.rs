//! Sessions as things: made, listed, renamed, forked, put away, deleted, searched, exported.

use harness::daemon::TestDaemon;
use harness::events::Events;
use serde_json::{Value, json};

#[test]
fn a_new_session_is_idle_and_says_what_it_is() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let made = client.call(
        "session/create",
        json!({"cwd": daemon.work(), "title": "a title", "provider": "script"}),
    );
    assert_eq!(made["title"], "a title");
    assert_eq!(made["cwd"], daemon.work().to_str().unwrap());
    assert_eq!(made["state"], "idle");
    assert_eq!(made["provider"], "script");
    let got = client.call("session/get", json!({"session": made["id"]}));
    assert_eq!(got["id"], made["id"]);
    assert_eq!(got["created_at"], made["created_at"]);
}

#[test]
fn a_session_needs_an_absolute_directory_that_exists() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    for cwd in [json!("relative/path"), json!(daemon.work().join("missing"))] {
        let fault = client.fault("session/create", json!({"cwd": cwd, "provider": "script"}));
        assert_eq!(fault.code, -32602, "{fault}");
        assert!(fault.message.contains(cwd.as_str().unwrap()), "{fault}");
    }
    let fault = client.fault("session/create", json!({"provider": "script"}));
    assert_eq!(fault.code, -32602, "{fault}");
}

#[test]
fn an_unknown_provider_is_named_with_those_there_are() {
    let daemon = TestDaemon::start();
    let fault = daemon.client().fault(
        "session/create",
        json!({"cwd": daemon.work(), "provider": "nope"}),
    );
    assert_eq!(fault.code, -32010, "{fault}");
    assert!(
        fault
            .message
            .starts_with("unknown provider: \"nope\". Available: "),
        "{fault}"
    );
    assert!(
        fault
            .message
            .ends_with("Install dwell-provider-nope on PATH."),
        "{fault}"
    );
}

#[test]
fn the_first_line_of_the_first_turn_is_the_title() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "say one\nsay two");
    client.turn(&session, "say three");
    assert_eq!(
        client.call("session/get", json!({"session": session}))["title"],
        "say one"
    );
}

#[test]
fn lists_are_newest_first_and_paged() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let made: Vec<String> = (0..7).map(|_| client.session(&daemon.work())).collect();
    client.turn(&made[2], "say again");
    let mut seen = Vec::new();
    let mut params = json!({"limit": 3});
    loop {
        let page = client.call("session/list", params.clone());
        let ids = ids(&page);
        assert!(ids.len() <= 3);
        seen.extend(ids);
        match page.get("cursor").filter(|cursor| !cursor.is_null()) {
            Some(cursor) => params["cursor"] = cursor.clone(),
            None => break,
        }
        assert!(seen.len() <= 7, "a page repeats");
    }
    assert_eq!(seen[0], made[2], "the one that was used last comes first");
    assert_eq!(seen.len(), 7);
}

#[test]
fn lists_can_be_of_one_directory_or_by_a_word() {
    let daemon = TestDaemon::start();
    let other = daemon.path("home");
    let mut client = daemon.client();
    let here = client.session(&daemon.work());
    let there = client.session(&other);
    client.call(
        "session/rename",
        json!({"session": here, "title": "the blue one"}),
    );
    assert_eq!(
        ids(&client.call("session/list", json!({"cwd": other}))),
        [there]
    );
    assert_eq!(
        ids(&client.call("session/list", json!({"query": "blue"}))),
        [here]
    );
}

#[test]
fn renaming_is_an_event_and_shows_everywhere() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let recorded = client.call(
        "session/rename",
        json!({"session": session, "title": "better"}),
    );
    let event = client.event();
    assert_eq!(
        (&event["type"], &event["title"], &event["seq"]),
        (&json!("renamed"), &json!("better"), &recorded["seq"])
    );
    assert_eq!(
        client.call("session/list", json!({}))["sessions"][0]["title"],
        "better"
    );
}

#[test]
fn an_archived_session_is_out_of_the_list_until_it_is_taken_back() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.call("session/archive", json!({"session": session}));
    assert_eq!(
        ids(&client.call("session/list", json!({}))),
        Vec::<String>::new()
    );
    assert_eq!(
        ids(&client.call("session/list", json!({"archived": true}))),
        std::slice::from_ref(&session)
    );
    client.call(
        "session/archive",
        json!({"session": session, "archived": false}),
    );
    assert_eq!(ids(&client.call("session/list", json!({}))), [session]);
}

#[test]
fn a_deleted_session_is_gone_and_deleting_again_succeeds() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "say rhinoceros");
    for _ in 0..2 {
        client.call("session/delete", json!({"session": session}));
    }
    for method in [
        "session/get",
        "session/history",
        "session/attach",
        "turn/cancel",
    ] {
        let fault = client.fault(method, json!({"session": session}));
        assert_eq!(
            (fault.code, &fault.data["kind"]),
            (-32002, &json!("not_found")),
            "{method}: {fault}"
        );
        assert!(fault.message.contains(&session), "{fault}");
    }
    assert_eq!(
        client.call("session/search", json!({"query": "rhinoceros"})),
        json!([])
    );
}

#[test]
fn a_fork_has_the_events_up_to_the_point_and_then_goes_its_own_way() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let at = client.turn(&session, "say first").newest();
    client.turn(&session, "say second");
    let fork = client.call("session/fork", json!({"session": session, "at": at}));
    let fork_id = fork["id"].as_str().unwrap().to_owned();
    assert_eq!(fork["parent"], json!(session));
    let (original, copy) = (client.history(&session), client.history(&fork_id));
    assert_eq!(copy.said(), "first");
    assert_eq!(copy.newest(), at);
    assert_eq!(
        without_session(&copy),
        without_session(&Events(original.0[..copy.0.len()].to_vec()))
    );
    client.turn(&fork_id, "say third");
    assert_eq!(client.history(&fork_id).said(), "firstthird");
    assert_eq!(client.history(&session).said(), "firstsecond");
}

#[test]
fn history_is_paged_from_both_ends() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for _ in 0..3 {
        client.turn(&session, "say one\ndo list {}\nsay two");
    }
    let all = client.history(&session);
    all.assert_consecutive(0);
    let mut walked = Vec::new();
    while walked.len() < all.0.len() {
        let after = walked
            .last()
            .map_or(0, |event: &Value| event["seq"].as_u64().unwrap());
        let page = client.call(
            "session/history",
            json!({"session": session, "after": after, "limit": 4}),
        );
        let events = page["events"].as_array().unwrap();
        assert!(!events.is_empty() && events.len() <= 4);
        walked.extend(events.iter().cloned());
        assert_eq!(page["more"], walked.len() < all.0.len());
    }
    assert_eq!(walked, all.0);
    let newest = client.call(
        "session/history",
        json!({"session": session, "before": all.newest() + 1, "limit": 2}),
    );
    assert_eq!(newest["events"], json!(all.0[all.0.len() - 2..]));
}

#[test]
fn search_finds_what_was_said_and_shows_where() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let other = client.session(&daemon.work());
    client.turn(&session, "say the quick brown fox jumps");
    client.turn(&other, "say nothing of the kind");
    let hits = client.call("session/search", json!({"query": "brown fox"}));
    let hit = hits
        .as_array()
        .unwrap()
        .iter()
        .find(|hit| hit["session"] == json!(session))
        .unwrap();
    assert!(
        hit["snippet"].as_str().unwrap().contains("[brown]")
            || hit["snippet"].as_str().unwrap().contains("[brown fox]"),
        "{hit}"
    );
    assert!(
        hits.as_array()
            .unwrap()
            .iter()
            .all(|hit| hit["session"] == json!(session)),
        "{hits}"
    );
    assert_eq!(
        client.call("session/search", json!({"query": "\"fox brown\""})),
        json!([])
    );
    assert!(
        !client
            .call("session/search", json!({"query": "jum*"}))
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_search_that_cannot_be_read_is_the_callers_error() {
    let daemon = TestDaemon::start();
    for query in ["\"unfinished", "AND", "(", "*"] {
        match daemon
            .client()
            .try_call("session/search", json!({"query": query}))
        {
            Ok(hits) => assert_eq!(hits, json!([]), "{query}"),
            Err(fault) => assert_eq!(fault.code, -32602, "{query}: {fault}"),
        }
    }
}

#[test]
fn an_export_holds_the_conversation() {
    let daemon = TestDaemon::start();
    daemon.write("note.txt", "seventeen camels\n");
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(
        &session,
        "say looking\ndo read {\"path\": \"note.txt\"}\nsay found",
    );
    let markdown = client.call(
        "session/export",
        json!({"session": session, "format": "markdown"}),
    );
    let text = markdown["text"].as_str().unwrap();
    for part in ["looking", "read", "seventeen camels", "found"] {
        assert!(text.contains(part), "no {part} in:\n{text}");
    }
    let exported = client.call(
        "session/export",
        json!({"session": session, "format": "json"}),
    );
    let whole: Value = serde_json::from_str(exported["text"].as_str().unwrap()).unwrap();
    assert_eq!(whole["session"]["id"], json!(session));
    assert_eq!(whole["events"], json!(client.history(&session).0));
}

#[test]
fn clearing_changes_what_the_model_sees_and_keeps_the_log() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "say before");
    client.call("session/clear", json!({"session": session}));
    client.turn(&session, "say after");
    let log = client.history(&session);
    assert_eq!(log.said(), "beforeafter");
    assert_eq!(log.of("cleared").len(), 1);
}

#[test]
fn what_is_said_to_a_session_reaches_everybody() {
    let daemon = TestDaemon::start();
    let (mut one, mut two) = (daemon.client(), daemon.client());
    let session = one.session(&daemon.work());
    one.attach(&session, None);
    two.attach(&session, None);
    one.call(
        "session/say",
        json!({"session": session, "text": "hello all"}),
    );
    for client in [&mut one, &mut two] {
        let event = client.event();
        assert_eq!(
            (&event["type"], &event["text"]),
            (&json!("command_output"), &json!("hello all"))
        );
    }
}

#[test]
fn sessions_are_the_same_after_a_restart() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.turn(&session, "think hm\nsay one\ndo list {}\nsay two");
    let before = (
        client.history(&session).texts(),
        client.call("session/get", json!({"session": session})),
    );
    assert!(daemon.term().success(), "{}", daemon.log());
    daemon.restart();
    let mut client = daemon.client();
    let after = client.call("session/get", json!({"session": session}));
    for member in [
        "id",
        "title",
        "cwd",
        "state",
        "provider",
        "created_at",
        "seq",
    ] {
        assert_eq!(after[member], before.1[member], "{member}");
    }
    assert_eq!(client.history(&session).texts(), before.0);
    let next = client.turn(&session, "say three");
    assert_eq!(
        next.0[0]["seq"].as_u64(),
        before.1["seq"].as_u64().map(|seq| seq + 1),
        "numbers go on"
    );
}

fn ids(page: &Value) -> Vec<String> {
    let sessions = page["sessions"].as_array().unwrap();
    sessions
        .iter()
        .map(|session| session["id"].as_str().unwrap().to_owned())
        .collect()
}

fn without_session(events: &Events) -> Vec<Value> {
    let strip = |event: &Value| {
        let mut event = event.clone();
        for member in ["session", "turn", "approval"] {
            event.as_object_mut().unwrap().remove(member);
        }
        event
    };
    events.0.iter().map(strip).collect()
}

#[test]
fn an_empty_list_stands_for_an_empty_object_as_some_languages_write_it() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let params = json!({"cwd": daemon.work(), "provider": "script", "env": [], "vars": [], "mcp_servers": []});
    let session = client.call("session/create", params)["id"].clone();
    client.call(
        "session/join",
        json!({"session": session, "mcp_servers": []}),
    );
    let run = json!({"session": session, "name": "list", "arguments": []});
    assert_eq!(client.call("tool/run", run)["ok"], true);
    let wrong = json!({"cwd": daemon.work(), "env": [1]});
    let fault = client.fault("session/create", wrong);
    assert_eq!(fault.code, -32602, "{fault}");
}
