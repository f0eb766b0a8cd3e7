//! `dwell daemon install` and `uninstall`: the daemon as a service of this person's own. Must never touch a service manager
//! that is not the person's, nor a running daemon.

use super::unit::{self, File, Manager};
use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::place::Place;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// For which service manager the files are [default: this system's]
    #[arg(long, value_name = "MANAGER")]
    manager: Option<Manager>,
}

/// Writes the service's files, and sets it up where the person's service manager answers.
pub(super) async fn install(args: Args, place: Place) -> Result<(), Failure> {
    let manager = args.manager.unwrap_or_default();
    let folder = folder(manager)?;
    for file in manager.files(&program()?)? {
        put(&folder, &file)?;
    }
    let runs = Link::open(place, Start::Never, Speak::Any).await.is_ok();
    if !manager.answers() {
        let steps = unit::steps(&manager.start(&folder));
        return out::line(&format!(
            "{} does not answer here; where it does, run:\n{steps}",
            manager.name()
        ));
    }
    if runs {
        let steps = unit::steps(&manager.start(&folder));
        return out::line(&format!(
            "a daemon runs that {} has not started: when its turns may be stopped, run:\n  dwell daemon stop\n{steps}",
            manager.name()
        ));
    }
    manager
        .start(&folder)
        .iter()
        .try_for_each(|step| run(step))?;
    out::line("set up: the daemon starts with the first client")
}

/// Takes the service away. Sessions and settings stay.
pub(super) fn uninstall(args: Args) -> Result<(), Failure> {
    let manager = args.manager.unwrap_or_default();
    let folder = folder(manager)?;
    let there = manager.names().iter().map(|name| folder.join(name));
    let files: Vec<PathBuf> = there
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    if files.is_empty() {
        return out::line(&format!("nothing is installed in {}", folder.display()));
    }
    let answers = manager.answers();
    if answers {
        manager
            .stop(&folder)
            .iter()
            .try_for_each(|step| run(step))?;
    }
    for path in &files {
        take_away(path, manager)?;
    }
    if answers {
        manager.forget().iter().try_for_each(|step| run(step))?;
    }
    Ok(())
}

fn folder(manager: Manager) -> Result<PathBuf, Failure> {
    let dirs = directories::BaseDirs::new().ok_or_else(|| {
        Failure::new("no home directory: neither HOME nor the user database names one")
    })?;
    Ok(match manager {
        Manager::Systemd => dirs.config_dir().join("systemd/user"),
        Manager::Launchd => dirs.home_dir().join("Library/LaunchAgents"),
    })
}

/// The daemon beside this program.
fn program() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    let beside = own.with_file_name("dwelld");
    match beside.is_file() {
        true => Ok(beside),
        false => Err(
            Failure::new(format!("no dwelld lies beside {}", own.display()))
                .hint("install both into one folder, such as ~/.cargo/bin"),
        ),
    }
}

/// Removes a file that is ours as it was written; what a person made of one, or instead of it, is kept beside it.
fn take_away(path: &Path, manager: Manager) -> Result<(), Failure> {
    let cannot = |error| Failure::new(format!("cannot remove {}: {error}", path.display()));
    let name = path.file_name().and_then(|name| name.to_str());
    let text = std::fs::read_to_string(path).ok();
    if name
        .zip(text.as_deref())
        .is_some_and(|(name, text)| manager.wrote(name, text))
    {
        std::fs::remove_file(path).map_err(cannot)?;
        return out::line(&format!("removed {}", path.display()));
    }
    let kept = keep(path).map_err(cannot)?;
    out::line(&format!("removed {}", path.display()))?;
    out::note(&format!(
        "it was not as dwell writes it, and is now {}",
        kept.display()
    ))
}

/// Puts a file out of the way, under a name that no file has.
fn keep(path: &Path) -> std::io::Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let free = |number: u32| match number {
        0 => path.with_file_name(format!("{name}.old")),
        number => path.with_file_name(format!("{name}.old{number}")),
    };
    let old = (0..u32::MAX)
        .map(free)
        .find(|old| old.symlink_metadata().is_err())
        .unwrap_or_else(|| free(0));
    std::fs::rename(path, &old)?;
    Ok(old)
}

/// Writes a file; what a person made of one that is there is kept beside it.
fn put(folder: &Path, file: &File) -> Result<(), Failure> {
    let path = folder.join(file.name);
    let cannot =
        |error: std::io::Error| Failure::new(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(folder).map_err(cannot)?;
    if std::fs::read_link(&path).is_ok_and(|target| target == Path::new("/dev/null")) {
        return Err(
            Failure::new(format!("{} is masked", path.display())).hint(format!(
                "`systemctl --user unmask {}` takes that back",
                file.name
            )),
        );
    }
    if path.symlink_metadata().is_ok() {
        if std::fs::read_to_string(&path).is_ok_and(|there| there == file.text) {
            return out::line(&format!("{} is as it should be", path.display()));
        }
        let old = keep(&path).map_err(cannot)?;
        out::note(&format!("what was there is now {}", old.display()))?;
    }
    std::fs::write(&path, &file.text).map_err(cannot)?;
    out::line(&format!("wrote {}", path.display()))
}

fn run(step: &[String]) -> Result<(), Failure> {
    let failed =
        |why: &dyn std::fmt::Display| Failure::new(format!("`{}` failed: {why}", step.join(" ")));
    let status = command(step)
        .stdin(Stdio::null())
        .status()
        .map_err(|error| failed(&error))?;
    match status.success() {
        true => Ok(()),
        false => Err(failed(&status)),
    }
}

/// Whether a command succeeds, without its words.
pub(super) fn succeeds(step: &[String]) -> bool {
    let quiet = command(step)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    quiet.is_ok_and(|status| status.success())
}

fn command(step: &[String]) -> Command {
    let (program, arguments) = step
        .split_first()
        .map_or(("true", &[][..]), |(program, rest)| {
            (program.as_str(), rest)
        });
    #[expect(clippy::disallowed_methods, reason = "waited for at once")]
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
