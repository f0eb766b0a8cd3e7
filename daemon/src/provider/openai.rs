//! Chat completions as OpenAI defined them and many servers speak them.
//! Must never let the key into a message.

mod answer;
mod chunk;
mod failure;
mod request;

use super::http::Http;
use super::registry::{Build, Builtin, Make, ProviderConfig, lookup};
use super::stream::{End, Flow, Peer};
use super::{BoxFuture, ErrorClass, Provider, ProviderError, ProviderEvent, Request};
use answer::Answer;
use protocol::provider::ModelInfo;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use serde::Deserialize;
use std::sync::Arc;

const BASE_URL: &str = "https://api.openai.com/v1";
const MODEL: &str = "gpt-5";
/// Context windows by the begin of a model's name, the longer names first.
const WINDOWS: &[(&str, u64)] = &[
    ("gpt-5-chat", 128_000),
    ("gpt-5", 400_000),
    ("gpt-4.1", 1_047_576),
    ("gpt-4o", 128_000),
    ("gpt-4-turbo", 128_000),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4", 200_000),
];
/// The largest answer that is not streamed.
const WHOLE: usize = 32 * 1024 * 1024;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "openai",
    make: Make::Here(|build: Build| Ok(Arc::new(Openai::new(&build)?))),
    default_model: |config| {
        let set = lookup(&config.env, "OPENAI_MODEL");
        let set = set.or_else(|| config.settings.openai.model.clone());
        Some(set.unwrap_or_else(|| MODEL.to_owned()))
    },
};

/// The table `[provider.openai]` of `config.toml`; the environment's values win.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Everything before `/chat/completions`.
    pub base_url: Option<String>,
    pub model: Option<String>,
    /// The model's context window in tokens, for models that are not known here.
    pub window: Option<u64>,
}

/// Whether there is anything to talk to: a key, or a server that may do without.
pub(super) fn is_set_up(config: &ProviderConfig) -> bool {
    ["OPENAI_API_KEY", "OPENAI_BASE_URL"]
        .iter()
        .any(|name| lookup(&config.env, name).is_some())
        || config.settings.openai.base_url.is_some()
}

struct Openai {
    http: Http,
    base: Url,
    peer: Peer,
    /// `Bearer KEY`, marked as a secret.
    authorization: Option<HeaderValue>,
    key: Option<String>,
    model: String,
    window: Option<u64>,
}

impl Openai {
    fn new(build: &Build) -> Result<Self, String> {
        let settings = &build.settings.openai;
        let key = build
            .variable("OPENAI_API_KEY")
            .map(|key| key.trim().to_owned());
        let key = key.filter(|key| !key.is_empty());
        let base = build
            .variable("OPENAI_BASE_URL")
            .or_else(|| settings.base_url.clone());
        if key.is_none() && base.is_none() {
            return Err(
                "openai has no key: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs none"
                    .to_owned(),
            );
        }
        let base = base_url(base.as_deref().unwrap_or(BASE_URL))?;
        let model = build.model.clone();
        let model = model.or_else(|| build.variable("OPENAI_MODEL"));
        let model = model.or_else(|| settings.model.clone());
        let model = model.unwrap_or_else(|| MODEL.to_owned());
        Ok(Self {
            http: build.http.clone(),
            peer: Peer::new(&base, build.idle_timeout()),
            base,
            authorization: key.as_deref().map(bearer).transpose()?,
            key,
            window: settings.window.or_else(|| window(&model)),
            model,
        })
    }

    fn request(&self, method: Method, path: &[&str]) -> Result<RequestBuilder, ProviderError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let client = self.http.client(&url).map_err(fatal)?;
        let request = client.request(method, url);
        Ok(match &self.authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        })
    }

    /// Sends, and turns a status that is no success into its error.
    async fn open(&self, request: RequestBuilder) -> Result<Response, ProviderError> {
        let response = self.peer.send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let refused = self.peer.refused(response, failure::explain).await;
        Err(failure::with_hint(refused))
    }

    async fn round_trip(
        &self,
        request: Request<'_>,
        emit: &mut (dyn FnMut(ProviderEvent) + Send),
    ) -> Result<(), ProviderError> {
        let body = request::body(&self.model, &request).map_err(fatal)?;
        let post = self.request(Method::POST, &["chat", "completions"])?;
        let post = post.header(CONTENT_TYPE, "application/json").body(body);
        let response = self.open(post).await?;
        let mut answer = Answer::new(&self.peer);
        match content_type(&response) {
            Content::Stream => self.stream(response, &mut answer, emit).await?,
            Content::Whole => {
                let body = self.peer.body(response, WHOLE).await?;
                answer.whole(&body, emit)?;
            }
            Content::Page => return Err(failure::page(&self.peer)),
        }
        answer.end(emit)
    }

    async fn stream(
        &self,
        response: Response,
        answer: &mut Answer<'_>,
        emit: &mut (dyn FnMut(ProviderEvent) + Send),
    ) -> Result<(), ProviderError> {
        let mut each = |event: super::sse::Event<'_>| answer.event(&event, emit);
        match self.peer.read(response, &mut each).await? {
            End::Mark => Ok(()),
            End::NoMark if answer.flow() == Flow::Tail => Ok(()),
            End::NoMark => Err(self.peer.ended_early()),
        }
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let response = self.open(self.request(Method::GET, &["models"])?).await?;
        let body = self.peer.body(response, WHOLE).await?;
        let list: Models = serde_json::from_slice(&body).map_err(|_| self.peer.nonsense(&body))?;
        Ok(list.data.into_iter().map(ModelInfo::from).collect())
    }

    /// Servers like to say which key was wrong.
    fn without_key(&self, mut error: ProviderError) -> ProviderError {
        if let Some(key) = &self.key {
            error.message = error.message.replace(key.as_str(), "***");
        }
        error
    }
}

impl Provider for Openai {
    fn model(&self) -> Option<&str> {
        Some(&self.model)
    }

    fn window(&self) -> Option<u64> {
        self.window
    }

    fn fetch<'a>(
        &'a self,
        request: Request<'a>,
        emit: &'a mut (dyn FnMut(ProviderEvent) + Send),
    ) -> BoxFuture<'a, Result<(), ProviderError>> {
        Box::pin(async move {
            let ended = self.round_trip(request, emit).await;
            ended.map_err(|error| self.without_key(error))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async move { self.list().await.map_err(|error| self.without_key(error)) })
    }
}

#[derive(Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Deserialize)]
struct Model {
    id: String,
    /// Where compatible servers tell it, under either name.
    #[serde(default, alias = "max_model_len")]
    context_length: Option<u64>,
}

impl From<Model> for ModelInfo {
    fn from(model: Model) -> Self {
        Self {
            window: model.context_length.or_else(|| window(&model.id)),
            name: model.id,
            size: None,
        }
    }
}

enum Content {
    Stream,
    /// A server that does not stream.
    Whole,
    Page,
}

fn content_type(response: &Response) -> Content {
    let value = response.headers().get(CONTENT_TYPE);
    let value = value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if value.contains("text/html") {
        Content::Page
    } else if value.contains("application/json") {
        Content::Whole
    } else {
        Content::Stream
    }
}

/// The value itself stays out of the message: it may hold a password.
fn base_url(text: &str) -> Result<Url, String> {
    let url =
        Url::parse(text.trim()).map_err(|error| format!("OPENAI_BASE_URL is no URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!(
            "OPENAI_BASE_URL must begin with http:// or https://, not {other}:"
        )),
    }
}

fn bearer(key: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(format!("Bearer {key}"));
    let mut value =
        value.map_err(|_| "OPENAI_API_KEY holds characters that no header may hold".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

fn window(model: &str) -> Option<u64> {
    let known = WINDOWS.iter().find(|(begin, _)| model.starts_with(begin));
    known.map(|(_, tokens)| *tokens)
}

fn fatal(message: String) -> ProviderError {
    let class = ErrorClass::Fatal;
    ProviderError { class, message }
}

#[cfg(test)]
mod tests;
