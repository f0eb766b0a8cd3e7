//! Ollama's own interface: a line of JSON for each piece, thinking apart from text, calls that may lack an id.

mod answer;
mod request;

use super::http::Http;
use super::settings::Thinking;
use super::sse::Framing;
use super::stream::{Answer, Peer};
use super::vendor::{Call, Dialect, Post};
use protocol::provider::ModelInfo;
use serde::Deserialize;
use std::time::Duration;

/// Where a server is that nobody moved.
pub(super) const BASE: &str = "http://127.0.0.1:11434";
/// Says where the server is, as Ollama's own tools read it.
pub(super) const HOST: &str = "OLLAMA_HOST";
const PORT: u16 = 11434;

pub(super) struct Ollama {
    pub(super) thinking: Option<Thinking>,
}

impl Dialect for Ollama {
    fn post(&self, call: &Call<'_>) -> Result<Post, String> {
        Ok(Post {
            path: vec!["api".to_owned(), "chat".to_owned()],
            body: request::body(call, self.thinking)?,
        })
    }

    fn answer<'a>(&'a self, peer: &'a Peer) -> Box<dyn Answer + 'a> {
        Box::new(answer::Reply::new(peer))
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn models_path(&self) -> &'static [&'static str] {
        &["api", "tags"]
    }

    fn read_models(&self, body: &[u8]) -> Option<Vec<ModelInfo>> {
        let tags: Tags = serde_json::from_slice(body).ok()?;
        let models = tags.models.into_iter().map(|tag| ModelInfo {
            name: tag.name,
            window: None,
            size: tag.size,
        });
        Some(models.collect())
    }
}

/// How long a look for a server may take: it is on this machine, and somebody waits.
const LOOK: Duration = Duration::from_millis(250);

/// Whether a server runs on this machine that has a model.
pub(super) async fn runs(http: &Http) -> bool {
    let look = async {
        let address = BASE.trim_start_matches("http://");
        tokio::net::TcpStream::connect(address).await.ok()?;
        let url = format!("{BASE}/api/tags").parse().ok()?;
        let answer = http.client(&url).ok()?.get(url).send().await.ok()?;
        let tags: Tags = serde_json::from_slice(&answer.bytes().await.ok()?).ok()?;
        (!tags.models.is_empty()).then_some(())
    };
    matches!(tokio::time::timeout(LOOK, look).await, Ok(Some(())))
}

#[derive(Deserialize)]
struct Tags {
    #[serde(default)]
    models: Vec<Tag>,
}

#[derive(Deserialize)]
struct Tag {
    name: String,
    #[serde(default)]
    size: Option<u64>,
}

/// A host as Ollama's tools take it, as a URL: the scheme and the port may be left out, and where a server listens
/// everywhere it is on this machine.
pub(super) fn url(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let after_brackets = authority.rsplit(']').next().unwrap_or(authority);
    let has_port = after_brackets.contains(':');
    let (name, port) = match authority.rsplit_once(':').filter(|_| has_port) {
        Some((name, port)) => (name, Some(port.to_owned())),
        None => (authority, (!host.contains("://")).then(|| PORT.to_string())),
    };
    let name = match name {
        "" | "0.0.0.0" | "[::]" => "127.0.0.1",
        name => name,
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{name}{port}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_is_read_as_ollamas_own_tools_read_it() {
        for (host, expected) in [
            ("0.0.0.0", BASE),
            (":11434", BASE),
            ("0.0.0.0:8080", "http://127.0.0.1:8080"),
            ("box", "http://box:11434"),
            ("[::1]:99", "http://[::1]:99"),
            ("[::1]", "http://[::1]:11434"),
            ("https://ollama.com", "https://ollama.com"),
            ("http://box:80/proxy/", "http://box:80/proxy"),
        ] {
            assert_eq!(url(host), expected, "{host}");
        }
    }
}
