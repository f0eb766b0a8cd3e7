//! Which credentials of Google's there are: a file that a variable names, the file of `gcloud`, else whatever the machine
//! itself has. Must never show what is in a file.

use super::super::registry::Build;
use super::jwt::Signer;
use secrecy::SecretString;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names the file.
const VARIABLE: &str = "GOOGLE_APPLICATION_CREDENTIALS";
/// Where `gcloud auth application-default login` leaves one, below the home directory.
const USUAL: &str = ".config/gcloud/application_default_credentials.json";
/// Where a token is had for a person's own credentials.
const TOKEN_URL: &str = "https://oauth2.googleapis.com/token";

pub(super) enum Credentials {
    /// A service's own key, which signs a request for a token.
    Service {
        signer: Box<Signer>,
        token_url: String,
        project: Option<String>,
    },
    /// A person's.
    Person {
        client_id: String,
        client_secret: SecretString,
        refresh_token: SecretString,
        token_url: String,
        project: Option<String>,
    },
    /// The machine's: its metadata server, else `gcloud`.
    Machine {
        metadata: Option<String>,
        env: Arc<BTreeMap<String, String>>,
    },
}

impl Credentials {
    pub(super) fn project(&self) -> Option<String> {
        match self {
            Self::Service { project, .. } | Self::Person { project, .. } => project.clone(),
            Self::Machine { .. } => None,
        }
    }
}

#[derive(Deserialize)]
struct File {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default)]
    quota_project_id: Option<String>,
    #[serde(default)]
    client_email: String,
    #[serde(default)]
    private_key: Option<SecretString>,
    #[serde(default)]
    private_key_id: Option<String>,
    #[serde(default)]
    token_uri: Option<String>,
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: Option<SecretString>,
    #[serde(default)]
    refresh_token: Option<SecretString>,
}

pub(super) fn find(build: &Build) -> Result<Credentials, String> {
    if let Some(path) = build.variable(VARIABLE) {
        return read(Path::new(&path)).map_err(|why| format!("{VARIABLE} names {path}: {why}"));
    }
    let usual = build
        .variable("HOME")
        .map(|home| PathBuf::from(home).join(USUAL));
    match usual.filter(|path| path.is_file()) {
        Some(path) => read(&path).map_err(|why| format!("{}: {why}", path.display())),
        None => Ok(Credentials::Machine {
            metadata: build.variable("GCE_METADATA_HOST"),
            env: build.child_env.clone(),
        }),
    }
}

fn read(path: &Path) -> Result<Credentials, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read it: {error}"))?;
    let text = secrecy::zeroize::Zeroizing::new(text);
    // The parser's own message may quote the file.
    let file: File =
        serde_json::from_str(&text).map_err(|_| "it holds no credentials".to_owned())?;
    let token_url = file.token_uri.unwrap_or_else(|| TOKEN_URL.to_owned());
    match (
        file.kind.as_str(),
        file.private_key,
        file.client_secret,
        file.refresh_token,
    ) {
        ("service_account", Some(key), _, _) => Ok(Credentials::Service {
            signer: Box::new(Signer::new(&key, file.private_key_id, file.client_email)?),
            token_url,
            project: file.project_id,
        }),
        ("authorized_user", _, Some(client_secret), Some(refresh_token)) => {
            Ok(Credentials::Person {
                client_id: file.client_id,
                client_secret,
                refresh_token,
                token_url,
                project: file.quota_project_id,
            })
        }
        ("service_account" | "authorized_user", _, _, _) => Err("it lacks its key".to_owned()),
        (kind, _, _, _) => Err(format!(
            "credentials of the type {kind:?} are not known: use those of a service account, or log in with gcloud"
        )),
    }
}
