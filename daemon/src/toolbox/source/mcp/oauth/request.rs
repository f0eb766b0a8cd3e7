//! What is asked of authorization servers. Must never follow a redirect with a secret, nor read an answer without end.

use super::{Grant, Proof, seconds};
use crate::toolbox::web;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use serde_json::Value;
use std::time::Duration;

/// The longest answer.
const LONGEST: usize = 1024 * 1024;
const LIMIT: Duration = Duration::from_secs(30);

/// A client for one place. Keys go to no host without encryption, but to this machine.
pub(super) async fn client(url: &Url) -> Result<Client, String> {
    if url.scheme() != "https" && !(url.scheme() == "http" && web::is_loopback(url)) {
        return Err(format!("{url} is not reached by https"));
    }
    let builder = web::builder(url)
        .redirect(reqwest::redirect::Policy::none())
        .timeout(LIMIT)
        .pool_max_idle_per_host(0);
    web::build(builder).await
}

pub(super) fn parse(url: &str) -> Result<Url, String> {
    Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))
}

pub(super) async fn send(request: RequestBuilder) -> Result<Response, String> {
    let request = request.header(ACCEPT, "application/json");
    request.send().await.map_err(|error| web::cause(&error))
}

/// The status and what it says, as JSON; null where it is none.
pub(super) async fn read(mut response: Response) -> Result<(StatusCode, Value), String> {
    let mut body = Vec::new();
    let cannot = |error: reqwest::Error| web::cause(&error);
    while let Some(piece) = response.chunk().await.map_err(cannot)? {
        body.extend(&piece);
        if body.len() > LONGEST {
            return Err("the answer is too long".to_owned());
        }
    }
    let value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok((response.status(), value))
}

/// Null where there is nothing at that place.
pub(super) async fn get(url: &Url) -> Result<Value, String> {
    let response = send(client(url).await?.get(url.clone())).await;
    let (status, value) = read(response.map_err(|why| format!("{url}: {why}"))?).await?;
    Ok(match status.is_success() {
        true => value,
        false => Value::Null,
    })
}

/// A form, with the client's proof of who it is.
pub(super) async fn form(
    endpoint: &str,
    fields: &[(&str, &str)],
    grant: (&str, Option<&str>, Proof),
) -> Result<Value, String> {
    let url = parse(endpoint)?;
    let (id, secret, proof) = grant;
    let mut form: Vec<(&str, &str)> = fields.to_vec();
    let mut request = client(&url).await?.post(url.clone());
    match (proof, secret) {
        (Proof::Basic, Some(secret)) => {
            let pair = format!("{}:{}", encoded(id), encoded(secret));
            request = request.header(
                AUTHORIZATION,
                format!("Basic {}", base64(pair.as_bytes(), STANDARD)),
            );
        }
        (Proof::Post, Some(secret)) => form.extend([("client_id", id), ("client_secret", secret)]),
        (Proof::None | Proof::Basic | Proof::Post, _) => form.push(("client_id", id)),
    }
    let body = query(&form);
    let request = request
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .body(body);
    let response = send(request).await.map_err(|why| format!("{url}: {why}"))?;
    answer(&url, response).await
}

/// An error as authorization servers say it.
pub(super) async fn answer(url: &Url, response: Response) -> Result<Value, String> {
    let (status, value) = read(response).await?;
    if status.is_success() {
        return Ok(value);
    }
    let said = value["error_description"]
        .as_str()
        .or(value["error"].as_str());
    Err(format!(
        "{url} answered {status}{}",
        said.map(|said| format!(": {said}")).unwrap_or_default()
    ))
}

pub(super) async fn refresh(grant: &Grant) -> Result<Grant, String> {
    let token = grant.refresh_token.as_deref();
    let token = token.ok_or("there is no refresh token: log in again")?;
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", token),
        ("resource", &grant.resource),
    ];
    let who = (
        &*grant.client_id,
        grant.client_secret.as_deref(),
        grant.proof,
    );
    let answer = form(&grant.token_endpoint, &fields, who).await?;
    let mut fresh = grant.clone();
    fresh.took(&answer)?;
    Ok(fresh)
}

impl Grant {
    /// Takes what a token endpoint gave.
    pub(super) fn took(&mut self, answer: &Value) -> Result<(), String> {
        let access = answer["access_token"].as_str();
        let access = access.ok_or("the authorization server gave no token")?;
        if access.is_empty() || !access.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the authorization server gave a token that no header can hold".to_owned());
        }
        access.clone_into(&mut self.access_token);
        if let Some(refresh) = answer["refresh_token"].as_str() {
            self.refresh_token = Some(refresh.to_owned());
        }
        self.expires_at = answer["expires_in"].as_u64().map(|life| seconds() + life);
        if let Some(scope) = answer["scope"].as_str() {
            scope.clone_into(&mut self.scope);
        }
        Ok(())
    }
}

pub(super) fn query(fields: &[(&str, &str)]) -> String {
    let pairs = fields
        .iter()
        .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}

pub(super) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(byte).collect()
}

const STANDARD: (&[u8; 2], bool) = (b"+/", true);
const PLAIN: (&[u8; 2], bool) = (b"-_", false);

/// For URLs, without padding.
pub(super) fn base64_url(bytes: &[u8]) -> String {
    base64(bytes, PLAIN)
}

fn base64(bytes: &[u8], (last, padded): (&[u8; 2], bool)) -> String {
    let digit = |value: u32| match value & 63 {
        value @ 0..26 => b'A' + value as u8,
        value @ 26..52 => b'a' + (value - 26) as u8,
        value @ 52..62 => b'0' + (value - 52) as u8,
        value => last[(value - 62) as usize],
    };
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let whole = group.iter().chain(&[0, 0]).take(3);
        let bits = whole.fold(0, |bits: u32, byte| bits << 8 | u32::from(*byte));
        for at in 0..4 {
            match at <= group.len() {
                true => out.push(char::from(digit(bits >> (18 - 6 * at)))),
                false if padded => out.push('='),
                false => {}
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, base64, base64_url, query};

    #[test]
    fn texts_are_encoded_as_the_standards_say() {
        for (text, expected) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(base64(text.as_bytes(), STANDARD), expected);
            assert_eq!(base64_url(text.as_bytes()), expected.trim_end_matches('='));
        }
        assert_eq!(
            (base64(&[251, 255], STANDARD), base64_url(&[251, 255])),
            ("+/8=".to_owned(), "-_8".to_owned())
        );
        assert_eq!(
            query(&[("a b", "c&d=\u{e4}"), ("x", "~")]),
            "a%20b=c%26d%3D%C3%A4&x=~"
        );
    }
}
