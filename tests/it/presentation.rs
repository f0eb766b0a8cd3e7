//! How tools are shown to a model and reached by it: expressions, search, and that every way to a tool ends in the same gate.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::events::Events;
use harness::model::{Answer, FakeModel};
use harness::sandbox::Sandbox;
use serde_json::{Value, json};
use std::fs;

const MANY: &str = include_str!("../fixtures/plugins/many.py");
const TOOLS: &str = include_str!("../fixtures/tool_search/tools.txt");

/// A user with a plugin that has 264 tools.
fn with_many(config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let folder = sandbox.path("home").join(".agents/plugins");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("many.py"), MANY).unwrap();
    fs::write(folder.join("tools.txt"), TOOLS).unwrap();
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let allowed = [
        "github__get_issue",
        "github__fork_repository",
        "slack__slack_post_message",
    ];
    let mut rules: serde_json::Map<String, Value> = Default::default();
    rules.extend(allowed.map(|name| (name.to_owned(), "allow".into())));
    rules.insert("github__merge_pull_request".to_owned(), "deny".into());
    sandbox.permissions(&Value::Object(rules));
    sandbox
}

fn daemon_with_many(config: &str) -> (TestDaemon, TestClient) {
    let daemon = TestDaemon::start_in(with_many(config));
    let client = daemon.client();
    (daemon, client)
}

fn session_of(daemon: &TestDaemon, client: &mut TestClient, toolbox: Value) -> String {
    client.session_with(json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox}))
}

fn list(client: &mut TestClient, session: &str, toolbox: Option<Value>) -> Value {
    client.call("tool/list", json!({"session": session, "toolbox": toolbox}))
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

fn run(
    client: &mut TestClient,
    session: &str,
    name: &str,
    arguments: Value,
    toolbox: Value,
) -> Value {
    let params =
        json!({"session": session, "name": name, "arguments": arguments, "toolbox": toolbox});
    client.call("tool/run", params)
}

#[test]
fn a_model_is_shown_what_the_session_was_made_with_and_nothing_else_is_there() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    daemon.write("a.txt", "hello");
    let toolbox = json!({"restrict": {"of": "builtin", "names": ["read", "no_such"]}});
    let session = session_of(&daemon, &mut client, toolbox.clone());
    let shown = list(&mut client, &session, None);
    assert_eq!(names(&shown), ["read"]);
    assert_eq!(shown["unknown_names"], json!(["no_such"]));
    let others = list(&mut client, &session, Some(json!("default")));
    assert!(names(&others).contains(&"execute"), "{others}");
    let script =
        "do read {\"path\": \"a.txt\"}\ndo execute {\"command\": \"touch b.txt\"}\nsay done";
    let events = client.turn(&session, script);
    let results: Vec<&Value> = events
        .of("done")
        .iter()
        .map(|done| &done["result"])
        .collect();
    assert_eq!(results[0]["ok"], true);
    let unknown = json!({"error": "unknown tool: \"execute\". Available: read.", "ok": false});
    assert_eq!(*results[1], unknown);
    assert!(!daemon.work().join("b.txt").exists());
    // By hand, as it is written with the call.
    let done = run(
        &mut client,
        &session,
        "execute",
        json!({"command": "true"}),
        json!("builtin"),
    );
    assert_eq!(done["ok"], true);
}

#[test]
fn what_a_session_was_made_with_outlives_the_daemon_and_a_fork() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let toolbox = json!({"restrict": {"of": "default", "names": ["read", "list"]}});
    let session = session_of(&daemon, &mut client, toolbox);
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    let fork = client.call("session/fork", json!({"session": session}))["id"].clone();
    for session in [session.as_str(), fork.as_str().unwrap()] {
        assert_eq!(names(&list(&mut client, session, None)).len(), 2);
    }
}

#[test]
fn expressions_that_do_not_fit_are_refused_with_the_path_of_the_field_and_open_nothing() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let deep = (0..9).fold(json!("builtin"), |of, _| json!({"merge": [of]}));
    let deep_path = format!("toolbox{}", ".merge[0]".repeat(8));
    let cases = [
        (json!("nowhere"), "toolbox"),
        (json!({"merge": ["builtin", "nowhere"]}), "toolbox.merge[1]"),
        (
            json!({"merge": ["builtin"], "search": {"of": "builtin"}}),
            "toolbox",
        ),
        (json!({"merge": []}), "toolbox.merge"),
        (
            json!({"search": {"of": "builtin", "limit": 21}}),
            "toolbox.search.limit",
        ),
        (
            json!({"search": {"of": "builtin", "limit": 0}}),
            "toolbox.search.limit",
        ),
        (
            json!({"restrict": {"of": "builtin", "names": ["a", 1]}}),
            "toolbox.restrict.names[1]",
        ),
        (
            json!({"search": {"of": {"restrict": {"of": "x", "names": []}}}}),
            "toolbox.search.of.restrict.of",
        ),
        (json!(7), "toolbox"),
        (json!({"merge": vec!["builtin"; 300]}), "toolbox.merge[255]"),
        (deep, deep_path.as_str()),
    ];
    for (toolbox, path) in &cases {
        let params = json!({"cwd": daemon.work(), "provider": "script", "toolbox": toolbox});
        let fault = client.fault("session/create", params);
        assert_eq!(
            (fault.code, &fault.data["path"]),
            (-32602, &json!(path)),
            "{fault}"
        );
        assert!(fault.message.starts_with(path), "{fault}");
    }
    assert_eq!(
        client.call("session/list", json!({}))["sessions"],
        json!([])
    );
    let session = client.session(&daemon.work());
    for (toolbox, path) in &cases {
        let params =
            json!({"session": session, "toolbox": toolbox, "name": "read", "arguments": {}});
        for method in ["tool/list", "tool/run"] {
            let fault = client.fault(method, params.clone());
            assert_eq!(
                (fault.code, &fault.data["path"]),
                (-32602, &json!(path)),
                "{fault}"
            );
        }
    }
    assert_eq!(client.history(&session).of("doing").len(), 0);
}

#[test]
fn past_thirty_tools_a_model_has_the_built_in_ones_and_two_that_reach_the_others() {
    let (daemon, mut client) = daemon_with_many("");
    let session = client.session(&daemon.work());
    let shown = list(&mut client, &session, None);
    let builtin = list(&mut client, &session, Some(json!("builtin")));
    let all = list(&mut client, &session, Some(json!("default")));
    let mut expected = names(&builtin);
    expected.extend(["search_tools", "call_tool"]);
    assert_eq!(names(&shown), expected);
    assert_eq!(shown["reached"], names(&all).len());
    assert_eq!(names(&all).len(), names(&builtin).len() + 264);
    let find = &shown["tools"][expected.len() - 2];
    assert_eq!(
        (&find["source"], &find["approval"]),
        (&json!("presentation"), &json!("allow"))
    );
    let about = find["function"]["description"].as_str().unwrap();
    assert!(about.contains("plugin many (264)"), "{about}");

    let script = "do search_tools {\"query\": \"open a new github issue\"}\n\
                  do call_tool {\"name\": \"github__get_issue\", \"input\": {\"number\": 7}}\nsay done";
    let events = client.turn(&session, script);
    let answer = events.of("done")[0]["result"].clone();
    let found = answer["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap());
    assert!(
        found.clone().any(|name| name == "github__create_issue"),
        "{answer}"
    );
    let given = json!({"by": "github__get_issue", "with": {"number": 7}, "ok": true});
    assert_eq!(events.of("done")[1]["result"], given);
    assert_eq!(events.of("done")[2]["result"], given);
    assert_eq!(daemon.read("ran"), "github__get_issue\n");
    // Whoever runs it by hand says its own name.
    let by_hand = run(
        &mut client,
        &session,
        "github__get_issue",
        json!({}),
        Value::Null,
    );
    assert_eq!(by_hand["by"], "github__get_issue");
}

#[test]
fn a_setting_keeps_search_from_being_chosen_and_others_say_from_when_on() {
    for (config, searched) in [
        ("[presentation]\nsearch = \"never\"\n", false),
        (
            "[presentation]\npast_tools = 1000\npast_characters = 1000000\n",
            false,
        ),
        ("[presentation]\npast_tools = 1000\n", true),
    ] {
        let (daemon, mut client) = daemon_with_many(config);
        let session = client.session(&daemon.work());
        let shown = list(&mut client, &session, None);
        assert_eq!(
            names(&shown).contains(&"search_tools"),
            searched,
            "{config}"
        );
        assert_eq!(
            names(&shown).contains(&"github__create_issue"),
            !searched,
            "{config}"
        );
    }
    let few = TestDaemon::start();
    let mut client = few.client();
    let session = client.session(&few.work());
    let shown = list(&mut client, &session, None);
    assert!(
        !names(&shown).contains(&"search_tools"),
        "built-in tools alone are never hidden"
    );
}

#[test]
fn the_tools_that_a_vendor_is_sent_have_the_same_bytes_in_each_of_twenty_turns_with_searches() {
    let model = FakeModel::start([]);
    let (_daemon, mut client, session) = TestDaemon::with_model_in(with_many(""), &model);
    client.attach(&session, None);
    for turn in 0..20 {
        let query = json!({"query": format!("find number {turn} of github issues")});
        let call = json!({"name": "github__get_issue", "input": {"number": turn}});
        model.set([
            Answer::call("a", "search_tools", &query.to_string(), 1),
            Answer::call("b", "call_tool", &call.to_string(), 1),
            Answer::text(["done"]),
        ]);
        client.start(&session, "go on");
        let events = client.until_ended();
        assert_eq!(events.last()["status"], "completed", "{:?}", events.last());
        assert_eq!(events.of("done").len(), 3);
    }
    let requests = model.requests();
    assert_eq!(requests.len(), 60);
    let sent: Vec<String> = requests
        .iter()
        .map(|request| request["tools"].to_string())
        .collect();
    assert!(
        sent[0].contains("search_tools") && !sent[0].contains("github__"),
        "{}",
        sent[0]
    );
    assert!(sent.iter().all(|tools| *tools == sent[0]));
}

#[test]
fn a_hidden_tool_that_a_model_calls_by_its_name_is_unknown_and_told_how_it_is_reached() {
    let (daemon, mut client) = daemon_with_many("");
    let session = client.session(&daemon.work());
    let events = client.turn(
        &session,
        "do github__create_issue {\"title\": \"x\"}\nsay done",
    );
    let result = &events.one("done")["result"];
    assert_eq!(
        (&result["code"], &result["ok"]),
        (&json!("unknown_tool"), &json!(false))
    );
    let error = result["error"].as_str().unwrap();
    let hint = "\"github__create_issue\" is reached by call_tool with {\"name\":\"github__create_issue\",\"input\":{...}}.";
    assert!(
        error.starts_with("unknown tool: \"github__create_issue\". Available: "),
        "{error}"
    );
    assert!(error.ends_with(hint), "{error}");
    assert_eq!(daemon.read("ran"), "");
}

/// A way to call a tool: the toolbox of the session, and the line that a model plays.
struct Way {
    toolbox: Value,
    line: fn(&str, &Value) -> String,
    via: Option<&'static str>,
}

fn ways() -> Vec<Way> {
    vec![
        Way {
            toolbox: json!("default"),
            line: |name, input| format!("do {name} {input}"),
            via: None,
        },
        Way {
            toolbox: json!({"search": {"of": "default"}}),
            line: |name, input| format!("do call_tool {}", json!({"name": name, "input": input})),
            via: Some("search"),
        },
        Way {
            toolbox: json!({"code": {"of": "default"}}),
            line: |name, input| {
                let code = format!("return await tools[{name:?}]({input})");
                format!("do run_code {}", json!({"code": code}))
            },
            via: Some("code"),
        },
    ]
}

/// What a call looks like from outside, whatever the way to it.
#[derive(Debug, PartialEq)]
struct Seen {
    /// What came of it.
    result: Value,
    /// Its own events, without ids: types, and of questions what was asked.
    events: Vec<Value>,
    /// What the tool left behind.
    ran: String,
}

/// Plays the call on one way; whatever it asks is answered so.
fn seen(daemon: &TestDaemon, way: &Way, name: &str, input: &Value, answer: &str) -> Seen {
    let mut client = daemon.client();
    let session = session_of(daemon, &mut client, way.toolbox.clone());
    // What an earlier one left.
    daemon.write("ran", "");
    client.attach(&session, None);
    client.start(&session, &format!("{}\nsay done", (way.line)(name, input)));
    let mut events = client.events_until("a question or the end", |event| {
        ["approval_asked", "turn_ended"].contains(&event["type"].as_str().unwrap())
    });
    if events.last()["type"] == "approval_asked" {
        assert_eq!(daemon.read("ran"), "", "it waits");
        let params =
            json!({"approval": events.last()["approval"], "answer": answer, "reason": "a whim"});
        client.call("approval/answer", params);
        events.0.extend(client.until_ended().0);
    }
    assert_eq!(events.last()["status"], "completed");
    let made = |event: &&Value| event["type"] == "doing" && event["name"] == name;
    let doing = events.0.iter().find(made).expect("the real tool is told");
    assert_eq!(doing["arguments"], *input);
    assert_eq!(doing.get("via").and_then(Value::as_str), way.via);
    assert_eq!(doing.get("parent").is_some(), way.via.is_some());
    if let Some(parent) = doing.get("parent") {
        let outer = events
            .0
            .iter()
            .find(|event| event["type"] == "doing")
            .unwrap();
        assert_eq!(outer["call"], *parent);
        assert!(
            events
                .of("approval_asked")
                .iter()
                .all(|asked| asked["call"] != *parent)
        );
    }
    Seen {
        result: result_of(&events, &doing["call"]),
        events: own(&events, &doing["call"]),
        ran: daemon.read("ran"),
    }
}

fn result_of(events: &Events, call: &Value) -> Value {
    let done = events
        .of("done")
        .into_iter()
        .find(|done| done["call"] == *call);
    done.expect("each call ends")["result"].clone()
}

/// The events of one call, and the notices, without what differs from call to call.
fn own(events: &Events, call: &Value) -> Vec<Value> {
    let of_it = |event: &&Value| event["call"] == *call || event["type"] == "notice";
    let shape = |event: &Value| {
        json!({"type": event["type"], "name": event["name"], "tool": event["tool"], "arguments": event["arguments"],
               "why": event["why"], "text": event["text"], "result": event["result"]})
    };
    events.0.iter().filter(of_it).map(shape).collect()
}

#[test]
fn a_call_is_the_same_on_every_way_to_its_tool_checks_failure_approval_and_events() {
    let cases = [
        // Allowed, and it runs.
        ("github__get_issue", json!({"number": 7}), "allow", true),
        // Its own failure.
        ("github__get_issue", json!({"title": "fail"}), "allow", true),
        // Arguments that do not fit, of a tool that would ask.
        (
            "github__create_issue",
            json!({"number": "7"}),
            "allow",
            false,
        ),
        // It asks, and is let.
        ("github__create_issue", json!({"title": "x"}), "allow", true),
        // It asks, and is not.
        ("github__create_issue", json!({"title": "x"}), "deny", false),
        // A rule forbids it.
        (
            "github__merge_pull_request",
            json!({"number": 7}),
            "allow",
            false,
        ),
        // A hook stops it.
        ("github__fork_repository", json!({}), "allow", false),
    ];
    let (daemon, _client) = daemon_with_many("");
    for (name, input, answer, runs) in cases {
        let all: Vec<Seen> = ways()
            .iter()
            .map(|way| seen(&daemon, way, name, &input, answer))
            .collect();
        assert!(
            all.iter().all(|seen| *seen == all[0]),
            "{name} {input} {answer}: {all:#?}"
        );
        let ran = if runs {
            format!("{name}\n")
        } else {
            String::new()
        };
        assert_eq!(all[0].ran, ran, "{name} {input} {answer}");
        let asked = all[0]
            .events
            .iter()
            .filter(|event| event["type"] == "approval_asked");
        assert_eq!(
            asked.count(),
            usize::from(name == "github__create_issue" && input.get("title").is_some())
        );
    }
    let denied = seen(
        &daemon,
        &ways()[1],
        "github__create_issue",
        &json!({"title": "x"}),
        "deny",
    );
    let error = "User denied permission: github__create_issue: a whim";
    let expected = json!({"error": error, "name": "github__create_issue", "args": {"title": "x"}, "ok": false});
    assert_eq!(denied.result, expected);
}

#[test]
fn compositions_show_and_reach_what_they_say() {
    let (daemon, mut client) = daemon_with_many("");
    let own_and_search = json!({"merge": [
        {"restrict": {"of": "builtin", "names": ["read"]}}, {"search": {"of": "plugin many", "limit": 2}}]});
    let session = session_of(&daemon, &mut client, own_and_search);
    assert_eq!(
        names(&list(&mut client, &session, None)),
        ["read", "search_tools", "call_tool"]
    );
    let script = "do search_tools {\"query\": \"issue\"}\ndo read {\"path\": \"none\"}\n\
                  do call_tool {\"name\": \"read\"}\nsay done";
    let events = client.turn(&session, script);
    let done = events.of("done");
    assert_eq!(done[0]["result"]["tools"].as_array().unwrap().len(), 2);
    assert_eq!(done[1]["result"]["error"], "not found: none");
    assert_eq!(
        done[2]["result"]["code"], "unknown_tool",
        "what is searched does not have it"
    );

    let within = json!({"search": {"of": {"restrict": {"of": "default", "names": []}}}});
    let found = run(
        &mut client,
        &session,
        "search_tools",
        json!({"query": "issue"}),
        within.clone(),
    );
    assert_eq!((&found["tools"], &found["total"]), (&json!([]), &json!(0)));
    let called = run(
        &mut client,
        &session,
        "call_tool",
        json!({"name": "read"}),
        within,
    );
    assert_eq!(called["code"], "unknown_tool");
    let around =
        json!({"restrict": {"of": {"search": {"of": "default"}}, "names": ["github__get_issue"]}});
    let shown = list(&mut client, &session, Some(around));
    assert_eq!(
        (names(&shown).len(), &shown["unknown_names"]),
        (0, &json!(["github__get_issue"]))
    );
}

#[test]
fn programs_reach_what_is_searched_and_search_reaches_programs() {
    let daemon = TestDaemon::allowing();
    daemon.write("a.txt", "hello");
    let mut client = daemon.client();
    let code_of_search = json!({"code": {"of": {"search": {"of": "builtin"}}}});
    let session = session_of(&daemon, &mut client, code_of_search);
    assert_eq!(names(&list(&mut client, &session, None)), ["run_code"]);
    let code = "const found = await tools.search_tools({query: 'read a file'});\n\
                const name = found.tools.find((tool) => tool.name === 'read').name;\n\
                return await tools.call_tool({name, input: {path: 'a.txt'}});";
    let events = client.turn(
        &session,
        &format!("do run_code {}\nsay done", json!({"code": code})),
    );
    let done = events.of("done");
    let whole = done.last().unwrap();
    assert_eq!(whole["result"]["ok"], true, "{whole}");
    assert!(
        whole["result"]["result"]["content"]
            .as_str()
            .unwrap()
            .contains("hello"),
        "{whole}"
    );
    let made: Vec<(&str, Option<&str>)> = events
        .of("doing")
        .iter()
        .map(|doing| {
            (
                doing["name"].as_str().unwrap(),
                doing.get("via").and_then(Value::as_str),
            )
        })
        .collect();
    let code = Some("code");
    let expected = [
        ("run_code", None),
        ("search_tools", code),
        ("call_tool", code),
        ("read", Some("search")),
    ];
    assert_eq!(made, expected);

    let search_of_code = json!({"search": {"of": {"code": {"of": "builtin"}}}});
    let session = session_of(&daemon, &mut client, search_of_code);
    let input = json!({"code": "return (await tools.read({path: 'a.txt'})).content"});
    let call = json!({"name": "run_code", "input": input});
    let events = client.turn(&session, &format!("do call_tool {call}\nsay done"));
    let done = events.of("done");
    let whole = done.last().unwrap();
    assert!(
        whole["result"]["result"]
            .as_str()
            .unwrap()
            .contains("hello"),
        "{whole}"
    );
    assert_eq!(events.of("doing").len(), 3);
}

#[test]
fn names_of_config_toml_stand_for_expressions_also_for_sessions_that_name_none() {
    let config = "[toolbox]\n\
                  look = { restrict = { of = \"builtin\", names = [\"read\", \"list\", \"grep\"] } }\n\
                  dev = { merge = [\"look\", { search = { of = \"plugin many\" } }] }\n\
                  builtin = { restrict = { of = \"builtin\", names = [\"glob\"] } }\n\
                  [session]\ntoolbox = \"dev\"\n";
    let (daemon, mut client) = daemon_with_many(config);
    let session = client.session(&daemon.work());
    let shown = list(&mut client, &session, None);
    // A name of the settings goes before a source's, which it may be made of.
    assert_eq!(
        names(&shown),
        ["search_tools", "call_tool"],
        "look is made of the other builtin"
    );
    let glob = list(&mut client, &session, Some(json!("builtin")));
    assert_eq!(names(&glob), ["glob"]);
    let fault = client.fault("tool/list", json!({"session": session, "toolbox": "x"}));
    assert!(
        fault
            .message
            .contains("there are builtin, dev, look, default, plugin many"),
        "{fault}"
    );
}

#[test]
fn names_that_lead_to_themselves_or_come_to_too_much_are_refused_with_the_reason() {
    let wide = |of: &str| vec![format!("\"{of}\""); 20].join(", ");
    let config = format!(
        "[toolbox]\na = {{ merge = [\"b\"] }}\nb = {{ restrict = {{ of = \"a\", names = [\"read\"] }} }}\n\
         w0 = {{ merge = [{}] }}\nw1 = {{ merge = [{}] }}\n",
        wide("builtin"),
        wide("w0")
    );
    let (daemon, mut client) = daemon_with_many(&config);
    let session = client.session(&daemon.work());
    for (name, why) in [
        ("a", "leads to itself: a -> b -> a"),
        ("w1", "more than 256 names and operators"),
    ] {
        let fault = client.fault("tool/list", json!({"session": session, "toolbox": name}));
        assert!(fault.message.contains(why), "{fault}");
    }
    assert_eq!(
        names(&list(&mut client, &session, Some(json!("w0"))))[0],
        "execute"
    );
}

#[test]
fn a_rule_that_forbids_a_presentations_own_tool_by_its_name_holds() {
    let sandbox = Sandbox::new();
    let rules = json!({"run_code": "deny", "call_tool": "deny", "*": "deny", "list": "allow"});
    sandbox.permissions(&rules);
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for (toolbox, name, arguments, ok) in [
        (
            json!({"code": {"of": "builtin"}}),
            "run_code",
            json!({"code": "return 1"}),
            false,
        ),
        (
            json!({"search": {"of": "builtin"}}),
            "call_tool",
            json!({"name": "list"}),
            false,
        ),
        // A rule for all tools is about those that do something.
        (
            json!({"search": {"of": "builtin"}}),
            "search_tools",
            json!({"query": "list"}),
            true,
        ),
    ] {
        let params =
            json!({"session": session, "toolbox": toolbox, "name": name, "arguments": arguments});
        let result = client.call("tool/run", params);
        assert_eq!(result["ok"], ok, "{name}: {result}");
    }
}

#[test]
fn a_bad_expression_in_config_toml_keeps_the_daemon_from_starting_with_its_place() {
    let sandbox = Sandbox::new();
    let config = "[toolbox]\ndev = { search = { of = \"builtin\", limit = 50 } }\n";
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let said = Dwell::alone(&sandbox).args(["ls"]).run();
    assert_ne!(said.code, Some(0));
    assert!(
        said.stderr
            .contains("search.limit: must be a whole number from 1 to 20"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_call_through_search_that_the_daemon_died_in_is_not_run_again_and_its_outcome_is_unknown() {
    let sandbox = Sandbox::new();
    sandbox.permissions(&json!({"execute": "allow"}));
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = session_of(&daemon, &mut client, json!({"search": {"of": "builtin"}}));
    client.attach(&session, None);
    let call = json!({"name": "execute", "input": {"command": "echo ran >> ran; sleep 60"}});
    client.start(&session, &format!("do call_tool {call}\nsay done"));
    client.until_type("call_started");
    harness::wait::until_true("the command to begin", harness::wait::SOON, || {
        daemon.read("ran") == "ran\n"
    });
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.call("session/get", json!({"session": session}));
    let events = client.history(&session);
    assert_eq!(events.last()["status"], "interrupted");
    for done in events.of("done") {
        assert_eq!(
            done["result"]["error"],
            "interrupted: the daemon stopped; outcome unknown"
        );
    }
    assert_eq!(
        (events.of("done").len(), daemon.read("ran").as_str()),
        (2, "ran\n")
    );
}

#[test]
fn toolboxes_are_listed_by_name_with_what_they_stand_for_and_what_is_missing() {
    let config = "[toolbox]\nlook = { restrict = { of = \"builtin\", names = [\"read\"] } }\ngone = \"plugin gone\"\n";
    let (daemon, mut client) = daemon_with_many(config);
    let _session = client.session(&daemon.work());
    let all = client.call("toolbox/list", json!({"cwd": daemon.work()}));
    let all = all.as_array().unwrap();
    let names: Vec<&str> = all
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["default", "gone", "look", "builtin", "plugin many"]);
    let look = json!({"name": "look", "cwd": daemon.work(), "expression": {"restrict": {"of": "builtin", "names": ["read"]}},
                      "sources": [{"name": "builtin", "tools": ["read"], "health": "ready"}]});
    assert_eq!(all[2], look);
    let problem = all[1]["problem"].as_str().unwrap();
    assert!(
        problem.contains("no toolbox is named \"plugin gone\""),
        "{problem}"
    );
    assert_eq!(all[4]["sources"][0]["tools"].as_array().unwrap().len(), 264);
    let again = client.call("toolbox/reload", json!({"cwd": daemon.work()}));
    assert_eq!(again.as_array().unwrap().len(), 5);
}

#[test]
fn a_toolbox_that_is_gone_later_has_no_tools_and_the_turn_says_so() {
    let sandbox = with_many("");
    let plugin = sandbox.path("home").join(".agents/plugins/many.py");
    let mut daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let toolbox =
        json!({"merge": [{"restrict": {"of": "builtin", "names": ["read"]}}, "plugin many"]});
    let session = session_of(&daemon, &mut client, toolbox);
    daemon.kill9();
    fs::remove_file(plugin).unwrap();
    daemon.restart();
    let mut client = daemon.client();
    let events = client.turn(&session, "do github__get_issue {}\nsay done");
    assert_eq!(events.last()["status"], "completed");
    let unknown =
        json!({"error": "unknown tool: \"github__get_issue\". Available: read.", "ok": false});
    assert_eq!(events.one("done")["result"], unknown);
    let notice = events.one("notice")["text"].as_str().unwrap();
    assert!(
        notice.starts_with("toolbox.merge[1]: no toolbox is named \"plugin many\""),
        "{notice}"
    );
}

#[test]
fn the_client_takes_a_toolbox_where_it_makes_a_session_lists_tools_and_runs_one() {
    let daemon = TestDaemon::allowing();
    daemon.write("a.txt", "hello");
    let dwell = |args: &[&str]| Dwell::new(&daemon).args(args.iter().copied()).run();
    let only_read = r#"{"restrict": {"of": "builtin", "names": ["read", "nope"]}}"#;
    let script = "do list {}\nsay done";
    let verbose = ["ask", "-v", "-p", "script", "--toolbox", only_read, script];
    let asked = dwell(&verbose);
    assert_eq!(asked.stdout, "done\n", "{}", asked.stderr);
    assert!(
        asked
            .stderr
            .contains("unknown tool: \"list\". Available: read."),
        "{}",
        asked.stderr
    );
    let made = dwell(&["new", "-d", "-p", "script", "--toolbox", only_read]);
    let id = made.stdout.trim();
    let listed = dwell(&["tools", "-s", id]);
    assert_eq!(
        (listed.stdout.lines().count(), &listed.stdout[..4]),
        (1, "read")
    );
    assert!(
        listed.stderr.contains("no tool is named \"nope\""),
        "{}",
        listed.stderr
    );
    let others = dwell(&["tools", "-s", id, "--toolbox", "builtin"]);
    assert!(others.stdout.lines().count() > 5);
    let path = r#"{"path": "a.txt"}"#;
    let ran = dwell(&[
        "run",
        "-s",
        id,
        "--toolbox",
        r#"{"search": {"of": "builtin"}}"#,
        "read",
        path,
    ]);
    assert_eq!(ran.code, Some(4));
    assert!(
        ran.stdout.contains("is reached by call_tool"),
        "{}",
        ran.stdout
    );
    assert_eq!(dwell(&["run", "-s", id, "read", path]).code, Some(0));
    for bad in ["{", r#"{"merge": []}"#] {
        let refused = dwell(&["new", "-d", "--toolbox", bad]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    }
    let both = dwell(&["ask", "-s", id, "--toolbox", "builtin", "say x"]);
    assert!(
        both.stderr.contains("leave out --toolbox or --session"),
        "{}",
        both.stderr
    );
    let unknown = dwell(&["new", "-d", "--toolbox", "nowhere"]);
    assert!(
        unknown.stderr.contains("no toolbox is named \"nowhere\""),
        "{}",
        unknown.stderr
    );
}

#[test]
fn the_log_and_an_export_show_the_call_that_was_made_under_the_one_that_hands_it_on() {
    let daemon = TestDaemon::allowing();
    daemon.write("a.txt", "hello");
    let mut client = daemon.client();
    let session = session_of(&daemon, &mut client, json!({"search": {"of": "builtin"}}));
    let call = json!({"name": "read", "input": {"path": "a.txt"}});
    client.turn(&session, &format!("do call_tool {call}\nsay done"));
    let log = Dwell::new(&daemon).args(["log", &session]).ok();
    let lines: Vec<&str> = log
        .lines()
        .skip_while(|line| !line.starts_with("->"))
        .collect();
    assert_eq!(
        lines[..2],
        ["-> call_tool read", "  -> read a.txt"],
        "{log}"
    );
    assert!(
        lines[2].starts_with("    ok ") && lines[3].starts_with("  ok call_tool"),
        "{log}"
    );
    let export = Dwell::new(&daemon).args(["export", &session]).ok();
    assert!(export.contains("\n### Tool: call_tool\n"), "{export}");
    assert!(export.contains("\n> ### Tool: read\n"), "{export}");
    let live = Dwell::new(&daemon)
        .args([
            "ask",
            "--verbose",
            "-p",
            "script",
            "--toolbox",
            r#"{"search": {"of": "builtin"}}"#,
        ])
        .args([format!("do call_tool {call}\nsay done").as_str()])
        .run();
    assert!(
        live.stderr.contains("-> call_tool read\n  -> read a.txt\n"),
        "{}",
        live.stderr
    );
}

#[test]
fn the_command_line_describes_what_a_model_only_finds() {
    let (daemon, mut client) = daemon_with_many("");
    client.session(&daemon.work());
    let page = harness::dwell::Dwell::new(&daemon)
        .args(["tools", "github__create_issue"])
        .run();
    assert!(
        page.stdout.contains("title"),
        "{} {}",
        page.stdout,
        page.stderr
    );
    assert!(
        page.stderr.contains("a model is not shown this one"),
        "{}",
        page.stderr
    );
    let none = harness::dwell::Dwell::new(&daemon)
        .args(["tools", "github__create_isue"])
        .run();
    assert_eq!(none.code, Some(4), "{}", none.stderr);
}

#[test]
fn the_slash_command_lists_what_a_toolbox_would_show_and_describes_what_is_hidden() {
    let (daemon, mut client) = daemon_with_many("");
    let session = client.session(&daemon.work());
    let mut tools = |argument: &str| {
        let line = format!("/tools {argument}");
        let ran = client.call(
            "command/run",
            json!({"session": session, "line": line.trim()}),
        );
        let text = |member: &str| ran[member].as_str().unwrap_or_default().to_owned();
        text("output") + &text("error")
    };
    let shown = tools("");
    assert!(
        shown.contains("search_tools") && !shown.contains("github__create_issue"),
        "{shown}"
    );
    assert!(
        shown.contains("more are found and called through these"),
        "{shown}"
    );
    assert!(
        tools("github__create_issue").contains("title"),
        "a hidden tool has a page"
    );
    assert_eq!(tools("plugin many").lines().count(), 264);
    assert_eq!(
        tools(r#"{"restrict": {"of": "default", "names": ["read"]}}"#)
            .lines()
            .count(),
        1
    );
    assert!(tools(r#"{"merge": []}"#).contains("toolbox.merge: must have at least one"));
    assert!(tools("nothing").contains("unknown tool: \"nothing\""));
}

#[test]
fn a_question_about_a_call_through_search_waits_over_a_restart_and_the_tool_runs_once() {
    let mut daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = session_of(&daemon, &mut client, json!({"search": {"of": "builtin"}}));
    client.attach(&session, None);
    let call = json!({"name": "execute", "input": {"command": "echo ran >> ran"}});
    client.start(&session, &format!("do call_tool {call}\nsay done"));
    let asked = client.until_type("approval_asked").last().clone();
    daemon.kill9();
    daemon.restart();
    let mut client = daemon.client();
    client.attach(&session, asked["seq"].as_u64());
    let waiting = client.call("session/get", json!({"session": session}));
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    assert_eq!(waiting["approvals"][0]["approval"], asked["approval"]);
    client.answer(&asked["approval"], "allow").unwrap();
    let events = client.until_ended();
    assert_eq!(events.last()["status"], "completed", "{events:?}");
    assert_eq!(daemon.read("ran"), "ran\n");
    let history = client.history(&session);
    let (doing, done) = (history.of("doing"), history.of("done"));
    assert_eq!(
        (doing.len(), done.len()),
        (2, 2),
        "each call is made once and ends once"
    );
    assert_eq!(history.of("approval_asked").len(), 1);
    assert!(done.iter().all(|done| done["result"]["ok"] == true));
    assert_eq!(done[0]["result"], done[1]["result"]);
}

#[test]
fn each_folder_of_scripts_is_a_toolbox_of_its_own() {
    let sandbox = Sandbox::new();
    let folders = ["home/.agents/tools", "others/tools"];
    for (folder, names) in folders.iter().zip([["list", "mine"], ["list", "theirs"]]) {
        let folder = sandbox.path(folder);
        fs::create_dir_all(&folder).unwrap();
        for name in names {
            let script = "#!/usr/bin/env bash\n# @describe Says who it is.\nmain() { echo hi; }\n";
            fs::write(folder.join(format!("{name}.sh")), script).unwrap();
        }
    }
    let others = sandbox.path("others").display().to_string();
    let config = format!("[script_tools]\nroots = [{others:?}]\n");
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    let home = sandbox.path("home").join(".agents").display().to_string();
    let daemon = TestDaemon::start_in(sandbox);
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for (root, expected) in [(&others, ["list", "theirs"]), (&home, ["list", "mine"])] {
        let shown = list(&mut client, &session, Some(json!(format!("script {root}"))));
        let mut found = names(&shown);
        found.sort_unstable();
        assert_eq!(found, expected, "{shown}");
    }
    let listed = client.call("toolbox/list", json!({"cwd": daemon.work()}));
    let named: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|toolbox| toolbox["name"].as_str().unwrap())
        .collect();
    for root in [&others, &home] {
        assert!(
            named.contains(&format!("script {root}").as_str()),
            "{named:?}"
        );
    }
}
