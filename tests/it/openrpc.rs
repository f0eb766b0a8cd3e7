//! The document of the wire: made from the types, the same everywhere, true of every method, and of use to others' tools.

use crate::model::served;
use harness::binaries::root;
use harness::clients::{Clients, run};
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::files::FileServer;
use harness::gguf::{Weight, gguf};
use harness::sandbox::Sandbox;
use harness::wire;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

const REWRITE: &str = "cargo run -p dwell-protocol --features schema --example openrpc";

fn file() -> String {
    fs::read_to_string(root().join("protocol/openrpc.json")).unwrap()
}

fn each<'a>(document: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    document[list].as_array().unwrap().iter()
}

#[test]
fn the_file_is_what_the_types_give() {
    let same = file() == protocol::schema::text();
    assert!(
        same,
        "the types have changed: `{REWRITE}` rewrites protocol/openrpc.json"
    );
}

#[test]
fn the_daemon_and_the_client_give_the_file() {
    let alone = Sandbox::new();
    assert_eq!(Dwell::alone(&alone).args(["schema"]).ok(), file());
    let started = fs::read_dir(alone.path("run")).unwrap().count();
    assert_eq!(started, 0, "no daemon was needed");
    let daemon = TestDaemon::start();
    let discovered = daemon.client().call("rpc.discover", json!({}));
    assert_eq!(format!("{discovered:#}\n"), file());
}

#[test]
fn every_method_of_the_document_is_answered() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    for method in each(wire::document(), "methods") {
        let name = method["name"].as_str().unwrap();
        // Which fits the first parameter of none, so that nothing is done.
        let odd = json!([{"neither": "this"}]);
        client.send_raw(&json!({"jsonrpc": "2.0", "id": name, "method": name, "params": odd}));
        let answer = client.take(name, |line| line["id"] == name);
        let code = &answer["error"]["code"];
        assert!(code.is_null() || code == -32602, "{answer}");
    }
    assert_eq!(client.fault("session/made_up", json!({})).code, -32601);
}

#[test]
fn every_method_of_the_daemon_is_in_the_document() {
    let described = names_before(&source("protocol/src/schema.rs"), ">();", "to.resource::<");
    let mut served = BTreeSet::new();
    let mut by_hand = Vec::new();
    let rpc = fs::read_dir(root().join("daemon/src/rpc")).unwrap();
    let files = rpc.map(|entry| entry.unwrap().path());
    for path in files.chain([root().join("daemon/src/rpc.rs")]) {
        let text = fs::read_to_string(&path).unwrap();
        served.extend(names_before(&text, "Server::into_rpc(", ""));
        if text.contains(".register_") {
            by_hand.push(path.file_name().unwrap().to_owned());
        }
    }
    assert!(served.len() > 10, "{served:?}");
    assert_eq!(served, described);
    assert_eq!(
        by_hand,
        ["discover.rs"],
        "a method of no trait is not in the document"
    );
}

fn source(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The last words of the paths that stand before an end, on lines that hold a beginning.
fn names_before(text: &str, end: &str, beginning: &str) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| line.contains(beginning));
    let before = lines.filter_map(|line| Some(line.split_once(end)?.0.to_owned()));
    let word = |before: String| {
        let name = before.rsplit([':', '(', '<', ' ']).next();
        name.unwrap_or_default().to_owned()
    };
    before.map(word).collect()
}

#[test]
fn every_example_fits_and_there_is_one_of_each() {
    let document = wire::document();
    for method in each(document, "methods") {
        let examples = method["examples"].as_array().unwrap();
        assert!(!examples.is_empty(), "no example of {}", method["name"]);
        for example in examples {
            let response = json!({"result": example["result"]["value"]});
            let seen = wire::exchange(name_of(method), &by_name(example), &response);
            assert_eq!(seen, Ok(()), "{}", example["name"]);
        }
    }
    for notification in each(document, "x-notifications") {
        let examples = notification["examples"].as_array().unwrap();
        assert!(
            !examples.is_empty(),
            "no example of {}",
            notification["name"]
        );
        for example in examples {
            let message = json!({"method": notification["name"], "params": by_name(example)});
            assert_eq!(wire::notification(&message), Ok(()), "{}", example["name"]);
        }
    }
}

fn name_of(described: &Value) -> &str {
    described["name"].as_str().unwrap()
}

fn by_name(example: &Value) -> Value {
    let params = example["params"].as_array().unwrap().iter();
    params
        .map(|one| (name_of(one).to_owned(), one["value"].clone()))
        .collect()
}

#[test]
fn what_does_not_fit_the_document_is_seen() {
    let answered = |result: Value| {
        wire::exchange(
            "session/fork",
            &json!({"session": "a"}),
            &json!({"result": result}),
        )
    };
    assert!(answered(json!({"id": "a"})).unwrap_err().contains("title"));
    assert!(wire::exchange("session/made_up", &json!({}), &json!({"result": 1})).is_err());
    let other = json!({"error": {"code": -32013, "message": "", "data": {"kind": "version"}}});
    assert!(wire::exchange("session/get", &json!({}), &other).is_err());
    let bare = json!({"error": {"code": -32002, "message": ""}});
    assert!(wire::exchange("session/get", &json!({}), &bare).is_err());
    let event = |event: Value| {
        let params = json!({"subscription": "s1", "result": event});
        wire::notification(&json!({"method": "session/event", "params": params}))
    };
    assert_eq!(
        event(json!({"session": "a", "seq": 1, "at": 1, "type": "cleared"})),
        Ok(())
    );
    assert!(event(json!({"session": "a", "seq": 1, "at": 1, "type": "made_up"})).is_err());
    assert!(event(json!({"session": "a", "seq": 1, "at": 1, "type": "renamed"})).is_err());
    assert!(wire::notification(&json!({"method": "made/up", "params": {}})).is_err());
}

/// Tools put definitions in the place of references, and would never end.
#[test]
fn no_schema_refers_to_itself() {
    let schemas = wire::document()["components"]["schemas"]
        .as_object()
        .unwrap();
    let mut open: Vec<Vec<String>> = schemas.keys().map(|name| vec![name.clone()]).collect();
    let mut looked = 0;
    while let Some(path) = open.pop() {
        looked += 1;
        for name in references(&schemas[path.last().unwrap()]) {
            assert!(!path.contains(&name), "{path:?} leads to {name} again");
            open.push([path.clone(), vec![name]].concat());
        }
    }
    assert!(looked > 2 * schemas.len(), "references are followed");
}

fn references(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    match schema {
        Value::Array(all) => found.extend(all.iter().flat_map(references)),
        Value::Object(members) => {
            let named = members.get("$ref").and_then(Value::as_str);
            found.extend(named.and_then(|path| Some(path.rsplit_once('/')?.1.to_owned())));
            found.extend(members.values().flat_map(references));
        }
        _ => {}
    }
    found
}

#[test]
fn the_specifications_own_library_takes_the_document() {
    let test = "the_specifications_own_library_takes_the_document";
    let Some(clients) = Clients::of_the_document(test) else {
        return;
    };
    let daemon = TestDaemon::start();
    let said = node(
        &daemon,
        &clients,
        "validate.mjs",
        &[&path("protocol/openrpc.json")],
    );
    assert!(said.contains(": valid"), "{said}");
}

#[test]
fn every_method_does_what_its_example_says() {
    let test = "every_method_does_what_its_example_says";
    let Some(clients) = Clients::of_the_document(test) else {
        return;
    };
    // A model to fetch.
    let server = FileServer::start(gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let said = node(&daemon, &clients, "coverage.mjs", &[]);
    assert!(said.contains(": as described"), "{said}");
}

#[test]
fn a_client_in_typescript_has_its_types_from_the_document() {
    let test = "a_client_in_typescript_has_its_types_from_the_document";
    let Some(clients) = Clients::of_the_document(test) else {
        return;
    };
    let daemon = TestDaemon::start();
    let types = node(
        &daemon,
        &clients,
        "types.mjs",
        &[&path("protocol/openrpc.json")],
    );
    let client = clients.program(&daemon, "client.ts");
    clients.program(&daemon, "package.json");
    let folder = client.parent().unwrap();
    fs::write(folder.join("dwell.d.ts"), types).unwrap();
    let mut compiler = Command::new(clients.binary("node_modules/.bin/tsc"));
    let options =
        "--strict --noUncheckedIndexedAccess --target es2022 --module nodenext --types node";
    compiler.args(options.split(' ')).arg("--typeRoots");
    compiler
        .arg(folder.join("node_modules/@types"))
        .arg(&client);
    run(&daemon, compiler).well();
    let mut program = Command::new("node");
    program.arg(folder.join("client.js"));
    let said = run(&daemon, program).well();
    assert!(said.contains("scenario passed"), "{said}");
}

fn path(name: &str) -> String {
    root().join(name).to_str().unwrap().to_owned()
}

fn node(daemon: &TestDaemon, clients: &Clients, program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("node");
    command
        .arg(clients.program(daemon, program))
        .args(arguments);
    run(daemon, command).well()
}
