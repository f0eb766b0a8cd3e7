//! A workspace's toolbox: what is built in, what is found beside, and the shell's hooks. Made anew when the files are
//! others than before. Must never offer what lies in a directory that is not trusted.

use super::hooks::{self, ShellHooks};
use super::skills::{self, Skill};
use super::trust::Standing;
use super::{Shared, Workspace, plugins, servers};
use crate::toolbox::Toolbox;
use crate::toolbox::source::script::load::{Checked, Listing, Own, syntax};
use protocol::approval::TrustState;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The toolbox, and the files that it was made of.
pub(super) struct Known {
    listing: Listing,
    hooks: ShellHooks,
    skills: Vec<Skill>,
    toolbox: Arc<Toolbox>,
    /// What is wrong with scripts, where they were ever looked at.
    told: Option<Vec<String>>,
    own: Own,
    /// Agents whose files are looked at too, and what is wrong with those.
    agents: BTreeMap<String, Vec<String>>,
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
            told: None,
            own: Own::Ignored,
            agents: BTreeMap::new(),
        }
    }
}

/// What there is on the disk now.
struct Read {
    plain: Arc<Toolbox>,
    plugins: Vec<plugins::Found>,
    servers: servers::Files,
}

/// What was not wrong before.
fn fresh(problems: &[String], before: &[String]) -> Vec<String> {
    let is_new = |problem: &&String| !before.contains(problem);
    problems.iter().filter(is_new).cloned().collect()
}

impl Known {
    /// What people who work here should be told. Whoever comes is told all of it anyhow, so of the first look nothing.
    fn news(&self, problems: &[String], own: Own) -> Vec<String> {
        let Some(before) = &self.told else {
            return Vec::new();
        };
        let mut news = fresh(problems, before);
        if (self.own, own) == (Own::Trusted, Own::Ignored) {
            news.push(
                "files in .agents were changed, so nothing of it counts until somebody agrees again: `dwell trust yes`"
                    .to_owned(),
            );
        }
        news
    }
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

    fn read(self: &Arc<Self>) -> Read {
        let standing = self.shared.trusts.standing(&self.cwd);
        let state = standing.trust.state;
        Read {
            plain: self.read_plain(&standing),
            plugins: plugins::found(&self.shared, &self.cwd, state),
            servers: servers::found(&self.shared, &self.cwd, &standing),
        }
    }

    fn read_plain(self: &Arc<Self>, standing: &Standing) -> Arc<Toolbox> {
        let own = own_in(standing.trust.state);
        let hooks = hooks::of(&self.shared, &self.cwd, standing);
        let skills = skills::of(&self.shared, &self.cwd);
        let listing = self.shared.scripts.list(&self.cwd, own);
        self.watch(&listing, own);
        {
            let mut known = self.known();
            if known.listing == listing && known.hooks == hooks && known.skills == skills {
                known.told.get_or_insert_default();
                known.own = own;
                return Arc::clone(&known.toolbox);
            }
        }
        let (toolbox, problems) = self.make(&listing, &hooks, &skills);
        let news = {
            let mut known = self.known();
            let news = known.news(&problems, own);
            known.listing = listing;
            known.hooks = hooks;
            known.skills = skills;
            known.toolbox = Arc::clone(&toolbox);
            known.told = Some(problems);
            known.own = own;
            news
        };
        self.tell(news);
        toolbox
    }

    /// The folders that scripts are in, where there are any.
    fn watch(self: &Arc<Self>, listing: &Listing, own: Own) {
        let agents: Vec<_> = self.known().agents.keys().cloned().collect();
        let folders = match listing.is_empty() && agents.is_empty() {
            true => BTreeSet::new(),
            false => self.shared.scripts.places(&self.cwd, own, &agents),
        };
        self.watching.set(self, folders);
    }

    /// After an edit: what is wrong now is told at once.
    pub(super) async fn look(self: &Arc<Self>) {
        let workspace = Arc::clone(self);
        let looking = tokio::task::spawn_blocking(move || {
            workspace.read_plain(&workspace.shared.trusts.standing(&workspace.cwd));
            let agents: Vec<_> = workspace.known().agents.keys().cloned().collect();
            for agent in agents {
                let own = own(&workspace.shared, &workspace.cwd);
                let found = workspace.shared.scripts.agent(&workspace.cwd, own, &agent);
                let problems = match found {
                    Ok((_, files)) => {
                        workspace
                            .shared
                            .scripts
                            .load(files.listing(), None)
                            .problems
                    }
                    Err(why) => vec![why],
                };
                workspace.knows_agent(&agent, &problems);
            }
        });
        if let Err(error) = looking.await {
            tracing::warn!(%error, "edited scripts were not looked at");
        }
    }

    /// An agent works here: its files are looked at too, and what is new and wrong with them is told.
    pub(super) fn knows_agent(&self, agent: &str, problems: &[String]) {
        let news = {
            let mut known = self.known();
            let before = known.agents.insert(agent.to_owned(), problems.to_vec());
            before.map_or(Vec::new(), |before| fresh(problems, &before))
        };
        self.tell(news);
    }

    fn tell(&self, news: Vec<String>) {
        if let Some(tell) = self.shared.tell.get() {
            news.iter().for_each(|text| tell(&self.cwd, text));
        }
    }

    fn make(
        &self,
        listing: &Listing,
        hooks: &ShellHooks,
        skills: &[Skill],
    ) -> (Arc<Toolbox>, Vec<String>) {
        let loaded = self.shared.scripts.load(listing, None);
        let mut toolbox = Toolbox::clone(&self.shared.builtins());
        skills::add_to(&mut toolbox, skills);
        for tool in loaded.tools {
            toolbox.add(tool);
        }
        for problem in &loaded.problems {
            toolbox.problem(problem);
        }
        hooks.add_to(&mut toolbox, &self.cwd);
        (Arc::new(toolbox), loaded.problems)
    }

    /// All that is wrong with its scripts and with what they need.
    pub async fn check(&self, env: BTreeMap<String, String>) -> Result<Checked, String> {
        let places = env.clone();
        let checking = self.blocking(move |shared, cwd| {
            let builtins = shared.builtins();
            let is_builtin = |name: &str| builtins.tools().iter().any(|tool| tool.name() == name);
            shared.scripts.check(cwd, &places, is_builtin)
        });
        let mut checked = checking.await?;
        let faults = syntax::faults(std::mem::take(&mut checked.sources), &env).await;
        checked.problems.extend(faults);
        Ok(checked)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.toolbox.lock().expect("no holder panics")
    }
}
