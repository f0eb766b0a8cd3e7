//! A connection to the daemon: found, or started when none answers, and made sure of by a handshake. Must never stop a
//! daemon, whatever it speaks.

mod remote;
mod revive;
mod said;
mod start;

pub(crate) use remote::Remote;
use remote::{Asking, Way};
pub(crate) use revive::{stopped, was_stopped};

use crate::error::{Exit, Failure};
use crate::place::Place;
use crate::transport;
use jsonrpsee::core::client::async_client::{Client, ClientBuilder};
use jsonrpsee::core::client::{ClientT, Error as CallError};
use jsonrpsee::core::params::ObjectParams;
use protocol::daemon::{ClientInfo, DaemonInfo, InitializeResult};
use protocol::error::ErrorKind;
use protocol::version::{PROTOCOL, RELEASE, compatible};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::UnixStream;

/// How long a daemon that accepted may take for the handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// How long a daemon that hangs up may take to be gone, and the pause before it is looked for again.
const DYING: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(20);

/// How long a call may take: an approval parks without limit, so practically for ever.
const CALL: Duration = Duration::from_secs(365 * 24 * 3600);

/// Notifications that may wait for this client before it re-attaches with its cursor.
const BEHIND: usize = 1024;

/// Whether a daemon that is not there is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// One is started when none answers.
    IfNeeded,
    /// One is started where the last one died; where it was told to stop, that is an error.
    IfDied,
    /// It is an error when none answers.
    Never,
}

impl Start {
    /// How `dwell proxy` is told.
    pub(crate) const fn flag(self) -> Option<&'static str> {
        match self {
            Self::IfNeeded => None,
            Self::IfDied => Some("--revive"),
            Self::Never => Some("--no-start"),
        }
    }
}

/// Which daemons will do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speak {
    /// Those that speak this client's protocol.
    Ours,
    /// Any, to see after it or to stop it.
    Any,
}

/// A connection and who is at the other end.
#[derive(Debug)]
pub(crate) struct Connection {
    /// jsonrpsee's client on it.
    pub client: Client,
    /// The daemon, if it told.
    pub daemon: Option<DaemonInfo>,
    /// The daemon's variables that name a server, with its host.
    pub servers: BTreeMap<String, String>,
}

/// The program that a start would run, if there is one.
pub(crate) fn daemon_program() -> Option<PathBuf> {
    let program = start::find_program();
    if program.is_absolute() {
        return Some(program);
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(&program))
        .find(|file| file.is_file())
}

/// Connects to the daemon of a place.
pub(crate) async fn connect(
    place: &Place,
    start: Start,
    speak: Speak,
) -> Result<Connection, Failure> {
    match &place.remote {
        Some(remote) => far(place, remote.open(start, Asking::Allowed)?, speak).await,
        None => near(place, start, speak).await,
    }
}

/// Connects again, while a person uses the terminal.
pub(crate) async fn again(place: &Place, start: Start) -> Result<Connection, Failure> {
    match &place.remote {
        Some(remote) => far(place, remote.open(start, Asking::Never)?, Speak::Ours).await,
        None => near(place, start, Speak::Ours).await,
    }
}

async fn near(place: &Place, start: Start, speak: Speak) -> Result<Connection, Failure> {
    let until = tokio::time::Instant::now() + DYING;
    loop {
        let stream = raw(place, start).await?;
        match shake(place, stream, speak, HANDSHAKE).await {
            Ok(connection) => return Ok(connection),
            Err(Unshaken::Said(failure)) => return Err(failure),
            // It died, or never got as far as answering: soon nobody listens, and a start says why not.
            Err(Unshaken::Lost(_)) if tokio::time::Instant::now() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            Err(Unshaken::Lost(failure)) => return Err(failure),
        }
    }
}

/// Connects to the daemon of another machine. How long that takes is up to ssh, which may ask a person.
async fn far(place: &Place, mut way: Way<'_>, speak: Speak) -> Result<Connection, Failure> {
    let limit = way.patience();
    match shake(place, way.stream()?, speak, limit).await {
        Ok(connection) => Ok(connection),
        Err(Unshaken::Said(failure)) => Err(failure),
        Err(Unshaken::Lost(failure)) => Err(way.why(failure).await),
    }
}

/// A stream to the daemon of this machine, started if need be: what `dwell proxy` passes bytes to.
pub(crate) async fn raw(place: &Place, start: Start) -> Result<UnixStream, Failure> {
    match (reach(place).await?, start) {
        (Some(stream), _) => Ok(stream),
        (None, Start::IfNeeded) => start::start(place).await,
        (None, Start::IfDied) => revive::stream(place).await,
        (None, Start::Never) => Err(not_running(place)),
    }
}

/// Why there was no handshake.
enum Unshaken {
    /// The daemon, or this client, says why not.
    Said(Failure),
    /// The connection broke off.
    Lost(Failure),
}

/// The failure of a command that wants a daemon and starts none.
fn not_running(place: &Place) -> Failure {
    if let Some(pid) = place.holder() {
        return unfound(place, pid);
    }
    Failure::new(format!("no daemon answers at {}", place.socket.display()))
        .hint("`dwell daemon start` starts one")
        .exit(Exit::Unreachable)
}

/// A daemon that lives and has no socket: it makes a new one as soon as it notices, so it hangs, or may not.
fn unfound(place: &Place, pid: u32) -> Failure {
    Failure::new(format!(
        "dwelld runs (pid {pid}) but does not listen at {}",
        place.socket.display()
    ))
    .hint(format!(
        "`dwell daemon logs` may say why; `dwell daemon stop`, or `kill {pid}`, ends it, and its sessions are kept"
    ))
    .exit(Exit::Unreachable)
}

/// Whether there is a daemon at a place, or something in its place, though it may not answer.
pub(crate) async fn is_there(place: &Place) -> bool {
    place.holder().is_some() || !matches!(reach(place).await, Ok(None))
}

/// A stream to the first socket where somebody listens, or none where nobody does.
async fn reach(place: &Place) -> Result<Option<UnixStream>, Failure> {
    for socket in place.candidates() {
        match UnixStream::connect(&socket).await {
            Ok(stream) => return Ok(Some(stream)),
            Err(error) if nobody_listens(&error) => {}
            Err(error) => return Err(unreachable(&socket, &error)),
        }
    }
    Ok(None)
}

/// Only these say for sure that there is no daemon: a file without a listener is stale, and a listener that closes at this very
/// moment was a daemon's that ends.
fn nobody_listens(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset
    )
}

fn unreachable(socket: &Path, error: &io::Error) -> Failure {
    let shown = socket.display();
    let failure = match error.kind() {
        io::ErrorKind::InvalidInput => Failure::new(format!(
            "the socket's path has {} bytes, more than a socket may have: {shown}",
            socket.as_os_str().len()
        ))
        .hint("name a shorter one with --socket or DWELL_SOCKET"),
        io::ErrorKind::PermissionDenied => Failure::new(format!(
            "not allowed to connect to {shown}: it belongs to another user"
        ))
        .hint("name your own with --socket or DWELL_SOCKET"),
        io::ErrorKind::NotADirectory => {
            Failure::new(format!("cannot connect to {shown}: {error}"))
                .hint("a file stands where a folder of that path should: move it away, or name another socket with DWELL_SOCKET")
        }
        _ => Failure::new(format!("cannot connect to {shown}: {error}")),
    };
    failure.exit(Exit::Unreachable)
}

async fn shake(
    place: &Place,
    stream: UnixStream,
    speak: Speak,
    limit: Duration,
) -> Result<Connection, Unshaken> {
    let (sender, receiver) = transport::split(stream);
    let client = ClientBuilder::new()
        .request_timeout(CALL)
        .max_buffer_capacity_per_subscription(BEHIND)
        .build_with_tokio(sender, receiver);
    let asked = tokio::time::timeout(limit, initialize(&client)).await;
    let answer = asked.map_err(|_| Unshaken::Said(silent(place, limit)))?;
    match (answer, speak) {
        (Ok(result), speak) if compatible(result.protocol) || speak == Speak::Any => {
            Ok(Connection {
                client,
                daemon: Some(result.daemon),
                servers: serde_json::from_value(result.capabilities["servers"].clone())
                    .unwrap_or_default(),
            })
        }
        (Ok(result), _) => Err(Unshaken::Said(other_version(
            place,
            &format!(
                "protocol {} (dwelld {})",
                result.protocol, result.daemon.version
            ),
        ))),
        (Err(CallError::Call(error)), Speak::Any) if error.code() == ErrorKind::Version.code() => {
            Ok(Connection {
                client,
                daemon: None,
                servers: BTreeMap::new(),
            })
        }
        (Err(CallError::Call(error)), Speak::Ours) if error.code() == ErrorKind::Version.code() => {
            Err(Unshaken::Said(version_failure(
                place,
                error.message().to_string(),
            )))
        }
        (Err(error), _) => {
            let said = matches!(error, CallError::Call(_));
            let failure = Failure::from(error)
                .context("the daemon did not complete the handshake")
                .exit(Exit::Unreachable);
            Err(if said {
                Unshaken::Said(failure)
            } else {
                Unshaken::Lost(failure)
            })
        }
    }
}

fn initialize(client: &Client) -> impl Future<Output = Result<InitializeResult, CallError>> {
    let mut params = ObjectParams::new();
    let info = ClientInfo {
        name: name(),
        version: RELEASE.into(),
    };
    // Numbers and strings always serialise.
    let _ = params.insert("protocol", PROTOCOL);
    let _ = params.insert("client", info);
    client.request("initialize", params)
}

/// How this client is called to others, such as beside an answer it gave: with its terminal, so that two can be told
/// apart.
fn name() -> String {
    let terminal = std::fs::read_link("/proc/self/fd/0").ok();
    let terminal = terminal
        .as_deref()
        .and_then(|path| path.strip_prefix("/dev").ok())
        .and_then(Path::to_str)
        .filter(|path| path.starts_with("pts/") || path.starts_with("tty"));
    match terminal {
        Some(terminal) => format!("dwell {terminal}"),
        None => "dwell".into(),
    }
}

fn silent(place: &Place, limit: Duration) -> Failure {
    if let Some(remote) = &place.remote {
        return remote.silent(limit);
    }
    Failure::new(format!(
        "the daemon at {} accepts connections but does not answer",
        place.socket.display()
    ))
    .hint("`dwell daemon logs` may say why")
    .exit(Exit::Unreachable)
}

fn other_version(place: &Place, theirs: &str) -> Failure {
    let whose = match &place.remote {
        Some(remote) => format!("the daemon on {}", remote.host()),
        None => "the running daemon".to_owned(),
    };
    let message = format!(
        "{whose} speaks {theirs}, this client speaks protocol {PROTOCOL} (dwell {RELEASE})"
    );
    version_failure(place, message)
}

/// The daemon goes on with its sessions until a person says otherwise.
fn version_failure(place: &Place, message: String) -> Failure {
    let hint = match &place.remote {
        Some(remote) => format!(
            "once its turns may be stopped, `dwell --host {0} daemon restart` starts the release that is installed on {0}",
            remote.host()
        ),
        None => "`dwell daemon restart` replaces it once its turns may be stopped".to_owned(),
    };
    let failure = Failure::new(message).hint(hint).exit(Exit::Unreachable);
    Failure {
        kind: Some(ErrorKind::Version),
        ..failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Act, ScriptedDaemon, hello, run};
    use serde_json::json;

    #[test]
    fn only_a_missing_listener_counts_as_no_daemon() {
        let kinds = [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused];
        assert!(kinds.iter().all(|kind| nobody_listens(&(*kind).into())));
        assert!(!nobody_listens(&io::ErrorKind::PermissionDenied.into()));
        assert!(!nobody_listens(&io::ErrorKind::WouldBlock.into()));
    }

    #[test]
    fn another_protocol_names_both_versions_and_what_to_do() {
        let mut place = Place {
            given: None,
            socket: "/s".into(),
            state: "/".into(),
            remote: None,
        };
        let failure = other_version(&place, "protocol 9 (dwelld 7.0.0)");
        assert!(failure.message.contains("protocol 9 (dwelld 7.0.0)"));
        assert!(failure.message.contains(&format!("protocol {PROTOCOL}")));
        assert!(failure.hint.unwrap().contains("dwell daemon restart"));
        place.remote = Some(Remote::parse("me@box").unwrap());
        let failure = other_version(&place, "protocol 9 (dwelld 7.0.0)");
        assert!(
            failure
                .message
                .starts_with("the daemon on me@box speaks protocol 9")
        );
        assert!(
            failure
                .hint
                .unwrap()
                .contains("dwell --host me@box daemon restart")
        );
    }

    #[test]
    fn a_daemon_of_another_protocol_is_told_and_left_alone() {
        run(async {
            let daemon = ScriptedDaemon::start("version", |_, method, _| {
                assert_eq!(method, "initialize", "nothing else is asked of it");
                vec![Act::Answer(hello(9))]
            });
            let ours = connect(&daemon.place, Start::IfNeeded, Speak::Ours).await;
            let failure = ours.unwrap_err();
            assert_eq!(failure.exit, Exit::Unreachable);
            assert!(
                failure.message.contains("protocol 9 (dwelld 7.8.9)"),
                "{failure}"
            );
            let any = connect(&daemon.place, Start::Never, Speak::Any).await;
            assert_eq!(any.unwrap().daemon.unwrap().version, "7.8.9");
        });
    }

    #[test]
    fn a_daemon_that_refuses_the_version_is_told_in_its_own_words() {
        run(async {
            let daemon = ScriptedDaemon::start("refuses", |_, _, _| {
                let data = json!({"kind": "version", "daemon": 9, "client": PROTOCOL});
                vec![Act::Refuse(
                    json!({"code": -32013, "message": "speaks 9", "data": data}),
                )]
            });
            let failure = connect(&daemon.place, Start::IfNeeded, Speak::Ours)
                .await
                .unwrap_err();
            assert_eq!(failure.message, "speaks 9");
            assert!(failure.hint.is_some());
            assert!(
                connect(&daemon.place, Start::Never, Speak::Any)
                    .await
                    .is_ok()
            );
        });
    }

    #[test]
    fn a_stale_socket_without_a_daemon_is_no_daemon() {
        run(async {
            let daemon = ScriptedDaemon::start("stale", |_, _, _| vec![]);
            let mut place = daemon.place.clone();
            place.socket = place.state.join("nobody.sock");
            place.given = Some(place.socket.clone());
            std::fs::write(&place.socket, "").unwrap();
            let failure = connect(&place, Start::Never, Speak::Ours)
                .await
                .unwrap_err();
            assert!(failure.message.contains("no daemon answers"), "{failure}");
        });
    }
}
