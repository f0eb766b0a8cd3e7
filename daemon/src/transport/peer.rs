//! Who is at the other end: the kernel's word on it, and the rule that only the socket's owner may speak.
//! Must never trust anything that a client says of itself.

use std::collections::HashSet;
use std::io;
use std::sync::{Mutex, PoisonError};
use tokio::net::UnixStream;

/// The process at the other end, as the kernel saw it when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// 0 when the kernel cannot name it (another PID namespace).
    pub pid: u32,
    pub uid: u32,
}

impl Peer {
    /// Asks the kernel (SO_PEERCRED).
    pub fn of(stream: &UnixStream) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        Ok(Self {
            pid: credentials
                .pid()
                .and_then(|pid| pid.try_into().ok())
                .unwrap_or(0),
            uid: credentials.uid(),
        })
    }
}

/// Lets in one uid, and logs each other one once.
#[derive(Debug)]
pub struct Doorkeeper {
    uid: u32,
    refused: Mutex<HashSet<u32>>,
}

impl Doorkeeper {
    /// For the uid that this process runs as.
    pub fn for_ourselves() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            refused: Mutex::default(),
        }
    }

    /// `Err` with the words for the one who is refused.
    pub fn admit(&self, peer: Peer) -> Result<(), String> {
        if peer.uid == self.uid {
            return Ok(());
        }
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.insert(peer.uid) {
            tracing::warn!(
                uid = peer.uid,
                pid = peer.pid,
                "refused a client of another user"
            );
        }
        Err(format!(
            "only user {} may speak to this daemon, not user {}",
            self.uid, peer.uid
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_uid_is_refused_and_remembered() {
        let door = Doorkeeper {
            uid: 7,
            refused: Mutex::default(),
        };
        assert_eq!(door.admit(Peer { pid: 1, uid: 7 }), Ok(()));
        for _ in 0..2 {
            let words = door.admit(Peer { pid: 1, uid: 8 }).unwrap_err();
            assert_eq!(words, "only user 7 may speak to this daemon, not user 8");
        }
        assert_eq!(door.refused.lock().unwrap().len(), 1);
    }
}
