//! One folder of tools: which of its files are offered. Must never open a file that is not a regular one.

use super::super::{content, has_function};
use super::{AgentFiles, Definition, Kind, Language, Listing, Root, is_name};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The list of the agents that a folder is to have.
const AGENTS: &str = "agents.txt";
/// More than these in one folder nobody wrote by hand.
const FILES: usize = 2_000;
/// A file that changed less than this ago may change again without its times showing it.
const SETTLED: Duration = Duration::from_secs(3);

pub(super) struct Folder {
    root: Arc<Root>,
    /// Whether somebody named it, so that it should be there.
    named: bool,
}

/// A script, as it is now.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) language: Language,
    pub(super) kind: Kind,
    pub(super) root: Arc<Root>,
    stamp: Stamp,
}

/// What changes with a file's content.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Stamp {
    inode: (u64, u64),
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    /// Of a file that may change again within the same tick of the clock.
    digest: Option<[u8; 32]>,
}

impl File {
    pub(super) fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }
}

impl Folder {
    pub(super) fn named(root: Arc<Root>) -> Self {
        Self { root, named: true }
    }

    /// One that may be there or not.
    pub(super) fn usual(root: Arc<Root>) -> Self {
        Self { root, named: false }
    }

    /// Where its files and its list are.
    pub(super) fn places(&self) -> [PathBuf; 2] {
        [self.root.dir.clone(), self.root.dir.join("tools")]
    }

    /// The folders of agents in it, by name.
    pub(super) fn agents(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root.dir.join("agents"))
            .into_iter()
            .flatten();
        let mut found: Vec<_> = entries
            .flatten()
            .filter(|entry| is_name(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .filter(|dir| dir.join("index.yaml").is_file())
            .take(FILES)
            .collect();
        found.sort();
        found
    }

    /// The own tools of all agents in it, and what is wrong with those that cannot be read. What is given back is wrong with
    /// the others.
    pub(super) fn list_agents(&self, listing: &mut Listing) -> Vec<String> {
        let mut warnings = Vec::new();
        listing.problems.extend(self.missing_agents());
        for dir in self.agents() {
            match Definition::read(&dir) {
                Ok(agent) => {
                    warnings.extend(agent.problems());
                    let files = self.list_agent(&agent.name).listing;
                    listing.problems.extend(unsaid(&agent, &files));
                    let own = files
                        .files
                        .into_iter()
                        .filter(|file| file.kind == Kind::Agent);
                    listing.files.extend(own);
                    listing.problems.extend(files.problems);
                }
                Err(why) => listing.problems.push(why),
            }
        }
        warnings
    }

    /// The files of each agent that can be read: its own, and those that it chooses.
    pub(super) fn files_of_agents(&self) -> Vec<Vec<File>> {
        let dirs = self.agents();
        let agents = dirs.iter().filter_map(|dir| Definition::read(dir).ok());
        agents
            .map(|agent| self.list_agent(&agent.name).listing.files)
            .collect()
    }

    /// Those that `agents.txt` names and that are not there.
    fn missing_agents(&self) -> Vec<String> {
        let list = self.root.dir.join(AGENTS);
        let names = match names_in(&list) {
            Ok(names) => names.unwrap_or_default(),
            Err(error) => return vec![format!("cannot read {}: {error}", list.display())],
        };
        let is_missing =
            |name: &String| !is_name(name) || !self.agent(name).join("index.yaml").is_file();
        let missing = names.into_iter().filter(is_missing);
        missing
            .map(|name| format!("{}: no agent is called {name:?}", list.display()))
            .collect()
    }

    pub(super) fn agent(&self, name: &str) -> PathBuf {
        self.root.dir.join("agents").join(name)
    }

    /// An agent's own tools file, and those of `tools/` that it chooses.
    pub(super) fn list_agent(&self, name: &str) -> AgentFiles {
        let dir = self.agent(name);
        let mut files = AgentFiles::default();
        match chosen(&dir) {
            Ok(names) => {
                let tools = self.root.dir.join("tools");
                for name in names.iter().flatten() {
                    self.add(&tools.join(name), &mut files.listing);
                }
                files.chosen = names;
            }
            Err(error) => {
                let list = dir.join("tools.txt");
                let problem = format!("cannot read {}: {error}", list.display());
                files.listing.problems.push(problem);
                // What it chose nobody knows: never more than that.
                files.chosen = Some(Vec::new());
            }
        }
        // What comes later wins: of two tools of one name the agent's own is the one that it means.
        let own = ["sh", "js", "py"].map(|end| dir.join(format!("tools.{end}")));
        if let Some(own) = own.iter().find(|path| path.exists()) {
            self.add_as(own, Kind::Agent, &mut files.listing);
        }
        files
    }

    pub(super) fn list(&self, listing: &mut Listing) {
        let tools = self.root.dir.join("tools");
        match chosen(&self.root.dir) {
            Ok(Some(names)) => {
                for name in names {
                    self.add(&tools.join(name), listing);
                }
            }
            Ok(None) => self.all(&tools, listing),
            Err(error) => {
                let list = self.root.dir.join("tools.txt");
                listing
                    .problems
                    .push(format!("cannot read {}: {error}", list.display()));
            }
        }
    }

    fn all(&self, tools: &Path, listing: &mut Listing) {
        let entries = match fs::read_dir(tools) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.named => return,
            Err(error) => {
                listing
                    .problems
                    .push(format!("cannot read {}: {error}", tools.display()));
                return;
            }
        };
        let mut paths: Vec<_> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| is_offered(path))
            .take(FILES + 1)
            .collect();
        if paths.len() > FILES {
            let tools = tools.display();
            listing.problems.push(format!(
                "{tools} has more than {FILES} scripts; the rest is left out"
            ));
        }
        paths.sort();
        paths.truncate(FILES);
        for path in paths {
            self.add(&path, listing);
        }
    }

    fn add(&self, path: &Path, listing: &mut Listing) {
        self.add_as(path, Kind::Tool, listing);
    }

    fn add_as(&self, path: &Path, kind: Kind, listing: &mut Listing) {
        let Some(language) = Language::of(path) else {
            let why = "no .sh, .js, .mjs, .cjs or .py";
            listing.problems.push(format!("{}: {why}", path.display()));
            return;
        };
        match stamp(path) {
            Ok(stamp) => listing.files.push(File {
                path: path.to_owned(),
                language,
                kind,
                root: Arc::clone(&self.root),
                stamp,
            }),
            Err(error) => listing
                .problems
                .push(format!("cannot read {}: {error}", path.display())),
        }
    }
}

/// Why an agent whose instructions a function gives has none.
fn unsaid(agent: &Definition, files: &Listing) -> Option<String> {
    const FUNCTION: &str = "_instructions";
    if !agent.index.dynamic_instructions {
        return None;
    }
    let index = agent.dir.join("index.yaml");
    let index = index.display();
    let own = files.files.iter().find(|file| file.kind == Kind::Agent);
    let Some(own) = own else {
        return Some(format!(
            "{index}: dynamic_instructions needs tools.sh, tools.js or tools.py with a function {FUNCTION}, and there is none"
        ));
    };
    let bytes = content::read(&own.path).ok()?;
    let has = has_function(own.language, &bytes, FUNCTION);
    (!has).then(|| {
        let how = match own.language {
            Language::Bash => ", declared by @cmd",
            Language::JavaScript => " that it exports",
            Language::Python => "",
        };
        let file = own.path.display();
        format!(
            "{index}: dynamic_instructions needs a function {FUNCTION}{how}, and {file} has none"
        )
    })
}

fn chosen(dir: &Path) -> io::Result<Option<Vec<String>>> {
    names_in(&dir.join("tools.txt"))
}

/// The names in a list; a line that begins with `#` is none.
fn names_in(list: &Path) -> io::Result<Option<Vec<String>>> {
    let text = match fs::read_to_string(list) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(Some(names.map(str::to_owned).collect()))
}

/// A script that is not hidden, as an editor's copies are.
fn is_offered(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    !name.starts_with('.') && Language::of(path).is_some()
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let found = fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    let changed = SystemTime::UNIX_EPOCH
        + Duration::from_secs(u64::try_from(found.ctime().max(found.mtime())).unwrap_or(0));
    let settled = changed.elapsed().is_ok_and(|age| age > SETTLED);
    let digest = match settled {
        true => None,
        false => Some(Sha256::digest(content::read(path)?).into()),
    };
    Ok(Stamp {
        inode: (found.dev(), found.ino()),
        size: found.len(),
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
        digest,
    })
}
