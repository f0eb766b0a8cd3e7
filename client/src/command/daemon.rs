//! `dwell daemon`: starting it, stopping it, how it is. The only place that stops a daemon, because a person said so.

mod install;
mod mark;
mod order;
mod quote;
mod setting;
mod unit;

use crate::ask_tty::Tty;
use crate::connect::{Remote, Speak, Start};
use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::out;
use crate::place::Place;
use clap::Subcommand;
use protocol::daemon::{DaemonRpcClient, DaemonStatus};
use protocol::version::{PROTOCOL, RELEASE};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::{Duration, Instant};

/// Beyond the grace period, how long a daemon may take to be gone.
const GONE: Duration = Duration::from_secs(20);

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start it, if none answers
    Start,
    /// Stop it: running turns get a grace period, then they are cancelled
    Stop(Stop),
    /// Stop it and start it
    Restart(Stop),
    /// How it is
    Status {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Let this person's service manager start it and look after it
    Install(install::Args),
    /// Take it from the service manager; sessions and settings stay
    Uninstall(install::Args),
    /// What it said
    Logs {
        /// The last so many lines
        #[arg(short = 'n', long, default_value_t = 50, value_name = "N")]
        lines: usize,
    },
}

#[derive(clap::Args, Debug)]
struct Stop {
    /// Seconds that running turns get [default: the daemon's own setting]
    #[arg(long, value_name = "SECONDS")]
    grace: Option<u64>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    if let Some(remote) = &place.remote
        && !matches!(args.action, Action::Status { .. })
    {
        return there(remote, &args.action);
    }
    match args.action {
        Action::Start => start(place).await,
        Action::Stop(stop_args) => stop_for_good(place, stop_args.grace).await,
        Action::Restart(stop_args) => {
            stop(place.clone(), stop_args.grace).await?;
            start(place).await
        }
        Action::Status { json } => status(place, json).await,
        Action::Install(install_args) => install::install(install_args, place).await,
        Action::Uninstall(install_args) => install::uninstall(install_args).await,
        Action::Logs { lines } => logs(place, lines).await,
    }
}

/// Asks whether a daemon that speaks another protocol is to be replaced, and does it; says whether it did.
pub(super) async fn offer_restart(place: &Place, failure: &Failure) -> Result<bool, Failure> {
    let Some(mut tty) = Tty::find() else {
        return Ok(false);
    };
    out::note(&failure.message)?;
    let question = "restart it? Sessions are kept, running turns get a grace period. [y/N] ";
    let answer = tty.ask(question).await?.unwrap_or_default();
    if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(false);
    }
    match &place.remote {
        Some(remote) => there(remote, &Action::Restart(Stop { grace: None }))?,
        None => {
            stop(place.clone(), None).await?;
            start(place.clone()).await?;
        }
    }
    Ok(true)
}

/// Seeing after the daemon of another machine: processes and files are there.
fn there(remote: &Remote, action: &Action) -> Result<(), Failure> {
    let grace = |stop: &Stop| stop.grace.map(|seconds| format!("--grace={seconds}"));
    let words = match action {
        Action::Start => vec!["start".to_owned()],
        Action::Stop(stop) => ["stop".to_owned()].into_iter().chain(grace(stop)).collect(),
        Action::Restart(stop) => ["restart".to_owned()]
            .into_iter()
            .chain(grace(stop))
            .collect(),
        Action::Logs { lines } => vec!["logs".to_owned(), format!("--lines={lines}")],
        Action::Install(args) => ["install".to_owned()]
            .into_iter()
            .chain(args.words())
            .collect(),
        Action::Uninstall(args) => ["uninstall".to_owned()]
            .into_iter()
            .chain(args.words())
            .collect(),
        Action::Status { .. } => vec!["status".to_owned()],
    };
    remote.run(
        &["daemon".to_owned()]
            .into_iter()
            .chain(words)
            .collect::<Vec<_>>(),
    )
}

async fn start(place: Place) -> Result<(), Failure> {
    let link = Link::open(place, Start::IfNeeded, Speak::Any).await?;
    match link.daemon() {
        Some(daemon) => out::line(&format!(
            "dwelld {} runs (pid {})",
            daemon.version, daemon.pid
        )),
        None => out::line("dwelld runs"),
    }
}

/// A stop is for now: where systemd holds the socket, a client that comes, or that waits for its session, starts it again.
async fn stop_for_good(place: Place, grace: Option<u64>) -> Result<(), Failure> {
    match stop(place, grace).await? {
        None => Ok(()),
        Some(unit) => out::note(&format!(
            "systemd starts {unit} again with the next client, also with one that is attached now; to keep it down:\n  {}",
            unit::KEEP_DOWN
        )),
    }
}

/// Stops it, and says as which unit it ran.
async fn stop(place: Place, grace: Option<u64>) -> Result<Option<String>, Failure> {
    let link = match Link::open(place.clone(), Start::Never, Speak::Any).await {
        Ok(link) => link,
        Err(failure) if failure.exit == Exit::Unreachable && failure.hint.is_some() => {
            match place.holder() {
                Some(pid) => terminate(pid, grace).await?,
                None => out::line("no daemon runs")?,
            }
            return Ok(None);
        }
        Err(failure) => return Err(failure),
    };
    let pid = link.daemon().map(|daemon| daemon.pid);
    let unit = unit_of(&link).await;
    let grace_ms = grace.map(|seconds| seconds.saturating_mul(1000));
    link.call_once(async |client| DaemonRpcClient::shutdown(client, grace_ms).await)
        .await?;
    drop(link);
    let patience = GONE + Duration::from_secs(grace.unwrap_or(60));
    wait_until_gone(pid, patience).await?;
    out::line("stopped")?;
    Ok(unit)
}

/// The unit of a daemon that a service manager started.
async fn unit_of(link: &Link) -> Option<String> {
    let status = link.call(async |client| DaemonRpcClient::status(client).await);
    status.await.ok()?.unit
}

/// Ends a daemon that cannot be reached, in order: it is told by the signal that means the same.
async fn terminate(pid: u32, grace: Option<u64>) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(format!(
            "cannot end the daemon (pid {pid}), which cannot be reached: {error}"
        ))
    };
    let known = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(|| failed(&"no such process"))?;
    rustix::process::kill_process(known, rustix::process::Signal::TERM)
        .map_err(|error| failed(&error))?;
    wait_until_gone(Some(pid), GONE + Duration::from_secs(grace.unwrap_or(60))).await?;
    out::line(&format!(
        "stopped (pid {pid}), though it could not be reached"
    ))
}

/// Waits for the process, and not for the socket: its store must be free for the next one.
async fn wait_until_gone(pid: Option<u32>, patience: Duration) -> Result<(), Failure> {
    let pid = pid
        .and_then(|pid| i32::try_from(pid).ok())
        .and_then(rustix::process::Pid::from_raw);
    let Some(pid) = pid else { return Ok(()) };
    let deadline = Instant::now() + patience;
    while rustix::process::test_kill_process(pid).is_ok() {
        if Instant::now() > deadline {
            let raw = pid.as_raw_nonzero();
            return Err(
                Failure::new(format!("the daemon (pid {raw}) does not stop"))
                    .hint(format!("`kill -9 {raw}` loses nothing that was shown")),
            );
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn status(place: Place, json: bool) -> Result<(), Failure> {
    let link = Link::open(place, Start::Never, Speak::Any).await?;
    let status = link
        .call(async |client| DaemonRpcClient::status(client).await)
        .await?;
    if json {
        return out::json(&status);
    }
    out::line(&shown(&status))
}

fn shown(status: &DaemonStatus) -> String {
    let daemon = &status.daemon;
    let binary = status.binary.as_deref().unwrap_or_default();
    let replaced = match status.replaced {
        true => format!(
            "\nreplaced  {binary} is another file than the one that runs: `dwell daemon restart` runs the new one"
        ),
        false => String::new(),
    };
    let started = match &status.unit {
        Some(unit) => format!("by the service manager, as {unit}"),
        None => "by a client, or by hand".to_owned(),
    };
    format!(
        "dwelld {} (protocol {}), pid {}\ndwell {RELEASE} (protocol {PROTOCOL})\nsocket    {}\nstore     {}\n\
         sessions  {} ({} in memory, {} running)\nclients   {}\nmemory    {:.1} MiB\nstarted   {started}{replaced}",
        daemon.version,
        status.protocol,
        daemon.pid,
        status.socket,
        status.store,
        status.sessions,
        status.loaded,
        status.running,
        status.clients,
        status.memory as f64 / f64::from(1 << 20),
    )
}

async fn logs(place: Place, lines: usize) -> Result<(), Failure> {
    let link = Link::open(place.clone(), Start::Never, Speak::Any).await;
    let unit = match &link {
        Ok(link) => unit_of(link).await,
        Err(_) => None,
    };
    match unit {
        Some(unit) => order::give(&[unit::journal(&unit, lines)]).await,
        None => log_file(&place, lines),
    }
}

/// What a daemon said that a client started.
fn log_file(place: &Place, lines: usize) -> Result<(), Failure> {
    let path = place.log();
    let cannot = |error| {
        let failure = Failure::new(format!("cannot read {}: {error}", path.display()));
        failure.hint(format!(
            "of a daemon that systemd started, `{}` has it",
            order::typed(&unit::journal("dwelld.service", lines))
        ))
    };
    let mut file = std::fs::File::open(&path).map_err(cannot)?;
    let length = file.metadata().map_err(cannot)?.len();
    // More than enough for any number of lines a person reads.
    let from = length.saturating_sub(4 << 20);
    file.seek(SeekFrom::Start(from)).map_err(cannot)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(cannot)?;
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.lines().collect();
    let kept = &all[all.len().saturating_sub(lines)..];
    kept.iter().try_for_each(|line| out::line(line))
}
