//! A child of a few lines of shell that speaks, floods, lies and dies.

use super::*;
use serde_json::json;
use std::time::Duration;

/// Notes what comes and answers every request with its own parameters.
#[derive(Default)]
struct Echo(Mutex<Vec<(String, String)>>);

impl Handler for Echo {
    fn notified<'a>(&'a self, method: &'a str, params: &'a RawValue) -> BoxFuture<'a, ()> {
        let note = (method.to_owned(), params.get().to_owned());
        self.0.lock().unwrap().push(note);
        Box::pin(std::future::ready(()))
    }

    fn asked(
        &self,
        method: String,
        params: Box<RawValue>,
    ) -> BoxFuture<'static, Result<Value, Refusal>> {
        Box::pin(async move {
            match method.as_str() {
                "echo" => Ok(serde_json::from_str(params.get()).unwrap()),
                _ => Err(Refusal::no_method(&method)),
            }
        })
    }
}

fn shell(script: &str) -> (Peer, Arc<Echo>) {
    let spawn = Spawn {
        program: "sh".into(),
        args: vec!["-c".into(), script.into()],
        cwd: "/".into(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        stdin: None,
        timeout: None,
    };
    let handler = Arc::new(Echo::default());
    let mask = Mask::of(["k3y-of-a-child".to_owned()]);
    let peer = Peer::start("a-child", &spawn, mask, handler.clone()).unwrap();
    (peer, handler)
}

async fn call(peer: &Peer) -> Result<Value, CallError> {
    let params = raw(&json!({"a": 1}));
    let limit = Duration::from_secs(20);
    let answer = tokio::time::timeout(limit, peer.call("m", &params)).await;
    let answer = answer.expect("an answer in time")?;
    Ok(serde_json::from_str(answer.get()).unwrap())
}

async fn fate(script: &str) -> String {
    let (peer, _) = shell(script);
    match call(&peer).await {
        Err(CallError::Gone(how)) => how,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn call_is_answered_and_notifications_before_it_have_been_taken_by_then() {
    let (peer, handler) = shell(
        r#"read line; echo '{"method":"n","params":[1]}'; echo; echo '{"jsonrpc":"2.0","method":"o"}'
           echo "{\"id\":1,\"result\":$line}"; cat >/dev/null"#,
    );
    let sent = json!({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}});
    assert_eq!(call(&peer).await, Ok(sent));
    let notes = handler.0.lock().unwrap().clone();
    let note = |method: &str, params: &str| (method.to_owned(), params.to_owned());
    assert_eq!(notes, [note("n", "[1]"), note("o", "null")]);
}

#[tokio::test]
async fn child_asks_too_and_a_method_that_is_not_there_is_told() {
    let (peer, _) = shell(
        r#"read line; echo '{"id":"x","method":"echo","params":{"b":2}}'; read one
           echo '{"id":7,"method":"nothing"}'; read two; echo "{\"id\":1,\"result\":[$one,$two]}""#,
    );
    let answers = call(&peer).await.unwrap();
    assert_eq!(
        answers[0],
        json!({"jsonrpc": "2.0", "id": "x", "result": {"b": 2}})
    );
    assert_eq!(answers[1]["error"]["code"], Refusal::NO_METHOD);
}

#[tokio::test]
async fn childs_own_error_is_told_apart_from_its_end() {
    let (peer, _) = shell(
        r#"read line; echo '{"id":1,"error":{"code":-1,"message":"no such model","data":{"retryable":true}}}'; cat"#,
    );
    let Err(CallError::Refused(refusal)) = call(&peer).await else {
        panic!("not refused")
    };
    assert_eq!(refusal.message, "no such model");
    assert_eq!(refusal.data["retryable"], true);
}

#[tokio::test]
async fn end_of_the_child_is_told_with_what_it_complained_of() {
    let how = fate("read line; echo first >&2; echo 'out of memory' >&2; exit 3").await;
    assert_eq!(
        how,
        "a-child ended with exit status 3: first\nout of memory"
    );
    assert_eq!(
        fate("read line; kill -9 $$").await,
        "a-child was killed by signal 9"
    );
    assert_eq!(fate("exit 0").await, "a-child ended");
    let talk = fate("read line; echo hello; cat >/dev/null").await;
    assert_eq!(
        talk,
        "a-child wrote to its stdout what is no JSON-RPC message"
    );
}

#[tokio::test]
async fn key_that_a_child_says_is_in_no_error() {
    let how = fate("read line; echo \"no good: k3y-of-a-child\" >&2; exit 1").await;
    assert_eq!(how, "a-child ended with exit status 1: no good: ***");
    let (peer, _) =
        shell(r#"read line; echo '{"id":1,"error":{"message":"k3y-of-a-child?"}}'; cat"#);
    let Err(CallError::Refused(refusal)) = call(&peer).await else {
        panic!("not refused")
    };
    assert_eq!(refusal.message, "***?");
}

#[tokio::test]
async fn answer_to_nothing_is_passed_over() {
    let (peer, _) = shell(
        r#"read line; echo '{"id":"abc","result":1}'; echo '{"id":null,"error":{"message":"m"}}'
           echo '{"id":99,"result":1}'; echo '{"id":1,"result":2}'; cat"#,
    );
    assert_eq!(call(&peer).await, Ok(json!(2)));
}

#[tokio::test]
async fn flood_of_complaints_is_read_and_forgotten() {
    let how = fate("read line; yes complaint | head -c 3000000 >&2; exit 1").await;
    assert_eq!(how.matches("complaint").count(), 5);
}

#[tokio::test]
async fn ended_child_says_so_to_the_next_caller_and_dropping_the_last_handle_kills() {
    let (peer, _) = shell("exit 1");
    peer.ended().await;
    assert!(peer.has_ended());
    assert!(matches!(call(&peer).await, Err(CallError::Gone(_))));

    let (peer, _) = shell("cat >/dev/null");
    let shared = peer.shared.clone();
    drop(peer);
    let ended = shared.ended.cancelled();
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap();
}
