//! The daemon's own directories: made for their owner alone, and closed to others where they were found open.
//! Must never take over what belongs to somebody else.

use anyhow::{Context, bail};
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// What an owner may do stays; what others may do goes.
const OWNERS: u32 = 0o700;
const OTHERS: u32 = 0o077;
const OTHERS_WRITE: u32 = 0o022;

/// Makes sure that a directory is there, is ours, and is closed to others. One that others could write to is refused: what
/// they may have put there would be believed from then on.
pub fn claim(directory: &Path) -> anyhow::Result<()> {
    let shown = directory.display();
    DirBuilder::new()
        .recursive(true)
        .mode(OWNERS)
        .create(directory)
        .with_context(|| format!("cannot make the directory {shown}"))?;
    let found = fs::metadata(directory).with_context(|| format!("cannot look at {shown}"))?;
    let (owner, ours) = (found.uid(), rustix::process::geteuid().as_raw());
    if owner != ours {
        bail!(
            "{shown} belongs to user {owner}, not to us (user {ours}): name another place with DWELL_STATE_DIR, \
             DWELL_DATA_DIR or DWELL_RUNTIME_DIR"
        );
    }
    let mode = found.mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        bail!("others may write to {shown}: look at what is in it, then run chmod 700 on it");
    }
    if mode & OTHERS != 0 {
        fs::set_permissions(directory, Permissions::from_mode(mode & OWNERS))
            .with_context(|| format!("others may read {shown}, and it cannot be closed to them"))?;
        tracing::info!(directory = %shown, "others could read this directory: closed to them");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn with_mode(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("own");
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (root, path)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_others_can_read_is_closed_and_the_owners_bits_stay() {
        for (found, left) in [
            (0o755, 0o700),
            (0o750, 0o700),
            (0o700, 0o700),
            (0o555, 0o500),
        ] {
            let (_root, path) = with_mode(found);
            claim(&path).unwrap();
            assert_eq!(mode(&path), left, "{found:o}");
        }
        let (root, _) = with_mode(0o700);
        let deep = root.path().join("a/b");
        claim(&deep).unwrap();
        assert_eq!(mode(&deep), 0o700);
    }

    #[test]
    fn what_others_could_write_to_or_own_is_refused_as_it_is() {
        let (_root, path) = with_mode(0o770);
        let why = claim(&path).unwrap_err().to_string();
        assert!(why.contains("chmod 700"), "{why}");
        assert_eq!(mode(&path), 0o770);
        if rustix::process::geteuid().is_root() {
            let (_root, path) = with_mode(0o755);
            std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
            let why = claim(&path).unwrap_err().to_string();
            assert!(why.contains("belongs to user 65534"), "{why}");
            assert_eq!(mode(&path), 0o755);
        }
    }
}
