//! The daemon itself: the handshake, its health, its end, and a view over all sessions.

use crate::id::SessionId;
use crate::session::{Empty, Session};
#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientInfo {
    /// `dwell`, `zed`, ...
    pub name: String,
    /// Its release.
    #[serde(default)]
    pub version: String,
}

/// `initialize`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InitializeResult {
    /// The protocol that the daemon speaks.
    pub protocol: u32,
    /// The daemon.
    pub daemon: DaemonInfo,
    /// What this build can do beyond the methods of its protocol.
    pub capabilities: Value,
}

/// Whether a variable names a server: `initialize`'s capability `servers` holds those of the daemon, each with the
/// [`authority`] of its value.
#[must_use]
pub fn is_server(variable: &str) -> bool {
    variable.ends_with("_BASE_URL")
}

/// `host:port` of an address, without what it may say of a user and a password.
#[must_use]
pub fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let whole = &rest[..end];
    whole.rsplit_once('@').map_or(whole, |(_, host)| host)
}

/// The daemon's process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonInfo {
    /// `dwelld`.
    pub name: String,
    /// Its release.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// In milliseconds since the Unix epoch.
    pub started_at: u64,
}

/// `daemon/status`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DaemonStatus {
    /// The daemon.
    pub daemon: DaemonInfo,
    /// The protocol it speaks.
    pub protocol: u32,
    /// The live socket.
    pub socket: String,
    /// The store.
    pub store: String,
    /// Sessions in memory.
    pub loaded: u32,
    /// Of those, with a turn that runs or waits.
    pub running: u32,
    /// Sessions in the store.
    pub sessions: u64,
    /// Connections.
    pub clients: u32,
    /// Resident memory in bytes.
    pub memory: u64,
    /// The file that it was started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
    /// Whether another file lies there now, or none.
    #[serde(default)]
    pub replaced: bool,
    /// What the service manager calls it that started it, such as `dwelld.service`; none: a client started it, or a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// `daemon/reload`'s result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reloaded {
    /// What has changed and counts from the daemon's next start on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
}

/// A change that `daemon/watch` tells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    /// A session appeared or changed; all of it as it is now.
    Session {
        /// The session.
        session: Box<Session>,
    },
    /// A session was deleted.
    Deleted {
        /// Which.
        session: SessionId,
    },
    /// Something of a newer release.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// An unsequenced notification, `session/trouble`: the store failed, so it cannot be an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trouble {
    /// The session it concerns.
    pub session: SessionId,
    /// What failed and what to do.
    pub message: String,
}

/// An unsequenced notification to all who are attached, `session/clients`: somebody came or went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Clients {
    /// The session.
    pub session: SessionId,
    /// How many are attached now.
    pub clients: u32,
}

resource! {
    /// The daemon.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "daemon", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "daemon", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "daemon", namespace_separator = "/")
    )]
    pub trait DaemonRpc {
        /// Its health.
        #[method(name = "status", param_kind = map)]
        async fn status(&self) -> Result<DaemonStatus, ErrorObjectOwned>;

        /// Starts the plugins of every directory where somebody works anew, and reads the hooks of `config.toml`; its other
        /// settings are read at start alone.
        #[method(name = "reload", param_kind = map)]
        async fn reload(&self) -> Result<Reloaded, ErrorObjectOwned>;

        /// Stops: no new turns, a grace period for running ones, then cancel. Answers before it stops.
        #[method(name = "shutdown", param_kind = map)]
        async fn shutdown(&self, grace_ms: Option<u64>) -> Result<Empty, ErrorObjectOwned>;

        /// Sessions as they appear, change and go.
        #[subscription(name = "watch" => "change", unsubscribe = "unwatch", item = Change, param_kind = map)]
        async fn watch(&self) -> jsonrpsee::core::SubscriptionResult;
    }
}

resource! {
    /// The handshake. It stands outside any resource, so its name has no slash; a client calls it by that name.
    #[cfg(feature = "server")]
    #[rpc(server)]
    pub trait HandshakeRpc {
        /// Offered, not forced. A version mismatch is -32013 and names both versions.
        #[method(name = "initialize", param_kind = map, with_extensions)]
        async fn initialize(
            &self,
            protocol: Option<u32>,
            client: Option<ClientInfo>,
        ) -> Result<InitializeResult, ErrorObjectOwned>;
    }
}

#[cfg(test)]
mod tests {
    use super::authority;

    #[test]
    fn authority_is_host_and_port_alone() {
        let table = [
            ("https://api.example.org/v1", "api.example.org"),
            ("http://me:pass@host:80?x=/", "host:80"),
            ("[::1]:1/", "[::1]:1"),
            ("", ""),
        ];
        for (url, expected) in table {
            assert_eq!(authority(url), expected);
        }
    }
}
