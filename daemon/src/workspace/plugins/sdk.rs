//! The SDKs that lie inside the daemon, and the folder where plugins find them. Must never replace one that is the same.

use crate::workspace::file;
use std::io;
use std::path::Path;

const FILES: [(&str, &str); 2] = [
    ("dwell.py", include_str!("../../../sdk/dwell.py")),
    ("dwell.mjs", include_str!("../../../sdk/dwell.mjs")),
];

/// Puts the SDKs of this release there.
pub(super) fn write(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for (name, text) in FILES {
        let path = folder.join(name);
        let same = file::read(&path, text.len() as u64)
            .is_ok_and(|known| known.as_deref() == Some(text.as_bytes()));
        if !same {
            file::replace(&path, text.as_bytes(), 0o644)?;
        }
    }
    Ok(())
}
