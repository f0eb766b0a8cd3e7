//! Which files name servers, and what stands in them. Must never take a directory's own for read that is another than the
//! one that was trusted.

use crate::toolbox::source::mcp::config::{self, Listing, Text};
use crate::workspace::scan::digest_of;
use crate::workspace::trust::Standing;
use crate::workspace::{Shared, file};
use protocol::approval::TrustState;
use std::path::{Path, PathBuf};

const NAME: &str = ".agents/mcp.json";
/// More than this is no list of servers.
const LONGEST: u64 = 1024 * 1024;

/// The files that count, in their order: a later one wins by a server's name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::workspace) struct Files(Vec<Found>);

#[derive(Clone, Debug, PartialEq)]
struct Found {
    path: PathBuf,
    /// What is relative in it is so to this; none is the session's directory.
    folder: Option<PathBuf>,
    /// Where its programs start that say nothing of it. Never in a directory that nobody has trusted: what is looked for there
    /// first (`node_modules` by `npx`, packages by `python -m`) would run.
    start: PathBuf,
    text: Result<Vec<u8>, String>,
}

/// Those of the folders of script tools, the user's, and a trusted directory's own; blocks on the disk.
pub(in crate::workspace) fn of(shared: &Shared, cwd: &Path, standing: &Standing) -> Files {
    let mut all = Vec::new();
    let home = &shared.places.home;
    for root in &shared.places.script_tools.roots {
        let root = match root.strip_prefix("~") {
            Ok(rest) => home.join(rest),
            Err(_) => root.clone(),
        };
        all.extend(found(root.join("mcp.json"), Some(root.clone()), root));
    }
    all.extend(found(home.join(NAME), None, home.clone()));
    if standing.trust.state == TrustState::Trusted && home != cwd {
        let digest = standing.scan.files.get(NAME);
        let known = |found: &Found| match &found.text {
            Ok(bytes) => digest.is_some_and(|digest| digest.ends_with(&digest_of(bytes))),
            Err(_) => true,
        };
        all.extend(found(cwd.join(NAME), None, cwd.to_owned()).filter(known));
    }
    Files(all)
}

/// As `of`, for who has not looked at the directory yet.
pub(super) fn of_workspace(shared: &Shared, cwd: &Path) -> Files {
    of(shared, cwd, &shared.trusts.standing(cwd))
}

/// What is wrong with the file of a folder, a person's or a directory's own, as one could see who has this process's variables.
pub(in crate::workspace) fn faults(folder: &Path) -> Vec<String> {
    let own = found(folder.join(NAME), None, folder.to_owned());
    let files = Files(own.into_iter().collect());
    let variable = |name: &str| match name {
        super::WORKSPACE => folder.to_str().map(str::to_owned),
        name => std::env::var(name).ok(),
    };
    files.read(folder, &variable).problems
}

fn found(path: PathBuf, folder: Option<PathBuf>, start: PathBuf) -> Option<Found> {
    let text = file::read(&path, LONGEST).transpose()?;
    Some(Found {
        text: text.map_err(|error| error.to_string()),
        path,
        folder,
        start,
    })
}

impl Files {
    pub(super) fn read(&self, cwd: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Listing {
        let mut all = Listing::default();
        for found in &self.0 {
            all.then(match &found.text {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(bytes);
                    let text = Text {
                        path: &found.path,
                        text: &text,
                        folder: found.folder.as_deref().unwrap_or(cwd),
                        start: &found.start,
                    };
                    config::read(&text, variable)
                }
                Err(why) => Listing {
                    problems: vec![format!("cannot read {}: {why}", found.path.display())],
                    ..Listing::default()
                },
            });
        }
        all.part();
        all
    }
}
