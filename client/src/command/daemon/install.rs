//! `dwell daemon install` and `uninstall`: the daemon as a service of this person's own. Must never touch a service manager
//! that is not the person's, nor a running daemon that it did not start.

use super::order;
use super::quote;
use super::setting::{self, Settings};
use super::unit::{File, Manager, Service};
use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::place::Place;
use protocol::daemon::DaemonRpcClient;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// For which service manager the files are [default: this system's]
    #[arg(long, value_name = "MANAGER")]
    manager: Option<Manager>,
}

impl Args {
    /// As the command line has them.
    pub(super) fn words(&self) -> Vec<String> {
        let manager = self.manager.map(|manager| manager.word());
        manager
            .map(|word| format!("--manager={word}"))
            .into_iter()
            .collect()
    }
}

/// What runs at the place that the service is for.
enum Running {
    Nothing,
    /// The service that is installed.
    Service,
    /// One that a client or a person started.
    Other,
}

/// Writes the service's files, and sets it up where the person's service manager answers.
pub(super) async fn install(args: Args, place: Place) -> Result<(), Failure> {
    let manager = args.manager.unwrap_or_default();
    let environment = manager.environment().await;
    let folder = folder(manager, environment.as_ref())?;
    let settings = settings(&place, environment.as_ref())?;
    let log = place.log();
    let service = Service {
        program: &program()?,
        settings: &settings,
        log: &log,
    };
    let files = manager.files(&service)?;
    let mut changed = false;
    for file in &files {
        changed |= put(manager, &folder, file)?;
    }
    if manager == Manager::Launchd {
        make_room(&log)?;
    }
    tell(&settings)?;
    if let Some(socket) = settings.socket.as_deref()
        && manager == Manager::Systemd
        && quote::is_forgotten(socket)
    {
        out::note(
            "systemd forgets a socket with a quote, a backslash or a letter beyond ASCII in its path when it reads its units \
             anew: from then on clients start the daemon",
        )?;
    }
    let start = manager.start(&folder);
    let steps = order::lines(&start);
    if environment.is_none() {
        return out::line(&format!(
            "{} does not answer here; where it does, run:\n{steps}",
            manager.name()
        ));
    }
    match running(place).await {
        Running::Other => out::line(&format!(
            "a daemon runs that {} has not started: when its turns may be stopped, run:\n  dwell daemon stop\n{steps}",
            manager.name()
        )),
        Running::Service => {
            order::give(&manager.reread()).await?;
            if !changed {
                return out::line("set up, and running");
            }
            out::line(&format!(
                "the daemon that runs is still as the files were: when its turns may be stopped, run:\n{}",
                order::lines(&manager.renew(&folder))
            ))
        }
        Running::Nothing => {
            order::give(&start).await?;
            out::line("set up: the daemon starts with the first client")
        }
    }
}

/// Takes the service away. Sessions and settings stay, and so does what a person added.
pub(super) async fn uninstall(args: Args) -> Result<(), Failure> {
    let manager = args.manager.unwrap_or_default();
    let environment = manager.environment().await;
    let folder = folder(manager, environment.as_ref())?;
    let there = manager.names().iter().map(|name| folder.join(name));
    let files: Vec<PathBuf> = there
        .filter(|path| path.symlink_metadata().is_ok())
        .collect();
    if files.is_empty() {
        return out::line(&format!("nothing is installed in {}", folder.display()));
    }
    if environment.is_some() {
        order::give(&manager.stop(&folder)).await?;
    }
    for path in &files {
        take_away(path, manager)?;
    }
    for link in manager.links().iter().map(|link| folder.join(link)) {
        take_away_link(&link, &files)?;
    }
    for added in additions(manager, &folder) {
        out::note(&format!("kept {}, which is yours", added.display()))?;
    }
    match environment {
        Some(_) => order::give(&manager.reread()).await,
        None => Ok(()),
    }
}

/// Where the manager looks. It need not have the directories of this shell; where it does not answer, nobody knows.
fn folder(
    manager: Manager,
    environment: Option<&BTreeMap<String, String>>,
) -> Result<PathBuf, Failure> {
    let dirs = directories::BaseDirs::new().ok_or_else(|| {
        Failure::new("no home directory: neither HOME nor the user database names one")
    })?;
    let its = |name: &str| environment?.get(name).filter(|value| !value.is_empty());
    Ok(match manager {
        Manager::Systemd => {
            let own = its("XDG_CONFIG_HOME").map(PathBuf::from);
            let own = own.or_else(|| Some(Path::new(its("HOME")?).join(".config")));
            own.unwrap_or_else(|| dirs.config_dir().to_path_buf())
                .join("systemd/user")
        }
        Manager::Launchd => dirs.home_dir().join("Library/LaunchAgents"),
    })
}

/// What the files have to say, since the manager's environment does not.
fn settings(
    place: &Place,
    environment: Option<&BTreeMap<String, String>>,
) -> Result<Settings, Failure> {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().as_os_str().to_owned());
    let shell = |name: &str| match name {
        "HOME" => home.clone(),
        name => std::env::var_os(name),
    };
    let manager = |name: &str| {
        let its = environment.and_then(|variables| variables.get(name));
        let its = its.map(OsString::from);
        // What runs for a person begins in the person's home.
        its.or_else(|| home.clone().filter(|_| name == "HOME"))
    };
    Settings::find(place, &shell, &manager)
}

/// What of this shell the service has now, and what it has not.
fn tell(settings: &Settings) -> Result<(), Failure> {
    if !settings.variables.is_empty() {
        out::line("the service has of this shell:")?;
    }
    for (name, value) in &settings.variables {
        out::line(&format!("  {name}={value}"))?;
    }
    let keys = setting::keys(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()));
    if keys.is_empty() {
        return Ok(());
    }
    out::note(&format!(
        "not written, since no service is a place for keys: {}; the daemon reads them from config.toml",
        keys.join(", ")
    ))
}

async fn running(place: Place) -> Running {
    let Ok(link) = Link::open(place, Start::Never, Speak::Any).await else {
        return Running::Nothing;
    };
    let status = link.call(async |client| DaemonRpcClient::status(client).await);
    match status.await {
        Ok(status) if status.unit.is_some() => Running::Service,
        _ => Running::Other,
    }
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

/// The folder of a log, which launchd does not make.
fn make_room(log: &Path) -> Result<(), Failure> {
    let folder = log.parent().unwrap_or(log);
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Failure::new(format!("cannot create {}: {error}", folder.display())))
}

/// What a person added to the service, in the places that are meant for it.
fn additions(manager: Manager, folder: &Path) -> impl Iterator<Item = PathBuf> {
    let names = manager.names().iter();
    names
        .map(move |name| folder.join(format!("{name}.d")))
        .filter(|path| path.exists())
}

/// Removes a file that is ours as it was written; what a person made of one, or instead of it, is kept beside it.
fn take_away(path: &Path, manager: Manager) -> Result<(), Failure> {
    let cannot = |error| Failure::new(format!("cannot remove {}: {error}", path.display()));
    if std::fs::read_to_string(path).is_ok_and(|text| manager.wrote(&text)) {
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

/// Removes what enabled a file that is gone now: the manager has done so, if it answered.
fn take_away_link(link: &Path, gone: &[PathBuf]) -> Result<(), Failure> {
    let Ok(target) = std::fs::read_link(link) else {
        return Ok(());
    };
    let target = link.parent().map(|folder| folder.join(&target));
    if !target.is_some_and(|target| gone.contains(&target) && !target.exists()) {
        return Ok(());
    }
    std::fs::remove_file(link)
        .map_err(|error| Failure::new(format!("cannot remove {}: {error}", link.display())))?;
    out::line(&format!("removed {}", link.display()))
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

/// Writes a file, and says whether anything changed; what a person made of one that is there is kept beside it.
fn put(manager: Manager, folder: &Path, file: &File) -> Result<bool, Failure> {
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
    let there = std::fs::read_to_string(&path);
    if there.as_ref().is_ok_and(|there| *there == file.text) {
        out::line(&format!("{} is as it should be", path.display()))?;
        return Ok(false);
    }
    let ours = there.is_ok_and(|there| manager.wrote(&there));
    if !ours && path.symlink_metadata().is_ok() {
        let old = keep(&path).map_err(cannot)?;
        out::note(&format!("what was there is now {}", old.display()))?;
    }
    std::fs::write(&path, &file.text).map_err(cannot)?;
    out::line(&format!("wrote {}", path.display()))?;
    Ok(true)
}
