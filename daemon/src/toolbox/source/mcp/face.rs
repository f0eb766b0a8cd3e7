//! What a server sees of dwell: who it is, where it works, and what it does not do for a server.
//! Must never let a server have a model's answer or a person's words.

// Servers of earlier versions ask for roots, and always will.
#![allow(deprecated)]

use super::progress::Calls;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ListRootsResult, ProgressNotificationParam,
    ProtocolVersion, Root, RootsCapabilities,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use std::future::{Future, ready};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;

pub(super) struct Face {
    pub(super) cwd: PathBuf,
    pub(super) calls: Calls,
    /// Told when a list of the server's is another than before.
    pub(super) changed: Arc<Notify>,
}

/// The directory as servers name places.
pub(super) fn root(cwd: &Path) -> Root {
    let uri = reqwest::Url::from_file_path(cwd).map(String::from);
    let name = cwd.file_name().unwrap_or_default().to_string_lossy();
    Root::new(uri.unwrap_or_else(|()| "file:///".to_owned())).with_name(name)
}

impl Face {
    fn change(&self) -> impl Future<Output = ()> + Send + use<> {
        self.changed.notify_one();
        ready(())
    }
}

/// What is not here is answered as the crate does: pings by an answer, questions for a model or a person by a refusal.
impl ClientHandler for Face {
    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.roots = Some(RootsCapabilities::default());
        let own = Implementation::new("dwell", env!("CARGO_PKG_VERSION"));
        // For a handshake; there is none in what is newer.
        ClientConfig::new(can, own).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> impl Future<Output = Result<ListRootsResult, ErrorData>> + Send + '_ {
        ready(Ok(ListRootsResult::new(vec![root(&self.cwd)])))
    }

    fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.calls.came(&params);
        ready(())
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.change()
    }

    fn on_prompt_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.change()
    }

    fn on_resource_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.change()
    }
}
