//! What the engine's failures mean to those above: full, damaged, read-only, or plain input and output.
//! Must never call a damaged store full or a full one damaged: the first is never written again, the second is.

use super::StoreError;
use rusqlite::ErrorCode;
use std::path::Path;

/// Less free space than this makes a failed write a matter of space, whatever the engine calls it.
const NO_SPACE: u64 = 64 * 1024;

const DAMAGED_HINT: &str =
    "move the file aside to start with an empty store, or recover it with `sqlite3 FILE .recover`";

/// `doing` completes "cannot ...": `write session calm-otter`, `open it`.
pub(super) fn from_sqlite(path: &Path, doing: &str, error: &rusqlite::Error) -> StoreError {
    let detail = format!("cannot {doing}: {error}");
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => full(path, detail),
        Some(ErrorCode::CannotOpen) if is_read_only(path) => read_only(path, doing),
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if is_full(path) => {
            full(path, detail)
        }
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Corrupt {
            path: path.display().to_string(),
            detail: format!("{detail}: {DAMAGED_HINT}"),
        },
        Some(ErrorCode::ReadOnly) => read_only(path, doing),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => io(
            path,
            format!("cannot {doing}: another process keeps it locked"),
        ),
        _ => io(path, detail),
    }
}

pub(super) fn from_io(path: &Path, doing: &str, error: &std::io::Error) -> StoreError {
    let detail = format!("cannot {doing}: {error}");
    match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => full(path, detail),
        _ => io(path, detail),
    }
}

pub(super) fn io(path: &Path, detail: impl Into<String>) -> StoreError {
    StoreError::Io {
        path: path.display().to_string(),
        detail: detail.into(),
    }
}

/// Whether a second try may go better at once: another writer had its turn.
pub(super) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

fn full(path: &Path, detail: String) -> StoreError {
    StoreError::Full {
        path: path.display().to_string(),
        detail,
    }
}

fn read_only(path: &Path, doing: &str) -> StoreError {
    let hint = "the file or its directory is read-only: name another with DWELL_DATA_DIR";
    io(path, format!("cannot {doing}: {hint}"))
}

fn is_read_only(path: &Path) -> bool {
    use rustix::fs::{Access, access};
    let place = path.parent().unwrap_or(path);
    access(place, Access::WRITE_OK).is_err()
        || (path.exists() && access(path, Access::READ_OK | Access::WRITE_OK).is_err())
}

fn is_full(path: &Path) -> bool {
    let place = path.parent().unwrap_or(path);
    rustix::fs::statvfs(place).is_ok_and(|fs| fs.f_bavail * fs.f_frsize < NO_SPACE)
}
