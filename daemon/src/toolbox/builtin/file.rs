//! Opening files for tools: only regular ones, so that no pipe, device or terminal can hang or flood a call.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

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
