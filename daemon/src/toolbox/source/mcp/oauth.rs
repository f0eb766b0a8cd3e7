//! OAuth for servers behind URLs: tokens that somebody logged in for, kept for their owner alone and made fresh when they
//! are old. Must never send a token to another URL than the one that it was given for.

mod discover;
mod login;
mod request;

pub use login::Login;

use super::shown::plain;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A token that ends within so many seconds is old.
const MARGIN: u64 = 60;

/// What somebody agreed to, for one URL.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Grant {
    url: String,
    issuer: String,
    token_endpoint: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
    /// How the secret is shown.
    #[serde(default)]
    proof: Proof,
    resource: String,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// Seconds since 1970; none where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<u64>,
    #[serde(default)]
    scope: String,
}

/// How a client shows that it is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Proof {
    #[default]
    None,
    Basic,
    Post,
}

/// It holds keys.
impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("url", &self.url)
            .finish_non_exhaustive()
    }
}

/// The grants of this user; a cheap handle.
#[derive(Clone, Default)]
pub struct Tokens {
    folder: Arc<PathBuf>,
}

impl Tokens {
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder: Arc::new(folder),
        }
    }

    fn path(&self, url: &str) -> PathBuf {
        let digest = Sha256::digest(url);
        let name: String = digest
            .iter()
            .take(12)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.folder.join(format!("{name}.json"))
    }

    async fn load(&self, url: &str) -> Option<Grant> {
        let path = self.path(url);
        let read = tokio::task::spawn_blocking(move || fs::read(path))
            .await
            .ok()?;
        let grant: Grant = serde_json::from_slice(&read.ok()?).ok()?;
        (grant.url == url).then_some(grant)
    }

    async fn save(&self, grant: &Grant) -> Result<(), String> {
        let (folder, path) = (Arc::clone(&self.folder), self.path(&grant.url));
        let text = serde_json::to_vec(grant).map_err(|error| error.to_string())?;
        let saving = tokio::task::spawn_blocking(move || write(&folder, &path, &text));
        let saved = saving.await.map_err(|error| error.to_string())?;
        saved.map_err(|error| format!("the token cannot be kept: {error}"))
    }

    /// Whether there was one.
    pub async fn forget(&self, url: &str) -> bool {
        let path = self.path(url);
        let gone = tokio::task::spawn_blocking(move || fs::remove_file(path)).await;
        gone.is_ok_and(|gone| gone.is_ok())
    }
}

/// For its owner alone, from its first byte on.
fn write(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// The token of one server, for as long as it is connected.
#[derive(Clone)]
pub(super) struct Bearer {
    url: Arc<str>,
    tokens: Tokens,
    /// Held while a token is made fresh, so that it is so once.
    now: Arc<tokio::sync::Mutex<Option<Grant>>>,
}

impl Bearer {
    pub(super) async fn of(url: &str, tokens: Tokens) -> Self {
        let grant = tokens.load(url).await;
        Self {
            url: url.into(),
            tokens,
            now: Arc::new(tokio::sync::Mutex::new(grant)),
        }
    }

    /// The token to send, if somebody logged in.
    pub(super) async fn token(&self) -> Option<String> {
        let mut now = self.now.lock().await;
        let old = now.as_ref().is_some_and(Grant::is_old);
        if old {
            self.refresh(&mut now).await;
        }
        now.as_ref().map(|grant| grant.access_token.clone())
    }

    /// After the server has refused this token: another one, if there is.
    pub(super) async fn another(&self, refused: &str) -> Option<String> {
        let mut now = self.now.lock().await;
        if now
            .as_ref()
            .is_some_and(|grant| grant.access_token == refused)
        {
            self.refresh(&mut now).await;
        }
        let token = now.as_ref().map(|grant| grant.access_token.clone());
        token.filter(|token| token != refused)
    }

    async fn refresh(&self, now: &mut Option<Grant>) {
        // Another daemon of this user, or a login, may have been faster.
        if let Some(kept) = self.tokens.load(&self.url).await
            && now
                .as_ref()
                .is_none_or(|grant| grant.access_token != kept.access_token)
        {
            *now = Some(kept);
            return;
        }
        let Some(grant) = now.as_ref() else {
            return;
        };
        match request::refresh(grant).await {
            Ok(fresh) => {
                if let Err(why) = self.tokens.save(&fresh).await {
                    tracing::warn!(url = plain(&self.url), "{why}");
                }
                *now = Some(fresh);
            }
            Err(why) => {
                tracing::warn!(url = plain(&self.url), "the token is not made fresh: {why}")
            }
        }
    }
}

impl Grant {
    fn is_old(&self) -> bool {
        self.refresh_token.is_some() && self.expires_at.is_some_and(|at| at < seconds() + MARGIN)
    }
}

fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::{Grant, Proof, Tokens};
    use std::os::unix::fs::PermissionsExt;

    #[tokio::test]
    async fn tokens_are_their_owners_alone_and_count_for_their_url_alone() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(root.path().join("mcp"));
        let grant = Grant {
            url: "https://a/mcp".to_owned(),
            issuer: "https://a".to_owned(),
            token_endpoint: "https://a/token".to_owned(),
            client_id: "c".to_owned(),
            client_secret: None,
            proof: Proof::None,
            resource: "https://a/mcp".to_owned(),
            access_token: "s3cret".to_owned(),
            refresh_token: None,
            expires_at: None,
            scope: String::new(),
        };
        tokens.save(&grant).await.unwrap();
        assert_eq!(
            tokens.load("https://a/mcp").await.unwrap().access_token,
            "s3cret"
        );
        assert!(tokens.load("https://b/mcp").await.is_none());
        let mode = |path: std::path::PathBuf| {
            std::fs::metadata(path).unwrap().permissions().mode() & 0o777
        };
        assert_eq!(
            (
                mode(tokens.path("https://a/mcp")),
                mode(root.path().join("mcp"))
            ),
            (0o600, 0o700)
        );
        assert!(!format!("{grant:?}").contains("s3cret"));
        assert!(tokens.forget("https://a/mcp").await && !tokens.forget("https://a/mcp").await);
        assert!(tokens.load("https://a/mcp").await.is_none());
    }
}
