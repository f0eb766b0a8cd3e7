//! A login: a URL for a person's browser, and the answer that comes to a port of this machine. Must never believe an
//! answer that is not of this login, nor wait for one without end.

use super::discover::{Place, discover};
use super::request::{answer, base64_url, client, form, parse, query, send};
use super::{Grant, Proof, Tokens};
use crate::toolbox::source::mcp::config::Client;
use crate::toolbox::web;
use reqwest::Url;
use reqwest::header::CONTENT_TYPE;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long somebody may take.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long one request of a browser may take.
const REQUEST: Duration = Duration::from_secs(10);
/// The longest head of one.
const HEAD: usize = 16 * 1024;
/// How many connections are looked at.
const VISITS: usize = 200;

/// A login that was begun.
pub struct Login {
    /// For the browser.
    pub url: String,
    server: String,
    place: Place,
    who: Who,
    listener: TcpListener,
    redirect: String,
    state: String,
    verifier: String,
}

/// The client as the authorization server knows it.
struct Who {
    id: String,
    secret: Option<String>,
    proof: Proof,
}

impl Login {
    /// Finds out where to log in, and who we are there.
    pub async fn begin(server: &str, own: &Client) -> Result<Self, String> {
        let place = discover(server).await?;
        let bound = TcpListener::bind(("127.0.0.1", 0)).await;
        let listener = bound.map_err(|error| format!("no port for the answer: {error}"))?;
        let port = listener
            .local_addr()
            .map_err(|error| error.to_string())?
            .port();
        let redirect = format!("http://127.0.0.1:{port}/callback");
        let scope = match own.scopes.is_empty() {
            true => place.scope.clone(),
            false => Some(own.scopes.join(" ")),
        };
        let who = who(&place, own, &redirect, scope.as_deref()).await?;
        let (state, verifier) = (random()?, random()?);
        let challenge = base64_url(&Sha256::digest(&verifier));
        let mut fields = vec![
            ("response_type", "code"),
            ("client_id", &who.id),
            ("redirect_uri", &redirect),
            ("state", &state),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
            ("resource", &place.resource),
        ];
        if let Some(scope) = &scope {
            fields.push(("scope", scope));
        }
        let mut url = parse(&place.authorize)?;
        // A person is told to open it: nothing but a page, and none that others can read along.
        if url.scheme() != "https" && !(url.scheme() == "http" && web::is_loopback(&url)) {
            return Err(format!(
                "the place to log in, {url}, is not reached by https"
            ));
        }
        let all = [url.query().unwrap_or_default(), &query(&fields)].join("&");
        url.set_query(Some(all.trim_start_matches('&')));
        Ok(Self {
            url: url.into(),
            server: server.to_owned(),
            place,
            who,
            listener,
            redirect,
            state,
            verifier,
        })
    }

    /// Waits for the browser, and keeps the token.
    pub async fn finish(self, tokens: &Tokens) -> Result<(), String> {
        let came = timeout(PATIENCE, self.code()).await;
        let (code, browser) = came.map_err(|_| "nobody logged in in time".to_owned())??;
        let kept = match code {
            Ok(code) => self.exchange(&code, tokens).await,
            Err(why) => Err(why),
        };
        // The person looks there: not before it is known what came of it.
        match &kept {
            Ok(()) => {
                page(
                    browser,
                    "200 OK",
                    "You are logged in, and may close this page.",
                )
                .await
            }
            Err(_) => {
                page(
                    browser,
                    "400 Bad Request",
                    "The login failed; dwell says why.",
                )
                .await
            }
        }
        kept
    }

    async fn exchange(self, code: &str, tokens: &Tokens) -> Result<(), String> {
        let fields = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", &self.redirect),
            ("code_verifier", &self.verifier),
            ("resource", &self.place.resource),
        ];
        let who = (&*self.who.id, self.who.secret.as_deref(), self.who.proof);
        let answer = form(&self.place.token, &fields, who).await?;
        let mut grant = Grant {
            url: self.server,
            issuer: self.place.issuer,
            token_endpoint: self.place.token,
            client_id: self.who.id,
            client_secret: self.who.secret,
            proof: self.who.proof,
            resource: self.place.resource,
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scope: String::new(),
        };
        grant.took(&answer)?;
        tokens.save(&grant).await
    }

    /// Browsers ask for other things too, and others than browsers may come.
    async fn code(&self) -> Result<(Result<String, String>, TcpStream), String> {
        for _ in 0..VISITS {
            let (mut stream, _) = self
                .listener
                .accept()
                .await
                .map_err(|error| error.to_string())?;
            let Ok(Some(target)) = timeout(REQUEST, target(&mut stream)).await else {
                continue;
            };
            match self.answer(&target) {
                Some(answer) => return Ok((answer, stream)),
                None => page(stream, "404 Not Found", "There is nothing here.").await,
            }
        }
        Err("too many others came to the port of the login".to_owned())
    }

    /// None for what is no answer to this login.
    fn answer(&self, target: &str) -> Option<Result<String, String>> {
        let url = Url::parse(&self.redirect).ok()?.join(target).ok()?;
        let get = |name: &str| {
            let mut pairs = url.query_pairs();
            pairs
                .find(|(key, _)| key == name)
                .map(|(_, value)| value.into_owned())
        };
        if url.path() != "/callback" || get("state")? != self.state {
            return None;
        }
        let issuer = get("iss");
        let wrong = match &issuer {
            Some(issuer) => issuer.trim_end_matches('/') != self.place.issuer.trim_end_matches('/'),
            None => self.place.names_itself,
        };
        if wrong {
            let said = issuer.unwrap_or_else(|| "nobody".to_owned());
            return Some(Err(format!(
                "the answer is of {said}, not of {}",
                self.place.issuer
            )));
        }
        if let Some(error) = get("error") {
            let about = get("error_description").unwrap_or_default();
            return Some(Err(format!(
                "the authorization server said {error} {about}"
            )
            .trim_end()
            .to_owned()));
        }
        Some(get("code").ok_or_else(|| "the answer has no code".to_owned()))
    }
}

/// The one that somebody registered by hand, or a new one.
async fn who(
    place: &Place,
    own: &Client,
    redirect: &str,
    scope: Option<&str>,
) -> Result<Who, String> {
    if let Some(id) = &own.client_id {
        return Ok(Who {
            id: id.clone(),
            secret: own.client_secret.clone(),
            proof: proof(place, None, own.client_secret.is_some()),
        });
    }
    let Some(endpoint) = &place.register else {
        return Err(format!(
            "the authorization server {} takes no new clients: name one by \"oauth\": {{\"clientId\": ...}} in the server's entry",
            place.issuer
        ));
    };
    let url = parse(endpoint)?;
    let wanted = ["none", "client_secret_basic", "client_secret_post"];
    let method = wanted
        .iter()
        .find(|one| place.proofs.iter().any(|known| known == *one));
    let mut asked = json!({
        "client_name": "dwell",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "application_type": "native",
        "token_endpoint_auth_method": method.unwrap_or(&"none"),
    });
    if let Some(scope) = scope {
        asked["scope"] = json!(scope);
    }
    let request = client(&url).await?.post(url.clone());
    let request = request
        .header(CONTENT_TYPE, "application/json")
        .body(asked.to_string());
    let response = send(request).await.map_err(|why| format!("{url}: {why}"))?;
    let made = answer(&url, response).await?;
    let text = |name: &str| made[name].as_str().map(str::to_owned);
    let secret = text("client_secret");
    Ok(Who {
        id: text("client_id").ok_or_else(|| format!("{url} gave no client_id"))?,
        proof: proof(
            place,
            text("token_endpoint_auth_method").as_deref(),
            secret.is_some(),
        ),
        secret,
    })
}

fn proof(place: &Place, agreed: Option<&str>, has_secret: bool) -> Proof {
    let knows = |name: &str| place.proofs.iter().any(|known| known == name);
    match agreed {
        _ if !has_secret => Proof::None,
        Some("client_secret_post") => Proof::Post,
        Some("client_secret_basic") => Proof::Basic,
        Some("none") => Proof::None,
        Some(_) | None if knows("client_secret_post") && !knows("client_secret_basic") => {
            Proof::Post
        }
        Some(_) | None => Proof::Basic,
    }
}

async fn page(mut stream: TcpStream, status: &str, text: &str) {
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // Whoever does not read it does not see it.
    let _ = timeout(REQUEST, stream.write_all(page.as_bytes())).await;
    let _ = stream.shutdown().await;
}

/// What a request is for.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut piece).await {
            Ok(count @ 1..) if head.len() < HEAD => head.extend(&piece[..count]),
            Ok(_) | Err(_) => return None,
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.to_owned())
}

fn random() -> Result<String, String> {
    let mut bytes = [0; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(base64_url(&bytes))
}
