//! The daemon of another machine, through `ssh HOST dwell proxy`. ssh knows hosts, keys and how to ask for a password; must
//! never do any of it itself.

use super::Start;
use super::said::{Listener, Said, Shown, from_here};
use crate::error::{Exit, Failure, Settled};
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// How long ssh and the handshake behind it may take: a person may have a password to type. Where nobody is asked it is less.
const ASKED: Duration = Duration::from_secs(120);
const UNASKED: Duration = Duration::from_secs(30);

/// How long ssh may take to say how it ended, once nothing comes through it any more.
const END: Duration = Duration::from_secs(5);

/// What ssh exits with when it is ssh that failed, and a shell that finds no such program.
const SSH_FAILED: i32 = 255;
const NOT_FOUND: i32 = 127;

/// A link that nobody closed but that is gone is noticed within this many seconds, thrice.
const ALIVE: &str = "ServerAliveInterval=15";

/// Whether ssh may ask a person, and speak to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asking {
    /// Nobody else uses the terminal yet.
    Allowed,
    /// The terminal is in use: what is typed for one would be read by the other.
    Never,
}

/// Another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// As ssh takes it: a host, `user@host`, or a name of its settings.
    destination: String,
    /// The directory there that is meant where none is named.
    pub dir: Option<String>,
}

/// As `--host` takes it.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dir = self.dir.as_deref().unwrap_or_default();
        let between = match dir.is_empty() || self.destination.starts_with("ssh://") {
            true => "",
            false => ":",
        };
        write!(f, "{}{between}{dir}", self.destination)
    }
}

/// A way there that has been opened.
pub(super) struct Way<'a> {
    remote: &'a Remote,
    ours: Option<StdStream>,
    ended: oneshot::Receiver<Option<i32>>,
    asking: Asking,
    said: Option<Listener>,
}

impl Remote {
    /// `HOST` or `HOST:/DIR`, or `ssh://HOST:PORT/DIR`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let (scheme, rest) = match text.strip_prefix("ssh://") {
            Some(rest) => ("ssh://", rest),
            None => ("", text),
        };
        let cut = match scheme {
            "" => rest.find(":/").map(|at| (at, at + 1)),
            _ => rest.find('/').map(|at| (at, at)),
        };
        let (host, dir) = match cut {
            Some((host, dir)) => (&rest[..host], Some(&rest[dir..])),
            None => (rest, None),
        };
        let destination = if host.is_empty() {
            String::new()
        } else {
            format!("{scheme}{host}")
        };
        let dir = dir
            .filter(|dir| *dir != "/" || scheme.is_empty())
            .map(str::to_owned);
        // An address of IPv6 has more than one.
        if let (true, Some((host, dir))) = (scheme.is_empty(), destination.split_once(':'))
            && !dir.contains(':')
        {
            return Err(Failure::usage(format!(
                "--host {text}: the directory \"{dir}\" does not begin with /"
            ))
            .hint(format!("such as {host}:/srv/project")));
        }
        // What begins with a dash would be an option of ssh.
        if destination.is_empty() || destination.starts_with('-') {
            return Err(
                Failure::usage(format!("--host {text}: no machine is named"))
                    .hint("such as me@box, or me@box:/srv/project"),
            );
        }
        Ok(Self { destination, dir })
    }

    /// Which machine, as ssh takes it.
    pub(crate) fn host(&self) -> &str {
        &self.destination
    }

    /// Starts ssh. Its words and questions are a person's to read; of the daemon's messages nothing goes another way.
    pub(super) fn open(&self, start: Start, asking: Asking) -> Result<Way<'_>, Failure> {
        let failed = |error: std::io::Error| self.unstarted(&error);
        let (ours, theirs) = StdStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let mut words = vec!["proxy".to_owned()];
        words.extend(start.flag().map(str::to_owned));
        let output = OwnedFd::from(theirs.try_clone().map_err(failed)?);
        let mut command = self.command(&words, asking);
        command.stdin(OwnedFd::from(theirs)).stdout(output);
        let mut child = command.spawn().map_err(failed)?;
        // The command holds their end too, and it must be closed for an end to be seen.
        drop(command);
        Ok(Way {
            remote: self,
            ours: Some(ours),
            said: listener(&mut child, asking),
            ended: reap(child),
            asking,
        })
    }

    /// Runs `dwell` there in the foreground of this terminal.
    pub(crate) fn run(&self, words: &[String]) -> Result<(), Failure> {
        let failed = |error: std::io::Error| self.unstarted(&error);
        let mut child = self
            .command(words, Asking::Allowed)
            .spawn()
            .map_err(failed)?;
        let said = listener(&mut child, Asking::Allowed);
        let status = child.wait().map_err(failed)?;
        match status.success() {
            true => Ok(()),
            false => Err(self.ended(
                status.code(),
                &said.map(Listener::all_now).unwrap_or_default(),
            )),
        }
    }

    fn command(&self, words: &[String], asking: Asking) -> Command {
        let ssh = named("DWELL_SSH", "ssh");
        let mut parts = ssh.split_whitespace();
        #[expect(clippy::disallowed_methods, reason = "ssh ends with its streams")]
        let mut command = Command::new(parts.next().unwrap_or("ssh"));
        command
            .args(parts)
            .args(["-T", "-o", ALIVE])
            .stderr(Stdio::piped());
        if asking == Asking::Never {
            command.args(["-o", "BatchMode=yes"]);
        }
        command
            .arg(&self.destination)
            .arg(named("DWELL_REMOTE", "dwell"))
            .args(words);
        command
    }

    /// Neither ssh nor what should be behind it has said anything.
    pub(super) fn silent(&self, limit: Duration) -> Failure {
        let host = &self.destination;
        let seconds = limit.as_secs();
        Failure::new(format!(
            "nothing came from {host} through ssh within {seconds} s"
        ))
        .hint(format!("`ssh {host} dwell daemon status` says more"))
        .exit(Exit::Unreachable)
    }

    fn unstarted(&self, error: &std::io::Error) -> Failure {
        let ssh = named("DWELL_SSH", "ssh");
        Failure::new(format!(
            "cannot start {ssh} for {}: {error}",
            self.destination
        ))
        .hint("install it, or name what does its work with DWELL_SSH")
        .exit(Exit::Unreachable)
    }

    /// How ssh ended, where it should not have.
    fn ended(&self, code: Option<i32>, said: &Said) -> Failure {
        let host = &self.destination;
        let (message, hint) = match code {
            Some(NOT_FOUND) => (
                format!("there is no dwell on {host}"),
                "install it there, or name it with DWELL_REMOTE".to_owned(),
            ),
            Some(SSH_FAILED) | None => (
                format!("ssh did not reach {host}"),
                format!("`ssh {host}` says more"),
            ),
            Some(code) if said.error.is_empty() => (
                format!("dwell on {host} ended with exit code {code}"),
                format!("`ssh {host} dwell daemon status` says more"),
            ),
            Some(code) => return self.told(code, said),
        };
        Failure::new(message).hint(hint).exit(Exit::Unreachable)
    }

    /// Why `dwell` there failed. It has tried what it can: to ask it again brings the same.
    fn told(&self, code: i32, said: &Said) -> Failure {
        let host = &self.destination;
        let failure = Failure::new(format!("on {host}: {}", said.error)).exit(Exit::Unreachable);
        Failure {
            hint: said.hint.as_deref().map(|hint| from_here(hint, host)),
            settled: match code {
                code if code == Exit::Unreachable as i32 => Some(Settled::Unreachable),
                code if code == Exit::Usage as i32 => Some(Settled::Unknown),
                _ => None,
            },
            ..failure
        }
    }
}

impl Way<'_> {
    /// The stream through it. Once.
    pub(super) fn stream(&mut self) -> Result<UnixStream, Failure> {
        let ours = self.ours.take();
        let ours = ours.ok_or_else(|| Failure::new("the way there is in use"))?;
        Ok(UnixStream::from_std(ours)?)
    }

    /// How long it may take until the daemon answers.
    pub(super) const fn patience(&self) -> Duration {
        match self.asking {
            Asking::Allowed => ASKED,
            Asking::Never => UNASKED,
        }
    }

    /// Why nothing came through it: as ssh tells by its end, or else as it looked from here.
    pub(super) async fn why(self, seen: Failure) -> Failure {
        let Ok(Ok(code)) = tokio::time::timeout(END, self.ended).await else {
            return seen;
        };
        if code == Some(0) {
            return seen;
        }
        let said = match self.said {
            Some(said) => said.all().await,
            None => Said::default(),
        };
        let failure = self.remote.ended(code, &said);
        // What a person could read already is not said again.
        match said.error.is_empty() && !said.last.is_empty() && self.asking == Asking::Never {
            true => Failure {
                message: format!("{}: {}", failure.message, said.last),
                ..failure
            },
            false => failure,
        }
    }
}

fn listener(child: &mut Child, asking: Asking) -> Option<Listener> {
    let shown = match asking {
        Asking::Allowed => Shown::AsItComes,
        Asking::Never => Shown::Never,
    };
    child
        .stderr
        .take()
        .map(|stderr| Listener::new(stderr, shown))
}

/// Waits for ssh, so that a dead one does not stay. The thread ends with it, or with the process.
fn reap(mut child: Child) -> oneshot::Receiver<Option<i32>> {
    let (sender, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let code = child.wait().ok().as_ref().and_then(ExitStatus::code);
        let _ = sender.send(code);
    });
    ended
}

fn named(variable: &str, usual: &str) -> String {
    let named = std::env::var(variable).ok();
    named
        .filter(|name| !name.trim().is_empty())
        .unwrap_or_else(|| usual.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_name_its_directory_and_is_never_an_option() {
        let parse = |text| Remote::parse(text).map(|remote| (remote.destination, remote.dir));
        assert_eq!(parse("box"), Ok(("box".into(), None)));
        assert_eq!(
            parse("me@box:/a b"),
            Ok(("me@box".into(), Some("/a b".into())))
        );
        let far = |host: &str, dir: &str| Ok((host.to_owned(), Some(dir.to_owned())));
        assert_eq!(
            parse("ssh://me@box:2222/srv/a"),
            far("ssh://me@box:2222", "/srv/a")
        );
        assert_eq!(parse("ssh://box"), Ok(("ssh://box".into(), None)));
        assert_eq!(parse("::1"), Ok(("::1".into(), None)));
        for text in [
            "",
            ":/a",
            "-oProxyCommand=x",
            "-x:/a",
            "ssh://",
            "box:srv",
            "box:~/x",
            "box:",
        ] {
            assert_eq!(parse(text).unwrap_err().exit, Exit::Usage, "{text}");
        }
    }
}
