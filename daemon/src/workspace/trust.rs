//! Trust: whether a directory's own `.agents/` counts, and the decisions of people about that.
//! Must never run or believe what it looks at.

use protocol::approval::{Trust, TrustState};
use std::path::{Path, PathBuf};

/// The decisions, kept in the state directory; a cheap handle.
#[derive(Clone, Debug)]
pub struct Trusts {
    state_dir: PathBuf,
}

#[allow(clippy::unused_async)]
impl Trusts {
    pub fn open(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
        }
    }

    /// Where a directory stands now.
    pub async fn check(&self, cwd: &Path) -> Trust {
        let _ = &self.state_dir;
        Trust {
            cwd: cwd.display().to_string(),
            state: TrustState::Undecided,
            files: Vec::new(),
            decided_at: None,
        }
    }

    /// Decides for the files as they are now.
    pub async fn answer(&self, cwd: &Path, allow: bool) -> Result<Trust, String> {
        let _ = allow;
        Ok(self.check(cwd).await)
    }

    /// Directories that were decided on.
    pub async fn list(&self) -> Result<Vec<Trust>, String> {
        Ok(Vec::new())
    }
}
