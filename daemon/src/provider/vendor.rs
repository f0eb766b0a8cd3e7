//! A provider behind HTTP: its server's address, its key, and the round trip. What is said is its dialect's business.
//! Must never let the key into a message.

use super::failure::{self, Hints};
use super::http::Http;
use super::sse::{Event, Framing, Parser};
use super::stream::{Answer, Emit, End, Flow, Peer};
use super::{BoxFuture, ErrorClass, Provider, ProviderError, ProviderEvent, Request};
use crate::process::mask::Mask;
use protocol::provider::ModelInfo;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, Url};
use secrecy::zeroize::Zeroizing;
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;

/// The largest answer that is not streamed.
const WHOLE: usize = 32 * 1024 * 1024;

/// What a vendor's interface says, in one way: requests out of conversations, events out of answers.
pub(super) trait Dialect: Send + Sync {
    fn post(&self, call: &Call<'_>) -> Result<Post, String>;
    fn answer<'a>(&'a self, peer: &'a Peer) -> Box<dyn Answer + 'a>;
    fn framing(&self) -> Framing {
        Framing::Events
    }
    /// Headers of the interface itself.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
    /// The path of the list of models, below the base URL.
    fn models_path(&self) -> &'static [&'static str] {
        &["models"]
    }
    fn read_models(&self, body: &[u8]) -> Option<Vec<ModelInfo>>;
}

/// One round trip, as a dialect is told of it.
pub(super) struct Call<'a> {
    /// The provider's name: what it signed is marked with that.
    pub(super) provider: &'a str,
    pub(super) model: &'a str,
    /// The window that people set.
    pub(super) window: Option<u64>,
    pub(super) request: &'a Request<'a>,
}

/// What is posted, and where below the base URL.
pub(super) struct Post {
    pub(super) path: Vec<String>,
    pub(super) body: Vec<u8>,
}

/// How a request shows whose it is.
pub(super) enum Auth {
    None,
    /// `Authorization: Bearer KEY`.
    Bearer(SecretString),
    /// A header of the vendor's own.
    Header(&'static str, SecretString),
    /// A token that is fetched and changes.
    Token(Arc<dyn TokenSource>),
}

/// Where tokens come from.
pub(super) trait TokenSource: Send + Sync {
    fn token(&self) -> BoxFuture<'_, Result<SecretString, ProviderError>>;
}

pub(super) struct Vendor {
    pub(super) name: String,
    pub(super) http: Http,
    pub(super) base: Url,
    pub(super) peer: Peer,
    pub(super) auth: Auth,
    pub(super) hints: Hints,
    pub(super) model: String,
    /// The model's window, where it is known.
    pub(super) window: Option<u64>,
    /// The window that people set.
    pub(super) set_window: Option<u64>,
    pub(super) dialect: Box<dyn Dialect>,
}

impl Vendor {
    async fn round_trip(
        &self,
        request: &Request<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), ProviderError> {
        let call = Call {
            provider: &self.name,
            model: &self.model,
            window: self.set_window,
            request,
        };
        let post = self.dialect.post(&call).map_err(fatal)?;
        let path: Vec<&str> = post.path.iter().map(String::as_str).collect();
        let request = self.request(Method::POST, &path).await?;
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .body(post.body);
        let response = self.open(request).await?;
        let mut answer = self.dialect.answer(&self.peer);
        match self.content(&response) {
            Content::Stream => self.stream(response, &mut *answer, emit).await?,
            Content::Whole => self.whole(response, &mut *answer, emit).await?,
            Content::Page => return Err(failure::page(&self.peer, &self.hints)),
        }
        answer.end(emit)
    }

    async fn request(
        &self,
        method: Method,
        path: &[&str],
    ) -> Result<RequestBuilder, ProviderError> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty();
            for name in path {
                match *name {
                    ".." => segments.pop(),
                    name => segments.push(name),
                };
            }
        }
        let client = self.http.client(&url).map_err(fatal)?;
        let mut request = client.request(method, url);
        for (name, value) in self.dialect.headers() {
            request = request.header(*name, *value);
        }
        Ok(match &self.auth {
            Auth::None => request,
            Auth::Bearer(key) => request.header(AUTHORIZATION, self.secret("Bearer ", key)?),
            Auth::Header(name, key) => {
                request.header(HeaderName::from_static(name), self.secret("", key)?)
            }
            Auth::Token(source) => {
                let token = source.token().await?;
                request.header(AUTHORIZATION, self.secret("Bearer ", &token)?)
            }
        })
    }

    /// A header's value that is shown nowhere.
    fn secret(&self, before: &str, key: &SecretString) -> Result<HeaderValue, ProviderError> {
        let text = Zeroizing::new(format!("{before}{}", key.expose_secret()));
        let value = HeaderValue::try_from(text.as_str());
        let key = &self.hints.key;
        let mut value =
            value.map_err(|_| fatal(format!("{key} holds characters that no header may hold")))?;
        value.set_sensitive(true);
        Ok(value)
    }

    /// Sends, and turns a status that is no success into its error.
    async fn open(&self, request: RequestBuilder) -> Result<Response, ProviderError> {
        let response = self.peer.send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let refused = self.peer.refused(response, failure::explain).await;
        Err(failure::with_hint(refused, &self.hints))
    }

    async fn stream(
        &self,
        response: Response,
        answer: &mut (dyn Answer + '_),
        emit: &mut Emit<'_>,
    ) -> Result<(), ProviderError> {
        let framing = self.dialect.framing();
        let mut each = |event: Event<'_>| answer.event(&event, emit);
        match self.peer.read(response, framing, &mut each).await? {
            End::Mark => Ok(()),
            End::NoMark if answer.flow() == Flow::Tail => Ok(()),
            End::NoMark => Err(self.peer.ended_early()),
        }
    }

    /// An answer that is not streamed, or a stream that calls itself JSON.
    async fn whole(
        &self,
        response: Response,
        answer: &mut (dyn Answer + '_),
        emit: &mut Emit<'_>,
    ) -> Result<(), ProviderError> {
        let body = self.peer.body(response, WHOLE).await?;
        if body.trim_ascii_start().starts_with(b"{") {
            return answer.object(&body, emit);
        }
        let mut parser = Parser::default();
        let mut each = |event: Event<'_>| answer.event(&event, emit).map(drop);
        parser.feed(&body, &mut each)?;
        parser.finish(&mut each)?;
        match answer.flow() {
            Flow::Open => Err(self.peer.nonsense(&body)),
            Flow::Tail | Flow::Ended => Ok(()),
        }
    }

    fn content(&self, response: &Response) -> Content {
        let value = response.headers().get(CONTENT_TYPE);
        let value = value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if value.contains("text/html") {
            Content::Page
        } else if value.contains("application/json") && self.dialect.framing() == Framing::Events {
            Content::Whole
        } else {
            Content::Stream
        }
    }

    async fn list(&self) -> Result<Vec<ModelInfo>, ProviderError> {
        let request = self
            .request(Method::GET, self.dialect.models_path())
            .await?;
        let response = self.open(request).await?;
        let body = self.peer.body(response, WHOLE).await?;
        let models = self.dialect.read_models(&body);
        models.ok_or_else(|| self.peer.nonsense(&body))
    }

    /// Servers like to say which key was wrong.
    fn without_key(&self, mut error: ProviderError) -> ProviderError {
        if let Auth::Bearer(key) | Auth::Header(_, key) = &self.auth {
            error.message = Mask::of([key.expose_secret().to_owned()]).hide(&error.message);
        }
        error
    }
}

impl Provider for Vendor {
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
            let ended = self.round_trip(&request, emit).await;
            ended.map_err(|error| self.without_key(error))
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, ProviderError>> {
        Box::pin(async move { self.list().await.map_err(|error| self.without_key(error)) })
    }
}

enum Content {
    Stream,
    /// A server that does not stream.
    Whole,
    Page,
}

/// The value itself stays out of the message: it may hold a password.
pub(super) fn base_url(name: &str, text: &str) -> Result<Url, String> {
    let url = Url::parse(text.trim()).map_err(|error| format!("{name} is no URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!(
            "{name} must begin with http:// or https://, not {other}:"
        )),
    }
}

pub(super) fn fatal(message: String) -> ProviderError {
    let class = ErrorClass::Fatal;
    ProviderError { class, message }
}
