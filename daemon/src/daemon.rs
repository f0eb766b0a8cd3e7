//! The daemon put together: it alone builds the parts, hands each what it needs, and owns the order in which they end.

mod check;
mod desk;
mod reread;

use crate::command::Commands;
use crate::config::{Config, Dirs};
use crate::log::{self, Log};
use crate::memory::Activity;
use crate::model::{self, Models};
use crate::own_dir;
use crate::presentation;
use crate::provider::key;
use crate::provider::registry::{ProviderConfig, Providers, without_settings};
use crate::rpc;
use crate::session::Sessions;
use crate::session::services::{Limits, Live, Services};
use crate::shutdown::{self, Shutdown, Signals};
use crate::store::{Owner, Store};
use crate::toolbox::source::client::Provided;
use crate::transport::{self, Connections, ListenError, Listener, Place, Service};
use crate::workspace::hooks::Users;
use crate::workspace::plugins::Means;
use crate::workspace::{self, Places, Workspaces};
use anyhow::Context;
use protocol::daemon::{authority, is_server};
use reread::Reread;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, broadcast};

/// Changes that a watcher may fall behind before it has to list anew.
const CHANGES: usize = 256;
/// Threads for blocking work. They come when needed and go after ten seconds.
const BLOCKING_THREADS: usize = 16;

const USAGE: &str = "\
usage: dwelld [--socket PATH]
       dwelld --check

Keeps agent sessions alive and serves them over a Unix socket. Stops on SIGTERM; a second one forces.

  --socket PATH   listen there instead of the usual place (also DWELL_SOCKET)
  --check         look at what a start reads, and print what is wrong: a JSON object a line
  --version       print the release
  --help          print this

environment: DWELL_CONFIG_DIR, DWELL_DATA_DIR, DWELL_STATE_DIR, DWELL_RUNTIME_DIR, DWELL_PROVIDER,
             DWELL_LOG (error, warn, info, debug, trace; default info)
exit codes:  0 stopped as asked, 1 failed, 2 wrong usage, 3 another dwelld runs already";

/// What the command line asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    Run { socket: Option<PathBuf> },
    Print(&'static str),
    Check,
}

/// Runs the daemon to its end.
pub fn main() -> ExitCode {
    match parse(std::env::args_os().skip(1)) {
        Ok(Asked::Run { socket }) => start(socket),
        Ok(Asked::Print(text)) => {
            say(text);
            ExitCode::SUCCESS
        }
        Ok(Asked::Check) => look(),
        Err(problem) => {
            complain(&format!("dwelld: {problem}\n\n{USAGE}"));
            ExitCode::from(2)
        }
    }
}

/// As `--check` asks.
fn look() -> ExitCode {
    let problems = check::problems(&std::env::current_dir().unwrap_or_default());
    for problem in &problems {
        say(&problem.to_string());
    }
    match problems.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

fn start(socket: Option<PathBuf>) -> ExitCode {
    keep_private();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build();
    let result = runtime.context("cannot start").and_then(|runtime| {
        let result = runtime.block_on(run(socket));
        // Blocking work that hangs (a dead network disk) must not keep the process.
        runtime.shutdown_timeout(Duration::from_secs(1));
        // With the runtime went the last futures of calls; what they ran goes before this process does.
        crate::process::close();
        result
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("dwelld: {error:#}"));
            ExitCode::from(
                error
                    .downcast_ref::<ListenError>()
                    .map_or(1, ListenError::exit_code),
            )
        }
    }
}

/// Keys are in this process's environment and memory: no core dump has them, and what a tool runs, being the same user,
/// cannot read them out of `/proc`. What the daemon starts is dumpable again.
fn keep_private() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        complain(&format!(
            "dwelld: its memory is not kept from others of this user: {error}"
        ));
    }
}

async fn run(socket: Option<PathBuf>) -> anyhow::Result<()> {
    log_to_stderr();
    let dirs = Dirs::find(|name| std::env::var_os(name))?;
    let config = Config::read(&dirs.config.join("config.toml"))?;
    for name in without_settings(&config.provider) {
        tracing::warn!("[provider.{name}] in config.toml has no effect: {name} has no settings");
    }
    let signals = Signals::install().context("cannot take over signals")?;
    let shutdown = Shutdown::new(Duration::from_millis(config.shutdown.grace_ms));

    own_dir::claim(&dirs.state)?;
    log::keep_small(&dirs.state);
    own_dir::claim(&dirs.data)?;
    // The lock comes before the store: of two daemons started at once only one gets as far as opening it.
    let place = match socket {
        // Its folder is somebody's choice, and may hold other things.
        Some(socket) => Place::named(socket),
        None => {
            dirs.runtime.as_deref().map_or(Ok(()), own_dir::claim)?;
            Place::usual(&dirs.state, dirs.runtime.as_deref())
        }
    };
    let listener = transport::listener::listen(place)?;
    let store_path = dirs.data.join("sessions.db");
    let owner = Owner {
        pid: std::process::id(),
        socket: listener.socket().display().to_string(),
        state_dir: dirs.state.clone(),
    };
    let store = Store::open(&store_path, owner)?;
    let plugins = plugins(&config, &dirs);
    let limits = Live::new(limits(&config));
    let workspaces = Workspaces::new(Places {
        home: dirs.home.clone(),
        state_dir: dirs.state.clone(),
        script_tools: config.script_tools.clone(),
        servers: servers_of(&config, &dirs, &plugins),
        plugins: plugins.clone(),
        hooks: user_hooks(&config, &dirs, &limits, &plugins),
    });
    let models = models(&config, &dirs);
    let parts = (store.clone(), workspaces.clone(), models.clone(), limits);
    let services = services(&config, &dirs, parts);
    let activity = services.activity.clone();
    let sessions = Sessions::new(services);
    let connections = Connections::default();
    let methods = rpc::methods(rpc::Parts {
        sessions: sessions.clone(),
        commands: Commands::new(sessions.clone()),
        models,
        trusts: workspaces.trust(),
        connections: connections.clone(),
        shutdown: shutdown.clone(),
        about: rpc::About {
            servers: servers(),
            started_at: now_ms(),
            socket: listener.socket().to_path_buf(),
            store: store_path,
        },
    })?;
    let service = Service {
        methods,
        urgent: rpc::URGENT,
        waits: protocol::withdrawal::METHODS,
        limits: transport_limits(&config),
        connections,
        activity: activity.clone(),
    };
    plugins.connect(Arc::new(desk::Methods(service.clone())));

    tokio::spawn(signals.drive(shutdown.clone()));
    tokio::spawn(activity.keep_small());
    // Before anybody is answered: nobody is shown a turn as running that died with an earlier daemon.
    tokio::select! {
        () = sessions.recover() => {}
        () = shutdown.stopping().cancelled() => {}
    }
    tracing::info!(socket = %listener.socket().display(), pid = std::process::id(), "dwelld is ready");
    shutdown::notify_ready();
    tokio::spawn(shutdown::keep_watchdog());
    serve(&listener, service, &sessions, &shutdown).await;
    tokio::select! {
        () = store.close() => {}
        () = give_up(&shutdown) => tracing::error!("gave up on the store, which is busy; nothing acknowledged is lost"),
    }
    // With the lock: whoever starts next finds the store closed.
    drop(listener);
    tracing::info!("dwelld has stopped");
    Ok(())
}

/// When a store that does not close is left as it is: what is committed needs no close.
async fn give_up(shutdown: &Shutdown) {
    tokio::select! {
        () = shutdown.forced().cancelled() => tokio::time::sleep(Duration::from_millis(500)).await,
        () = tokio::time::sleep(Duration::from_secs(10)) => {}
    }
}

/// Serves until the end begins; clients see their turns end before the socket goes.
async fn serve(listener: &Listener, service: Service, sessions: &Sessions, shutdown: &Shutdown) {
    let stop = tokio_util::sync::CancellationToken::new();
    let ending = async {
        shutdown.stopping().cancelled().await;
        shutdown::notify_stopping();
        sessions.stop(shutdown.grace_over()).await;
        stop.cancel();
    };
    tokio::join!(transport::serve(listener, service, stop.clone()), ending);
}

fn services(
    config: &Config,
    dirs: &Dirs,
    (store, workspaces, models, limits): (Store, Workspaces, Models, Live<Limits>),
) -> Services {
    Services {
        store,
        provided: Provided::default(),
        providers: Providers::new(ProviderConfig {
            env: Arc::new(|name| std::env::var(name).ok()),
            settings: config.provider.clone(),
            search: search_path(dirs),
            local: beside("dwell-local"),
            has_local_model: Arc::new(move || models.is_any_here()),
            child_env: Arc::new(own_variables().collect()),
        }),
        workspaces,
        limits,
        shown: Arc::new(presentation::Settings {
            named: config.toolbox.clone(),
            chosen: config.session.toolbox.clone(),
            usual: config.presentation.clone(),
            code: config.code,
        }),
        spill_dir: dirs.state.join("output"),
        changes: broadcast::Sender::new(CHANGES),
        left: Arc::new(Notify::new()),
        activity: Activity::default(),
        stopping: AtomicBool::new(false),
    }
}

/// The hooks of `config.toml`, and how all of it is read anew.
fn user_hooks(config: &Config, dirs: &Dirs, limits: &Live<Limits>, plugins: &Means) -> Users {
    let path = dirs.config.join("config.toml");
    let reread = Reread::new(path, limits.clone(), plugins.clone());
    Users::new(config.hooks.clone(), move || reread.run())
}

fn limits(config: &Config) -> Limits {
    Limits {
        max_rounds: config.turn.max_rounds,
        max_reply_bytes: config.turn.max_reply_bytes,
        history: config.history.tools,
        compact_at_percent: config.history.compact_at_percent,
        unload_after_ms: config.session.unload_after_ms,
    }
}

/// Tools run as the same user, and could read a key out of a plugin's process: it is given those that are named.
fn plugins(config: &Config, dirs: &Dirs) -> Means {
    let providers = Providers::new(ProviderConfig {
        settings: config.provider.clone(),
        ..ProviderConfig::default()
    });
    let keeps = |name: &str| {
        !providers.is_key_variable(name) || config.plugin.keys.iter().any(|key| key == name)
    };
    let env = own_variables().filter(|(name, _)| keeps(name)).collect();
    let mask = key::known(&config.provider, &own_variables().collect());
    Means::new(config.plugin.clone(), env, dirs.data.join("sdk")).hiding(mask)
}

/// They see what plugins see.
fn servers_of(config: &Config, dirs: &Dirs, plugins: &Means) -> workspace::servers::Means {
    workspace::servers::Means {
        settings: config.mcp.clone(),
        env: Arc::clone(&plugins.env),
        mask: plugins.mask.clone(),
        tokens: workspace::servers::Tokens::new(dirs.data.join("mcp")),
    }
}

fn models(config: &Config, dirs: &Dirs) -> Models {
    let named = std::env::var_os("DWELL_LOCAL").filter(|path| !path.is_empty());
    let env: BTreeMap<String, String> = own_variables().collect();
    Models::new(model::Means {
        folder: dirs.data.join("models"),
        settings: config.model.clone(),
        local: named.map(PathBuf::from).or_else(|| beside("dwell-local")),
        mask: key::known(&config.provider, &env),
        env: Arc::new(env),
    })
}

fn transport_limits(config: &Config) -> transport::Limits {
    transport::Limits {
        frame: config.limits.frame,
        calls: config.limits.calls,
        connections: config.limits.connections,
        unread: Duration::from_millis(config.limits.unread_ms),
        ..transport::Limits::default()
    }
}

/// Where `dwell-provider-NAME` is looked for: the user's plugins, beside this binary, then PATH.
fn search_path(dirs: &Dirs) -> Vec<PathBuf> {
    let mut search = vec![dirs.home.join(".agents/plugins")];
    search.extend(beside(""));
    search.extend(
        std::env::var_os("PATH")
            .iter()
            .flat_map(std::env::split_paths),
    );
    search
}

/// Those that are text, as JSON wants them.
fn own_variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The servers that this process's variables name.
fn servers() -> BTreeMap<String, String> {
    let named = own_variables().filter(|(name, value)| is_server(name) && !value.is_empty());
    named
        .map(|(name, value)| (name, authority(&value).to_owned()))
        .collect()
}

/// A path in the folder of this binary.
fn beside(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    Some(own.parent()?.join(name))
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("DWELL_LOG")
        // What rmcp says of a server that it does not reach has the keys of its URL; it is told by whoever wanted it.
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info,rmcp=off"));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Log)
        .with_ansi(false);
    // Only a second call fails, and a test may have made the first.
    let _ = subscriber.try_init();
}

fn parse(args: impl Iterator<Item = std::ffi::OsString>) -> Result<Asked, String> {
    let mut socket = std::env::var_os("DWELL_SOCKET")
        .filter(|path| !path.is_empty())
        .map(PathBuf::from);
    let mut args = args;
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--socket") => socket = Some(args.next().ok_or("--socket needs a path")?.into()),
            Some("--version" | "-V") => {
                return Ok(Asked::Print(concat!("dwelld ", env!("CARGO_PKG_VERSION"))));
            }
            Some("--check") => return Ok(Asked::Check),
            Some("--help" | "-h") => return Ok(Asked::Print(USAGE)),
            _ => return Err(format!("{} is not an option", arg.to_string_lossy())),
        }
    }
    Ok(Asked::Run { socket })
}

#[allow(clippy::print_stdout)]
fn say(text: &str) {
    println!("{text}");
}

/// Before there is a log, and for whoever started the daemon by hand.
#[allow(clippy::print_stderr)]
fn complain(text: &str) {
    eprintln!("{text}");
}

#[cfg(test)]
mod tests {
    use rustix::process::{DumpableBehavior, dumpable_behavior, set_dumpable_behavior};

    #[test]
    fn no_core_dump_and_no_other_process_of_the_user_has_the_daemons_memory() {
        super::keep_private();
        let private = dumpable_behavior();
        // Tests beside this one may look at themselves through `/proc`.
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
        assert_eq!(private.unwrap(), DumpableBehavior::NotDumpable);
    }
}
