//! Files of models: sums, room, removal. Blocks; so it runs on threads of its own. Must never follow a name out of the
//! models' folder.

use super::ModelError;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Runs what blocks.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ModelError> + Send + 'static,
) -> Result<T, ModelError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        let message = format!("the daemon could not go on: {error}");
        Err(ModelError::Fetch { message })
    })
}

/// What a failure of the disk means, and what to do about it.
pub(super) fn failed(attempt: &str, path: &Path, error: &io::Error) -> ModelError {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            ": make room, or put the data elsewhere with DWELL_DATA_DIR; what was fetched is kept, and pulling again goes on from there"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            ": the daemon may not write there; DWELL_DATA_DIR names another place"
        }
        _ => "",
    };
    ModelError::Disk {
        path: path.display().to_string(),
        message: format!("cannot {attempt} {}: {error}{hint}", path.display()),
    }
}

/// Makes the folder, and refuses what the disk has no room for.
pub(super) fn check_room(folder: &Path, needed: u64) -> Result<(), ModelError> {
    fs::create_dir_all(folder).map_err(|error| failed("make", folder, &error))?;
    let Ok(disk) = rustix::fs::statvfs(folder) else {
        return Ok(());
    };
    let room = disk.f_bavail.saturating_mul(disk.f_frsize);
    if room >= needed {
        return Ok(());
    }
    let (needed, room) = (needed.div_ceil(1_000_000), room / 1_000_000);
    Err(ModelError::Disk {
        path: folder.display().to_string(),
        message: format!(
            "{needed} MB are needed in {}, and there is room for {room}: make room, or put the data elsewhere with DWELL_DATA_DIR",
            folder.display()
        ),
    })
}

/// The sum of a file's bytes in hexadecimal digits; `told` hears how many there were so far.
pub(super) fn sum(path: &Path, mut told: impl FnMut(u64)) -> Result<String, ModelError> {
    let read = |error: io::Error| failed("read", path, &error);
    let mut file = File::open(path).map_err(read)?;
    let mut sum = Sha256::new();
    let mut piece = vec![0; 1 << 20];
    let mut count = 0;
    loop {
        match file.read(&mut piece).map_err(read)? {
            0 => break,
            length => {
                sum.update(&piece[..length]);
                count += length as u64;
                told(count);
            }
        }
    }
    Ok(sum
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}

/// The models in the folder.
pub(super) fn models(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut all: Vec<_> = paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "gguf"))
        .collect();
    all.sort();
    all
}

/// All bytes in a folder: how far a program is that writes there.
pub(super) fn weight(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => weight(&entry.path()),
        Ok(_) => entry.metadata().map_or(0, |meta| meta.len()),
        Err(_) => 0,
    };
    entries.map(of).sum()
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), ModelError> {
    gone(fs::remove_file(path), path)
}

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_folder(path: &Path) -> Result<(), ModelError> {
    gone(fs::remove_dir_all(path), path)
}

fn gone(removed: io::Result<()>, path: &Path) -> Result<(), ModelError> {
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(failed("remove", path, &error)),
        _ => Ok(()),
    }
}
