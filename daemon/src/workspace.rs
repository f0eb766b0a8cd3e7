//! Workspaces: what the sessions of one directory share, for as long as one of them lives.
//! Must never let a directory's own files count before the directory is trusted.

mod agents;
mod agents_md;
mod decision;
pub mod faults;
mod file;
pub mod hooks;
mod permissions;
pub mod plugins;
mod scan;
pub mod servers;
pub mod skills;
mod tools;
pub mod trust;
mod watch;

use crate::toolbox::permission::Permissions;
use crate::toolbox::source::script::load::{Scripts, Settings};
use crate::toolbox::{Toolbox, builtin};
use plugins::Plugins;
use protocol::approval::Trust;
use servers::Servers;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use trust::Trusts;

/// Where a user's own things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// `~`; holds `.agents/`.
    pub home: PathBuf,
    /// Where decisions about directories are kept.
    pub state_dir: PathBuf,
    pub script_tools: Settings,
    /// What plugins are started with.
    pub plugins: plugins::Means,
    /// What MCP servers are reached with.
    pub servers: servers::Means,
    /// Those of `config.toml`.
    pub hooks: hooks::Users,
}

/// All workspaces; a cheap handle.
#[derive(Clone)]
pub struct Workspaces {
    shared: Arc<Shared>,
}

struct Shared {
    places: Places,
    scripts: Scripts,
    skills: skills::Known,
    trusts: Trusts,
    /// Those that somebody holds, and some that nobody does any more.
    open: Mutex<HashMap<PathBuf, Weak<Workspace>>>,
    /// What every directory has; made once, when the first needs it.
    builtins: OnceLock<Arc<Toolbox>>,
    watches: watch::Watches,
    /// Known once there are sessions.
    tell: OnceLock<Tell>,
}

/// Tells people who work in a directory.
pub type Tell = Box<dyn Fn(&Path, &str) + Send + Sync>;

impl Workspaces {
    pub fn new(places: Places) -> Self {
        let shared = Shared {
            trusts: Trusts::open(&places.state_dir, &places.home),
            skills: skills::Known::default(),
            scripts: Scripts::new(places.script_tools.clone(), &places.home, &places.state_dir),
            places,
            open: Mutex::default(),
            builtins: OnceLock::new(),
            watches: watch::Watches::default(),
            tell: OnceLock::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The workspace of a directory; the same one for as long as somebody holds it.
    pub fn get(&self, cwd: &Path) -> Arc<Workspace> {
        let mut open = self.shared.open.lock().expect("no holder panics");
        if let Some(workspace) = open.get(cwd).and_then(Weak::upgrade) {
            return workspace;
        }
        open.retain(|_, workspace| workspace.strong_count() > 0);
        let workspace = Arc::new(Workspace {
            cwd: cwd.to_owned(),
            toolbox: Mutex::new(tools::Known::only(self.shared.builtins())),
            plugins: Plugins::new(self.shared.places.plugins.clone(), cwd),
            servers: Servers::new(&self.shared.places.servers, cwd),
            watching: watch::Watching::default(),
            shared: Arc::clone(&self.shared),
        });
        open.insert(cwd.to_owned(), Arc::downgrade(&workspace));
        workspace
    }

    /// What goes wrong with a directory's files while people work there is told through this from now on.
    pub fn tell_through(&self, tell: Tell) {
        // There is one set of sessions in a daemon.
        let _ = self.shared.tell.set(tell);
    }

    /// Reads `config.toml` anew; with a file that cannot be used everything stays as it was. Gives what waits for the next
    /// start.
    pub async fn reread(&self) -> Result<Vec<String>, String> {
        let hooks = self.shared.places.hooks.clone();
        let reading = tokio::task::spawn_blocking(move || hooks.reread());
        reading.await.map_err(|why| why.to_string())?
    }

    /// Those that somebody holds.
    pub fn open(&self) -> Vec<Arc<Workspace>> {
        let open = self.shared.open.lock().expect("no holder panics");
        open.values().filter_map(Weak::upgrade).collect()
    }

    /// Decisions about directories.
    pub fn trust(&self) -> Trusts {
        self.shared.trusts.clone()
    }
}

impl Shared {
    fn builtins(&self) -> Arc<Toolbox> {
        let make = || {
            let mut toolbox = Toolbox::new();
            builtin::register(&mut toolbox);
            Arc::new(toolbox)
        };
        Arc::clone(self.builtins.get_or_init(make))
    }
}

/// What the sessions of one directory share.
pub struct Workspace {
    cwd: PathBuf,
    shared: Arc<Shared>,
    /// Without what plugins and servers add. Replaced whole; calls and turns that run keep the one they began with.
    toolbox: Mutex<tools::Known>,
    plugins: Plugins,
    servers: Servers,
    watching: watch::Watching,
}

impl Workspace {
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The rules as the files are now. With a file that cannot be read every call asks.
    pub async fn permissions(&self) -> Arc<Permissions> {
        let loaded = self.blocking(|shared, cwd| {
            let standing = shared.trusts.standing(cwd);
            permissions::load(&shared.places, cwd, &standing)
        });
        let files = loaded
            .await
            .unwrap_or_else(|why| crate::toolbox::permission::Files {
                problems: vec![why],
                ..Default::default()
            });
        Arc::new(Permissions::new(files))
    }

    /// Where the directory stands.
    pub async fn trust(&self) -> Trust {
        self.shared.trusts.check(&self.cwd).await
    }

    /// What the directory's people wrote for the model, as it is now: the nearest `AGENTS.md` walking up, and which skills
    /// there are. The reading begins with the call, so that whoever has something else to wait for first loses no time.
    pub fn guidance(&self) -> impl Future<Output = Option<String>> + Send + use<> {
        let reading = self.blocking(|shared, cwd| {
            let text = agents_md::nearest(cwd).map(|text| text.trim_end().to_owned());
            let text = text.filter(|text| !text.is_empty());
            let skills = skills::for_prompt(&skills::of(shared, cwd));
            let both: Vec<String> = text.into_iter().chain(skills).collect();
            (!both.is_empty()).then(|| both.join("\n\n"))
        });
        async { reading.await.ok().flatten() }
    }

    /// Writes an `allow` for good into the directory's `permissions.json`.
    pub async fn allow_always(&self, tool: &str, pattern: &str) -> Result<(), String> {
        let (tool, pattern) = (tool.to_owned(), pattern.to_owned());
        self.blocking(move |shared, cwd| {
            permissions::allow(&shared.places, &shared.trusts, cwd, &tool, &pattern)
        })
        .await?
    }

    /// What could not be read and why.
    pub async fn problems(&self) -> Vec<String> {
        let found = self.blocking(|shared, cwd| {
            let standing = shared.trusts.standing(cwd);
            let files = permissions::load(&shared.places, cwd, &standing);
            let words = agents_md::problem(cwd).into_iter();
            let words = words.chain(skills::problems(shared, cwd));
            let all = standing.problem.into_iter().chain(files.problems);
            all.chain(words).collect()
        });
        found.await.unwrap_or_else(|why| vec![why])
    }

    /// Files are read where waiting for a disk keeps nobody else.
    fn blocking<T: Send + 'static, W: FnOnce(&Shared, &Path) -> T + Send + 'static>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, String>> + Send + use<T, W> {
        let (shared, cwd) = (Arc::clone(&self.shared), self.cwd.clone());
        let working = tokio::task::spawn_blocking(move || work(&shared, &cwd));
        async {
            working
                .await
                .map_err(|why| format!("reading the files of a workspace failed: {why}"))
        }
    }
}

#[cfg(test)]
mod tests;
