//! Tokens and requests against a server on loopback that plays Google's.

use super::super::registry::{BuildOptions, ProviderConfig, Providers};
use super::super::testing::{self, Say, Server, plain, serve, sse, user};
use super::super::{ErrorClass, ProviderEvent};
use super::*;
use serde_json::{Value, json};

const TOKEN: &str = "ya29.token-that-nobody-may-see";
const ANSWER: &str = "event: content_block_delta\n\
    data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n\
    data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
    data: {\"type\":\"message_stop\"}\n\n";

/// Written by nobody's cloud: a key of its own for this test.
fn service_file(token_url: &str) -> Value {
    json!({"type": "service_account", "project_id": "of-the-file", "client_email": "me@example.org",
        "private_key_id": "k1", "private_key": include_str!("../../../../tests/fixtures/providers/vertex/key.pem"), "token_uri": token_url})
}

async fn build(
    file: &Value,
    url: &str,
    more: &[(&str, &str)],
) -> Result<Arc<dyn Provider>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("credentials.json");
    std::fs::write(&path, file.to_string()).unwrap();
    let mut all = vec![
        (
            "GOOGLE_APPLICATION_CREDENTIALS".to_owned(),
            path.display().to_string(),
        ),
        (BASE.to_owned(), url.to_owned()),
    ];
    all.extend(
        more.iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
    );
    let config = ProviderConfig {
        env: Arc::new(move |name| {
            let found = all.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        }),
        ..ProviderConfig::default()
    };
    let built = Providers::new(config)
        .build(NAME, BuildOptions::default())
        .await;
    built.map_err(|error| error.to_string())
}

async fn ask(provider: &dyn Provider) -> Result<Vec<ProviderEvent>, super::super::ProviderError> {
    let (events, ended) = testing::ask(provider, &[user("hello")]).await;
    ended.map(|()| events)
}

fn token() -> Vec<Say> {
    let body = json!({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"});
    plain(
        "200 OK",
        "Content-Type: application/json\r\n",
        &body.to_string(),
    )
}

#[tokio::test]
async fn service_signs_for_a_token_that_is_used_till_its_end() {
    let server: Server = serve(vec![token(), sse(ANSWER), sse(ANSWER)]).await;
    let file = service_file(&format!("{}/token", server.url));
    let provider = build(&file, &server.url, &[]).await.unwrap();
    for _ in 0..2 {
        let events = ask(&*provider).await.unwrap();
        assert_eq!(events, [ProviderEvent::Saying("a".to_owned())]);
    }
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[0].starts_with("POST /v1/token "));
    let assertion = seen[0].split("assertion=").nth(1).unwrap();
    assert_eq!(assertion.split('.').count(), 3);
    let model = preset::model_of("anthropic");
    let line = format!(
        "POST /v1/projects/of-the-file/locations/global/publishers/anthropic/models/{model}:streamRawPredict "
    );
    assert!(seen[1].starts_with(&line), "{}", seen[1]);
    assert!(seen[1].contains(&format!("authorization: Bearer {TOKEN}")));
    let body: Value = serde_json::from_str(seen[1].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(body["anthropic_version"], "vertex-2023-10-16");
    assert_eq!(body.get("model"), None);
}

#[tokio::test]
async fn person_refreshes_and_a_refusal_is_told_without_secrets() {
    let refusal = json!({"error": "invalid_grant", "error_description": "expired"}).to_string();
    let server = serve(vec![plain("400 Bad Request", "", &refusal)]).await;
    let file = json!({"type": "authorized_user", "client_id": "c", "client_secret": "very secret",
        "refresh_token": "also secret", "token_uri": format!("{}/token", server.url)});
    let more = [
        ("GOOGLE_CLOUD_PROJECT", "p"),
        ("CLOUD_ML_REGION", "europe-west1"),
    ];
    let provider = build(&file, &server.url, &more).await.unwrap();
    let error = ask(&*provider).await.unwrap_err();
    assert!(
        matches!(error.class, ErrorClass::Status { code: 400, .. }),
        "{error:?}"
    );
    assert!(error.message.contains("invalid_grant"), "{error}");
    assert!(!error.message.contains("secret"), "{error}");
    assert!(server.seen()[0].contains("refresh_token=also%20secret"));
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let failed = async |file: Value, more: &[(&str, &str)]| {
        build(&file, "http://127.0.0.1:1/v1", more)
            .await
            .err()
            .unwrap()
    };
    let odd = failed(json!({"type": "external_account"}), &[]).await;
    assert!(odd.contains("external_account"), "{odd}");
    let bad = json!({"type": "service_account", "private_key": "-----BEGIN nothing"});
    assert!(
        failed(bad, &[])
            .await
            .contains("private key cannot be read")
    );
    let no_project = json!({"type": "authorized_user", "client_secret": "s", "refresh_token": "r"});
    let no_project = failed(no_project, &[]).await;
    assert!(
        no_project.contains("ANTHROPIC_VERTEX_PROJECT_ID"),
        "{no_project}"
    );
}

#[tokio::test]
async fn machine_asks_its_metadata_server() {
    let server = serve(vec![token()]).await;
    let host = server
        .url
        .trim_start_matches("http://")
        .trim_end_matches("/v1")
        .to_owned();
    let credentials = credentials::Credentials::Machine {
        metadata: Some(host),
        env: Arc::default(),
    };
    let tokens = Tokens::new(credentials, super::super::http::Http::default());
    let text = super::super::vendor::TokenSource::token(&tokens)
        .await
        .unwrap();
    assert_eq!(secrecy::ExposeSecret::expose_secret(&text), TOKEN);
    assert!(server.seen()[0].contains("metadata-flavor: Google"));
}
