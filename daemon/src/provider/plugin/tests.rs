//! Providers in executables: small shell scripts that speak, die, hang and come back.

use super::super::registry::{BuildOptions, ProviderConfig, Providers};
use super::super::{Message, Signed};
use super::*;
use serde_json::{Value, json};
use std::path::Path;

/// Answers everything; `$1` of the template is what a fetch does, with its number in `$id`.
fn script(fetch: &str) -> String {
    format!(
        r#"#!/bin/sh
here=$(dirname "$0")
echo start >> "$here/log"
while read -r line; do
  id=${{line#*\"id\":}}; id=${{id%%,*}}
  echo "$line" >> "$here/log"
  case $line in
    *plugin/setup*) echo "{{\"id\":$id,\"result\":{{\"providers\":[{{\"name\":\"far\"}},{{\"name\":\"farther\"}}]}}}}" ;;
    *provider/build*) echo "{{\"id\":$id,\"result\":{{\"instance\":\"i$id\",\"model\":\"m\",\"window\":4096}}}}" ;;
    *provider/models*) echo "{{\"id\":$id,\"result\":[{{\"name\":\"m\"}},{{\"name\":\"n\"}}]}}" ;;
    *provider/fetch*) {fetch} ;;
  esac
done
"#
    )
}

const ANSWER: &str = r#"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"thinking\",\"text\":\"hm\"}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"type\":\"saying\",\"text\":\"a\"}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":99,\"type\":\"saying\",\"text\":\"of nobody\"}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"sparkling\",\"text\":\"b\"}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"doing\",\"id\":\"c1\",\"name\":\"read\",\"arguments\":{\"path\":\"x\"}}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"usage\",\"input\":7,\"output\":5}}"
  echo "{\"method\":\"provider/event\",\"params\":{\"fetch\":$id,\"type\":\"signed\",\"block\":{\"s\":1}}}"
  echo "{\"id\":$id,\"result\":{}}""#;

struct Place {
    folder: tempfile::TempDir,
    config: ProviderConfig,
}

fn place(text: &str) -> Place {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), text);
    let mut config = ProviderConfig {
        search: vec!["/nonexistent".into(), folder.path().into()],
        child_env: Arc::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into()),
        ..ProviderConfig::default()
    };
    config.settings.child_silence_ms = Some(20_000);
    Place { folder, config }
}

/// Written aside and moved: nobody executes a file that is open for writing.
fn install(folder: &Path, text: &str) {
    let (aside, path) = (folder.join("aside"), folder.join("dwell-provider-far"));
    std::fs::write(&aside, text).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&aside, mode).unwrap();
    std::fs::rename(aside, path).unwrap();
}

impl Place {
    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Waits until the child has written so.
    async fn logged(&self, what: &str) {
        let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
        while !self.log().contains(what) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{what} in {}",
                self.log()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

async fn far(providers: &Providers) -> Result<Arc<dyn Provider>, String> {
    let session = BTreeMap::from([("CANDLE_MODEL".to_owned(), "of-the-session".to_owned())]);
    let options = BuildOptions {
        host: None,
        model: Some("asked".to_owned()),
        env: Some(Arc::new(session)),
    };
    let built = providers.build("far", options).await;
    built.map_err(|error| error.to_string())
}

async fn ask(provider: &dyn Provider) -> (Vec<ProviderEvent>, Result<(), ProviderError>) {
    let signed = |provider: &str| Signed {
        provider: provider.to_owned(),
        block: json!({"of": provider}),
    };
    let messages = [Message::Assistant {
        content: "before".to_owned(),
        tool_calls: Vec::new(),
        signed: vec![signed("far"), signed("anthropic")],
    }];
    crate::provider::testing::ask(provider, &messages).await
}

#[tokio::test]
async fn events_become_the_providers_and_what_is_unknown_or_of_nobody_is_ignored() {
    let place = place(&script(ANSWER));
    let providers = Providers::new(place.config.clone());
    let provider = far(&providers).await.unwrap();
    assert_eq!(
        (provider.model(), provider.window()),
        (Some("m"), Some(4096))
    );
    let expected = [
        ProviderEvent::Thinking("hm".to_owned()),
        ProviderEvent::Saying("a".to_owned()),
        ProviderEvent::Doing {
            id: Some("c1".to_owned()),
            name: "read".to_owned(),
            arguments: json!({"path": "x"}),
        },
        ProviderEvent::Usage {
            input: 7,
            output: 5,
            cached: 0,
        },
        ProviderEvent::Signed(json!({"s": 1})),
    ];
    assert_eq!(ask(&*provider).await, (expected.to_vec(), Ok(())));
    let models = provider.models().await.unwrap();
    assert_eq!(models.len(), 2);

    let log = place.log();
    let line = |what: &str| -> Value {
        let line = log.lines().find(|line| line.contains(what)).unwrap();
        serde_json::from_str::<Value>(line).unwrap()["params"].clone()
    };
    let built = json!({"name": "far", "model": "asked", "env": {"CANDLE_MODEL": "of-the-session"}});
    assert_eq!(line("provider/build"), built);
    let signed = &line("provider/fetch")["messages"][0]["signed"];
    assert_eq!(
        *signed,
        json!([{"provider": "far", "block": {"of": "far"}}])
    );
}

#[tokio::test]
async fn one_child_serves_all_and_its_other_names_are_known_from_then_on() {
    let place = place(&script(ANSWER));
    let providers = Providers::new(place.config.clone());
    let first = far(&providers).await.unwrap();
    let second = far(&providers).await.unwrap();
    let third = providers
        .build("farther", BuildOptions::default())
        .await
        .unwrap();
    let all = tokio::join!(ask(&*first), ask(&*second), ask(&*third));
    for (events, ended) in [all.0, all.1, all.2] {
        assert_eq!(ended, Ok(()));
        assert!(events.len() >= 4, "{events:?}");
    }
    assert_eq!(place.log().matches("start\n").count(), 1);
    assert_eq!(place.log().matches("provider/build").count(), 3);
    assert!(providers.names().contains(&"farther".to_owned()));
    drop(first);
    place.logged("provider/release").await;
}

#[tokio::test]
async fn crash_in_mid_answer_is_told_with_the_childs_words_and_the_next_round_trip_has_a_new_child()
{
    let place = place(&script(
        r#"echo "{\"method\":\"provider/event\",\"params\":{\"type\":\"saying\",\"text\":\"ha\"}}"
           if [ ! -e "$here/crashed" ]; then touch "$here/crashed"; echo "out of memory" >&2; exit 7; fi
           echo "{\"id\":$id,\"result\":null}""#,
    ));
    let providers = Providers::new(place.config.clone());
    let provider = far(&providers).await.unwrap();
    let (events, ended) = ask(&*provider).await;
    let error = ended.unwrap_err();
    assert_eq!(events, [ProviderEvent::Saying("ha".to_owned())]);
    assert_eq!(error.class, ErrorClass::Dropped);
    let expected = "dwell-provider-far ended with exit status 7: out of memory";
    assert_eq!(error.message, expected);
    assert_eq!(ask(&*provider).await.1, Ok(()));
    assert_eq!(place.log().matches("start\n").count(), 2);
}

#[tokio::test]
async fn dropped_round_trip_is_cancelled_in_the_child() {
    let place = place(&script("true"));
    let providers = Providers::new(place.config.clone());
    let provider = far(&providers).await.unwrap();
    tokio::select! {
        _ = ask(&*provider) => panic!("nobody answered"),
        () = place.logged("provider/fetch") => {}
    }
    place.logged("provider/cancel").await;
    let log = place.log();
    let of = |what: &str| {
        log.lines()
            .find(|line| line.contains(what))
            .unwrap()
            .to_owned()
    };
    let fetch: Value = serde_json::from_str(&of("provider/fetch")).unwrap();
    let cancel: Value = serde_json::from_str(&of("provider/cancel")).unwrap();
    assert_eq!(cancel["params"], json!({"id": fetch["id"]}));
}

#[tokio::test]
async fn silence_is_a_stall_and_the_childs_own_error_keeps_its_words() {
    let mut silent = place(&script("true"));
    silent.config.settings.child_silence_ms = Some(50);
    let provider = far(&Providers::new(silent.config.clone())).await.unwrap();
    let error = ask(&*provider).await.1.unwrap_err();
    assert_eq!(error.class, ErrorClass::Stalled);
    silent.logged("provider/cancel").await;

    let refusing = place(&script(
        r#"echo "{\"id\":$id,\"error\":{\"message\":\"no such model\",\"data\":{\"retryable\":true}}}""#,
    ));
    let provider = far(&Providers::new(refusing.config.clone())).await.unwrap();
    let error = ask(&*provider).await.1.unwrap_err();
    let class = ErrorClass::Reported { retryable: true };
    assert_eq!((error.class, &*error.message), (class, "no such model"));
}

#[tokio::test]
async fn child_that_nobody_uses_is_stopped_and_started_anew_when_needed() {
    let trap = "log=$(dirname \"$0\")/log; trap 'echo asked to end >> \"$log\"; exit' TERM\nhere=";
    let mut place = place(&script(ANSWER).replacen("here=", trap, 1));
    place.config.settings.child_stop_after_ms = Some(30);
    let providers = Providers::new(place.config.clone());
    let provider = far(&providers).await.unwrap();
    // The shell says so when its supervisor asks it to end.
    place.logged("asked to end").await;
    assert_eq!(ask(&*provider).await.1, Ok(()));
    assert_eq!(place.log().matches("start\n").count(), 2);
}

#[tokio::test]
async fn texts_for_what_does_not_serve_are_exact() {
    let place = place("#!/bin/sh\necho 'no licence' >&2\nexit 4\n");
    let providers = Providers::new(place.config.clone());
    let fate = far(&providers).await.err().unwrap();
    let expected = "dwell-provider-far failed to start: ended with exit status 4: no licence";
    assert_eq!(fate, expected);

    let other = script(ANSWER).replace("\\\"far\\\"", "\\\"else\\\"");
    install(place.folder.path(), &other);
    let fate = far(&providers).await.err().unwrap();
    let expected = "dwell-provider-far did not register a provider named \"far\"";
    assert_eq!(fate, expected);
    assert!(!providers.names().contains(&"far".to_owned()));
}

#[tokio::test]
async fn missing_executable_of_local_models_is_told_with_its_place() {
    let config = ProviderConfig {
        local: Some("/nonexistent/dwell-local".into()),
        ..ProviderConfig::default()
    };
    let providers = Providers::new(config);
    let built = providers.build("candle", BuildOptions::default());
    let expected = "candle needs dwell-local, which is not at /nonexistent/dwell-local: \
                    it belongs beside dwelld; DWELL_LOCAL names another place";
    assert_eq!(built.await.err().unwrap().to_string(), expected);
}
