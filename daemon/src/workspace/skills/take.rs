//! Puts skills that a person has seen into their home. Must never leave half of one, nor replace one that was not named.

use super::site::Offered;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
    Replaced(PathBuf),
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
    // Whatever went wrong, what was there is either back in its place or stays where it was put.
    if put.is_ok() || !beside.old.exists() {
        beside.clear();
    }
    put.map_err(cannot)?;
    Ok(match is_there {
        true => Taken::Replaced(place),
        false => Taken::New(place),
    })
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
        let replaced = take(&folder, &skill("two"), Existing::Replace).unwrap();
        assert_eq!(
            (replaced, read().as_str()),
            (Taken::Replaced(place.clone()), "two")
        );
        assert!(place.join("scripts/a.py").exists() && !place.join("own.txt").exists());
        assert_eq!(
            fs::read_dir(&folder).unwrap().count(),
            1,
            "nothing is left beside it"
        );
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
