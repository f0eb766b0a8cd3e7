//! HTTP clients for tools: one provider of TLS, none of it touched before there is something to fetch.
//! Must never send anything itself.

use reqwest::{Client, ClientBuilder, Url};
use std::error::Error;
use std::sync::Once;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// For what begins at this URL.
pub(in crate::toolbox) fn builder(url: &Url) -> ClientBuilder {
    static CRYPTO: Once = Once::new();
    // Whoever chose first is as good.
    CRYPTO.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("dwell/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // No certificate is needed, nor may it matter that the machine has none.
        let tls = rustls::ClientConfig::builder()
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(tls);
    }
    builder
}

/// Certificates are read on a thread that may wait for the disk.
pub(in crate::toolbox) async fn build(builder: ClientBuilder) -> Result<Client, String> {
    match tokio::task::spawn_blocking(move || builder.build()).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(cause(&error)),
        Err(error) => Err(error.to_string()),
    }
}

/// Whether a URL leads to this machine.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The innermost cause: the texts around it repeat the URL and say little else.
pub(in crate::toolbox) fn cause(error: &dyn Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
