//! A server behind a URL: streamable HTTP. Must never follow a redirect to another host, which would get the headers.

use super::authorized::Authorized;
use super::oauth::Bearer;
use crate::toolbox::web;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use std::collections::{BTreeMap, HashMap};
use std::error::Error;

/// The largest answer and the largest event.
const LARGEST: usize = 32 * 1024 * 1024;
/// The most of an error's page.
const ERROR: usize = 8 * 1024;
const REDIRECTS: usize = 5;

pub(super) async fn transport(
    url: &str,
    headers: &BTreeMap<String, String>,
    bearer: Bearer,
) -> Result<StreamableHttpClientTransport<Authorized>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
    let client = client(&parsed).await?;
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(named(headers)?)
        .max_sse_event_size(LARGEST)
        .max_json_response_size(LARGEST)
        .max_error_response_size(ERROR);
    let client = Authorized { client, bearer };
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

async fn client(url: &Url) -> Result<Client, String> {
    let host = origin(url);
    let policy = Policy::custom(move |attempt| {
        let far = origin(attempt.url()) != host;
        match attempt.previous().len() > REDIRECTS {
            _ if far => attempt.error("it redirects to another host"),
            true => attempt.error("it redirects too often"),
            false => attempt.follow(),
        }
    });
    web::build(web::builder(url).redirect(policy)).await
}

fn origin(url: &Url) -> (String, Option<String>, Option<u16>) {
    let host = url.host_str().map(str::to_owned);
    (url.scheme().to_owned(), host, url.port_or_known_default())
}

fn named(headers: &BTreeMap<String, String>) -> Result<HashMap<HeaderName, HeaderValue>, String> {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let bad = || format!("the header {name:?} cannot be sent");
        let parsed = HeaderName::try_from(name).map_err(|_| bad())?;
        let mut value = HeaderValue::try_from(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        all.insert(parsed, value);
    }
    let each = all.into_iter();
    Ok(each
        .filter_map(|(name, value)| Some((name?, value)))
        .collect())
}

/// The innermost cause: what is around it says that something failed, and this says what.
pub(super) fn cause(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(inner)) => web::cause(inner),
        Some(_) | None => web::cause(error),
    }
}
