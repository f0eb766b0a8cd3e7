//! The folder of one call: what the script writes, and what its stand-in for argc reads. It goes with the call.

use super::{Around, Declaration};
use serde_json::{Map, Value, json};
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// The mark of an answer to argc.
pub(in super::super) const ASKED: &str = "asked";

pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn make(around: &Around) -> io::Result<Self> {
        let path = around.spill_dir.join(format!("{}.run", around.id));
        private(&around.spill_dir)?;
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private(&path)?;
        let folder = Self(path);
        fs::write(folder.output(), "")?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// `LLM_OUTPUT`.
    pub(super) fn output(&self) -> PathBuf {
        self.0.join("output")
    }

    pub(super) fn call(&self) -> PathBuf {
        self.0.join("call.json")
    }

    /// What bash reads before the script.
    pub(super) fn before(&self) -> PathBuf {
        self.0.join("before.bash")
    }

    /// What the script is to evaluate when it asks argc.
    pub(super) fn lines(&self) -> PathBuf {
        self.0.join("lines")
    }

    /// Is there once argc has answered.
    pub(super) fn asked(&self) -> PathBuf {
        self.0.join(ASKED)
    }

    /// Puts a script's earlier content where it can be run from.
    pub(super) fn keep(&self, source: &[u8]) -> io::Result<PathBuf> {
        let path = self.0.join("source");
        fs::write(&path, source)?;
        Ok(path)
    }

    /// What the stand-in for argc reads.
    pub(super) fn write_call(
        &self,
        script: &Path,
        kept: Option<&Path>,
        declaration: &Declaration,
        arguments: &Map<String, Value>,
        words: &[String],
    ) -> io::Result<()> {
        let call = json!({
            "script": script,
            "source": kept.unwrap_or(script),
            "function": declaration.function,
            "arguments": arguments,
            "words": words,
        });
        fs::write(self.call(), call.to_string())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays is removed by whoever makes a folder of this name, or with the session.
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(super) fn private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Where this program's file stands, or the one that has taken its place: an upgrade or a new build under a running daemon.
fn standing(own: PathBuf) -> PathBuf {
    let named = own.to_str().and_then(|own| own.strip_suffix(" (deleted)"));
    match named {
        Some(named) if !own.exists() => named.into(),
        _ => own,
    }
}

/// This very program under another name. A link that an earlier release left is replaced.
pub(super) fn link(bin: &Path, name: &str) -> io::Result<()> {
    let link = bin.join(name);
    let own = standing(std::env::current_exe()?);
    if fs::read_link(&link).is_ok_and(|target| target == own) {
        return Ok(());
    }
    private(bin)?;
    let fresh = bin.join(format!("{name}.{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    symlink(own, &fresh)?;
    fs::rename(fresh, link)
}

#[cfg(test)]
mod tests {
    use super::standing;

    #[test]
    fn a_program_that_was_replaced_is_found_where_the_new_one_stands() {
        let folder = tempfile::tempdir().unwrap();
        let (real, odd) = (
            folder.path().join("dwelld"),
            folder.path().join("d (deleted)"),
        );
        std::fs::write(&odd, "").unwrap();
        assert_eq!(standing(folder.path().join("dwelld (deleted)")), real);
        assert_eq!(standing(real.clone()), real);
        assert_eq!(standing(odd.clone()), odd);
    }
}
