//! How the daemon is told to end: a grace period that anybody may begin or shorten, and a second word that forces.
//! Travels on tokens, which no listener can miss; must never end anything itself.

use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// A cheap handle on the daemon's end.
#[derive(Clone, Debug)]
pub struct Shutdown(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The grace period of who names none.
    grace: Duration,
    stopping: CancellationToken,
    forced: CancellationToken,
    /// When the grace period is over; none before it began. It only ever comes nearer.
    deadline: watch::Sender<Option<Instant>>,
}

impl Shutdown {
    /// Nothing is stopping yet.
    pub fn new(grace: Duration) -> Self {
        Self(Arc::new(Inner {
            grace,
            stopping: CancellationToken::new(),
            forced: CancellationToken::new(),
            deadline: watch::Sender::new(None),
        }))
    }

    /// No new turns from now on; running ones have `grace` (default: what the daemon was made with). Asked again, the
    /// earlier end counts.
    pub fn begin(&self, grace: Option<Duration>) {
        let end = Instant::now() + grace.unwrap_or(self.0.grace);
        self.0.deadline.send_if_modified(|deadline| {
            let nearer = deadline.is_none_or(|deadline| end < deadline);
            if nearer {
                *deadline = Some(end);
            }
            nearer
        });
        self.0.stopping.cancel();
    }

    /// Running turns are cancelled now.
    pub fn force(&self) {
        self.begin(Some(Duration::ZERO));
        self.0.forced.cancel();
    }

    /// Whether the end has begun.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.is_cancelled()
    }

    /// Cancelled when the end begins.
    pub fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    /// Cancelled when nothing may be waited for any more.
    pub fn forced(&self) -> &CancellationToken {
        &self.0.forced
    }

    /// Resolves when the grace period is over, or was cut short.
    pub async fn grace_over(&self) {
        let mut deadline = self.0.deadline.subscribe();
        loop {
            let until = *deadline.borrow_and_update();
            tokio::select! {
                () = self.0.forced.cancelled() => return,
                // The sender lives in `self`.
                _ = deadline.changed() => {}
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => return,
            }
        }
    }
}

/// The signals that end the daemon. Made before it says that it is ready, so that none is lost.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    /// Takes the signals over from their defaults.
    pub fn install() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// The first begins the end, every later one forces it. Never returns.
    pub async fn drive(mut self, shutdown: Shutdown) {
        loop {
            let name = tokio::select! {
                _ = self.terminate.recv() => "SIGTERM",
                _ = self.interrupt.recv() => "SIGINT",
                _ = self.hangup.recv() => "SIGHUP",
            };
            if shutdown.is_stopping() {
                tracing::warn!(name, "stopping at once");
                shutdown.force();
            } else {
                tracing::info!(name, "stopping");
                shutdown.begin(None);
            }
        }
    }
}

/// Tells the service manager, if there is one, that clients may come.
pub fn notify_ready() {
    notify(sd_notify::NotifyState::Ready);
}

/// Tells the service manager, if there is one, that the end has begun.
pub fn notify_stopping() {
    notify(sd_notify::NotifyState::Stopping);
}

/// Tells the service manager, if it wants to know, that the daemon lives: thrice as often as it asks for. No timer
/// runs where nobody asks.
pub async fn keep_watchdog() {
    let Some(limit) = sd_notify::watchdog_enabled() else {
        return;
    };
    // Nothing is as good as no limit.
    if limit.is_zero() {
        return;
    }
    let mut ticks = tokio::time::interval(limit / 3);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        notify(sd_notify::NotifyState::Watchdog);
    }
}

fn notify(state: sd_notify::NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(&[state]) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_nearer_end_counts() {
        let shutdown = Shutdown::new(Duration::from_secs(30));
        shutdown.begin(None);
        assert!(shutdown.is_stopping());
        let begun = Instant::now();
        let waiting = tokio::spawn({
            let shutdown = shutdown.clone();
            async move { shutdown.grace_over().await }
        });
        tokio::task::yield_now().await;
        shutdown.begin(Some(Duration::from_secs(2)));
        shutdown.begin(Some(Duration::from_secs(20)));
        waiting.await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 2);
        assert!(!shutdown.forced().is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn force_ends_the_grace_period_for_late_listeners_too() {
        let shutdown = Shutdown::new(Duration::from_secs(30));
        shutdown.force();
        let begun = Instant::now();
        shutdown.grace_over().await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        assert!(shutdown.is_stopping() && shutdown.forced().is_cancelled());
    }
}
