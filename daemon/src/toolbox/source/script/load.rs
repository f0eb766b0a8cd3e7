//! Which scripts there are for a directory, and their tools: read anew when something changed, and not before.
//! Must never offer what lies in a directory that is not trusted.

mod check;
mod folder;
mod known;

pub use check::Checked;

use super::run::{Root, Script, TIMEOUT, tool};
use super::{Kind, Language};
use crate::toolbox::tool::Tool;
use folder::{File, Folder};
use known::Known;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
        folders.push(Folder::users(self.root(shared.home.join(".agents"), None)));
        // The user's own folder is no workspace's.
        if own == Own::Trusted && cwd != shared.home {
            folders.push(Folder::workspaces(self.root(cwd.join(".agents"), None)));
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
    pub fn load(&self, listing: &Listing) -> Loaded {
        let mut loaded = Loaded {
            problems: listing.problems.clone(),
            ..Loaded::default()
        };
        let mut homes: HashMap<String, PathBuf> = HashMap::new();
        for file in &listing.files {
            for tool in self.tools(file, &mut loaded.problems) {
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

    fn tools(&self, file: &File, problems: &mut Vec<String>) -> Vec<Tool> {
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
            let script = Script {
                file: file.path.clone(),
                language: file.language,
                name: file.stem(),
                root: Arc::clone(&file.root),
                agent: None,
                timeout: self.timeout(&declaration.name, reading.timeout),
                digest: file.guarded.then_some(reading.digest),
            };
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
