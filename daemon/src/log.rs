//! The daemon's own log, which is its stderr: a file that is put aside when it has grown, so that there are never more
//! than two. Must never lose a line, nor put aside a file that somebody else chose.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file over this size is put aside.
const LIMIT: u64 = 4 << 20;

/// Where the log is, once it is known to be the usual one.
static PLACE: OnceLock<PathBuf> = OnceLock::new();
/// How long the file is, as far as this process knows.
static LENGTH: AtomicU64 = AtomicU64::new(0);

/// Writes to stderr, line by line.
#[derive(Debug)]
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        stderr.write_all(bytes)?;
        let written = bytes.len() as u64;
        let length = LENGTH.fetch_add(written, Ordering::Relaxed) + written;
        if let Some(place) = PLACE.get().filter(|_| length > LIMIT) {
            // What cannot be put aside now goes on as it is, and is tried again after as much.
            LENGTH.store(0, Ordering::Relaxed);
            if let Ok(file) = put_aside(place) {
                rustix::stdio::dup2_stderr(&file)?;
                rustix::stdio::dup2_stdout(&file)?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Keeps the log small from now on, if stderr is the file in the state's folder.
pub fn keep_small(state: &Path) {
    let place = state.join("log").join("dwelld.log");
    let Ok(own) = rustix::fs::fstat(rustix::stdio::stderr()) else {
        return;
    };
    let same = |there: &std::fs::Metadata| there.ino() == own.st_ino && there.dev() == own.st_dev;
    if let Some(there) = place.metadata().ok().filter(same) {
        LENGTH.store(there.len(), Ordering::Relaxed);
        // A second call of one process would say the same.
        let _ = PLACE.set(place);
    }
}

/// The file under its second name, in the place of the one before, and a new one under its first.
fn put_aside(place: &Path) -> io::Result<File> {
    std::fs::rename(place, place.with_extension("log.1"))?;
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(place)
}

#[cfg(test)]
mod tests {
    use super::put_aside;
    use std::io::Write;

    #[test]
    fn there_are_never_more_than_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("dwelld.log");
        std::fs::write(&place, "0").unwrap();
        for text in ["1", "2", "3"] {
            let mut file = put_aside(&place).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!(
            (read("dwelld.log"), read("dwelld.log.1")),
            ("3".into(), "2".into())
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
