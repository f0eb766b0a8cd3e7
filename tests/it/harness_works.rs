//! The harness itself: what every other test leans on. Must need no daemon.

use harness::http::RawHttp;
use harness::model::{Answer, FakeModel, Step};
use harness::sandbox::Sandbox;
use std::io::ErrorKind;
use std::process::Command;

#[test]
fn a_sandbox_passes_on_nothing_of_this_process() {
    let mut sandbox = Sandbox::new();
    sandbox.set("DWELL_PROVIDER", "script");
    let mut command = Command::new("env");
    sandbox.apply(&mut command);
    let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(printed.contains("DWELL_PROVIDER=script\n"));
    assert!(!printed.contains("CARGO"), "{printed}");
    assert!(printed.contains(&format!("HOME={}\n", sandbox.path("home").display())));
}

#[test]
fn the_model_server_gives_its_answers_in_order_over_one_connection() {
    let model = FakeModel::start([Answer::text(["one"]), Answer::tokens(3, 2)]);
    let mut http = RawHttp::connect(model.address()).unwrap();
    let first = http.post("/v1/chat/completions", "{\"n\":1}").unwrap();
    assert!(String::from_utf8(first).unwrap().contains("\"one\""));
    for _ in 0..2 {
        let next =
            String::from_utf8(http.post("/v1/chat/completions", "{\"n\":2}").unwrap()).unwrap();
        assert_eq!(next.matches("\"content\":\"w").count(), 3);
        assert!(next.ends_with("data: [DONE]\n\n"));
    }
    assert_eq!(model.requests().len(), 3);
    assert_eq!(model.requests()[1]["n"], 2);
}

#[test]
fn a_cut_stream_ends_before_its_end_mark() {
    let model = FakeModel::start([Answer::open().say("half").step(Step::Cut)]);
    let mut http = RawHttp::connect(model.address()).unwrap();
    let error = http.post("/v1/chat/completions", "{}").unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::Other),
        "{error:?}"
    );
}

#[test]
fn rewritten_bytes_are_the_same_stream() {
    let whole = Answer::text(["grüße"]);
    let model = FakeModel::start([whole.clone(), whole.rewritten(1, |text| text)]);
    let mut http = RawHttp::connect(model.address()).unwrap();
    let first = http.post("/v1/chat/completions", "{}").unwrap();
    assert_eq!(first, http.post("/v1/chat/completions", "{}").unwrap());
}
