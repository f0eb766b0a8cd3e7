//! Servers that the daemon's variables name in a vendor's place: whether anybody listens there. Must never send a word.

use super::check::{Check, State};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long a connection may take.
const LIMIT: Duration = Duration::from_secs(3);

/// Where somebody listens whose address names no port.
const USUAL: [u16; 2] = [443, 80];

/// One check for each variable. What goes through a proxy cannot be seen from here.
pub(super) async fn checks(servers: &BTreeMap<String, String>) -> Vec<Check> {
    let proxied = [
        "https_proxy",
        "HTTPS_PROXY",
        "http_proxy",
        "HTTP_PROXY",
        "all_proxy",
        "ALL_PROXY",
    ]
    .iter()
    .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()));
    if proxied {
        return Vec::new();
    }
    let mut checks = Vec::new();
    for (variable, host) in servers.iter().filter(|(_, host)| !host.is_empty()) {
        checks.push(match answers(host).await {
            Ok(()) => Check::good(format!("the daemon's {variable}: {host} listens")),
            Err(why) => Check::new(
                State::Bad,
                format!("the daemon's {variable} names {host}, where nobody answers: {why}"),
            )
            .hint(
                "start what should listen there, or mend the variable and `dwell daemon restart`",
            ),
        });
    }
    checks
}

async fn answers(host: &str) -> Result<(), String> {
    let mut failed = String::from("it names no host");
    for address in addresses(host) {
        match tokio::time::timeout(LIMIT, TcpStream::connect(&address)).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => failed = error.to_string(),
            Err(_) => failed = format!("no connection within {} s", LIMIT.as_secs()),
        }
    }
    Err(failed)
}

fn addresses(host: &str) -> Vec<String> {
    let after = host.rsplit(']').next().unwrap_or(host);
    match after.contains(':') {
        true => vec![host.to_owned()],
        false => USUAL.iter().map(|port| format!("{host}:{port}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_a_port_is_tried_at_the_usual_ones() {
        assert_eq!(addresses("[::1]:8"), ["[::1]:8"]);
        assert_eq!(addresses("box"), ["box:443", "box:80"]);
        assert_eq!(addresses("[::1]"), ["[::1]:443", "[::1]:80"]);
    }
}
