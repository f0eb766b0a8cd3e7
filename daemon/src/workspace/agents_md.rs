//! The nearest `AGENTS.md`: one, never merged with another, read anew each time.
//! Must never hang on what only looks like a file.

use super::file;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const NAME: &str = "AGENTS.md";
/// It goes with every round trip.
const LONGEST: usize = 128 * 1024;

/// The text of the nearest one, walking up from the directory, that lies where it is found, be it behind links. Above the directory itself only files of this user or
/// of root count, so that nobody else can put one into a folder that all share.
pub(super) fn nearest(cwd: &Path) -> Option<String> {
    cwd.ancestors().find_map(|folder| {
        let (file, found) = file::open_below(folder, &folder.join(NAME)).ok()?;
        let ours = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
        if folder != cwd && !ours {
            return None;
        }
        let mut bytes = Vec::new();
        file.take(LONGEST as u64 + 1).read_to_end(&mut bytes).ok()?;
        Some(bounded(&bytes))
    })
}

/// Why one that there is does not count.
pub(super) fn problem(cwd: &Path) -> Option<String> {
    cwd.ancestors().find_map(|folder| {
        let opened = file::open_below(folder, &folder.join(NAME));
        let error = opened.err().filter(|error| !file::missing(error))?;
        Some(format!(
            "cannot use {}: {error}",
            folder.join(NAME).display()
        ))
    })
}

fn bounded(bytes: &[u8]) -> String {
    if bytes.len() <= LONGEST {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    let mut end = LONGEST;
    while end > 0 && bytes[end] & 0b1100_0000 == 0b1000_0000 {
        end -= 1;
    }
    let text = String::from_utf8_lossy(&bytes[..end]);
    format!(
        "{text}\n\n[AGENTS.md is longer than {} KiB; the rest is left out]\n",
        LONGEST / 1024
    )
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, nearest, problem};
    use std::fs;
    use tempfile::TempDir;

    #[test]
    fn link_counts_that_stays_in_its_folder_and_one_that_leaves_it_is_told() {
        let root = TempDir::new().unwrap();
        let work = root.path().join("work");
        fs::create_dir_all(work.join("docs")).unwrap();
        fs::write(root.path().join("key"), "secret").unwrap();
        fs::write(work.join("docs/agents.md"), "inside").unwrap();
        let link = work.join("AGENTS.md");
        std::os::unix::fs::symlink("docs/agents.md", &link).unwrap();
        assert_eq!(nearest(&work).as_deref(), Some("inside"));
        assert_eq!(problem(&work), None);
        for outside in ["../key", "/proc/self/environ"] {
            fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink(outside, &link).unwrap();
            assert_eq!(nearest(&work), None, "{outside}");
            assert!(problem(&work).unwrap().contains("leads out of"));
        }
    }

    #[test]
    fn the_nearest_one_alone_is_read_and_read_anew() {
        let root = TempDir::new().unwrap();
        let deep = root.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(root.path().join("AGENTS.md"), "top").unwrap();
        assert_eq!(nearest(&deep).as_deref(), Some("top"));
        fs::write(root.path().join("a/AGENTS.md"), "middle").unwrap();
        assert_eq!(nearest(&deep).as_deref(), Some("middle"));
        fs::write(root.path().join("a/AGENTS.md"), "edited").unwrap();
        assert_eq!(nearest(&deep).as_deref(), Some("edited"));
    }

    #[test]
    fn what_is_no_file_is_passed_by() {
        let root = TempDir::new().unwrap();
        let deep = root.path().join("a");
        fs::create_dir_all(deep.join("AGENTS.md")).unwrap();
        fs::write(root.path().join("AGENTS.md"), "top").unwrap();
        assert_eq!(nearest(&deep).as_deref(), Some("top"));
    }

    #[test]
    fn a_pipe_does_not_hang() {
        let root = TempDir::new().unwrap();
        let deep = root.path().join("a");
        fs::create_dir_all(&deep).unwrap();
        let pipe = deep.join("AGENTS.md");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        fs::write(root.path().join("AGENTS.md"), "top").unwrap();
        assert_eq!(nearest(&deep).as_deref(), Some("top"));
    }

    #[test]
    fn a_long_one_is_cut_between_characters_and_says_so() {
        let root = TempDir::new().unwrap();
        let text = format!("x{}", "é".repeat(LONGEST));
        fs::write(root.path().join("AGENTS.md"), text).unwrap();
        let read = nearest(root.path()).unwrap();
        assert!(
            read.len() < LONGEST + 200 && !read.contains('\u{fffd}') && read.contains("left out")
        );
    }
}
