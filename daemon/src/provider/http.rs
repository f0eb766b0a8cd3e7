//! The HTTP clients that providers share: one for loopback, one for everything else, each made when first needed.
//! Must never know a vendor, nor put a header or a URL's query into a message.

use reqwest::{Client, ClientBuilder, Url};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// How long a stream may bring no data before it counts as stalled.
pub(super) const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long an unused connection is kept for the next round trip.
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// A cheap handle. It belongs to the runtime that first sends through it, so it is no global.
#[derive(Clone, Default)]
pub(super) struct Http {
    clients: Arc<Clients>,
}

#[derive(Default)]
struct Clients {
    /// Plain HTTP to this machine: no proxy, and no certificates are loaded, which would cost time and memory.
    local: OnceLock<Client>,
    remote: OnceLock<Client>,
}

impl Http {
    /// The client for a URL.
    pub(super) fn client(&self, url: &Url) -> Result<Client, String> {
        let (cell, build): (_, fn() -> Result<Client, String>) =
            if url.scheme() == "http" && is_loopback(url) {
                (&self.clients.local, local)
            } else {
                (&self.clients.remote, remote)
            };
        if let Some(client) = cell.get() {
            return Ok(client.clone());
        }
        let made = build()?;
        Ok(cell.get_or_init(|| made).clone())
    }
}

fn local() -> Result<Client, String> {
    install_crypto();
    let tls = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let builder = shared().no_proxy().tls_backend_preconfigured(tls);
    builder.build().map_err(|error| cannot_make(&error))
}

fn remote() -> Result<Client, String> {
    install_crypto();
    shared().build().map_err(|error| cannot_make(&error))
}

fn shared() -> ClientBuilder {
    Client::builder()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(KEEP_ALIVE)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("dwell/", env!("CARGO_PKG_VERSION")))
}

/// rustls wants its cryptography chosen once for the process; whoever was first is as good.
fn install_crypto() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

fn cannot_make(error: &reqwest::Error) -> String {
    format!(
        "cannot prepare HTTPS: {}: install the system's CA certificates, or name a file of them with SSL_CERT_FILE",
        root_cause(error)
    )
}

/// The innermost cause: reqwest's own texts repeat the URL and say little else.
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// `host:port`, which is all of a URL that a message may say.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or("?");
    match url.port_or_known_default() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
