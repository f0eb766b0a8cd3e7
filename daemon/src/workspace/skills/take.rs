//! Puts skills that a person has seen into their home. Must never leave half of one, nor replace one that was not named.

use super::site::Offered;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// More of one name are kept by nobody.
const OLD: usize = 1000;

/// Which of them are put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    Keep,
    Replace,
}

/// What became of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    New(PathBuf),
    /// What was there is kept, if it had anything that the new one has not.
    Replaced {
        place: PathBuf,
        kept: Option<PathBuf>,
    },
    /// There is one of that name, which was left alone.
    Kept(PathBuf),
}

/// Blocks on the disk.
pub(super) fn take(folder: &Path, skill: &Offered, existing: Existing) -> Result<Taken, String> {
    let place = folder.join(&skill.name);
    let cannot = |error: io::Error| format!("cannot put {} there: {error}", place.display());
    let is_there = std::fs::symlink_metadata(&place).is_ok();
    if is_there && existing == Existing::Keep {
        return Ok(Taken::Kept(place));
    }
    std::fs::create_dir_all(folder).map_err(cannot)?;
    // Beside it, so that it gets its name whole or not at all; a leading dot is no skill's.
    let beside = tempfile_in(folder, &skill.name).map_err(cannot)?;
    let put = write(&beside.new, skill).and_then(|()| match is_there {
        true => std::fs::rename(&place, &beside.old)
            .and_then(|()| std::fs::rename(&beside.new, &place))
            .inspect_err(|_| drop(std::fs::rename(&beside.old, &place))),
        false => std::fs::rename(&beside.new, &place),
    });
    // Whatever goes wrong, what was there is either back in its place or stays where it was put.
    let kept = match put {
        Ok(()) if is_there && !is_within(&beside.old, skill) => {
            Some(keep(folder, &skill.name, &beside.old).map_err(cannot)?)
        }
        Ok(()) => None,
        Err(error) => {
            if std::fs::symlink_metadata(&beside.old).is_err() {
                beside.clear();
            }
            return Err(cannot(error));
        }
    };
    beside.clear();
    Ok(match is_there {
        true => Taken::Replaced { place, kept },
        false => Taken::New(place),
    })
}

/// Whether all that was there is in the new one as it was.
fn is_within(old: &Path, skill: &Offered) -> bool {
    let is_folder = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
    let mut folders = vec![old.to_owned()];
    if !is_folder(old) {
        return false;
    }
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            return false;
        };
        for entry in entries {
            let Ok(path) = entry.map(|entry| entry.path()) else {
                return false;
            };
            if is_folder(&path) {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(old).ok().and_then(Path::to_str);
            let new = name.and_then(|name| skill.files.get(name));
            let is_same = |new: &Vec<u8>| {
                let found = std::fs::symlink_metadata(&path);
                found.is_ok_and(|found| found.is_file() && found.len() == new.len() as u64)
                    && std::fs::read(&path).is_ok_and(|old| old == *new)
            };
            if !new.is_some_and(is_same) {
                return false;
            }
        }
    }
    true
}

/// Gives what was there a name that no skill has, and none that is taken.
fn keep(folder: &Path, name: &str, old: &Path) -> io::Result<PathBuf> {
    let numbered = (2..OLD).map(|number| format!(".{name}.old-{number}"));
    let names = std::iter::once(format!(".{name}.old")).chain(numbered);
    let free = names
        .map(|name| folder.join(name))
        .find(|path| std::fs::symlink_metadata(path).is_err());
    let place = free.ok_or_else(|| io::Error::other("too many old ones are kept beside it"))?;
    std::fs::rename(old, &place)?;
    Ok(place)
}

struct Beside {
    folder: PathBuf,
    new: PathBuf,
    old: PathBuf,
}

impl Beside {
    fn clear(&self) {
        // What cannot be removed is no skill: its name begins with a dot.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn tempfile_in(folder: &Path, name: &str) -> io::Result<Beside> {
    let thread = std::thread::current().id();
    let own = folder.join(format!(".{name}.{}.{thread:?}", std::process::id()));
    std::fs::create_dir(&own)?;
    Ok(Beside {
        new: own.join("new"),
        old: own.join("old"),
        folder: own,
    })
}

fn write(folder: &Path, skill: &Offered) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    for (path, bytes) in &skill.files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        file.write_all(bytes)?;
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn skill(text: &str) -> Offered {
        let files = [("SKILL.md", text), ("scripts/a.py", "x")];
        Offered {
            name: "pdf".to_owned(),
            description: String::new(),
            files: files
                .map(|(path, text)| (path.to_owned(), text.into()))
                .into(),
        }
    }

    #[test]
    fn skill_is_put_there_whole_and_replaced_only_when_that_was_said() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".agents/skills");
        let place = folder.join("pdf");
        let read = || fs::read_to_string(place.join("SKILL.md")).unwrap();
        let first = take(&folder, &skill("one"), Existing::Keep).unwrap();
        assert_eq!((first, read().as_str()), (Taken::New(place.clone()), "one"));
        let kept = take(&folder, &skill("two"), Existing::Keep).unwrap();
        assert_eq!((kept, read().as_str()), (Taken::Kept(place.clone()), "one"));
        fs::write(place.join("own.txt"), "").unwrap();
        let replace = |text: &str| match take(&folder, &skill(text), Existing::Replace).unwrap() {
            Taken::Replaced { place: at, kept } if at == place => kept,
            other => panic!("{other:?}"),
        };
        let old = replace("two").unwrap();
        assert_eq!(
            (old.as_path(), read().as_str()),
            (&*folder.join(".pdf.old"), "two")
        );
        assert!(place.join("scripts/a.py").exists() && !place.join("own.txt").exists());
        assert!(old.join("own.txt").exists());
        assert_eq!(fs::read_to_string(old.join("SKILL.md")).unwrap(), "one");
        assert_eq!(replace("two"), None, "there was nothing else in it");
        assert_eq!(replace("three"), Some(folder.join(".pdf.old-2")));
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            3,
            "nothing else is left beside it"
        );
    }

    #[test]
    fn link_in_the_place_of_a_skill_is_kept_as_the_link_that_it_is() {
        let home = tempfile::tempdir().unwrap();
        let (folder, own) = (home.path().join("skills"), home.path().join("own"));
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(&own).unwrap();
        std::os::unix::fs::symlink(&own, folder.join("pdf")).unwrap();
        take(&folder, &skill("one"), Existing::Replace).unwrap();
        assert_eq!(fs::read_link(folder.join(".pdf.old")).unwrap(), own);
        assert!(own.exists() && folder.join("pdf/SKILL.md").exists());
    }

    #[test]
    fn place_that_cannot_be_written_keeps_what_was_there() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        let folder = home.path().join("file/skills");
        let why = take(&folder, &skill("one"), Existing::Keep).unwrap_err();
        assert!(why.starts_with("cannot put "), "{why}");
    }
}
