//! Tokens of Google's, fetched when the last one is about to end. Must never show one.

use super::super::http::{Http, authority, root_cause};
use super::super::vendor::{TokenSource, fatal};
use super::super::{BoxFuture, ErrorClass, ProviderError};
use super::credentials::Credentials;
use crate::process::{self, Exit, Spawn};
use reqwest::{RequestBuilder, Url};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long before its end a token is not used any more.
const MARGIN: Duration = Duration::from_secs(120);
/// How long a token may take to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a machine may take to say that it has a metadata server.
const LOOK: Duration = Duration::from_secs(2);
/// What `gcloud` does not say: how long its token is good. An hour at least, by its own word.
const OF_GCLOUD: Duration = Duration::from_secs(1_800);
const METADATA: &str = "metadata.google.internal";
const METADATA_PATH: &str = "computeMetadata/v1/instance/service-accounts/default/token";

pub(super) struct Tokens {
    credentials: Credentials,
    http: Http,
    /// Held while one is fetched, so that it is fetched once.
    last: Mutex<Option<Token>>,
}

struct Token {
    text: SecretString,
    until: Instant,
}

#[derive(Deserialize)]
struct Answer {
    access_token: SecretString,
    #[serde(default)]
    expires_in: u64,
}

impl Tokens {
    pub(super) fn new(credentials: Credentials, http: Http) -> Self {
        Self {
            credentials,
            http,
            last: Mutex::default(),
        }
    }

    async fn fetch(&self) -> Result<Token, ProviderError> {
        match &self.credentials {
            Credentials::Service {
                signer, token_url, ..
            } => {
                let assertion = signer.sign(token_url, SystemTime::now()).map_err(fatal)?;
                let assertion = Zeroizing::new(assertion);
                let kind = "urn:ietf:params:oauth:grant-type:jwt-bearer";
                self.grant(
                    token_url,
                    &[("grant_type", kind), ("assertion", &assertion)],
                )
                .await
            }
            Credentials::Person {
                client_id,
                client_secret,
                refresh_token,
                token_url,
                ..
            } => {
                let form = [
                    ("grant_type", "refresh_token"),
                    ("client_id", client_id),
                    ("client_secret", client_secret.expose_secret()),
                    ("refresh_token", refresh_token.expose_secret()),
                ];
                self.grant(token_url, &form).await
            }
            Credentials::Machine { metadata, env } => {
                match self.of_machine(metadata.as_deref()).await {
                    Some(token) => Ok(token),
                    None => of_gcloud(env).await,
                }
            }
        }
    }

    async fn grant(&self, url: &str, form: &[(&str, &str)]) -> Result<Token, ProviderError> {
        let url = Url::parse(url).map_err(|_| fatal("token_uri is no URL".to_owned()))?;
        let name = authority(&url);
        let mut body = Zeroizing::new(String::new());
        for (field, value) in form {
            let joint = if body.is_empty() { "" } else { "&" };
            *body += &format!("{joint}{field}={}", escaped(value));
        }
        let client = self.http.client(&url).map_err(fatal)?;
        let request = client
            .post(url)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(body.as_bytes().to_vec());
        let (status, answer) = send(&name, request).await?;
        if (200..300).contains(&status) {
            return read(&answer).ok_or_else(|| fatal(format!("{name} sent no token")));
        }
        let why = super::super::failure::explain(&answer).unwrap_or_default();
        Err(ProviderError {
            class: ErrorClass::Status {
                code: status,
                retry_after_ms: None,
            },
            message: format!(
                "{name} gave no token (status {status}): {why}: check the credentials"
            ),
        })
    }

    /// None where there is no metadata server.
    async fn of_machine(&self, host: Option<&str>) -> Option<Token> {
        let url = format!("http://{}/{METADATA_PATH}", host.unwrap_or(METADATA));
        let url: Url = url.parse().ok()?;
        let client = self.http.client(&url).ok()?;
        let request = client.get(url).header("metadata-flavor", "Google");
        let (status, answer) = timeout(LOOK, send(METADATA, request)).await.ok()?.ok()?;
        read(&answer).filter(|_| status == 200)
    }
}

impl TokenSource for Tokens {
    fn token(&self) -> BoxFuture<'_, Result<SecretString, ProviderError>> {
        Box::pin(async move {
            let mut last = self.last.lock().await;
            let good = last.as_ref().filter(|token| token.until > Instant::now());
            if let Some(token) = good {
                return Ok(token.text.clone());
            }
            let token = self.fetch().await?;
            let text = token.text.clone();
            *last = Some(token);
            Ok(text)
        })
    }
}

async fn send(
    name: &str,
    request: RequestBuilder,
) -> Result<(u16, Zeroizing<Vec<u8>>), ProviderError> {
    let dropped = |why: String| ProviderError {
        class: ErrorClass::Dropped,
        message: format!("{name} gave no token: {why}"),
    };
    let answer = async {
        let response = request.send().await?;
        let status = response.status().as_u16();
        Ok::<_, reqwest::Error>((status, response.bytes().await?.to_vec()))
    };
    match timeout(PATIENCE, answer).await {
        Ok(Ok((status, body))) => Ok((status, Zeroizing::new(body))),
        Ok(Err(error)) => Err(dropped(root_cause(&error))),
        Err(_) => Err(dropped("no answer in time".to_owned())),
    }
}

fn read(body: &[u8]) -> Option<Token> {
    let answer: Answer = serde_json::from_slice(body).ok()?;
    let good = Duration::from_secs(answer.expires_in).saturating_sub(MARGIN);
    Some(Token {
        text: answer.access_token,
        until: Instant::now() + good,
    })
}

async fn of_gcloud(env: &BTreeMap<String, String>) -> Result<Token, ProviderError> {
    let none = |why: &str| {
        fatal(format!(
            "vertex has no credentials: no GOOGLE_APPLICATION_CREDENTIALS, no metadata server, and gcloud {why}"
        ))
    };
    let spawn = Spawn {
        program: "gcloud".into(),
        args: ["auth", "print-access-token"].map(Into::into).into(),
        cwd: "/".into(),
        env: env.clone(),
        stdin: None,
        timeout: None,
    };
    let opened = process::open(&spawn);
    let (running, pipes) = opened.map_err(|_| none("cannot be started"))?;
    drop(pipes.stdin);
    let mut said = Zeroizing::new(Vec::new());
    let cancel = CancellationToken::new();
    let reading = async {
        let mut stdout = pipes.stdout.take(64 * 1024);
        // What cannot be read is no token, which is told below.
        let _ = stdout.read_to_end(&mut said).await;
    };
    let quiet = async {
        let mut stderr = pipes.stderr;
        // Nobody reads it, and a full pipe would stop it.
        let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    };
    let all = async { tokio::join!(running.ended(&cancel), reading, quiet).0 };
    match timeout(PATIENCE, all).await {
        Ok(Exit::Code(0)) => {
            let text = std::str::from_utf8(&said).unwrap_or_default().trim();
            if text.is_empty() {
                return Err(none("printed no token"));
            }
            Ok(Token {
                text: text.into(),
                until: Instant::now() + OF_GCLOUD,
            })
        }
        Ok(Exit::NotStarted(_)) => Err(none("is not installed")),
        Ok(_) => Err(none("has none either: run gcloud auth login")),
        Err(_) => Err(none("took too long")),
    }
}

/// For a form.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}
