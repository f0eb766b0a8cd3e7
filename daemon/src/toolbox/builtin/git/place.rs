//! Where a repository really lies: its own settings and links may lead git to any place of the disk.
//! Must never run anything but git itself, which only says what it made of them.

use super::ask::ask;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// More than any repository has for honest reasons.
const MOST_ENTRIES: usize = 1000;
const LONGEST: u64 = 64 * 1024;

/// What git found, links followed.
#[derive(Debug, PartialEq)]
struct Place {
    git: PathBuf,
    common: PathBuf,
    /// None of a bare repository.
    files: Option<PathBuf>,
}

/// The error says where a repository leads to that does not lie where its `.git` is. One that git cannot read is none: the
/// command itself says so.
pub(super) async fn check(
    env: &BTreeMap<String, String>,
    cwd: &Path,
    cancel: &CancellationToken,
) -> Result<(), String> {
    // The way up says nothing of a bare repository, and where its files are of one that has them elsewhere. None of these
    // is an error within a repository, so that a word of one is not among them.
    let args = [
        "rev-parse",
        "--absolute-git-dir",
        "--git-common-dir",
        "--show-cdup",
    ];
    let answer = ask(&args, env, cwd, cancel).await?;
    if answer.code != 0 {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&answer.output).into_owned();
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with("warning:"))
        .collect();
    let (git, common, up) = match lines[..] {
        [git, common] => (git, common, None),
        [git, common, up] => (git, common, Some(up)),
        _ => {
            return Err(format!(
                "git does not say where the repository is, but {said:?}"
            ));
        }
    };
    let real = |path: &str| {
        std::fs::canonicalize(cwd.join(path)).map_err(|why| format!("cannot look at {path}: {why}"))
    };
    let place = Place {
        git: real(git)?,
        common: real(common)?,
        files: up.map(real).transpose()?,
    };
    let cwd = real("")?;
    let home = home_of(&cwd, &place)?;
    if !place.git.starts_with(&home) {
        points_back(&place, &home, env, cancel).await?;
    } else if !place.common.starts_with(&home) {
        return Err(outside("its history", &place.common));
    }
    links(&place, &home)
}

/// The directory that all of it is to lie in: the nearest above that has a `.git`, or the bare repository itself.
fn home_of(cwd: &Path, place: &Place) -> Result<PathBuf, String> {
    let has_git = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
    let found = cwd.ancestors().find(has_git);
    match (found, &place.files) {
        (Some(home), Some(files)) if files == home => Ok(home.to_owned()),
        (_, None) if cwd.starts_with(&place.git) => Ok(place.git.clone()),
        (Some(home), None) => Ok(home.to_owned()),
        (_, Some(files)) => Err(outside("its files", files)),
        (None, None) => Err(outside("its history", &place.git)),
    }
}

/// A linked work tree and a submodule have their `.git` elsewhere, and that knows of them.
async fn points_back(
    place: &Place,
    home: &Path,
    env: &BTreeMap<String, String>,
    cancel: &CancellationToken,
) -> Result<(), String> {
    let is_home = |base: &Path, text: &str, tail: &str| {
        let path = std::fs::canonicalize(base.join(text.trim_end()));
        path.is_ok_and(|path| path == home.join(tail))
    };
    let own = text(&place.git.join("gitdir"));
    if !own.is_empty() && place.git.starts_with(&place.common) && is_home(&place.git, &own, ".git")
    {
        return Ok(());
    }
    let config = place.git.join("config").display().to_string();
    let args = ["config", "--file", &config, "--get", "core.worktree"];
    let answer = ask(&args, env, home, cancel).await?;
    let told = String::from_utf8_lossy(&answer.output).into_owned();
    match answer.code {
        0 if place.common == place.git && is_home(&place.git, &told, "") => Ok(()),
        _ => Err(outside("its history", &place.git)),
    }
}

/// Links in the store, and objects that are taken from another one.
fn links(place: &Place, home: &Path) -> Result<(), String> {
    let roots = [home, &place.git, &place.common];
    // What leads to nothing is git's to complain of.
    let leads_out = |path: &Path| {
        let real = std::fs::canonicalize(path).ok()?;
        let is_inside = roots.iter().any(|root| real.starts_with(root));
        (!is_inside).then_some(real)
    };
    let stores = [&place.git, &place.common].into_iter();
    let folders =
        stores.flat_map(|store| ["", "refs", "objects", "info"].map(|name| store.join(name)));
    for link in folders.flat_map(|folder| links_in(&folder)) {
        if let Some(real) = leads_out(&link) {
            return Err(outside(&link.display().to_string(), &real));
        }
    }
    let objects = place.common.join("objects");
    let lent = text(&objects.join("info/alternates"));
    match lent.lines().find_map(|line| leads_out(&objects.join(line))) {
        Some(real) => Err(outside("a part of its history", &real)),
        None => Ok(()),
    }
}

fn links_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let entries = entries.take(MOST_ENTRIES).flatten();
    let is_link = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
    entries.filter(is_link).map(|entry| entry.path()).collect()
}

fn text(path: &Path) -> String {
    let is_small =
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    match is_small {
        true => std::fs::read_to_string(path).unwrap_or_default(),
        false => String::new(),
    }
}

fn outside(what: &str, path: &Path) -> String {
    format!(
        "the repository keeps {what} elsewhere, in {}: run git by execute, if that is wanted",
        path.display()
    )
}
