//! Small files of people: read whole and bounded, replaced whole or not at all.
//! Must never wait for a pipe or a device, and never follow a link when it writes.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Opens a regular file, links followed. Nothing of a pipe, device or socket is touched.
pub(super) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let found = std::fs::metadata(path)?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    // It may have become a pipe since.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
    }
    Ok((file, found))
}

/// As `open`, of a file that really lies below `root`, whatever links lead to it: what counts without trust must not be a way
/// to somebody's keys.
pub(super) fn open_below(root: &Path, path: &Path) -> io::Result<(File, Metadata)> {
    let real = std::fs::canonicalize(path)?;
    let root = std::fs::canonicalize(root)?;
    let is_apart = ["/proc", "/sys", "/dev"]
        .iter()
        .any(|apart| real.starts_with(apart));
    if is_apart || !real.starts_with(&root) {
        let (path, root) = (path.display(), root.display());
        let why = format!("{path} leads out of {root}, so it is not read");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    open(&real)
}

/// As `read`, of a file that really lies below `root`.
pub(super) fn read_below(root: &Path, path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    whole(open_below(root, path), limit)
}

/// All of it; none when there is no such file, an error when it is longer than `limit`.
pub(super) fn read(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    whole(open(path), limit)
}

fn whole(opened: io::Result<(File, Metadata)>, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let (file, _) = match opened {
        Ok(opened) => opened,
        Err(error) if missing(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        let text = format!("longer than {limit} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    Ok(Some(bytes))
}

/// Whether there is simply nothing there.
pub(super) fn missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Replaces a file: what was there stays until all of the new is on the disk.
pub(super) fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let temporary = beside(path);
    let written =
        write_new(&temporary, bytes, mode).and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let thread = std::thread::current().id();
    path.with_file_name(format!(".{name}.{}.{thread:?}.tmp", std::process::id()))
}
