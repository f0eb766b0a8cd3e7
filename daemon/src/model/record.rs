//! What pulled files were when they were pulled, in a file beside their folder: so that a damaged one is told from a whole
//! one. Must never be the reason why a model is not used: without a record a file counts as it is.

use super::ModelError;
use super::file::{failed, sum};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A pulled file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pulled {
    size: u64,
    sha256: String,
    /// When it was changed last, in milliseconds since the Unix epoch: as long as that holds, its sum does.
    changed_at: u64,
}

type Records = BTreeMap<String, Pulled>;

/// Whether the file is what was pulled, as far as a look at its size tells.
pub(super) fn is_damaged(path: &Path) -> bool {
    let pulled = all(path).remove(&name(path));
    let size = path.metadata().map_or(0, |meta| meta.len());
    pulled.is_some_and(|pulled| pulled.size != size)
}

/// Whether it is whole; reads all of a file that has changed since it was looked at last.
pub(super) fn check(path: &Path) -> Result<bool, ModelError> {
    let Some(pulled) = all(path).remove(&name(path)) else {
        return Ok(true);
    };
    let now = look(path)?;
    if (now.size, now.changed_at) == (pulled.size, pulled.changed_at) {
        return Ok(true);
    }
    if now.size != pulled.size || sum(path, |_| ())? != pulled.sha256 {
        return Ok(false);
    }
    let sha256 = pulled.sha256;
    change(path, |all| {
        drop(all.insert(name(path), Pulled { sha256, ..now }))
    })?;
    Ok(true)
}

/// Notes a file that was just pulled.
pub(super) fn note(path: &Path) -> Result<(), ModelError> {
    let now = look(path)?;
    let sha256 = sum(path, |_| ())?;
    change(path, |all| {
        drop(all.insert(name(path), Pulled { sha256, ..now }))
    })
}

pub(super) fn forget(path: &Path) -> Result<(), ModelError> {
    match all(path).contains_key(&name(path)) {
        true => change(path, |all| drop(all.remove(&name(path)))),
        false => Ok(()),
    }
}

fn look(path: &Path) -> Result<Pulled, ModelError> {
    let meta = path
        .metadata()
        .map_err(|error| failed("read", path, &error))?;
    let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let changed = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Pulled {
        size: meta.len(),
        sha256: String::new(),
        changed_at: u64::try_from(changed.as_millis()).unwrap_or(u64::MAX),
    })
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Beside the folder: whatever lies in it is a model, or on its way to be one.
fn place(path: &Path) -> PathBuf {
    path.parent().unwrap_or(path).with_extension("json")
}

/// What cannot be read is no record.
fn all(path: &Path) -> Records {
    let text = std::fs::read_to_string(place(path)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn change(path: &Path, with: impl FnOnce(&mut Records)) -> Result<(), ModelError> {
    let _turn = turn();
    let mut records = all(path);
    with(&mut records);
    let place = place(path);
    let aside = place.with_extension("json.new");
    let text = serde_json::to_vec_pretty(&records).unwrap_or_default();
    let written = std::fs::write(&aside, text).and_then(|()| std::fs::rename(&aside, &place));
    written.map_err(|error| failed("write", &place, &error))
}

/// Two pulls that end at once write one after the other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_told_by_the_size_and_else_by_the_sum() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join("models");
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("a.gguf");
        let put = |text: &str, at: u64| {
            std::fs::write(&path, text).unwrap();
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            let at = UNIX_EPOCH + std::time::Duration::from_secs(at);
            file.set_modified(at).unwrap();
        };
        let told = || (is_damaged(&path), check(&path).unwrap());
        put("whole", 1);
        assert_eq!(told(), (false, true), "nothing is known of it");
        note(&path).unwrap();
        assert_eq!(told(), (false, true));
        put("whole", 2);
        assert_eq!(told(), (false, true), "only touched");
        put("whale", 3);
        assert_eq!(told(), (false, false));
        put("who", 3);
        assert_eq!(told(), (true, false));
        forget(&path).unwrap();
        assert_eq!(told(), (false, true));
    }
}
