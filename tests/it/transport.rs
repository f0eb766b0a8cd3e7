//! The socket: framings, limits, and that a client that misbehaves harms nobody but itself.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::procfs::resident;
use harness::sandbox::mode;
use harness::wait::{SOON, until, until_true};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn five_hundred_connections_are_served() {
    let daemon = TestDaemon::start();
    let mut clients: Vec<TestClient> = (0..500).map(|_| daemon.client()).collect();
    let session = clients[0].session(&daemon.work());
    for client in &mut clients {
        client.attach(&session, None);
    }
    clients[0].start(&session, "say to all of you");
    for client in &mut clients {
        assert_eq!(client.until_ended().said(), "to all of you");
    }
    let status = clients[499].call("daemon/status", json!({}));
    assert!(status["clients"].as_u64().unwrap() >= 500, "{status}");
    drop(clients);
    let mut client = daemon.client();
    until_true("the connections to be gone", SOON, || {
        client.call("daemon/status", json!({}))["clients"] == 1
    });
}

#[test]
fn sixteen_mebibytes_of_garbage_disturb_nobody() {
    let daemon = TestDaemon::start();
    let mut good = daemon.client();
    let session = good.session(&daemon.work());
    good.turn(&session, "say warm");
    let before = resident(daemon.pid());
    let floods: Vec<_> = [
        &b"x"[..],
        b"{",
        b"[",
        b"{\"a\":\"",
        b"\0",
        b"Content-Length: 99999999999999999999\r\n\r\n",
        b"{}\n",
    ]
    .into_iter()
    .map(|start| {
        let socket = daemon.socket().to_owned();
        let mut bytes = start.to_vec();
        bytes.resize(17 * 1024 * 1024, start[0]);
        thread::spawn(move || {
            let mut stream = UnixStream::connect(socket).unwrap();
            stream.set_write_timeout(Some(SOON)).unwrap();
            // It may be thrown out in the middle.
            let _ = stream.write_all(&bytes);
        })
    })
    .collect();
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(good.turn(&session, "say still fine").said(), "still fine");
    }
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{:?}",
        start.elapsed()
    );
    for flood in floods {
        flood.join().unwrap();
    }
    assert_eq!(good.turn(&session, "say and after").said(), "and after");
    until_true("the memory to be given back", SOON, || {
        resident(daemon.pid()) < before + 48 * 1024 * 1024
    });
}

#[test]
fn a_frame_over_the_limit_is_refused_and_the_connection_is_closed_or_goes_on() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let id = 7;
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "daemon/status", "params": {"x": "y".repeat(17 * 1024 * 1024)}});
    let _ = client.stream().write_all(format!("{request}\n").as_bytes());
    let lines = client.drain_within(Duration::from_secs(5));
    let fault = lines.iter().find(|line| line.get("error").is_some());
    if let Some(fault) = fault {
        assert_eq!(fault["error"]["code"], -32600, "{fault}");
    }
    daemon.client().call("daemon/status", json!({}));
}

#[test]
fn a_client_that_never_reads_holds_nobody_up() {
    let daemon = TestDaemon::start();
    let (mut good, mut stuck) = (daemon.client(), daemon.client());
    let session = good.session(&daemon.work());
    stuck.attach(&session, None);
    for _ in 0..1000 {
        // Answers that nobody reads either.
        if stuck
            .stream()
            .set_write_timeout(Some(Duration::from_millis(50)))
            .is_err()
            || stuck
                .stream()
                .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/list\"}\n")
                .is_err()
        {
            break;
        }
    }
    let before = resident(daemon.pid());
    good.attach(&session, None);
    // Text that no conversation keeps, so that what grows is what waits for somebody.
    let text = "z".repeat(4000);
    for _ in 0..4000 {
        good.call("session/say", json!({"session": session, "text": text}));
        assert_eq!(good.event()["text"], json!(text));
    }
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(
        grown < 24 * 1024 * 1024,
        "16 MB of text made the daemon grow by {grown}"
    );
    assert_eq!(
        good.turn(&session, "say and on").last()["status"],
        "completed"
    );
}

#[test]
fn large_events_wait_in_the_store_for_clients_that_do_not_read() {
    let daemon = TestDaemon::start();
    let mut good = daemon.client();
    let session = good.session(&daemon.work());
    let text = "z".repeat(300_000);
    for _ in 0..150 {
        good.call("session/say", json!({"session": session, "text": text}));
    }
    let before = resident(daemon.pid());
    let stuck: Vec<_> = (0..5)
        .map(|_| {
            let mut client = daemon.client();
            client.attach(&session, Some(0));
            client
        })
        .collect();
    // Who reads gets all of it meanwhile; so did the others, as far as they get anything.
    good.attach(&session, Some(0));
    for seq in 1..=150 {
        assert_eq!(good.event()["seq"], seq);
    }
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(
        grown < 40 * 1024 * 1024,
        "5 times 45 MB of events made the daemon grow by {grown}"
    );
    drop(stuck);
    let pages = good.call("session/history", json!({"session": session}));
    let shown = pages["events"].as_array().unwrap();
    assert!(
        shown.len() < 150 && pages["more"] == true,
        "a page fits into a frame"
    );
    let last = &shown.last().unwrap()["seq"];
    let next = good.call(
        "session/history",
        json!({"session": session, "after": last}),
    );
    assert_eq!(next["events"][0]["seq"], last.as_u64().unwrap() + 1);
}

#[test]
fn a_slow_reader_gets_everything_in_the_end() {
    let daemon = TestDaemon::start();
    let (mut good, mut slow) = (daemon.client(), daemon.client());
    let session = good.session(&daemon.work());
    slow.attach(&session, None);
    let line = format!("say {}\n", "z".repeat(4000));
    let fast = good.turn(&session, &line.repeat(1000));
    let seen = slow.until_ended();
    seen.assert_consecutive(seen.0[0]["seq"].as_u64().unwrap() - 1);
    assert_eq!(seen.said().len(), fast.said().len());
}

#[test]
fn editors_may_frame_with_headers() {
    let daemon = TestDaemon::start();
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    for (id, head) in [
        (1, "Content-Length: "),
        (2, "content-type: application/json\r\nCONTENT-LENGTH:"),
    ] {
        let body = json!({"jsonrpc": "2.0", "id": id, "method": "daemon/status"}).to_string();
        write!(stream, "{head}{}\r\n\r\n{body}", body.len()).unwrap();
        let answer = framed(&mut stream);
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["daemon"]["pid"], daemon.pid());
    }
}

/// One message with a Content-Length header.
fn framed(stream: &mut UnixStream) -> Value {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap()
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn parameters_come_in_every_legal_form() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    for request in [
        json!({"jsonrpc": "2.0", "id": "a", "method": "daemon/status"}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "daemon/status", "params": null}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "daemon/status", "params": []}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "daemon/status", "params": {}, "unknown": 1}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "session/get", "params": [session]}),
        json!({"jsonrpc": "2.0", "id": "a", "method": "session/get", "params": {"session": session, "more": 1}}),
    ] {
        client.send_raw(&request);
        let answer = client.take("the answer", |line| line["id"] == "a");
        assert!(answer.get("result").is_some(), "{request}: {answer}");
    }
}

#[test]
fn batches_are_answered() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    client.send_raw(&json!([
        {"jsonrpc": "2.0", "id": 1, "method": "daemon/status"},
        {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
        {"jsonrpc": "2.0", "method": "daemon/status"},
        7,
    ]));
    let answers = client.next_line();
    let mut ids: Vec<Value> = answers
        .as_array()
        .unwrap()
        .iter()
        .map(|answer| answer["id"].clone())
        .collect();
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!(1), json!(2), Value::Null], "{answers}");
}

#[test]
fn bad_messages_get_the_standard_codes() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let fault = client.fault("no/such", json!({}));
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32601, &json!("method_not_found")),
        "{fault}"
    );
    assert!(fault.message.contains("no/such"), "{fault}");
    let fault = client.fault("session/get", json!({"session": 7}));
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32602, &json!("invalid_params")),
        "{fault}"
    );
    for (line, code) in [
        ("{\"jsonrpc\": \n", -32700),
        ("{}\n", -32600),
        ("[]\n", -32600),
    ] {
        client.stream().write_all(line.as_bytes()).unwrap();
        let answer = client.take("an error", |line| line.get("error").is_some());
        assert_eq!(
            (&answer["error"]["code"], &answer["id"]),
            (&json!(code), &Value::Null),
            "{line}"
        );
    }
    client.call("daemon/status", json!({}));
}

#[test]
fn the_handshake_names_both_versions_when_they_differ() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let me = json!({"name": "a test", "version": "1"});
    let hello = client.call("initialize", json!({"protocol": 1, "client": me}));
    assert_eq!(
        (&hello["protocol"], &hello["daemon"]["pid"]),
        (&json!(1), &json!(daemon.pid()))
    );
    let fault = daemon
        .client()
        .fault("initialize", json!({"protocol": 999, "client": me}));
    assert_eq!(
        (fault.code, &fault.data["kind"]),
        (-32013, &json!("version")),
        "{fault}"
    );
    assert_eq!(
        (&fault.data["daemon"], &fault.data["client"]),
        (&json!(1), &json!(999)),
        "{fault}"
    );
    assert!(fault.message.contains("999"), "{fault}");
}

#[test]
fn any_number_of_calls_that_are_answered_at_once_may_be_written_at_once() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let call = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "session/get", "params": {"session": session}});
    let lines: String = (1000..2000).map(|id| format!("{}\n", call(id))).collect();
    let mut writer = client.stream().try_clone().unwrap();
    let writing = thread::spawn(move || writer.write_all(lines.as_bytes()).unwrap());
    for id in 1000..2000 {
        assert_eq!(client.response(id).unwrap()["id"], session.as_str());
    }
    writing.join().unwrap();
    let batch: Vec<Value> = (3000..3500).map(call).collect();
    client.send_raw(&Value::Array(batch));
    let answers = client.take("the batch's answer", Value::is_array);
    let answers = answers.as_array().unwrap();
    let ids: Vec<u64> = answers
        .iter()
        .filter_map(|one| one["id"].as_u64())
        .collect();
    assert_eq!(
        ids,
        (3000..3500).collect::<Vec<_>>(),
        "in the order of the calls"
    );
    assert!(answers.iter().all(|one| one.get("error").is_none()));
}

#[test]
fn past_the_limit_of_calls_one_is_refused_and_a_cancel_still_gets_through() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let turn = client.start(&session, "wait 60000")["turn"].clone();
    let ids: Vec<u64> = (0..500)
        .map(|_| client.send("turn/wait", json!({"turn": turn})))
        .collect();
    let refused = client.take("a refusal", |line| line.get("error").is_some());
    assert_eq!(refused["error"]["code"], -32001, "{refused}");
    assert_eq!(refused["error"]["data"]["retryable"], true);
    client.call("turn/cancel", json!({"session": session}));
    let answered = client.response(ids[0]).unwrap();
    assert_eq!(answered["status"], "cancelled");
}

#[test]
fn the_socket_is_its_owners_alone_from_its_first_moment() {
    let sandbox = harness::sandbox::Sandbox::new();
    let mut daemon = TestDaemon::stopped(sandbox, &harness::binaries::binaries().daemon);
    let socket = daemon.socket().to_owned();
    let watched = socket.clone();
    let watcher = thread::spawn(move || {
        until("the socket's file", SOON, || {
            use std::os::unix::fs::PermissionsExt;
            std::fs::metadata(&watched)
                .map(|found| found.permissions().mode() & 0o777)
                .map_err(|error| error.to_string())
        })
    });
    daemon.set_umask(0);
    daemon.restart();
    assert_eq!(watcher.join().unwrap() & 0o177, 0);
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    for private in ["data", "state"] {
        for entry in std::fs::read_dir(daemon.path(private))
            .unwrap()
            .flatten()
            .filter(|entry| entry.path().is_file())
        {
            assert_eq!(mode(&entry.path()) & 0o077, 0, "{}", entry.path().display());
        }
    }
}

#[test]
fn another_user_is_refused_even_where_the_modes_would_let_them_in() {
    let test = "another_user_is_refused_even_where_the_modes_would_let_them_in";
    if !rustix::process::geteuid().is_root() {
        return harness::wait::skip_unprivileged(test, "needs root to become somebody else");
    }
    let daemon = TestDaemon::start();
    harness::sandbox::set_mode(daemon.socket(), 0o777);
    let mut folder = daemon.socket().parent().unwrap().to_owned();
    while folder.starts_with(daemon.path("")) {
        harness::sandbox::set_mode(&folder, 0o755);
        folder.pop();
    }
    let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.settimeout(10);\n\
                  s.sendall(b'{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"daemon/status\"}\\n'); print(s.recv(9999))";
    let done = std::process::Command::new("setpriv")
        .args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "/usr/bin/env",
            "-i",
            "PATH=/usr/bin:/bin",
            "python3",
            "-c",
            script,
        ])
        .arg(daemon.socket())
        .output();
    let done = match done {
        Ok(done) if String::from_utf8_lossy(&done.stderr).contains("No such file") => {
            return harness::wait::skip(test, "no python3");
        }
        Ok(done) => done,
        Err(_) => return harness::wait::skip(test, "no setpriv"),
    };
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(!said.contains("\"result\""), "{said}");
    until_true("a line in the log", SOON, || daemon.log().contains("65534"));
}

#[test]
fn a_call_that_is_taken_back_ends_and_is_answered_so() {
    let daemon = TestDaemon::allowing();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    client.attach(&session, None);
    let turn = client.start(&session, "wait 60000")["turn"].clone();
    let request = |id: &Value, method: &str, params: Value| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
    let tell =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let back = |client: &mut TestClient, id: &Value, spelt: (&str, &str)| {
        client.send_raw(&tell(spelt.0, json!({spelt.1: id})));
        let answer = client.take("the answer", |line| line["id"] == *id);
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
        assert_eq!(answer["error"]["data"]["kind"], "withdrawn", "{answer}");
    };
    // By ids of all kinds, in both spellings, and again by one that was used before.
    for (id, spelt) in [
        (json!(900), ("$/cancelRequest", "id")),
        (json!("wä\"it"), ("$/cancelRequest", "id")),
        (json!(-1), ("$/cancel_request", "requestId")),
        (json!(900), ("$/cancelRequest", "id")),
    ] {
        client.send_raw(&request(&id, "turn/wait", json!({"turn": turn})));
        back(&mut client, &id, spelt);
    }
    // Not the turn that was waited for.
    assert_eq!(
        client.call("session/get", json!({"session": session}))["state"],
        "running"
    );
    client.call("turn/cancel", json!({"session": session}));
    client.until_ended();

    // A tool's call ends, and the session knows.
    let arguments = json!({"command": "echo $$ > pid; exec sleep 600"});
    let run = json!({"session": session, "name": "execute", "arguments": arguments});
    client.send_raw(&request(&json!("run"), "tool/run", run));
    until_true("it runs", SOON, || !daemon.read("pid").is_empty());
    back(&mut client, &json!("run"), ("$/cancelRequest", "id"));
    let pid = daemon.read("pid").trim().parse().unwrap();
    until_true("it has ended", SOON, || !harness::procfs::alive(pid));
    let done = client.until_type("done");
    assert_eq!(done.last()["result"]["ok"], false, "{:?}", done.last());

    // Of a batch, that one alone.
    let batch = json!([
        request(&json!("a"), "session/get", json!({"session": session})),
        request(
            &json!("b"),
            "tool/run",
            json!({"session": session, "name": "execute", "arguments": {"command": "sleep 600"}})
        ),
    ]);
    client.send_raw(&batch);
    client.until_type("call_started");
    client.send_raw(&tell("$/cancelRequest", json!({"id": "b"})));
    let answers = client.take("the batch's answer", Value::is_array);
    assert_eq!(answers[0]["result"]["id"], session.as_str());
    assert_eq!(answers[1]["error"]["code"], -32800);
}

#[test]
fn taking_back_what_is_not_there_or_has_an_effect_changes_nothing() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let session = client.session(&daemon.work());
    let back =
        |params: Value| json!({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params});
    for params in [
        json!({"id": 12345}),
        json!({"id": null}),
        json!({"id": {}}),
        json!({}),
        json!([7]),
        Value::Null,
    ] {
        client.send_raw(&back(params));
    }
    // A prompt that was sent is carried out, and its answer says so.
    let text = json!({"session": session, "text": "say on"});
    client.send_raw(&json!({"jsonrpc": "2.0", "id": 5000, "method": "turn/start", "params": text}));
    client.send_raw(&back(json!({"id": 5000})));
    let started = client.take("the answer", |line| line["id"] == 5000);
    assert!(started["result"]["turn"].is_string(), "{started}");
    let turn = started["result"]["turn"].clone();
    // One that has been answered is gone.
    let ended = client.call("turn/wait", json!({"turn": turn}));
    assert_eq!(ended["status"], "completed");
    client.send_raw(&back(json!({"id": 5000})));
    client.call("daemon/status", json!({}));
    let stray = client.drain_within(Duration::from_millis(50));
    assert!(
        stray.iter().all(|line| line.get("error").is_none()),
        "{stray:?}"
    );
}
