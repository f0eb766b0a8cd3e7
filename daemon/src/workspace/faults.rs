//! What is wrong in a folder's files for a person to mend, whether or not it is trusted. Must never let any of it count.

use super::{permissions, servers};
use std::path::Path;

/// What cannot be used, each with its file.
#[derive(Debug, PartialEq)]
pub struct Faults {
    /// Of `permissions.json`.
    pub permissions: Option<String>,
    /// Of `mcp.json`.
    pub servers: Vec<String>,
}

/// Those of the `.agents/` in a folder; blocks on the disk.
pub fn of(folder: &Path) -> Faults {
    Faults {
        permissions: permissions::fault(folder),
        servers: servers::faults(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_broken_file_is_named() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(
            (of(home.path()).permissions, of(home.path()).servers.len()),
            (None, 0)
        );
        std::fs::create_dir(home.path().join(".agents")).unwrap();
        for name in ["permissions.json", "mcp.json"] {
            std::fs::write(home.path().join(".agents").join(name), "{bad").unwrap();
        }
        let found = of(home.path());
        assert!(found.permissions.unwrap().contains("permissions.json"));
        assert!(found.servers[0].contains("mcp.json"), "{:?}", found.servers);
    }
}
