//! A workspace's toolbox: what is built in, what is found beside, and the shell's hooks. Made anew when the files are
//! others than before. Must never offer what lies in a directory that is not trusted.

use super::hooks::{self, ShellHooks};
use super::skills::{self, Skill};
use super::{Shared, Workspace, plugins, servers};
use crate::toolbox::Toolbox;
use crate::toolbox::source::script::load::{Checked, Listing, Own};
use protocol::approval::TrustState;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The toolbox, and the files that it was made of.
pub(super) struct Known {
    listing: Listing,
    hooks: ShellHooks,
    skills: Vec<Skill>,
    toolbox: Arc<Toolbox>,
}

/// Whether a directory's own files count now; blocks on the disk.
pub(super) fn own(shared: &Shared, cwd: &Path) -> Own {
    own_in(shared.trusts.standing(cwd).trust.state)
}

fn own_in(state: TrustState) -> Own {
    match state {
        TrustState::Trusted => Own::Trusted,
        TrustState::Nothing | TrustState::Undecided | TrustState::Changed | TrustState::Refused => {
            Own::Ignored
        }
    }
}

impl Known {
    pub(super) fn only(builtins: Arc<Toolbox>) -> Self {
        Self {
            listing: Listing::default(),
            hooks: ShellHooks::default(),
            skills: Vec::new(),
            toolbox: builtins,
        }
    }
}

/// What there is on the disk now.
struct Read {
    plain: Arc<Toolbox>,
    plugins: Vec<plugins::Found>,
    servers: servers::Files,
}

impl Workspace {
    /// Its tools as they were when somebody last asked for the current ones, without those of plugins and servers.
    pub(super) fn plain(&self) -> Arc<Toolbox> {
        Arc::clone(&self.known().toolbox)
    }

    /// Its tools as the files are now. Plugins that are new are started first.
    pub async fn current(self: &Arc<Self>) -> Arc<Toolbox> {
        let workspace = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || workspace.read());
        match reading.await {
            Ok(Read {
                plain,
                plugins,
                servers,
            }) => {
                let equipped = self.equipped(plain, plugins).await;
                self.served(equipped, servers).await
            }
            Err(_) => self.toolbox(),
        }
    }

    fn read(&self) -> Read {
        let standing = self.shared.trusts.standing(&self.cwd);
        let state = standing.trust.state;
        Read {
            plain: self.read_plain(state),
            plugins: plugins::found(&self.shared, &self.cwd, state),
            servers: servers::found(&self.shared, &self.cwd, &standing),
        }
    }

    fn read_plain(&self, state: TrustState) -> Arc<Toolbox> {
        let own = own_in(state);
        let hooks = hooks::of(&self.shared, &self.cwd, state);
        let skills = skills::of(&self.shared, &self.cwd);
        let listing = self.shared.scripts.list(&self.cwd, own);
        {
            let known = self.known();
            if known.listing == listing && known.hooks == hooks && known.skills == skills {
                return Arc::clone(&known.toolbox);
            }
        }
        let toolbox = self.make(&listing, &hooks, &skills);
        *self.known() = Known {
            listing,
            hooks,
            skills,
            toolbox: Arc::clone(&toolbox),
        };
        toolbox
    }

    fn make(&self, listing: &Listing, hooks: &ShellHooks, skills: &[Skill]) -> Arc<Toolbox> {
        let loaded = self.shared.scripts.load(listing, None);
        let mut toolbox = Toolbox::clone(&self.shared.builtins());
        skills::add_to(&mut toolbox, skills);
        for tool in loaded.tools {
            toolbox.add(tool);
        }
        for problem in loaded.problems {
            toolbox.problem(problem);
        }
        hooks.add_to(&mut toolbox, &self.cwd);
        Arc::new(toolbox)
    }

    /// All that is wrong with its scripts and with what they need.
    pub async fn check(&self, env: BTreeMap<String, String>) -> Result<Checked, String> {
        self.blocking(move |shared, cwd| shared.scripts.check(cwd, &env))
            .await
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.toolbox.lock().expect("no holder panics")
    }
}
