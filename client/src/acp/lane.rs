//! What the editor asks of one session, in the order in which it asks: who comes first is seen to first, however long the way
//! to the daemon takes. Must never know what is asked.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use tokio::sync::watch;

/// The lanes of all sessions.
#[derive(Default)]
pub(super) struct Lanes(RefCell<HashMap<String, Rc<Lane>>>);

/// Those who have come for one session, and have not been seen to.
struct Lane {
    next: Cell<u64>,
    here: RefCell<BTreeSet<u64>>,
    /// The first of them.
    first: watch::Sender<u64>,
}

/// A place in a lane, until it is dropped.
pub(super) struct Ticket {
    lane: Rc<Lane>,
    number: u64,
}

impl Lanes {
    /// The last place.
    pub(super) fn last(&self, session: &str) -> Ticket {
        let mut lanes = self.0.borrow_mut();
        lanes.retain(|_, lane| !lane.here.borrow().is_empty());
        let lane = lanes.entry(session.to_owned()).or_insert_with(|| {
            Rc::new(Lane {
                next: Cell::new(0),
                here: RefCell::default(),
                first: watch::Sender::new(0),
            })
        });
        let number = lane.next.get();
        lane.next.set(number + 1);
        lane.here.borrow_mut().insert(number);
        Ticket {
            lane: Rc::clone(lane),
            number,
        }
    }
}

impl Ticket {
    /// Waits until all are seen to that came before.
    pub(super) async fn turn(&self) {
        let mut first = self.lane.first.subscribe();
        // The sender lives as long as this does.
        let _ = first.wait_for(|first| *first >= self.number).await;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut here = self.lane.here.borrow_mut();
        here.remove(&self.number);
        let first = here.first().copied().unwrap_or(self.lane.next.get());
        self.lane.first.send_replace(first);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn who_came_first_is_first_and_who_went_holds_up_nobody() {
        let lanes = Lanes::default();
        let [a, b, c] = [(); 3].map(|()| lanes.last("s"));
        let other = lanes.last("t");
        let may = |ticket: &Ticket| ticket.turn().now_or_never().is_some();
        assert!(may(&a) && !may(&b) && !may(&c) && may(&other));
        drop(b);
        assert!(!may(&c), "one before is there still");
        drop(a);
        assert!(may(&c));
        let d = lanes.last("s");
        assert!(!may(&d));
        drop(c);
        assert!(may(&d));
        drop(d);
        assert!(may(&lanes.last("s")));
    }
}
