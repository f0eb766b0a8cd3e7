//! A listening socket whose file, or whose lock, was taken away: noticed at once, and made anew.
//! Must never touch what others put in their place.

use super::watch::Watch;
use super::{ListenError, Listener, bind_at, identity, make_directory, open_lock, remove_dead};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// How long until the next look where the system cannot tell of changes, or nothing could be done about one.
const AGAIN: Duration = Duration::from_secs(30);

impl Listener {
    /// Sees to it that the socket can be found for as long as it listens. Never resolves.
    pub async fn keep(&self) {
        if self.is_handed() {
            return std::future::pending().await;
        }
        loop {
            match self.watch() {
                // Only what happens from now on is told, so this comes before the look.
                Ok(watch) if self.is_in_place() => {
                    if watch.changed().await.is_ok() {
                        continue;
                    }
                    tokio::time::sleep(AGAIN).await;
                }
                Ok(_) => self.renew_or_wait().await,
                Err(_) if !self.is_in_place() => self.renew_or_wait().await,
                Err(error) => {
                    tracing::debug!(%error, "cannot watch the socket's file");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    fn watch(&self) -> io::Result<Watch> {
        Watch::on([self.place.socket.as_path(), self.place.lock.as_path()])
    }

    async fn renew_or_wait(&self) {
        let socket = self.place.socket.display();
        match self.renew() {
            Ok(()) => {
                tracing::warn!(%socket, "the socket or its lock was taken away; both are there again")
            }
            Err(error) => {
                tracing::error!(%error, %socket, "clients cannot reach this daemon");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }

    /// Systemd's sockets are systemd's to keep.
    fn is_handed(&self) -> bool {
        self.live().made.is_none()
    }

    fn is_in_place(&self) -> bool {
        let live = self.live();
        live.made == identity(&self.place.socket) && same(&live.lock, identity(&self.place.lock))
    }

    /// The lock first, as at the start: with it comes the right to the socket.
    fn renew(&self) -> Result<(), ListenError> {
        let place = &self.place;
        let mut live = self.live();
        if live.socket.is_none() {
            return Ok(());
        }
        make_directory(&place.lock)?;
        if !same(&live.lock, identity(&place.lock)) {
            live.lock = relock(self)?;
        }
        make_directory(&place.socket)?;
        if live.made != identity(&place.socket) {
            remove_dead(&place.socket)?;
            let (socket, made) = bind_at(&place.socket)?;
            live.socket = Some(socket);
            live.made = made;
        }
        drop(live);
        self.announce()?;
        self.renewed.notify_one();
        Ok(())
    }
}

fn same(file: &File, found: Option<(u64, u64)>) -> bool {
    let of = |meta: Metadata| (meta.dev(), meta.ino());
    file.metadata().ok().map(of) == found
}

fn relock(listener: &Listener) -> Result<File, ListenError> {
    let place = &listener.place;
    let lock = open_lock(&place.lock)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(_) => Err(place.locked()),
    }
}
