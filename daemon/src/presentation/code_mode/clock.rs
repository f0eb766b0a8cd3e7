//! A program's time: runs while the program can do something, stands while each of its open calls waits for a person and
//! so does the program.

use super::slots::Slot;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(super) struct Clock {
    limit: Duration,
    /// Held for a few moves of numbers.
    state: Mutex<State>,
    /// It stands or runs again.
    changed: Notify,
}

struct State {
    /// Of what ran before.
    spent: Duration,
    /// Since when it runs.
    since: Option<Instant>,
    /// Calls that run, those included that wait for a person.
    open: usize,
    waiting: usize,
    /// Whether the program itself said that it only waits.
    idle: bool,
    /// Calls during which others may have the place.
    away: usize,
    slot: Option<Slot>,
    /// Whether the place is given away.
    left: bool,
}

impl State {
    /// Every call waits for a person.
    fn all_wait(&self) -> bool {
        self.open > 0 && self.waiting >= self.open
    }
}

impl Clock {
    /// Runs from now on. Whoever waits for a person gives the place away for that time.
    pub(super) fn new(limit: Duration, slot: Option<Slot>) -> Self {
        let state = State {
            spent: Duration::ZERO,
            since: Some(Instant::now()),
            open: 0,
            waiting: 0,
            idle: false,
            away: 0,
            slot,
            left: false,
        };
        Self {
            limit,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// A call runs, until what this gives is dropped.
    pub(super) fn call(&self) -> Count<'_> {
        Count::new(self, |state| &mut state.open)
    }

    /// A call waits for a person, until what this gives is dropped.
    pub(super) fn wait(&self) -> Count<'_> {
        Count::new(self, |state| &mut state.waiting)
    }

    /// A call runs during which others may have the place, until what this gives is dropped.
    pub(super) fn away(&self) -> Count<'_> {
        Count::new(self, |state| &mut state.away)
    }

    /// Whether the program itself only waits.
    pub(super) fn idles(&self, idle: bool) {
        self.change(|state| state.idle = idle);
    }

    /// Returns when it would stand if the program only waits, which only the program knows.
    pub(super) async fn asks(&self) {
        loop {
            let changed = self.changed.notified();
            let asks = {
                let state = self.state();
                state.all_wait() && !state.idle
            };
            if asks {
                return;
            }
            changed.await;
        }
    }

    /// How many calls wait for a person.
    pub(super) fn waiting(&self) -> usize {
        self.state().waiting
    }

    /// Returns when the time is up.
    pub(super) async fn over(&self) {
        loop {
            let changed = self.changed.notified();
            let end = {
                let state = self.state();
                let left = self.limit.saturating_sub(state.spent);
                state.since.map(|since| since + left)
            };
            match end {
                Some(end) => tokio::select! {
                    () = tokio::time::sleep_until(end) => return,
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state();
        let waited = state.all_wait();
        change(&mut state);
        let stands = state.idle && state.all_wait();
        let turns = match (state.since, stands) {
            (Some(since), true) => {
                state.spent += since.elapsed();
                state.since = None;
                true
            }
            (None, false) => {
                state.since = Some(Instant::now());
                true
            }
            (Some(_), false) | (None, true) => false,
        };
        let leaves = stands || state.away > 0;
        if leaves != std::mem::replace(&mut state.left, leaves)
            && let Some(slot) = &state.slot
        {
            match leaves {
                true => slot.leave(),
                false => slot.come_back(),
            }
        }
        if turns || waited != state.all_wait() {
            self.changed.notify_waiters();
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // A place that was left is not there to be given back.
        if let (true, Some(slot)) = (self.left, &self.slot) {
            slot.come_back();
        }
    }
}

type Counter = fn(&mut State) -> &mut usize;

pub(super) struct Count<'c> {
    clock: &'c Clock,
    counter: Counter,
}

impl<'c> Count<'c> {
    fn new(clock: &'c Clock, counter: Counter) -> Self {
        clock.change(|state| *counter(state) += 1);
        Self { clock, counter }
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        let counter = self.counter;
        self.clock.change(|state| *counter(state) -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    async fn is_over_after(clock: &Clock, seconds: u64) -> bool {
        tokio::time::timeout(Duration::from_secs(seconds), clock.over())
            .await
            .is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_stands_while_every_open_call_waits_for_a_person() {
        let clock = Clock::new(LIMIT, None);
        assert!(!is_over_after(&clock, 6).await);
        {
            let _call = clock.call();
            let _wait = clock.wait();
            clock.idles(true);
            assert!(!is_over_after(&clock, 1000).await);
        }
        assert!(!is_over_after(&clock, 3).await);
        assert!(is_over_after(&clock, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_runs_beside_one_that_waits_keeps_the_clock_going() {
        let clock = Clock::new(LIMIT, None);
        clock.idles(true);
        let _asking = clock.call();
        let _wait = clock.wait();
        let running = clock.call();
        assert!(!is_over_after(&clock, 6).await);
        drop(running);
        assert!(!is_over_after(&clock, 1000).await);
        let _next = clock.call();
        assert!(is_over_after(&clock, 5).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_that_computes_while_its_calls_wait_uses_its_time() {
        let clock = Clock::new(LIMIT, None);
        let _call = clock.call();
        let _wait = clock.wait();
        clock.asks().await;
        assert!(!is_over_after(&clock, 6).await);
        clock.idles(true);
        assert!(!is_over_after(&clock, 1000).await);
        clock.idles(false);
        assert!(is_over_after(&clock, 5).await);
    }
}
