//! Who says who may use a server: from the server's refusal, or from what stands at the places that the standards name.
//! Must never take one server's word for another's.

use super::request::{client, get, parse, read, send};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use serde_json::{Value, json};

/// What is needed for a login.
pub(super) struct Place {
    pub(super) issuer: String,
    pub(super) authorize: String,
    pub(super) token: String,
    pub(super) register: Option<String>,
    pub(super) resource: String,
    pub(super) scope: Option<String>,
    /// How clients show who they are.
    pub(super) proofs: Vec<String>,
    /// Whether the answer has to say who gives it.
    pub(super) names_itself: bool,
}

pub(super) async fn discover(url: &str) -> Result<Place, String> {
    let server = parse(url)?;
    let refusal = challenge(&server).await?;
    let (resource, issuer, supported) =
        match protected(&server, refusal.metadata.as_deref()).await? {
            Some(found) => found,
            // Before there was such a document, the server's own host was asked.
            None => (server.to_string(), origin(&server), None),
        };
    let issuer_url = parse(&issuer)?;
    let metadata = metadata(&issuer_url).await?;
    // A tenant's document may name the server of all tenants, but never another host.
    let issuer = match metadata["issuer"].as_str() {
        None => issuer,
        Some(named) if parse(named).is_ok_and(|url| origin(&url) == origin(&issuer_url)) => {
            named.to_owned()
        }
        Some(named) => {
            return Err(format!(
                "the authorization server {issuer} calls itself {named}"
            ));
        }
    };
    if !metadata.is_null() {
        let methods = metadata["code_challenge_methods_supported"].as_array();
        if !methods.is_some_and(|methods| methods.contains(&json!("S256"))) {
            return Err(format!(
                "the authorization server {issuer} does not say that it has PKCE with S256"
            ));
        }
    }
    let place = |name: &str, path: &str| match metadata[name].as_str() {
        Some(endpoint) => Some(endpoint.to_owned()),
        None => metadata
            .is_null()
            .then(|| format!("{}{path}", origin(&issuer_url))),
    };
    let missing = |what: &str| format!("the authorization server {issuer} names no {what}");
    Ok(Place {
        authorize: place("authorization_endpoint", "/authorize")
            .ok_or_else(|| missing("authorization endpoint"))?,
        token: place("token_endpoint", "/token").ok_or_else(|| missing("token endpoint"))?,
        register: place("registration_endpoint", "/register"),
        resource,
        scope: refusal.scope.or(supported),
        proofs: words(&metadata["token_endpoint_auth_methods_supported"]),
        names_itself: metadata["authorization_response_iss_parameter_supported"] == true,
        issuer,
    })
}

fn words(value: &Value) -> Vec<String> {
    let all = value.as_array().into_iter().flatten();
    all.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// What a refusal says.
#[derive(Default)]
struct Refusal {
    metadata: Option<String>,
    scope: Option<String>,
}

async fn challenge(server: &Url) -> Result<Refusal, String> {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let request = client(server).await?.post(server.clone());
    let request = request.header(CONTENT_TYPE, "application/json").body(ping);
    let response = send(request)
        .await
        .map_err(|why| format!("{server}: {why}"))?;
    let header = response.headers().get(WWW_AUTHENTICATE);
    let header = header
        .and_then(|header| header.to_str().ok())
        .unwrap_or_default();
    let refusal = Refusal {
        metadata: parameter(header, "resource_metadata"),
        scope: parameter(header, "scope"),
    };
    let _ = read(response).await;
    Ok(refusal)
}

/// The resource, its first authorization server, and the scopes there are.
async fn protected(
    server: &Url,
    named: Option<&str>,
) -> Result<Option<(String, String, Option<String>)>, String> {
    let mut places: Vec<Url> = named.map(parse).transpose()?.into_iter().collect();
    if places.is_empty() {
        let path = server.path().trim_end_matches('/');
        for path in [path, ""] {
            places.extend(
                server
                    .join(&format!("/.well-known/oauth-protected-resource{path}"))
                    .ok(),
            );
        }
    }
    for place in places {
        let found = get(&place).await?;
        let Some(issuer) = found["authorization_servers"][0].as_str() else {
            continue;
        };
        let resource = found["resource"].as_str().unwrap_or_default();
        if !covers(resource, server) {
            return Err(format!("{place} speaks of {resource:?}, not of {server}"));
        }
        let scopes = words(&found["scopes_supported"]);
        let scopes = (!scopes.is_empty()).then(|| scopes.join(" "));
        return Ok(Some((resource.to_owned(), issuer.to_owned(), scopes)));
    }
    Ok(None)
}

/// Whether a resource is the server, or what the server lies in.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else {
        return false;
    };
    let own = server.path().trim_end_matches('/');
    let theirs = resource.path().trim_end_matches('/');
    let within = own.strip_prefix(theirs);
    origin(&resource) == origin(server)
        && within.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Null where there is none.
async fn metadata(issuer: &Url) -> Result<Value, String> {
    let path = issuer.path().trim_end_matches('/');
    let names = ["oauth-authorization-server", "openid-configuration"];
    let mut places: Vec<String> = names
        .map(|name| format!("/.well-known/{name}{path}"))
        .into();
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    for place in places {
        if let Ok(url) = issuer.join(&place) {
            let found = get(&url).await?;
            if found.is_object() {
                return Ok(found);
            }
        }
    }
    Ok(Value::Null)
}

fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// A parameter of a `WWW-Authenticate` header.
fn parameter(header: &str, name: &str) -> Option<String> {
    let begins = |at: &usize| {
        let before = header[..*at].chars().next_back();
        before.is_none_or(|c| c == ' ' || c == ',')
    };
    let sign = format!("{name}=");
    let at = header.match_indices(&sign).map(|(at, _)| at).find(begins)?;
    let rest = &header[at + sign.len()..];
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next()?,
        None => rest.split([',', ' ']).next()?,
    };
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{covers, parameter};
    use reqwest::Url;

    #[test]
    fn parameters_are_found_quoted_or_not() {
        let header =
            r#"Bearer error="x", resource_metadata="https://a/b?c=d", scope=one, notscope="z""#;
        assert_eq!(
            parameter(header, "resource_metadata").as_deref(),
            Some("https://a/b?c=d")
        );
        assert_eq!(parameter(header, "scope").as_deref(), Some("one"));
        assert_eq!(parameter("Bearer notscope=\"z\"", "scope"), None);
        assert_eq!(parameter("", "scope"), None);
    }

    #[test]
    fn resource_is_the_server_or_holds_it() {
        let server = Url::parse("https://a/x/mcp").unwrap();
        for fits in [
            "https://a",
            "https://a/x",
            "https://a/x/mcp",
            "https://a/x/mcp/",
        ] {
            assert!(covers(fits, &server), "{fits}");
        }
        for other in [
            "https://b/x/mcp",
            "http://a/x/mcp",
            "https://a/x/m",
            "https://a:1",
            "",
            "x",
        ] {
            assert!(!covers(other, &server), "{other}");
        }
    }
}
