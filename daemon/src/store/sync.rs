//! The thread that syncs the write-ahead log to the disk, so that a commit never waits for one it did not ask for.
//! Must never report a sync that began before it was asked for.

use super::mailbox::Reply;
use super::{StoreError, fault};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;

/// A sync that nobody waits for comes this much later: a short turn's start and end share one, and it does not take the
/// processor from what follows a commit.
const SOON: Duration = Duration::from_millis(3);

#[derive(Default)]
struct Wanted {
    /// Whether anything was asked for since the last sync began.
    sync: bool,
    /// Who waits for the next sync. Bounded by the mailbox's room and the calls that run.
    waiters: Vec<Reply>,
    stop: bool,
    /// The thread is gone: nothing is synced any more.
    ended: bool,
}

#[derive(Default)]
struct Shared {
    wanted: Mutex<Wanted>,
    wake: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Wanted> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Dropped unanswered when nothing is synced any more.
    fn answer(&self, reply: Reply) {
        let mut wanted = self.lock();
        if wanted.ended {
            return;
        }
        wanted.sync = true;
        wanted.waiters.push(reply);
        drop(wanted);
        self.wake.notify_one();
    }

    /// Waits a little for more to sync, but not while anybody waits for it.
    fn company<'a>(&'a self, wanted: MutexGuard<'a, Wanted>) -> MutexGuard<'a, Wanted> {
        let alone = |wanted: &mut Wanted| wanted.waiters.is_empty() && !wanted.stop;
        let waited = self.wake.wait_timeout_while(wanted, SOON, alone);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

pub(super) struct Syncer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Asks for a sync of what was committed before; a cheap handle.
#[derive(Clone)]
pub(super) struct Asker(Arc<Shared>);

impl Asker {
    /// Returns when a sync that began after the call is done.
    pub(super) async fn synced(&self) -> Result<(), StoreError> {
        let (reply, done) = oneshot::channel();
        self.0.answer(reply);
        done.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Syncer {
    /// `path` is the store's; its log lies beside it.
    pub(super) fn start(path: &Path) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let path = path.to_owned();
        let thread = std::thread::Builder::new()
            .name("store-sync".into())
            .stack_size(128 * 1024)
            .spawn(move || run(&theirs, &path))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// A sync follows soon; several that fall together are one.
    pub(super) fn kick(&self) {
        if !std::mem::replace(&mut self.shared.lock().sync, true) {
            self.shared.wake.notify_one();
        }
    }

    /// Answers when a sync that begins from here on is done.
    pub(super) fn answer(&self, reply: Reply) {
        self.shared.answer(reply);
    }

    pub(super) fn asker(&self) -> Asker {
        Asker(Arc::clone(&self.shared))
    }
}

impl Drop for Syncer {
    /// Does what was asked for, then ends the thread.
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, path: &Path) {
    let _end = End(shared);
    let mut log = None;
    while let Some(waiters) = next(shared) {
        let done = sync(&mut log, path);
        if let Err(error) = &done {
            tracing::error!(%error, "what was committed may not survive a loss of power");
        }
        for waiter in waiters {
            let _ = waiter.send(done.clone());
        }
    }
}

/// Nobody waits for a thread that is gone, whyever it went.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut wanted = self.0.lock();
        wanted.ended = true;
        wanted.waiters.clear();
    }
}

fn next(shared: &Shared) -> Option<Vec<Reply>> {
    let mut wanted = shared.lock();
    loop {
        if wanted.sync {
            let mut wanted = shared.company(wanted);
            wanted.sync = false;
            return Some(std::mem::take(&mut wanted.waiters));
        }
        if wanted.stop {
            return None;
        }
        wanted = shared
            .wake
            .wait(wanted)
            .unwrap_or_else(PoisonError::into_inner);
    }
}

fn sync(log: &mut Option<File>, path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| fault::from_io(path, "sync its log", &error);
    let file = match log {
        Some(file) => file,
        None => log.insert(open_log(path).map_err(failed)?),
    };
    file.sync_data().map_err(failed)
}

/// The log stays the same file as long as the writer has the store open. Its name must survive too, hence the directory.
fn open_log(path: &Path) -> std::io::Result<File> {
    let file = File::open(log_path(path))?;
    if let Some(dir) = path.parent() {
        File::open(dir)?.sync_all()?;
    }
    Ok(file)
}

pub(super) fn log_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}

#[cfg(test)]
mod tests {
    use super::{Asker, End, SOON, Shared, next};
    use crate::store::StoreError;
    use std::sync::Arc;
    use std::time::{Duration, Instant};
    use tokio::sync::oneshot;

    #[test]
    fn a_sync_waits_for_company_only_while_nobody_waits_for_it() {
        let shared = Shared::default();
        shared.lock().sync = true;
        let began = Instant::now();
        assert!(next(&shared).is_some_and(|waiters| waiters.is_empty()));
        assert!(began.elapsed() >= SOON);
        // At least one of many is at once, however busy the machine is.
        let at_once = (0..100).any(|_| {
            let mut wanted = shared.lock();
            wanted.sync = true;
            wanted.waiters.push(oneshot::channel().0);
            drop(wanted);
            let began = Instant::now();
            assert_eq!(next(&shared).map(|waiters| waiters.len()), Some(1));
            began.elapsed() < SOON.saturating_sub(Duration::from_millis(1))
        });
        assert!(at_once);
    }

    #[tokio::test]
    async fn those_who_ask_at_the_same_time_share_a_sync() {
        let shared = Arc::new(Shared::default());
        let asker = Asker(Arc::clone(&shared));
        let syncs = tokio::task::spawn_blocking(move || {
            while shared.lock().waiters.len() < 16 {
                std::thread::yield_now();
            }
            let waiters = next(&shared).unwrap();
            let shared_by = waiters.len();
            waiters.into_iter().for_each(|waiter| {
                let _ = waiter.send(Ok(()));
            });
            shared_by
        });
        let asked = futures_util::future::join_all((0..16).map(|_| asker.synced())).await;
        assert!(asked.iter().all(Result::is_ok));
        assert_eq!(syncs.await.unwrap(), 16);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_thread_that_is_gone() {
        let shared = Arc::new(Shared::default());
        let asker = Asker(Arc::clone(&shared));
        let early = asker.synced();
        tokio::pin!(early);
        assert!(futures_util::poll!(&mut early).is_pending());
        drop(End(&shared));
        assert!(matches!(early.await, Err(StoreError::Closed)));
        assert!(matches!(asker.synced().await, Err(StoreError::Closed)));
    }
}
