//! The MCP servers of one session, which a client named for it. Must never be reached from another session, but from the
//! tasks that work for it, nor outlive it in memory.

use super::server::Server;
use super::{Known, Servers, held};
use crate::toolbox::Toolbox;
use crate::toolbox::source::mcp::Around;
use crate::toolbox::source::mcp::config::{Listing, given};
use crate::workspace::Workspace;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct Own(pub(super) Servers);

impl Workspace {
    /// Servers of a session by these entries, which are as those of `mcp.json`; none of them is started. Programs see the
    /// session's environment.
    pub fn own_servers(
        &self,
        servers: &Map<String, Value>,
        env: &BTreeMap<String, String>,
    ) -> Result<Own, String> {
        let means = &self.shared.places.servers;
        let mut all = (*means.env).clone();
        all.extend(env.clone());
        let own = Own(Servers::around(Around {
            settings: means.settings.clone().patient(),
            env: Arc::new(all),
            mask: means.mask.clone(),
            tokens: means.tokens.clone(),
            cwd: self.cwd.clone(),
        }));
        own.name(self, servers)?;
        Ok(own)
    }
}

impl Own {
    /// Puts these in the place of those that there were; one that stays the same goes on running.
    pub fn name(&self, workspace: &Workspace, servers: &Map<String, Value>) -> Result<(), String> {
        let home = &workspace.shared.places.home;
        let mut listing = Listing {
            servers: given(servers, &workspace.cwd, home)?,
            ..Listing::default()
        };
        listing.part();
        let listing = Arc::new(listing);
        *held(&self.0.known) = Known {
            listing: Arc::clone(&listing),
            ..Known::default()
        };
        self.0.reconcile(&listing);
        self.0.changes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Starts those that do not run, and waits a while for what is starting.
    pub async fn settle(&self) {
        let listing = Arc::clone(&held(&self.0.known).listing);
        self.0.start(&listing).await;
    }

    /// A directory's toolbox with all that these add; its own servers of the same names give way.
    pub fn over(&self, base: Arc<Toolbox>) -> Arc<Toolbox> {
        let sources: Vec<String> = self.0.all().iter().map(|one| source(one)).collect();
        let hides = base.sources().iter().any(|known| sources.contains(known));
        let base = match hides {
            true => {
                let mut without = Toolbox::clone(&base);
                without.retain(|tool| !sources.iter().any(|source| source == tool.origin()));
                Arc::new(without)
            }
            false => base,
        };
        self.0.equip(base)
    }
}

fn source(server: &Server) -> String {
    format!("mcp {}", server.config.name)
}

/// A session's servers, then the directory's but those of the same names.
pub(super) fn before(own: Option<&Own>, others: Vec<Arc<Server>>) -> Vec<Arc<Server>> {
    let mut all = own.map_or_else(Vec::new, |own| own.0.all());
    let own = all.len();
    for other in others {
        if !all[..own]
            .iter()
            .any(|one| one.config.name == other.config.name)
        {
            all.push(other);
        }
    }
    all
}
