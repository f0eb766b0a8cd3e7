//! `initialize` and `daemon/*`: who answers, how it is, its end, and a view over all sessions.
//! Must never end anything itself: a shutdown is asked for, `daemon.rs` carries it out.

use super::{Rpc, caller, detach};
use jsonrpsee::core::server::{RpcModule, SubscriptionMessage};
use jsonrpsee::core::{RegisterMethodError, SubscriptionError, SubscriptionResult, async_trait};
use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::{Extensions, PendingSubscriptionSink};
use protocol::daemon::HandshakeRpcServer;
use protocol::daemon::{
    ClientInfo, DaemonInfo, DaemonRpcServer, DaemonStatus, InitializeResult, Reloaded,
};
use protocol::error::{ErrorKind, RpcError};
use protocol::session::Empty;
use protocol::version::{PROTOCOL, RELEASE, compatible};
use serde_json::json;
use serde_json::value::to_raw_value;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// The methods, with `daemon/unwatch` widened.
pub(super) fn module(rpc: &Rpc) -> Result<RpcModule<Rpc>, RegisterMethodError> {
    let mut module = DaemonRpcServer::into_rpc(rpc.clone());
    detach::widen(&mut module, "daemon/unwatch", rpc.0.attachments.clone())?;
    Ok(module)
}

#[async_trait]
impl HandshakeRpcServer for Rpc {
    async fn initialize(
        &self,
        extensions: &Extensions,
        protocol: Option<u32>,
        client: Option<ClientInfo>,
    ) -> Result<InitializeResult, ErrorObjectOwned> {
        if let Some(theirs) = protocol.filter(|theirs| !compatible(*theirs)) {
            return Err(mismatch(theirs, client.as_ref()).into());
        }
        if let Some(client) = client {
            caller(extensions)?.introduce(client);
        }
        Ok(InitializeResult {
            protocol: PROTOCOL,
            daemon: self.info(),
            capabilities: json!({"servers": self.0.parts.about.servers}),
        })
    }
}

#[async_trait]
impl DaemonRpcServer for Rpc {
    async fn status(&self) -> Result<DaemonStatus, ErrorObjectOwned> {
        let parts = &self.0.parts;
        let (loaded, running) = parts.sessions.loaded();
        let sessions = parts.sessions.stored().await.map_err(super::error::fail)?;
        let (binary, replaced) = binary();
        Ok(DaemonStatus {
            binary,
            replaced,
            unit: unit(),
            daemon: self.info(),
            protocol: PROTOCOL,
            socket: parts.about.socket.display().to_string(),
            store: parts.about.store.display().to_string(),
            loaded,
            running,
            sessions,
            clients: parts.connections.count(),
            memory: resident(),
        })
    }

    async fn reload(&self) -> Result<Reloaded, ErrorObjectOwned> {
        let reloaded = self.sessions().reload_all().await;
        let waiting = reloaded.map_err(super::error::fail)?;
        Ok(Reloaded { waiting })
    }

    async fn shutdown(&self, grace_ms: Option<u64>) -> Result<Empty, ErrorObjectOwned> {
        let grace = grace_ms.map(Duration::from_millis);
        self.0.parts.shutdown.begin(grace);
        Ok(Empty {})
    }

    async fn watch(&self, pending: PendingSubscriptionSink) -> SubscriptionResult {
        let mut changes = self.sessions().watch();
        let sink = pending.accept().await?;
        loop {
            let change = tokio::select! {
                () = sink.closed() => return Ok(()),
                change = changes.recv() => change,
            };
            let change = match change {
                Ok(change) => change,
                Err(RecvError::Closed) => return Ok(()),
                Err(RecvError::Lagged(_)) => return Err(missed()),
            };
            let id = sink.subscription_id();
            let message = SubscriptionMessage::new(sink.method_name(), id, &change)?;
            if sink.send(message).await.is_err() {
                return Ok(());
            }
        }
    }
}

impl Rpc {
    fn info(&self) -> DaemonInfo {
        DaemonInfo {
            name: "dwelld".into(),
            version: RELEASE.into(),
            pid: std::process::id(),
            started_at: self.0.parts.about.started_at,
        }
    }
}

/// systemd says to the process that it runs which one that is; what runs below another service has the same variable. Its name
/// is the end of the control group. launchd gives a label.
fn unit() -> Option<String> {
    let own = std::process::id().to_string();
    if std::env::var("SYSTEMD_EXEC_PID").is_ok_and(|pid| pid == own) {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        return Some(unit_among(&groups).unwrap_or("systemd").to_owned());
    }
    let label = std::env::var("XPC_SERVICE_NAME").ok();
    label.filter(|label| cfg!(target_os = "macos") && label == "dwelld")
}

fn unit_among(groups: &str) -> Option<&str> {
    let mut names = groups.lines().filter_map(|line| line.rsplit('/').next());
    names.find(|name| name.ends_with(".service"))
}

/// The system marks a running file that is gone from its place.
fn binary() -> (Option<String>, bool) {
    let Ok(path) = std::fs::read_link("/proc/self/exe") else {
        return (None, false);
    };
    let shown = path.display().to_string();
    match shown.strip_suffix(" (deleted)") {
        Some(was) => (Some(was.to_owned()), true),
        None => (Some(shown), false),
    }
}

fn mismatch(theirs: u32, client: Option<&ClientInfo>) -> RpcError {
    let name = client.map_or_else(
        || "the client".to_owned(),
        |client| {
            format!("{} {}", client.name, client.version)
                .trim_end()
                .to_owned()
        },
    );
    let remedy = if theirs > PROTOCOL {
        "stop this daemon with `dwell daemon stop` when its turns have ended; the client then starts its own release"
    } else {
        "install the client's release that belongs to this daemon, or stop the daemon with `dwell daemon stop`"
    };
    let why = format!(
        "dwelld {RELEASE} speaks protocol {PROTOCOL}, {name} speaks protocol {theirs}: {remedy}"
    );
    RpcError::new(ErrorKind::Version, why)
        .with("daemon", PROTOCOL)
        .with("client", theirs)
        .with("release", RELEASE)
}

/// The end of a subscription whose client did not keep up: it has to list anew.
fn missed() -> SubscriptionError {
    let why = "changes were missed: watch again, then list the sessions";
    let error = ErrorObjectOwned::from(RpcError::new(ErrorKind::Overloaded, why));
    match to_raw_value(&error) {
        Ok(json) => SubscriptionError::from_json(json),
        Err(_) => SubscriptionError::from(why),
    }
}

/// Resident memory in bytes; 0 where the system does not tell.
fn resident() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|statm| statm.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_names_both_sides_and_what_to_do() {
        let client = ClientInfo {
            name: "dwell".into(),
            version: "9.1.0".into(),
        };
        let error = mismatch(7, Some(&client));
        assert_eq!(error.kind.code(), -32013);
        for part in [
            "dwell 9.1.0",
            "protocol 7",
            "protocol 1",
            RELEASE,
            "dwell daemon stop",
        ] {
            assert!(error.message.contains(part), "{}", error.message);
        }
        assert_eq!(error.data["client"], 7);
        assert_eq!(error.data["daemon"], PROTOCOL);
    }

    #[test]
    fn unit_is_the_end_of_the_control_group() {
        let groups = "4:memory:/x\n0::/user.slice/user@7.service/app.slice/dwelld.service\n";
        assert_eq!(unit_among(groups), Some("dwelld.service"));
        assert_eq!(unit_among("0::/init.scope\n"), None);
    }

    #[test]
    fn resident_memory_is_told() {
        assert!(resident() > 100_000);
    }
}
