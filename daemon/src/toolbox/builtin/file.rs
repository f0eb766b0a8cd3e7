//! Files for tools: only regular ones, so that no pipe, device or terminal can hang or flood a call, and replaced whole
//! or not at all.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many links one path may go through, as the kernel has it.
const LINKS: usize = 40;

/// Opens a regular file for reading. `shown` is the path as the model knows it.
pub(super) fn open(path: &Path, shown: &str) -> Result<(File, Metadata), String> {
    // Without waiting for the other end of a pipe, and without taking a terminal.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = opened.map_err(|error| cannot("read", shown, &error))?;
    let data = file
        .metadata()
        .map_err(|error| cannot("read", shown, &error))?;
    check(&data, shown)?;
    Ok((file, data))
}

/// Only regular files are read and written.
pub(super) fn check(data: &Metadata, shown: &str) -> Result<(), String> {
    let kind = data.file_type();
    if kind.is_file() {
        return Ok(());
    }
    Err(if kind.is_dir() {
        format!("{shown} is a directory")
    } else if kind.is_fifo() {
        format!("{shown} is a pipe, not a file")
    } else if kind.is_socket() {
        format!("{shown} is a socket, not a file")
    } else {
        format!("{shown} is a device, not a file")
    })
}

/// The text of a failed attempt.
pub(super) fn cannot(what: &str, shown: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("not found: {shown}"),
        io::ErrorKind::PermissionDenied => format!("cannot {what} {shown}: permission denied"),
        io::ErrorKind::StorageFull => format!("cannot {what} {shown}: the disk is full"),
        io::ErrorKind::WouldBlock => format!("cannot {what} {shown}: it has no end"),
        _ if error.raw_os_error() == Some(libc::ENXIO) => {
            format!("cannot {what} {shown}: not a file")
        }
        _ => format!("cannot {what} {shown}: {error}"),
    }
}

/// What a file was like when it was looked at.
pub(super) struct Found {
    data: Option<Metadata>,
    /// The file itself, behind all links.
    path: PathBuf,
}

impl Found {
    /// Looks at what is to be replaced; it need not exist. `shown` is the path as the model knows it.
    pub(super) fn at(path: &Path, shown: &str) -> Result<Self, String> {
        let path = behind_links(path).map_err(|error| cannot("write", shown, &error))?;
        let data = match fs::metadata(&path) {
            Ok(data) => Some(data),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(cannot("write", shown, &error)),
        };
        if let Some(data) = &data {
            check(data, shown)?;
            // Replacing needs a right on the folder only, but a file that is not to be written is not to be replaced.
            rustix::fs::access(&path, rustix::fs::Access::WRITE_OK)
                .map_err(|error| cannot("write", shown, &error.into()))?;
        }
        Ok(Self { data, path })
    }

    /// Puts new content in its place at once, with the old mode and owner.
    pub(super) fn replace(&self, content: &[u8], shown: &str) -> Result<(), String> {
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(|error| {
            let reason = cannot("make", &folder.to_string_lossy(), &error);
            format!("cannot write {shown}: {reason}")
        })?;
        let draft = Draft::new(folder).map_err(|error| cannot("write", shown, &error))?;
        self.fill(&draft, content)
            .and_then(|()| self.unchanged())
            .and_then(|()| fs::rename(&draft.path, &self.path))
            .map_err(|error| cannot("write", shown, &error))
    }

    fn fill(&self, draft: &Draft, content: &[u8]) -> io::Result<()> {
        let mut file = &draft.file;
        file.write_all(content)?;
        if let Some(old) = &self.data {
            let new = file.metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                // Only root may give files away; others keep what they can.
                let _ = std::os::unix::fs::fchown(file, Some(old.uid()), Some(old.gid()));
            }
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))?;
        }
        file.sync_data()
    }

    /// Somebody else's change in the meantime is not to be lost.
    fn unchanged(&self) -> io::Result<()> {
        let state = |data: &Metadata| (data.ino(), data.size(), data.mtime(), data.mtime_nsec());
        let now = match fs::metadata(&self.path) {
            Ok(now) => Some(now),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if now.as_ref().map(state) == self.data.as_ref().map(state) {
            return Ok(());
        }
        Err(io::Error::other(
            "it was changed by somebody else meanwhile",
        ))
    }
}

/// Follows links by hand, since the last one may lead to a file that is still to be made.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ELOOP))
}

/// A file beside the one to be replaced; gone when it was not put in its place.
struct Draft {
    file: File,
    path: PathBuf,
}

impl Draft {
    fn new(folder: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        loop {
            let count = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = folder.join(format!(".dwell-{}-{count}.tmp", std::process::id()));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok(Self { file, path }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename there is nothing of that name.
        let _ = fs::remove_file(&self.path);
    }
}
