//! How a command fails: a message, a hint, an exit code. Must never print anything itself.

use crate::transport::TransportError;
use jsonrpsee::core::client::Error as CallError;
use protocol::error::ErrorKind;
use serde_json::Value;
use std::fmt;

/// What `dwell` exits with, as `--help` documents it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The turn failed, or the daemon said no.
    Failed = 1,
    /// The command line made no sense.
    Usage = 2,
    /// No daemon could be reached, or it speaks another protocol.
    Unreachable = 3,
    /// No such session, turn, tool or method.
    NotFound = 4,
    /// It took longer than it was given.
    TimedOut = 124,
    /// The turn was cancelled.
    Cancelled = 130,
    /// Whoever read the output went away: what a shell says of a program that this ended.
    Unread = 141,
}

/// An error for a person: what was attempted, and what to do about it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Failure {
    /// Lower case, no full stop; empty when everything has been said already.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// How the process ends.
    pub exit: Exit,
    /// What kind of error the daemon reported, if it was the daemon.
    pub kind: Option<ErrorKind>,
    /// Set where another machine has answered that no daemon can be reached there.
    pub settled: Option<Settled>,
}

/// What another machine's `dwell` came to, which asking it again does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// There is no daemon, and none is started.
    Unreachable,
    /// It does not know what it was told to do: it is of an older release.
    Unknown,
}

impl Failure {
    /// A failure with nothing but its message.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
            exit: Exit::Failed,
            kind: None,
            settled: None,
        }
    }

    /// A turn's end whose reply says why.
    pub(crate) fn of_reply(reply: &str) -> Self {
        Self::new(reply.strip_prefix("Error: ").unwrap_or(reply).trim_end())
    }

    /// A command line that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(message).exit(Exit::Usage)
    }

    /// An end that has been shown already.
    pub(crate) fn shown(exit: Exit) -> Self {
        Self::new("").exit(exit)
    }

    /// The same with a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same with another exit code.
    #[must_use]
    pub(crate) fn exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }

    /// The same with what was attempted in front.
    #[must_use]
    pub(crate) fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// What failed with what to do about it, in one line.
    pub(crate) fn whole(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{} ({hint})", self.message),
            None => self.message.clone(),
        }
    }

    /// Whether it was the connection that went away, and not an answer.
    pub(crate) fn is_disconnect(&self) -> bool {
        self.exit == Exit::Unreachable && self.kind.is_none()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        // A reader that went away (`dwell ls | head`) is no news to anybody.
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self::shown(Exit::Unread);
        }
        Self::new(error.to_string())
    }
}

/// What the daemon said that takes no connection now.
fn refusal(error: &CallError) -> Option<String> {
    let CallError::Transport(error) = error else {
        return None;
    };
    match error.downcast_ref()? {
        TransportError::Refused(why) => Some(why.clone()),
        TransportError::Io(_) | TransportError::Frame(_) | TransportError::Closed => None,
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Call(object) => {
                let kind = object
                    .data()
                    .and_then(|data| serde_json::from_str::<Value>(data.get()).ok())
                    .and_then(|data| serde_json::from_value(data.get("kind")?.clone()).ok());
                let failure = Self::new(object.message()).exit(exit_of(kind));
                Self { kind, ..failure }.with_usual_hint()
            }
            CallError::RestartNeeded(why) => {
                let lost = || "the connection to the daemon was lost".to_owned();
                Self::new(refusal(&why).unwrap_or_else(lost)).exit(Exit::Unreachable)
            }
            CallError::Transport(_) | CallError::ServiceDisconnect => {
                Self::new("the connection to the daemon was lost").exit(Exit::Unreachable)
            }
            CallError::ParseError(error) => Self::new(format!(
                "the daemon's answer does not fit this client: {error}"
            ))
            .hint("`dwell daemon status` shows both versions"),
            other => Self::new(other.to_string()),
        }
    }
}

impl Failure {
    fn with_usual_hint(self) -> Self {
        let hint = match self.kind {
            Some(ErrorKind::Busy) => {
                "`dwell send` waits behind the running turn, `dwell cancel` stops it"
            }
            Some(ErrorKind::MethodNotFound) => "`dwell daemon status` shows both versions",
            Some(ErrorKind::Storage) => "`dwell daemon logs` may say more",
            _ => return self,
        };
        self.hint(hint)
    }
}

fn exit_of(kind: Option<ErrorKind>) -> Exit {
    match kind {
        Some(ErrorKind::NotFound | ErrorKind::MethodNotFound) => Exit::NotFound,
        Some(ErrorKind::Version) => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::error::RpcError;

    #[test]
    fn an_error_of_the_daemon_keeps_its_kind_and_message() {
        let error = RpcError::new(ErrorKind::NotFound, "no session \"x\"");
        let failure = Failure::from(CallError::Call(error.into()));
        assert_eq!(failure.message, "no session \"x\"");
        assert_eq!(failure.kind, Some(ErrorKind::NotFound));
        assert_eq!(failure.exit, Exit::NotFound);
        assert!(!failure.is_disconnect());
    }

    #[test]
    fn a_lost_connection_is_told_from_an_answer() {
        let failure = Failure::from(CallError::ServiceDisconnect);
        assert!(failure.is_disconnect());
        let version = RpcError::new(ErrorKind::Version, "speaks another protocol");
        assert!(!Failure::from(CallError::Call(version.into())).is_disconnect());
    }

    #[test]
    fn a_closed_pipe_says_nothing() {
        let error = std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        assert_eq!(Failure::from(error).message, "");
    }
}
