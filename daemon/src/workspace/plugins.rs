//! A directory's plugins: executables that add tools, hooks, commands and providers, one process each for all its
//! sessions. Must never start what lies in a directory that is not trusted, nor let one plugin's end reach another.

mod add;
mod ask;
mod calls;
mod find;
mod listen;
mod plugin;
mod said;
mod sdk;
mod slash;

pub use listen::{Desk, Line, Tell};
pub use slash::Slash;

use super::Workspace;
use crate::process::mask::Mask;
use crate::stdio_rpc::Host;
use crate::toolbox::Toolbox;
pub(super) use find::{Found, may_guard, of as found};
use plugin::Plugin;
use protocol::approval::{TrustFile, TrustState};
use protocol::id::SessionId;
use protocol::provider::ProviderInfo;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// The table `[plugin]` of `config.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long a hook may take before the call is refused, in milliseconds.
    pub hook_ms: u64,
    /// How long a plugin may take to say what it adds, in milliseconds.
    pub setup_ms: u64,
    /// Variables with keys that plugins are given. The daemon's others they have anyhow, but tools could read a key out of
    /// a plugin's process.
    pub keys: Vec<String>,
    /// What becomes of calls while a plugin that may guard them cannot be set up.
    pub on_failure: OnFailure,
}

/// What becomes of calls that nobody guards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    #[default]
    Refuse,
    Ignore,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hook_ms: 30_000,
            setup_ms: 20_000,
            keys: Vec::new(),
            on_failure: OnFailure::default(),
        }
    }
}

/// What plugins are started with, in every directory; a cheap handle.
#[derive(Clone, Default)]
pub struct Means {
    settings: Arc<Mutex<Settings>>,
    /// The daemon's own environment, without the keys that plugins are not to have.
    pub env: Arc<BTreeMap<String, String>>,
    /// Where the SDKs are put.
    pub sdk: PathBuf,
    /// What is shown nowhere of what plugins say.
    pub mask: Mask,
    /// Whether the SDKs were put there.
    brought: Arc<AtomicBool>,
    /// Known once the daemon's methods are.
    desk: Arc<OnceLock<Arc<dyn Desk>>>,
}

impl Means {
    pub fn new(settings: Settings, env: BTreeMap<String, String>, sdk: PathBuf) -> Self {
        Self {
            settings: Arc::new(Mutex::new(settings)),
            env: Arc::new(env),
            sdk,
            mask: Mask::default(),
            brought: Arc::default(),
            desk: Arc::default(),
        }
    }

    /// The same, with keys that a plugin's words may hold.
    #[must_use]
    pub fn hiding(self, mask: Mask) -> Self {
        Self { mask, ..self }
    }

    /// Plugins reach the daemon's methods from now on.
    pub fn connect(&self, desk: Arc<dyn Desk>) {
        // There is one daemon in a process, so there is one desk.
        let _ = self.desk.set(desk);
    }

    /// Puts the SDKs in their place, once; blocks on the disk.
    fn bring_sdk(&self) {
        if self.brought.load(Ordering::Relaxed) {
            return;
        }
        match sdk::write(&self.sdk) {
            Ok(()) => self.brought.store(true, Ordering::Relaxed),
            Err(error) => tracing::warn!(%error, "the SDKs of plugins cannot be written"),
        }
    }

    /// Other deadlines from now on; which keys plugins are given stays as it was.
    pub fn set(&self, settings: Settings) {
        *held(&self.settings) = settings;
    }

    pub(super) fn on_failure(&self) -> OnFailure {
        held(&self.settings).on_failure
    }

    fn hook(&self) -> Duration {
        Duration::from_millis(held(&self.settings).hook_ms)
    }

    fn setup(&self) -> Duration {
        Duration::from_millis(held(&self.settings).setup_ms)
    }
}

/// The environment holds keys.
impl fmt::Debug for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Means")
            .field("settings", &self.settings)
            .field("sdk", &self.sdk)
            .finish_non_exhaustive()
    }
}

/// The plugins of one directory.
pub(super) struct Plugins {
    means: Means,
    cwd: PathBuf,
    /// Held while plugins start, so that each starts once.
    starting: tokio::sync::Mutex<()>,
    /// In the order of their files. Held for a look only, as are the others.
    all: Mutex<Vec<Arc<Plugin>>>,
    made: Mutex<Option<Made>>,
    /// The session that needed the directory last; it is named to a plugin that starts.
    session: Mutex<Option<SessionId>>,
    /// Counts whatever changes what plugins add.
    changes: Arc<AtomicU64>,
}

/// A toolbox with all that plugins add, and what it was made of.
struct Made {
    base: Arc<Toolbox>,
    changes: u64,
    toolbox: Arc<Toolbox>,
}

impl Plugins {
    pub(super) fn new(means: Means, cwd: &Path) -> Self {
        Self {
            means,
            cwd: cwd.to_owned(),
            starting: tokio::sync::Mutex::default(),
            all: Mutex::default(),
            made: Mutex::default(),
            session: Mutex::default(),
            changes: Arc::default(),
        }
    }

    pub(super) fn needed_by(&self, session: &SessionId) {
        *held(&self.session) = Some(session.clone());
    }

    /// Starts those that are new, or whose file is another than before, and lets go of those whose file is gone.
    pub(super) async fn settle(&self, found: Vec<Found>) {
        let _starting = self.starting.lock().await;
        let (plugins, fresh) = self.reconcile(found);
        let known = held(&self.all).len();
        if fresh.is_empty() && plugins.len() == known {
            return;
        }
        // Each is started as its turn comes, and all are waited for together.
        futures_util::future::join_all(fresh.iter().map(|plugin| plugin.begin())).await;
        *held(&self.all) = plugins;
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// All plugins there are now, and those that have never been started.
    fn reconcile(&self, found: Vec<Found>) -> (Vec<Arc<Plugin>>, Vec<Arc<Plugin>>) {
        let known = held(&self.all).clone();
        let mut fresh = Vec::new();
        let of = |found: Found| {
            if let Some(plugin) = known.iter().find(|one| one.found == found) {
                return Arc::clone(plugin);
            }
            let session = held(&self.session).clone();
            let plugin = Plugin::new(
                found,
                self.cwd.clone(),
                self.means.clone(),
                Arc::clone(&self.changes),
                session,
            );
            let before = known.iter().find(|one| one.found.path == plugin.found.path);
            if let Some(before) = before {
                plugin.succeeds(before);
            }
            fresh.push(Arc::clone(&plugin));
            plugin
        };
        let plugins = found.into_iter().map(of).collect();
        (plugins, fresh)
    }

    /// The base with all that plugins add.
    pub(super) fn equip(&self, base: Arc<Toolbox>) -> Arc<Toolbox> {
        let changes = self.changes.load(Ordering::Relaxed);
        let mut made = held(&self.made);
        if let Some(made) = made.as_ref()
            && made.changes == changes
            && Arc::ptr_eq(&made.base, &base)
        {
            return Arc::clone(&made.toolbox);
        }
        let plugins = self.all();
        let toolbox = match plugins.is_empty() {
            true => Arc::clone(&base),
            false => {
                let mut toolbox = Toolbox::clone(&base);
                plugins
                    .iter()
                    .for_each(|plugin| add::to(&mut toolbox, plugin));
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
        held(&self.made)
            .as_ref()
            .map(|made| Arc::clone(&made.toolbox))
    }

    /// Ends all processes; what is needed of them starts anew, with its file as it is then.
    async fn restart(&self) {
        let _starting = self.starting.lock().await;
        let plugins = self.all();
        for plugin in &plugins {
            plugin.stop().await;
        }
        futures_util::future::join_all(plugins.iter().map(|plugin| plugin.begin())).await;
        self.changes.fetch_add(1, Ordering::Relaxed);
    }

    fn all(&self) -> Vec<Arc<Plugin>> {
        held(&self.all).clone()
    }
}

impl Workspace {
    /// Its tools as of the last time that somebody asked for the current ones.
    pub fn toolbox(&self) -> Arc<Toolbox> {
        let known = self.servers.equipped().or_else(|| self.plugins.equipped());
        known.unwrap_or_else(|| self.plain())
    }

    /// A toolbox with all that these plugins add; those that are new are started first.
    pub(super) async fn equipped(&self, plain: Arc<Toolbox>, found: Vec<Found>) -> Arc<Toolbox> {
        self.plugins.settle(found).await;
        self.plugins.equip(plain)
    }

    /// A session works here; plugins that start are told of the last one.
    pub fn needed_by(&self, session: &SessionId) {
        self.watching.use_it();
        self.plugins.needed_by(session);
    }

    /// Whether the directory has plugins that do not count, since nobody has decided on them.
    pub async fn ignores_plugins(&self) -> bool {
        let trust = self.trust().await;
        let own = |file: &TrustFile| file.path.starts_with(".agents/plugins/");
        matches!(trust.state, TrustState::Undecided | TrustState::Changed)
            && trust.files.iter().any(own)
    }

    /// What plugins add to the slash commands, the later ones last.
    pub async fn commands(&self) -> Vec<Slash> {
        self.settle_plugins().await;
        self.plugins.all().iter().flat_map(slash::of).collect()
    }

    /// The plugin that has a provider of this name; of several the last.
    pub async fn provider(&self, name: &str) -> Option<Arc<dyn Host>> {
        self.settle_plugins().await;
        let plugins = self.plugins.all();
        let found = plugins.into_iter().rev().find(|one| one.has_provider(name));
        found.map(|plugin| plugin as Arc<dyn Host>)
    }

    /// The providers of all plugins; those that do not run yet are started.
    pub async fn settled_providers(&self) -> Vec<ProviderInfo> {
        self.settle_plugins().await;
        self.providers()
    }

    /// The providers of plugins that are known so far.
    pub fn providers(&self) -> Vec<ProviderInfo> {
        let plugins = self.plugins.all();
        let infos = plugins.iter().flat_map(|plugin| {
            let setup = plugin.setup();
            let source = plugin.source();
            let info = move |name: &str| ProviderInfo {
                name: name.to_owned(),
                source: source.clone(),
                default_model: None,
            };
            let providers: Vec<_> = setup.providers.iter().map(|one| info(&one.name)).collect();
            providers
        });
        infos.collect()
    }

    /// Starts all plugins anew, and lets go of MCP servers, which start when they are needed. What cannot start is a
    /// problem in the list of tools.
    pub async fn reload(&self) {
        self.let_go_of_servers().await;
        self.settle_plugins().await;
        self.plugins.restart().await;
    }

    async fn settle_plugins(&self) {
        let found = self.blocking(|shared, cwd| {
            let state = shared.trusts.standing(cwd).trust.state;
            find::of(shared, cwd, state)
        });
        match found.await {
            Ok(found) => self.plugins.settle(found).await,
            Err(why) => tracing::warn!(why, "plugins were not looked for"),
        }
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
