//! A program's time: runs while the program can do something, stands while each of its open calls waits for a person.

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
    slot: Option<Slot>,
}

impl Clock {
    /// Runs from now on. Whoever waits for a person gives the place away for that time.
    pub(super) fn new(limit: Duration, slot: Option<Slot>) -> Self {
        let state = State {
            spent: Duration::ZERO,
            since: Some(Instant::now()),
            open: 0,
            waiting: 0,
            slot,
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

    fn count(&self, counter: Counter, change: impl FnOnce(&mut usize)) {
        let mut state = self.state();
        change(counter(&mut state));
        let stands = state.open > 0 && state.waiting >= state.open;
        match (state.since, stands) {
            (Some(since), true) => {
                state.spent += since.elapsed();
                state.since = None;
                if let Some(slot) = &state.slot {
                    slot.leave();
                }
            }
            (None, false) => {
                state.since = Some(Instant::now());
                if let Some(slot) = &state.slot {
                    slot.come_back();
                }
            }
            (Some(_), false) | (None, true) => return,
        }
        self.changed.notify_waiters();
    }
}

impl Drop for State {
    fn drop(&mut self) {
        // A place that was left is not there to be given back.
        if let (None, Some(slot)) = (self.since, &self.slot) {
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
        clock.count(counter, |count| *count += 1);
        Self { clock, counter }
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.clock.count(self.counter, |count| *count -= 1);
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
            assert!(!is_over_after(&clock, 1000).await);
        }
        assert!(!is_over_after(&clock, 3).await);
        assert!(is_over_after(&clock, 2).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_runs_beside_one_that_waits_keeps_the_clock_going() {
        let clock = Clock::new(LIMIT, None);
        let _asking = clock.call();
        let _wait = clock.wait();
        let running = clock.call();
        assert!(!is_over_after(&clock, 6).await);
        drop(running);
        assert!(!is_over_after(&clock, 1000).await);
        let _next = clock.call();
        assert!(is_over_after(&clock, 5).await);
    }
}
