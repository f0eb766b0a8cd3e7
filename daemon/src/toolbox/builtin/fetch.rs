//! `fetch`: a page of the web as text. Goes to the host that was named and to no other.

mod kind;

use super::arguments::{self, Arguments};
use super::capture::Capture;
use super::readable;
use crate::toolbox::tool::{Access, Call, Outcome, Tool};
use crate::toolbox::web;
use kind::{Kind, decode, sniff};
use reqwest::header::{ACCEPT, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::{Map, Value, json};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);
const LARGEST: usize = 5 * 1024 * 1024;
const REDIRECTS: usize = 10;
const WANTED: &str =
    "text/markdown, text/html;q=0.9, text/plain;q=0.9, application/json;q=0.8, */*;q=0.5";

pub(super) fn tool() -> Tool {
    Tool::new(
        "fetch",
        "Fetch a URL (http or https) with GET. HTML comes as Markdown, other text as it is. A redirect to another host \
         is reported, not followed.",
    )
    .param("url", json!({"type": "string", "description": "The URL, with its scheme"}))
    .required("url")
    .access(Access::Network)
    .words(&["url"])
    .handler(fetch)
}

async fn fetch(call: Call, arguments: Arguments) -> Outcome {
    let written = arguments::text(&arguments, "url").trim().to_owned();
    let fetched = async {
        let url = parse(&written)?;
        let (url, response) = follow(url).await?;
        let page = Page::read(url, response).await?;
        Ok(page.result(&call).await)
    };
    let outcome: Result<_, String> = tokio::select! {
        biased;
        () = call.cancel.cancelled() => Err("cancelled".to_owned()),
        outcome = tokio::time::timeout(TIMEOUT, fetched) => {
            outcome.unwrap_or_else(|_| Err(format!("cannot fetch {written}: no whole answer within {} s", TIMEOUT.as_secs())))
        }
    };
    Ok(outcome.unwrap_or_else(arguments::failure))
}

fn parse(written: &str) -> Result<Url, String> {
    let url = Url::parse(written).map_err(|error| match written.contains("://") {
        true => format!("cannot fetch {written}: {error}"),
        false => format!("cannot fetch {written}: a URL begins with https:// or http://"),
    })?;
    check_scheme(&url)?;
    Ok(url)
}

fn check_scheme(url: &Url) -> Result<(), String> {
    match url.scheme() {
        "http" | "https" => Ok(()),
        other => Err(format!(
            "cannot fetch {url}: only http and https are fetched, not {other}"
        )),
    }
}

/// A whole document of at most so many bytes, with redirects within its host; none where there is none. Each URL on the
/// way has to be allowed.
pub async fn document(
    client: &Client,
    url: &Url,
    limit: usize,
    allowed: fn(&Url) -> Result<(), String>,
) -> Result<Option<Vec<u8>>, String> {
    let mut url = url.clone();
    for _ in 0..=REDIRECTS {
        allowed(&url)?;
        let request = client.get(url.clone()).send();
        let response = request.await.map_err(|error| cannot(&url, &error))?;
        let Some(target) = redirect(&url, &response)? else {
            return whole(&url, response, limit).await;
        };
        if !is_same_host(&url, &target) {
            return Err(format!("{url} redirects to another host, {target}"));
        }
        url = target;
    }
    Err(format!(
        "cannot fetch {url}: more than {REDIRECTS} redirects"
    ))
}

async fn whole(url: &Url, mut response: Response, limit: usize) -> Result<Option<Vec<u8>>, String> {
    let status = response.status();
    if matches!(status.as_u16(), 404 | 410) {
        return Ok(None);
    }
    if !status.is_success() {
        return Err(format!("cannot fetch {url}: HTTP {}", status.as_u16()));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response
        .chunk()
        .await
        .map_err(|error| cannot(url, &error))?
    {
        if body.len() + chunk.len() > limit {
            return Err(format!("{url} is longer than {limit} bytes"));
        }
        body.extend(&chunk);
    }
    Ok(Some(body))
}

/// The answer after redirects within the host.
async fn follow(mut url: Url) -> Result<(Url, Response), String> {
    for _ in 0..=REDIRECTS {
        let response = get(&url).await?;
        let Some(target) = redirect(&url, &response)? else {
            return Ok((url, response));
        };
        if !is_same_host(&url, &target) {
            return Err(format!(
                "{url} redirects to another host: fetch {target} if that is wanted"
            ));
        }
        url = target;
    }
    Err(format!(
        "cannot fetch {url}: more than {REDIRECTS} redirects"
    ))
}

async fn get(url: &Url) -> Result<Response, String> {
    let request = client(url).await?.get(url.clone()).header(ACCEPT, WANTED);
    request.send().await.map_err(|error| cannot(url, &error))
}

/// Made for each request: it is seldom needed, and would hold certificates in memory for ever.
pub async fn client(url: &Url) -> Result<Client, String> {
    let builder = web::builder(url)
        .redirect(reqwest::redirect::Policy::none())
        .pool_max_idle_per_host(0);
    let built = web::build(builder).await;
    built.map_err(|why| format!("cannot fetch {url}: {why}"))
}

fn redirect(url: &Url, response: &Response) -> Result<Option<Url>, String> {
    let location = response.headers().get(LOCATION);
    let Some(location) = location.filter(|_| response.status().is_redirection()) else {
        return Ok(None);
    };
    let target = location
        .to_str()
        .ok()
        .and_then(|target| url.join(target).ok());
    let target = target.ok_or_else(|| format!("cannot fetch {url}: it redirects to no URL"))?;
    check_scheme(&target)?;
    Ok(Some(target))
}

/// What was approved is a host; http to https and back to its default port is the same one.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let is_default = |url: &Url| url.port().is_none();
    let bare = |url: &Url| {
        let host = url.host_str().unwrap_or_default();
        host.strip_prefix("www.").unwrap_or(host).to_owned()
    };
    bare(from) == bare(to) && (from.port() == to.port() || (is_default(from) && is_default(to)))
}

fn cannot(url: &Url, error: &dyn std::error::Error) -> String {
    format!("cannot fetch {url}: {}", web::cause(error))
}

/// What came.
struct Page {
    url: Url,
    status: reqwest::StatusCode,
    kind: Kind,
    body: Vec<u8>,
    is_cut: bool,
}

impl Page {
    async fn read(url: Url, mut response: Response) -> Result<Self, String> {
        let mut body = Vec::new();
        let mut is_cut = false;
        while !is_cut
            && let Some(chunk) = response
                .chunk()
                .await
                .map_err(|error| cannot(&url, &error))?
        {
            let room = LARGEST - body.len();
            body.extend(&chunk[..chunk.len().min(room)]);
            is_cut = chunk.len() > room;
        }
        let mut kind = Kind::of(response.headers());
        if kind.name.is_empty() || kind.name == "application/octet-stream" {
            kind.name = sniff(&body).to_owned();
        }
        Ok(Self {
            url,
            status: response.status(),
            kind,
            body,
            is_cut,
        })
    }

    async fn result(self, call: &Call) -> Map<String, Value> {
        let mut result = Map::new();
        if !self.status.is_success() {
            let reason = self.status.canonical_reason().unwrap_or_default();
            let error = format!("HTTP {} {reason}", self.status.as_u16());
            result.insert("error".to_owned(), json!(error.trim_end()));
        }
        result.insert("url".to_owned(), json!(self.url.as_str()));
        result.insert("status".to_owned(), json!(self.status.as_u16()));
        result.insert("content_type".to_owned(), json!(self.kind.name));
        if !self.body.is_empty() && !self.kind.is_text() && !self.kind.is_html() {
            let size = self.body.len();
            let error = format!("it is {}, not text ({size} bytes)", self.kind.name);
            result.entry("error").or_insert(json!(error));
            return result;
        }
        let mut notes = Vec::new();
        if self.is_cut {
            notes.push(format!("only the first {} MiB were fetched", LARGEST >> 20));
        }
        let mut text = decode(&self.body, &self.kind);
        if self.kind.is_html() {
            match readable::markdown(text.clone(), &call.cancel).await {
                Ok(markdown) => text = markdown,
                Err(why) => notes.push(format!(
                    "shown as HTML, since it could not be made Markdown: {why}"
                )),
            }
        }
        result.insert(
            "content".to_owned(),
            json!(Capture::silent(call).whole(&text).await),
        );
        if !notes.is_empty() {
            result.insert("note".to_owned(), json!(notes.join("; ")));
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers each path with the whole answer given for it.
    async fn server(answers: Vec<(&'static str, Vec<u8>)>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let count = stream.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or("/").to_owned();
                let answer = answers.iter().find(|(known, _)| *known == path);
                let missing =
                    b"HTTP/1.1 404 Not Found\r\ncontent-type: text/plain\r\n\r\nno such page"
                        .to_vec();
                let _ = stream
                    .write_all(answer.map_or(&missing, |(_, answer)| answer))
                    .await;
            }
        });
        format!("http://{address}")
    }

    fn answer(kind: &str, body: &[u8]) -> Vec<u8> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body].concat()
    }

    fn moved(target: &str) -> Vec<u8> {
        format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n")
            .into_bytes()
    }

    async fn check(url: &str) -> Map<String, Value> {
        Bench::new().run(tool, json!({"url": url})).await
    }

    #[tokio::test]
    async fn html_comes_as_markdown_and_text_as_it_is() {
        let latin = b"<html><body><h1>caf\xe9</h1></body></html>".to_vec();
        let url = server(vec![
            ("/page", answer("text/html; charset=ISO-8859-1", &latin)),
            ("/data", answer("application/vnd.x+json", b"{\"a\": 1}")),
            ("/none", answer("", b"plain")),
        ])
        .await;
        let page = check(&format!("{url}/page")).await;
        assert_eq!(
            (&page["content"], &page["ok"]),
            (&json!("# café"), &json!(true))
        );
        assert_eq!(check(&format!("{url}/data")).await["content"], "{\"a\": 1}");
        assert_eq!(check(&format!("{url}/none")).await["content"], "plain");
    }

    #[tokio::test]
    async fn an_error_status_is_a_failure_with_its_page() {
        let result = check(&server(vec![]).await).await;
        assert_eq!(
            (&result["error"], &result["content"]),
            (&json!("HTTP 404 Not Found"), &json!("no such page"))
        );
    }

    #[tokio::test]
    async fn redirects_stay_on_the_host_and_end() {
        let elsewhere = moved("http://example.invalid/x");
        let url = server(vec![
            ("/a", moved("/b")),
            ("/b", answer("text/plain", b"here")),
            ("/out", elsewhere),
            ("/loop", moved("/loop")),
            ("/file", moved("file:///etc/passwd")),
        ])
        .await;
        let result = check(&format!("{url}/a")).await;
        assert_eq!(
            (&result["content"], &result["url"]),
            (&json!("here"), &json!(format!("{url}/b")))
        );
        let errors = [
            (
                "out",
                format!(
                    "{url}/out redirects to another host: fetch http://example.invalid/x if that is wanted"
                ),
            ),
            (
                "loop",
                format!("cannot fetch {url}/loop: more than 10 redirects"),
            ),
            (
                "file",
                "cannot fetch file:///etc/passwd: only http and https are fetched, not file"
                    .to_owned(),
            ),
        ];
        for (path, error) in errors {
            assert_eq!(check(&format!("{url}/{path}")).await["error"], error);
        }
    }

    #[tokio::test]
    async fn what_cannot_be_fetched_is_said() {
        let errors = [
            (
                "ftp://a/b",
                "cannot fetch ftp://a/b: only http and https are fetched, not ftp",
            ),
            (
                "example.org",
                "cannot fetch example.org: a URL begins with https:// or http://",
            ),
            ("http://", "cannot fetch http://: empty host"),
        ];
        for (url, error) in errors {
            assert_eq!(check(url).await["error"], error);
        }
        let closed = TcpListener::bind("127.0.0.1:0")
            .await
            .unwrap()
            .local_addr()
            .unwrap();
        let error = check(&format!("http://{closed}/")).await["error"].clone();
        assert!(error.as_str().unwrap().contains("refused"), "{error}");
    }

    #[tokio::test]
    async fn what_is_no_text_or_too_long_is_not_given_whole() {
        let long = "x".repeat(LARGEST + 10);
        let url = server(vec![
            ("/png", answer("image/png", b"\x89PNG")),
            ("/long", answer("text/plain", long.as_bytes())),
        ])
        .await;
        assert_eq!(
            check(&format!("{url}/png")).await["error"],
            "it is image/png, not text (4 bytes)"
        );
        let result = check(&format!("{url}/long")).await;
        assert_eq!(result["note"], "only the first 5 MiB were fetched");
        assert!(result["content"].as_str().unwrap().len() < 33 * 1024);
    }

    #[tokio::test]
    async fn a_server_that_never_answers_is_left_at_a_cancel() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bench = Bench::new();
        let cancel = tokio_util::sync::CancellationToken::new();
        let call = bench.run_until(tool, json!({"url": url}), cancel.clone());
        let asked = async {
            listener.accept().await.unwrap();
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(call, asked);
        assert_eq!(result["error"], "cancelled");
    }
}
