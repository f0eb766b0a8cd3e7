//! The HTTP client of a server with the token that somebody logged in for. Must never send it along another way than as
//! the header of a request to that server.

use super::oauth::Bearer;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use protocol::surrogate;
use reqwest::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    StreamableHttpResponseLimits,
};
use sse_stream::{Error as SseError, Sse};
use std::borrow::Cow;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

type Headers = HashMap<HeaderName, HeaderValue>;
type Refused = StreamableHttpError<reqwest::Error>;

#[derive(Clone)]
pub(super) struct Authorized {
    pub(super) client: Client,
    pub(super) bearer: Bearer,
}

impl Authorized {
    /// Sends it, and once more with another token where this one is refused.
    async fn with_token<T, F>(&self, send: impl Fn(Option<String>) -> F) -> Result<T, Refused>
    where
        F: Future<Output = Result<T, Refused>>,
    {
        let token = self.bearer.token().await;
        let sent = send(token.clone()).await;
        match (sent, token) {
            (Err(StreamableHttpError::AuthRequired(refused)), Some(token)) => {
                match self.bearer.another(&token).await {
                    Some(token) => send(Some(token)).await,
                    None => Err(StreamableHttpError::AuthRequired(refused)),
                }
            }
            (sent, _) => sent,
        }
    }
}

impl StreamableHttpClient for Authorized {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Refused> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, None, headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, Refused> {
        let asked = match &message {
            ClientJsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let known = session.is_some();
        self.with_token(|token| {
            let (uri, session) = (Arc::clone(&uri), session.clone());
            let (message, headers) = (message.clone(), headers.clone());
            self.client
                .post_message_with_response_limits(uri, message, session, token, headers, limits)
        })
        .await
        .and_then(|answer| match answer {
            StreamableHttpPostResponse::Sse(events, session) => {
                Ok(StreamableHttpPostResponse::Sse(mended(events), session))
            }
            StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), session) => {
                let error = addressed(error, asked, known)?;
                let message = ServerJsonRpcMessage::Error(error);
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            other => Ok(other),
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Refused> {
        let token = self.bearer.token().await;
        self.client
            .delete_session(uri, session, token, headers)
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<Events, Refused> {
        let limit = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last, None, headers, limit)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
        limit: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Refused> {
        self.with_token(|token| {
            let (uri, session) = (Arc::clone(&uri), session.clone());
            let (last, headers) = (last.clone(), headers.clone());
            self.client
                .get_stream_with_max_sse_event_size(uri, session, last, token, headers, limit)
        })
        .await
        .map(mended)
    }
}

/// What answers a request is for it, whatever number it bears: some refuse without one, and nobody would hear of it. A server
/// that was started anew says so of a session that it does not know; it is begun anew then.
fn addressed(
    mut error: JsonRpcError,
    asked: Option<RequestId>,
    has_session: bool,
) -> Result<JsonRpcError, Refused> {
    if asked.is_none() || error.id == asked {
        return Ok(error);
    }
    if has_session && error.error.message.to_ascii_lowercase().contains("session") {
        return Err(StreamableHttpError::SessionExpired);
    }
    error.id = asked;
    Ok(error)
}

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The events without halves of characters, for which a message would be lost.
fn mended(events: Events) -> Events {
    let mend = |event: Result<Sse, SseError>| {
        event.map(|mut event| {
            event.data = event
                .data
                .map(|data| match surrogate::mend(data.as_bytes()) {
                    Cow::Owned(mended) => String::from_utf8(mended).unwrap_or(data),
                    Cow::Borrowed(_) => data,
                });
            event
        })
    };
    events.map(mend).boxed()
}
