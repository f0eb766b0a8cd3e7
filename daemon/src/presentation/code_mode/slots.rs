//! How many programs run at once, and who waits for a place. Must never let a program that waits for a person keep others out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// Places for programs.
pub(super) struct Slots {
    /// Held for a few moves of numbers.
    state: Mutex<State>,
    most: usize,
    queue: usize,
}

struct State {
    running: usize,
    /// Who waits, in order. As long as `queue` at most, beyond which it is `Busy`.
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// As many wait as may.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Busy;

impl Slots {
    pub(super) const fn new(most: usize, queue: usize) -> Self {
        let waiting = VecDeque::new();
        Self {
            state: Mutex::new(State {
                running: 0,
                waiting,
            }),
            most,
            queue,
        }
    }

    /// A place, in turn. May be dropped while it waits.
    pub(super) async fn take(&'static self) -> Result<Slot, Busy> {
        let turn = {
            let mut state = self.state();
            state.waiting.retain(|waiting| !waiting.is_closed());
            if state.running < self.most {
                state.running += 1;
                return Ok(Slot(self));
            }
            if state.waiting.len() >= self.queue {
                return Err(Busy);
            }
            let (sender, turn) = oneshot::channel();
            state.waiting.push_back(sender);
            turn
        };
        let mut turn = Turn { slots: self, turn };
        // A sender is only dropped when it is of use to nobody.
        (&mut turn.turn).await.map_err(|_| Busy)?;
        turn.turn.close();
        Ok(Slot(self))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next one that still waits has the place that became free.
    fn give_back(&self) {
        let mut state = self.state();
        state.running -= 1;
        while state.running < self.most
            && let Some(next) = state.waiting.pop_front()
        {
            if next.send(()).is_ok() {
                state.running += 1;
            }
        }
    }
}

/// Somebody's wait for a place. Dropped just when the place came, it passes the place on.
struct Turn {
    slots: &'static Slots,
    turn: oneshot::Receiver<()>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turn.close();
        if self.turn.try_recv().is_ok() {
            self.slots.give_back();
        }
    }
}

/// A place, until it is dropped.
pub(super) struct Slot(&'static Slots);

impl Slot {
    /// The program waits for a person: its place is somebody else's meanwhile.
    pub(super) fn leave(&self) {
        self.0.give_back();
    }

    /// It goes on, at once: it has waited long enough.
    pub(super) fn come_back(&self) {
        self.0.state().running += 1;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(most: usize, queue: usize) -> &'static Slots {
        Box::leak(Box::new(Slots::new(most, queue)))
    }

    #[tokio::test]
    async fn places_are_given_in_turn_and_the_one_beyond_the_queue_is_busy() {
        let slots = slots(1, 2);
        let first = slots.take().await.ok();
        let second = tokio::spawn(slots.take());
        tokio::task::yield_now().await;
        let third = tokio::spawn(slots.take());
        tokio::task::yield_now().await;
        assert_eq!(slots.take().await.err(), Some(Busy));
        drop(first);
        let second = second.await.unwrap().ok();
        assert!(second.is_some() && !third.is_finished());
        drop(second);
        assert!(third.await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn who_gave_up_waiting_holds_nobody_up() {
        let slots = slots(1, 1);
        let first = slots.take().await.ok();
        let second = tokio::spawn(slots.take());
        tokio::task::yield_now().await;
        second.abort();
        assert!(second.await.is_err());
        let third = tokio::spawn(slots.take());
        tokio::task::yield_now().await;
        drop(first);
        assert!(third.await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_program_that_waits_for_a_person_keeps_nobody_out() {
        let slots = slots(1, 0);
        let first = slots.take().await.ok().unwrap();
        first.leave();
        let second = slots.take().await.ok();
        assert!(second.is_some());
        first.come_back();
        assert_eq!(slots.take().await.err(), Some(Busy));
        drop(second);
        assert_eq!(slots.take().await.err(), Some(Busy));
        drop(first);
        assert!(slots.take().await.is_ok());
    }
}
