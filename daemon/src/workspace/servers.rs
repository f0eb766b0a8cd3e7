//! A directory's MCP servers: those of `mcp.json`, one process or connection each for all its sessions, started when
//! tools are needed. Must never keep a turn waiting longer than the settings say, nor start what a directory names that
//! is not trusted.

mod find;
mod info;
mod login;
mod mention;
mod own;
mod prompts;
mod server;

pub use info::{Health, ServerInfo};
pub use own::Own;
pub use prompts::ServerPrompt;

use super::Workspace;
use crate::toolbox::Toolbox;
use crate::toolbox::source::mcp::config::Listing;
use crate::toolbox::source::mcp::name::plain;
use crate::toolbox::source::mcp::{self, Around};
pub use crate::toolbox::source::mcp::{Login, Settings, Tokens};
pub(super) use find::{Files, faults, of as found};
use own::before;
use server::Server;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// By this name entries speak of the session's directory, as those of other programs do.
const WORKSPACE: &str = "workspaceFolder";

/// What servers are reached with, in every directory.
#[derive(Clone, Default)]
pub struct Means {
    pub settings: Settings,
    /// What variables in `mcp.json` stand for, and what children see.
    pub env: Arc<BTreeMap<String, String>>,
    /// What is shown nowhere of what servers say.
    pub mask: crate::process::mask::Mask,
    /// Where the tokens of logins are kept.
    pub tokens: Tokens,
}

/// The environment holds keys.
impl std::fmt::Debug for Means {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Means")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The servers of one directory.
pub(super) struct Servers {
    around: Around,
    /// As the files were read last. Held for a look only, as are the others.
    known: Mutex<Known>,
    all: Mutex<Vec<Arc<Server>>>,
    made: Mutex<Option<Made>>,
    /// Counts whatever changes what servers add.
    changes: Arc<AtomicU64>,
}

#[derive(Default)]
struct Known {
    files: Files,
    listing: Arc<Listing>,
}

/// A toolbox with all that servers add, and what it was made of.
struct Made {
    base: Arc<Toolbox>,
    changes: u64,
    toolbox: Arc<Toolbox>,
}

impl Servers {
    pub(super) fn new(means: &Means, cwd: &Path) -> Self {
        Self::around(Around {
            settings: means.settings.clone(),
            env: Arc::clone(&means.env),
            mask: means.mask.clone(),
            tokens: means.tokens.clone(),
            cwd: cwd.to_owned(),
        })
    }

    fn around(around: Around) -> Self {
        Self {
            around,
            known: Mutex::default(),
            all: Mutex::default(),
            made: Mutex::default(),
            changes: Arc::default(),
        }
    }

    /// What the files say; read anew when they are others than before.
    fn listing(&self, files: Files) -> Arc<Listing> {
        let mut known = held(&self.known);
        if known.files != files {
            let listing = files.read(&self.around.cwd, &|name| self.variable(name));
            *known = Known {
                files,
                listing: Arc::new(listing),
            };
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        Arc::clone(&known.listing)
    }

    /// What `${NAME}` stands for.
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            WORKSPACE => self.around.cwd.to_str().map(str::to_owned),
            name => self.around.env.get(name).cloned(),
        }
    }

    /// Starts those that do not run, lets go of those that are gone, and waits a while for what is starting.
    pub(super) async fn settle(&self, files: Files) {
        self.start(&self.listing(files)).await;
    }

    async fn start(&self, listing: &Listing) {
        let servers = self.reconcile(listing);
        let waiting = servers.iter().filter_map(|server| server.wake());
        // Each starts now; they are waited for together.
        let waiting: Vec<_> = waiting.collect();
        futures_util::future::join_all(waiting).await;
    }

    fn reconcile(&self, listing: &Listing) -> Vec<Arc<Server>> {
        let mut all = held(&self.all);
        let same = all.len() == listing.servers.len()
            && all
                .iter()
                .zip(&listing.servers)
                .all(|(server, config)| server.config == *config);
        if !same {
            let known = std::mem::take(&mut *all);
            let of = |config: &mcp::config::Config| {
                let found = known.iter().find(|server| server.config == *config);
                found.cloned().unwrap_or_else(|| {
                    Server::new(
                        config.clone(),
                        self.around.clone(),
                        Arc::clone(&self.changes),
                    )
                })
            };
            *all = listing.servers.iter().map(of).collect();
            self.changes.fetch_add(1, Ordering::Relaxed);
        }
        all.clone()
    }

    /// The base with all that servers add.
    pub(super) fn equip(&self, base: Arc<Toolbox>) -> Arc<Toolbox> {
        let changes = self.changes.load(Ordering::Relaxed);
        let mut made = held(&self.made);
        if let Some(made) = made.as_ref()
            && made.changes == changes
            && Arc::ptr_eq(&made.base, &base)
        {
            return Arc::clone(&made.toolbox);
        }
        let (servers, listing) = (self.all(), Arc::clone(&held(&self.known).listing));
        let toolbox = match servers.is_empty() && listing.problems.is_empty() {
            true => Arc::clone(&base),
            false => {
                let mut toolbox = Toolbox::clone(&base);
                for problem in &listing.problems {
                    toolbox.problem(problem.clone());
                }
                add_all(&mut toolbox, &servers);
                Arc::new(toolbox)
            }
        };
        *made = Some(Made {
            base,
            changes,
            toolbox: Arc::clone(&toolbox),
        });
        toolbox
    }

    /// As it was made last.
    pub(super) fn equipped(&self) -> Option<Arc<Toolbox>> {
        let made = held(&self.made);
        made.as_ref().map(|made| Arc::clone(&made.toolbox))
    }

    fn all(&self) -> Vec<Arc<Server>> {
        held(&self.all).clone()
    }
}

fn add_all(toolbox: &mut Toolbox, servers: &[Arc<Server>]) {
    let prefixes: Vec<String> = servers
        .iter()
        .map(|one| plain(&one.config.prefix))
        .collect();
    servers
        .iter()
        .for_each(|server| add(toolbox, server, &prefixes));
}

/// A name that another tool has, or goes by, stays that one's, and one that begins as another server's names do is that
/// one's, be it there yet or not: what was said of it must not count for a stranger.
fn add(toolbox: &mut Toolbox, server: &Arc<Server>, prefixes: &[String]) {
    toolbox.note_source(&format!("mcp {}", server.config.name));
    for problem in server.problems() {
        toolbox.problem(problem);
    }
    let own = plain(&server.config.prefix).len();
    for tool in server.tools() {
        let (name, origin) = (tool.name().to_owned(), tool.origin().to_owned());
        let is_anothers =
            |prefix: &&String| prefix.len() > own && name.starts_with(prefix.as_str());
        if let Some(prefix) = prefixes.iter().find(is_anothers) {
            toolbox.problem(format!(
                "the tool {name} of the MCP server {} is left out: names that begin with {prefix} are another server's",
                server.config.name
            ));
            continue;
        }
        match toolbox.get(&name).map(|other| other.origin().to_owned()) {
            Some(other) => toolbox.problem(format!(
                "the tool {name} of the MCP server {} is left out: there is one of that name ({other}); a prefix in its entry helps",
                server.config.name
            )),
            None => {
                if let Err(why) = toolbox.try_add(tool) {
                    toolbox.problem(format!("{origin}: {why}"));
                }
            }
        }
    }
}

impl Workspace {
    /// A toolbox with all that these servers add; those that do not run are started first.
    pub(super) async fn served(&self, base: Arc<Toolbox>, files: Files) -> Arc<Toolbox> {
        self.servers.settle(files).await;
        self.servers.equip(base)
    }

    /// The servers there are now for a session with these of its own, none of them started for this.
    async fn named(&self, own: Option<&Own>) -> Vec<Arc<Server>> {
        let others = match self.blocking(find::of_workspace).await {
            Ok(files) => self.servers.reconcile(&self.servers.listing(files)),
            Err(_) => Vec::new(),
        };
        before(own, others)
    }

    /// Starts what does not run, and waits for it as a turn would.
    pub async fn wake_servers(&self, own: Option<&Own>) {
        if let Some(own) = own {
            own.settle().await;
        }
        if let Ok(files) = self.blocking(find::of_workspace).await {
            self.servers.settle(files).await;
        }
    }

    /// Its MCP servers as they are, behind a session's own; none of them is started for this.
    pub async fn mcp_servers(&self, own: Option<&Own>) -> (Vec<ServerInfo>, Vec<String>) {
        let Ok(files) = self.blocking(find::of_workspace).await else {
            return Default::default();
        };
        let listing = self.servers.listing(files);
        let servers = before(own, self.servers.reconcile(&listing));
        let infos = servers.iter().map(|server| server.info()).collect();
        (infos, listing.problems.clone())
    }

    /// Ends all of them; what is needed starts anew.
    pub(super) async fn let_go_of_servers(&self) {
        let servers = self.servers.all();
        futures_util::future::join_all(servers.iter().map(|server| server.stop())).await;
    }

    /// Starts one of them anew, or all; what is wrong with it then is told by `mcp_servers`.
    pub async fn restart_mcp(&self, name: Option<&str>, own: Option<&Own>) -> Result<(), String> {
        let servers = self.named(own).await;
        let chosen = |server: &&Arc<Server>| name.is_none_or(|name| server.config.name == name);
        let chosen: Vec<_> = servers.iter().filter(chosen).collect();
        if let (true, Some(name)) = (chosen.is_empty(), name) {
            let names: Vec<_> = servers.iter().map(|one| one.config.name.as_str()).collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(format!(
                "no MCP server is called {name:?}; there are: {names}"
            ));
        }
        futures_util::future::join_all(chosen.iter().map(|server| server.stop())).await;
        self.wake_servers(own).await;
        Ok(())
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
