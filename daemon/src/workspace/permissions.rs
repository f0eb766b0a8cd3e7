//! `permissions.json` of the user and of the workspace: reading both, and writing a person's `always` into the latter.
//! Must never take a malformed file for an empty one, nor lose what another wrote into it.

use super::Places;
use super::file;
use super::scan::digest_of;
use super::trust::{Standing, Trusts};
use crate::toolbox::permission::Files;
use crate::toolbox::permission::rules::{Rules, Trusted};
use protocol::approval::{TrustFile, TrustState};
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};

const LONGEST: u64 = 1024 * 1024;
/// As `scan` names it.
pub(super) const NAME: &str = ".agents/permissions.json";

/// Both files as they are now.
pub(super) fn load(places: &Places, cwd: &Path, standing: &Standing) -> Files {
    let mut files = Files {
        home: Some(places.home.clone()),
        ..Files::default()
    };
    let user = places.home.join(NAME);
    let own = cwd.join(NAME);
    let user_rules = read(&user).and_then(|bytes| parse(&user, bytes.as_deref()));
    match user_rules {
        Ok(rules) => files.user = rules,
        Err(problem) => files.problems.push(problem),
    }
    // A session in the home directory: the same file is the user's, not a stranger's.
    if same(&user, &own) {
        return files;
    }
    let counts = counts(standing);
    if counts == Counts::Nothing {
        return files;
    }
    let bytes = read(&own);
    if bytes
        .as_ref()
        .is_ok_and(|bytes| !is_known(standing, bytes.as_deref()))
    {
        return files;
    }
    if counts == Counts::Whole {
        files.trusted = Trusted::Yes;
    }
    match bytes.and_then(|bytes| parse(&own, bytes.as_deref())) {
        Ok(rules) => files.workspace = rules,
        Err(problem) => files.problems.push(problem),
    }
    files
}

/// What counts of the directory's own file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    Whole,
    /// What it forbids and asks: it is as it was when it was trusted, but something beside it has changed. Otherwise
    /// adding a file would be a way to get rid of a rule.
    Restrictions,
    Nothing,
}

fn counts(standing: &Standing) -> Counts {
    let is_ours = |file: &&TrustFile| file.path == NAME;
    let changed = standing
        .trust
        .files
        .iter()
        .find(is_ours)
        .is_none_or(|file| file.changed);
    match standing.trust.state {
        TrustState::Trusted => Counts::Whole,
        TrustState::Changed if standing.agreed && !changed => Counts::Restrictions,
        TrustState::Changed | TrustState::Nothing | TrustState::Undecided | TrustState::Refused => {
            Counts::Nothing
        }
    }
}

/// Trust is in the very content that was read, not in what the file held a moment ago.
fn is_known(standing: &Standing, bytes: Option<&[u8]>) -> bool {
    let known = standing.scan.files.get(NAME).map(|digest| plain(digest));
    bytes.is_none() || bytes.map(digest_of).as_deref() == known
}

/// What is wrong with a directory's file, for whoever is asked to trust it.
pub(super) fn problem(cwd: &Path) -> Option<String> {
    let own = cwd.join(NAME);
    let checked = match file::read(&own, LONGEST) {
        Ok(bytes) => rules(bytes.as_deref()),
        Err(why) => Err(why.to_string()),
    };
    checked.err()
}

/// What is wrong with the file of a folder, a person's or a directory's own.
pub(super) fn fault(folder: &Path) -> Option<String> {
    let path = folder.join(NAME);
    let rules = read(&path).and_then(|bytes| parse(&path, bytes.as_deref()));
    rules.err()
}

/// The digest of the content in a scan's entry.
fn plain(digest: &str) -> &str {
    digest.rsplit([':', ' ']).next().unwrap_or(digest)
}

fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    file::read(path, LONGEST).map_err(|why| cannot(path, &why))
}

fn parse(path: &Path, bytes: Option<&[u8]>) -> Result<Rules, String> {
    rules(bytes).map_err(|why| cannot(path, &why))
}

fn rules(bytes: Option<&[u8]>) -> Result<Rules, String> {
    let Some(bytes) = bytes else {
        return Ok(Rules::default());
    };
    let text = std::str::from_utf8(bytes).map_err(|why| why.to_string())?;
    Rules::parse(text)
}

fn cannot(path: &Path, why: &dyn std::fmt::Display) -> String {
    format!(
        "cannot read the permissions in {}: {why}; every call is asked about",
        path.display()
    )
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path);
    matches!((real(a), real(b)), (Ok(a), Ok(b)) if a == b)
}

/// Adds an `allow` to the workspace's file and keeps the trust in it. In the home directory that file is the user's own.
pub(super) fn allow(
    places: &Places,
    trusts: &Trusts,
    cwd: &Path,
    tool: &str,
    pattern: &str,
) -> Result<(), String> {
    let path = cwd.join(NAME);
    let failed = |why: &dyn std::fmt::Display| format!("cannot write {}: {why}", path.display());
    let _lock = trusts.lock_files().map_err(|why| failed(&why))?;
    let before = file::read(&path, LONGEST).map_err(|why| failed(&why))?;
    if same(&places.home, cwd) {
        return rewrite(&path, before.as_deref(), tool, pattern)
            .map(drop)
            .map_err(|why| failed(&why));
    }
    let standing = trusts.standing(cwd);
    match standing.trust.state {
        TrustState::Trusted | TrustState::Nothing => {}
        TrustState::Undecided | TrustState::Refused | TrustState::Changed => {
            return Err(failed(
                &"the directory is not trusted, so a rule in it would not count",
            ));
        }
    }
    let known = standing.scan.files.get(NAME).map(|digest| plain(digest));
    if before.as_deref().map(digest_of).as_deref() != known {
        return Err(failed(&"it changed just now"));
    }
    let after = rewrite(&path, before.as_deref(), tool, pattern).map_err(|why| failed(&why))?;
    trusts.rewrote(cwd, NAME, &standing.scan, &digest_of(&after))
}

fn rewrite(
    path: &Path,
    before: Option<&[u8]>,
    tool: &str,
    pattern: &str,
) -> Result<Vec<u8>, String> {
    let after = added(before, tool, pattern)?;
    write(path, &after).map_err(|why| why.to_string())?;
    Ok(after)
}

/// The file with one more rule; other entries and their order stay.
fn added(before: Option<&[u8]>, tool: &str, pattern: &str) -> Result<Vec<u8>, String> {
    let mut tools: Map<String, Value> = match before {
        None => Map::new(),
        Some(bytes) => {
            let text = std::str::from_utf8(bytes).map_err(|why| why.to_string())?;
            // What is no rule set stays as it is for people to mend.
            Rules::parse(text)?;
            serde_json::from_str(text).map_err(|why| why.to_string())?
        }
    };
    let rules = tools.entry(tool).or_insert_with(|| json!({}));
    if let Value::String(_) = rules {
        // A policy for the whole tool is the widest pattern.
        *rules = json!({"*": rules.clone()});
    }
    if let Value::Object(rules) = rules {
        rules.insert(pattern.to_owned(), json!("allow"));
    }
    let mut bytes = serde_json::to_vec_pretty(&tools).map_err(|why| why.to_string())?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().map(PathBuf::from).unwrap_or_default();
    std::fs::create_dir_all(&folder)?;
    for path in [folder.as_path(), path] {
        if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{} is a link", path.display()),
            ));
        }
    }
    file::replace(path, bytes, 0o644)
}
