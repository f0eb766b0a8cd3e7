//! Which scripts there are for a directory, and their tools: read anew when something changed, and not before.
//! Must never offer what lies in a directory that is not trusted.

mod check;
mod folder;
mod known;
pub mod syntax;

pub use check::Checked;

use super::agent::{Definition, is_name};
use super::run::{Agent, Root, Script, TIMEOUT, tool};
use super::{Kind, Language};
use crate::toolbox::tool::Tool;
use folder::{File, Folder};
use known::Known;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `script_tools` of the config file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Further folders that hold `tools/`; their `tools.txt` says which of them are offered, when there is one.
    pub roots: Vec<PathBuf>,
    /// Seconds after which a script is stopped that names no time of its own; 120 if not given.
    pub timeout: Option<u64>,
    /// Seconds by the name of a tool, before what its script says.
    pub timeouts: BTreeMap<String, u64>,
}

/// All that is known of scripts; a cheap handle.
#[derive(Clone)]
pub struct Scripts {
    shared: Arc<Shared>,
}

struct Shared {
    settings: Settings,
    home: PathBuf,
    /// Holds what is kept for scripts.
    state: PathBuf,
    known: Known,
    /// Agents by their folders, as they last could be read.
    agents: Mutex<HashMap<PathBuf, Definition>>,
}

/// Whether a directory's own files count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Own {
    Trusted,
    Ignored,
}

/// The files of one moment. Two that are equal give the same tools.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Listing {
    files: Vec<File>,
    problems: Vec<String>,
}

impl Listing {
    /// Whether there is nothing to be told of.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.problems.is_empty()
    }
}

/// The files of an agent's own tools, and which shared ones it chooses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentFiles {
    listing: Listing,
    /// Names of files in `tools/`; none chooses all.
    pub chosen: Option<Vec<String>>,
    /// Why its index cannot be read now, where it goes on as it last could.
    pub outdated: Option<String>,
}

impl AgentFiles {
    pub fn listing(&self) -> &Listing {
        &self.listing
    }
}

/// Tools, and what is wrong with files that gave none.
#[derive(Default)]
pub struct Loaded {
    pub tools: Vec<Tool>,
    pub problems: Vec<String>,
}

impl Scripts {
    pub fn new(settings: Settings, home: &Path, state_dir: &Path) -> Self {
        let shared = Shared {
            settings,
            home: home.to_owned(),
            state: state_dir.join("scripts"),
            known: Known::default(),
            agents: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What there is now; blocks on the disk.
    pub fn list(&self, cwd: &Path, own: Own) -> Listing {
        let mut listing = Listing::default();
        for folder in self.folders(cwd, own) {
            folder.list(&mut listing);
        }
        listing
    }

    /// The folders that are there whose files decide what `list` gives, and what these agents have.
    pub fn places(&self, cwd: &Path, own: Own, agents: &[String]) -> BTreeSet<PathBuf> {
        let mut places = BTreeSet::new();
        for folder in self.folders(cwd, own) {
            places.extend(folder.places());
            places.extend(agents.iter().map(|agent| folder.agent(agent)));
        }
        places.retain(|place| place.is_dir());
        places
    }

    /// The agents there are, by name, and what is wrong with others; blocks on the disk.
    pub fn agents(&self, cwd: &Path, own: Own) -> (Vec<Definition>, Vec<String>) {
        let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
        for folder in self.folders(cwd, own) {
            for dir in folder.agents() {
                match Definition::read(&dir) {
                    Ok(agent) => drop(found.insert(agent.name.clone(), agent)),
                    Err(why) => problems.push(why),
                }
            }
        }
        (found.into_values().collect(), problems)
    }

    /// An agent, and the files of its own tools; blocks on the disk.
    pub fn agent(
        &self,
        cwd: &Path,
        own: Own,
        name: &str,
    ) -> Result<(Definition, AgentFiles), String> {
        let folders = self.folders(cwd, own);
        let is_there = |folder: &&Folder| folder.agent(name).join("index.yaml").is_file();
        let Some(folder) = folders
            .iter()
            .rev()
            .find(is_there)
            .filter(|_| is_name(name))
        else {
            let names: Vec<_> = self
                .agents(cwd, own)
                .0
                .into_iter()
                .map(|agent| agent.name)
                .collect();
            let names = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            return Err(format!("no agent is called {name:?}; there are: {names}"));
        };
        let (agent, outdated) = self.definition(&folder.agent(name))?;
        let mut files = folder.list_agent(name);
        if let Some(why) = &outdated {
            let told = format!("{why}; {name} goes on as it was");
            files.listing.problems.push(told);
        }
        files.outdated = outdated;
        Ok((agent, files))
    }

    /// What an agent's folder says, or what it last said, with what is wrong with it now.
    fn definition(&self, dir: &Path) -> Result<(Definition, Option<String>), String> {
        let mut known = self.shared.agents.lock().expect("no holder panics");
        match Definition::read(dir) {
            Ok(agent) => {
                known.insert(dir.to_owned(), agent.clone());
                Ok((agent, None))
            }
            Err(why) => match known.get(dir) {
                Some(agent) => Ok((agent.clone(), Some(why))),
                None => Err(why),
            },
        }
    }

    /// The script that holds an agent's own functions.
    pub fn agent_script(&self, files: &AgentFiles, agent: &Arc<Agent>) -> Option<Arc<Script>> {
        let file = files
            .listing
            .files
            .iter()
            .find(|file| file.kind == Kind::Agent)?;
        let reading = self.shared.known.read(&file.path, file.kind).ok()?;
        let script = self.script(file, Some(agent), TIMEOUT, &reading.source);
        Some(Arc::new(script))
    }

    /// The folders that hold `tools/`; what comes later wins.
    fn folders(&self, cwd: &Path, own: Own) -> Vec<Folder> {
        let shared = &self.shared;
        let mut folders = Vec::new();
        for root in &shared.settings.roots {
            let dir = match root.strip_prefix("~") {
                Ok(rest) => shared.home.join(rest),
                Err(_) => root.clone(),
            };
            let cache = dir.join("cache");
            folders.push(Folder::named(self.root(dir, Some(cache))));
        }
        folders.push(Folder::usual(self.root(shared.home.join(".agents"), None)));
        // The user's own folder is no workspace's.
        if own == Own::Trusted && cwd != shared.home {
            folders.push(Folder::usual(self.root(cwd.join(".agents"), None)));
        }
        folders
    }

    fn root(&self, dir: PathBuf, cache: Option<PathBuf>) -> Arc<Root> {
        let digest = Sha256::digest(dir.as_os_str().as_encoded_bytes());
        let short: String = digest
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let cache = cache.unwrap_or_else(|| self.shared.state.join("cache").join(short));
        Arc::new(Root {
            dir,
            cache,
            bin: self.shared.state.join("bin"),
        })
    }

    /// The tools of a listing; blocks on the disk.
    pub fn load(&self, listing: &Listing, agent: Option<&Arc<Agent>>) -> Loaded {
        let mut loaded = Loaded {
            problems: listing.problems.clone(),
            ..Loaded::default()
        };
        let mut homes: HashMap<String, PathBuf> = HashMap::new();
        for file in &listing.files {
            for tool in self.tools(file, agent, &mut loaded.problems) {
                let earlier = homes.insert(tool.name().to_owned(), file.path.clone());
                if let Some(earlier) =
                    earlier.filter(|earlier| earlier.parent() == file.path.parent())
                {
                    loaded.problems.push(format!(
                        "{}: the tool {} is {} too, which is not offered",
                        file.path.display(),
                        tool.name(),
                        earlier.display()
                    ));
                }
                loaded.tools.push(tool);
            }
        }
        loaded
    }

    fn script(
        &self,
        file: &File,
        agent: Option<&Arc<Agent>>,
        timeout: Duration,
        source: &Arc<[u8]>,
    ) -> Script {
        let agent = agent.filter(|_| file.kind == Kind::Agent);
        Script {
            file: file.path.clone(),
            language: file.language,
            name: agent.map_or_else(|| file.stem(), |agent| agent.name.clone()),
            root: Arc::clone(&file.root),
            agent: agent.cloned(),
            timeout,
            source: Arc::clone(source),
        }
    }

    fn tools(
        &self,
        file: &File,
        agent: Option<&Arc<Agent>>,
        problems: &mut Vec<String>,
    ) -> Vec<Tool> {
        let reading = match self.shared.known.read(&file.path, file.kind) {
            Ok(reading) => reading,
            Err(why) => {
                problems.push(why);
                return Vec::new();
            }
        };
        problems.extend(reading.problem.clone());
        let declared = &reading.declared;
        if declared.declarations.is_empty() {
            let warnings = declared
                .warnings
                .iter()
                .map(|warning| warning.told(&file.path));
            problems.extend(warnings);
        }
        let tool_of = |declaration: &Arc<super::Declaration>| {
            let timeout = self.timeout(&declaration.name, reading.timeout);
            let script = self.script(file, agent, timeout, &reading.source);
            tool(&Arc::new(script), declaration)
        };
        reading.shared.iter().map(tool_of).collect()
    }

    fn timeout(&self, name: &str, own: Option<Duration>) -> Duration {
        let settings = &self.shared.settings;
        let set = settings.timeouts.get(name).copied();
        set.map(Duration::from_secs)
            .or(own)
            .or(settings.timeout.map(Duration::from_secs))
            .unwrap_or(TIMEOUT)
    }
}

#[cfg(test)]
mod tests;
