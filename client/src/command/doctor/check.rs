//! One check each: a look, and what it means. Must never change what it looks at.

use crate::connect::Remote;
use crate::error::Failure;
use crate::link::Link;
use crate::paint::{dumb, no_color};
use crate::place::Place;
use protocol::approval::{TrustRpcClient, TrustState};
use protocol::daemon::DaemonRpcClient;
use protocol::provider::ProviderRpcClient;
use protocol::version::{PROTOCOL, RELEASE};
use std::io::IsTerminal;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// What a look found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    pub(super) state: State,
    pub(super) what: String,
    pub(super) hint: Option<String>,
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Good,
    /// It works, and maybe not as meant.
    Doubtful,
    Bad,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Good => "ok",
            Self::Doubtful => "warning",
            Self::Bad => "wrong",
        }
    }
}

impl Check {
    pub(super) fn new(state: State, what: impl Into<String>) -> Self {
        Self {
            state,
            what: what.into(),
            hint: None,
        }
    }

    pub(super) fn good(what: impl Into<String>) -> Self {
        Self::new(State::Good, what)
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The daemon's program is where a start would look for it.
pub(super) fn binary() -> Check {
    match crate::connect::daemon_program() {
        Some(path) => Check::good(format!("dwelld is {}", path.display())),
        None => Check::new(State::Bad, "dwelld is neither beside dwell nor on PATH")
            .hint("install both from one release, or put dwelld's folder on PATH"),
    }
}

/// The daemon is another machine's.
pub(super) fn remote(remote: &Remote) -> Check {
    Check::good(format!("all but the terminal is {}'s", remote.host()))
}

/// Nobody else may speak to the daemon.
pub(super) fn socket(place: &Place) -> Check {
    let path = &place.socket;
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Check::new(
                State::Bad,
                format!("there cannot be a socket at {}: {error}", path.display()),
            )
            .hint("what stands in the place of its folder is in the way: move it away, or name another socket with DWELL_SOCKET");
        }
        Err(_) => {
            return Check::new(State::Doubtful, format!("no socket at {}", path.display()))
                .hint("the daemon makes it when it starts: `dwell daemon start`");
        }
    };
    let mode = found.permissions().mode() & 0o777;
    let folder = path
        .parent()
        .and_then(|folder| std::fs::metadata(folder).ok());
    let open = folder.is_none_or(|folder| folder.permissions().mode() & 0o077 != 0);
    let own = found.uid() == rustix::process::getuid().as_raw();
    match () {
        () if !found.file_type().is_socket() => {
            Check::new(State::Bad, format!("{} is no socket", path.display()))
                .hint("move it away, then `dwell daemon restart`")
        }
        () if !own => Check::new(
            State::Bad,
            format!("the socket {} is another user's", path.display()),
        )
        .hint("unset DWELL_SOCKET and XDG_RUNTIME_DIR, or set them to folders of your own"),
        () if mode & 0o077 != 0 && open => Check::new(
            State::Bad,
            format!(
                "others may use the socket {} (mode {mode:o})",
                path.display()
            ),
        )
        .hint(format!("chmod 600 {}", path.display())),
        () => Check::good(format!("socket {}", path.display())),
    }
}

/// Where history and logs go.
pub(super) fn state(place: &Place) -> Check {
    let path = &place.state;
    match std::fs::metadata(path) {
        Err(_) => Check::good(format!(
            "state directory {} (made when it is needed)",
            path.display()
        )),
        Ok(found) if !found.is_dir() => {
            Check::new(State::Bad, format!("{} is no directory", path.display()))
                .hint("move it away, or name another with DWELL_STATE_DIR")
        }
        Ok(_) if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() => Check::new(
            State::Bad,
            format!("nothing can be written in {}", path.display()),
        )
        .hint("give the folder to yourself, or name another with DWELL_STATE_DIR"),
        Ok(_) => Check::good(format!("state directory {}", path.display())),
    }
}

/// No daemon answers, which is no fault where there is none.
pub(super) fn unreachable(failure: &Failure, there: bool) -> Check {
    let state = match there {
        true => State::Bad,
        false => State::Doubtful,
    };
    let check = Check::new(state, failure.message.clone());
    match &failure.hint {
        Some(hint) => check.hint(hint.clone()),
        None => check,
    }
}

/// Both sides are of one release.
pub(super) async fn versions(link: &Link) -> Vec<Check> {
    let status = link
        .call(async |client| DaemonRpcClient::status(client).await)
        .await;
    let status = match status {
        Ok(status) => status,
        Err(failure) => {
            return vec![Check::new(
                State::Bad,
                format!("the daemon does not tell how it is: {failure}"),
            )];
        }
    };
    let daemon = &status.daemon;
    let both = format!(
        "dwell {RELEASE}, dwelld {} (pid {})",
        daemon.version, daemon.pid
    );
    let restart = "`dwell daemon restart`: sessions are kept, running turns get a grace period";
    let versions = match () {
        () if status.protocol != PROTOCOL => Check::new(
            State::Bad,
            format!(
                "{both}: the daemon speaks protocol {}, this client {PROTOCOL}",
                status.protocol
            ),
        )
        .hint(restart),
        () if daemon.version != RELEASE => {
            Check::new(State::Doubtful, format!("{both}: different releases")).hint(restart)
        }
        () => Check::good(both),
    };
    let store = Check::good(format!(
        "store {}, {} sessions",
        status.store, status.sessions
    ));
    vec![versions, store]
}

/// There is somebody to talk to.
pub(super) async fn providers(link: &Link) -> Vec<Check> {
    let here = link.place().here().ok();
    let listed = link
        .call(async |client| ProviderRpcClient::list(client, here.clone()).await)
        .await;
    let names: Vec<String> = match listed {
        Ok(all) => all.into_iter().map(|one| one.name).collect(),
        Err(failure) => {
            return vec![Check::new(
                State::Bad,
                format!("providers cannot be listed: {failure}"),
            )];
        }
    };
    let mut checks = vec![match names.is_empty() {
        true => Check::new(State::Bad, "there is no provider"),
        false => Check::good(format!("{} providers", names.len())),
    }];
    if let Some(wanted) = named("DWELL_PROVIDER").filter(|wanted| !names.contains(wanted)) {
        checks.push(
            Check::new(
                State::Bad,
                format!("DWELL_PROVIDER names \"{wanted}\", which is no provider"),
            )
            .hint("`dwell providers` lists them"),
        );
    }
    checks
}

/// Keys of vendors in this shell. The daemon has those of the shell that started it, and its own settings.
pub(super) fn keys() -> Check {
    keys_among(&std::env::vars().map(|(name, _)| name).collect::<Vec<_>>())
}

fn keys_among(variables: &[String]) -> Check {
    let mut found: Vec<&str> = variables
        .iter()
        .map(String::as_str)
        .filter(|name| name.ends_with("_API_KEY"))
        .collect();
    found.sort_unstable();
    match found.is_empty() {
        false => Check::good(format!("this shell has {}", found.join(", ")))
            .hint("the daemon has those of the shell that started it; `dwell daemon restart` takes these"),
        true => Check::new(State::Doubtful, "this shell has no vendor's key")
            .hint("set one and `dwell daemon restart`, or ask a model on this machine: `dwell model list`"),
    }
}

/// This directory's own files count, or somebody is still to decide.
pub(super) async fn trust(link: &Link) -> Check {
    let cwd = match link.place().here() {
        Ok(cwd) => cwd,
        Err(failure) => return Check::new(State::Bad, failure.message),
    };
    let listed = link
        .call(async |client| TrustRpcClient::trust_list(client, Some(cwd.clone())).await)
        .await;
    let state = listed
        .ok()
        .and_then(|all| all.into_iter().next())
        .map(|one| one.state);
    match state {
        Some(TrustState::Undecided | TrustState::Changed) => Check::new(
            State::Doubtful,
            "this directory's .agents files do not count yet",
        )
        .hint("`dwell trust` shows and decides"),
        Some(TrustState::Refused) => Check::new(
            State::Doubtful,
            "this directory's .agents files were refused",
        )
        .hint("`dwell trust` decides anew"),
        Some(TrustState::Trusted) => Check::good("this directory's .agents files count"),
        Some(TrustState::Nothing) | None => {
            Check::good("this directory has no .agents files of its own")
        }
    }
}

/// What the terminal can show.
pub(super) fn terminal() -> Vec<Check> {
    if !std::io::stdout().is_terminal() {
        return vec![Check::good(
            "output is no terminal: nothing is drawn or coloured",
        )];
    }
    let term = named("TERM").unwrap_or_default();
    let mut checks = vec![match (dumb(), no_color()) {
        (true, _) => Check::new(
            State::Doubtful,
            format!("TERM is \"{term}\": nothing is drawn"),
        )
        .hint("set TERM to what the terminal is, such as xterm-256color"),
        (false, true) => Check::good(format!("terminal {term}, no colours (NO_COLOR)")),
        (false, false) => Check::good(format!("terminal {term}")),
    }];
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| named(name))
        .unwrap_or_default();
    if !locale
        .to_ascii_lowercase()
        .replace('-', "")
        .contains("utf8")
    {
        checks.push(
            Check::new(
                State::Doubtful,
                format!("the locale \"{locale}\" does not name UTF-8"),
            )
            .hint("marks and wide characters may look wrong: export LANG=C.UTF-8"),
        );
    }
    checks
}

/// Programs that keys open.
pub(super) fn programs() -> Check {
    let editor = named("VISUAL")
        .or_else(|| named("EDITOR"))
        .unwrap_or_else(|| "vi".into());
    let pager = named("PAGER").unwrap_or_else(|| "less -R".into());
    let first = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_string()
    };
    let missing: Vec<String> = [first(&editor), first(&pager)]
        .into_iter()
        .filter(|program| on_path(program).is_none())
        .collect();
    match missing.is_empty() {
        true => Check::good(format!("editor {editor}, pager {pager}")),
        false => Check::new(
            State::Doubtful,
            format!("not on PATH: {}", missing.join(", ")),
        )
        .hint("Ctrl-G opens $VISUAL or $EDITOR, Alt-O opens $PAGER: set them to what there is"),
    }
}

fn named(variable: &str) -> Option<String> {
    std::env::var(variable)
        .ok()
        .filter(|value| !value.is_empty())
}

fn on_path(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).exists().then(|| program.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}
