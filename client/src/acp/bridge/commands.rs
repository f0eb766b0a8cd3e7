//! The editor's slash commands that run: which are cancelled. Must never know what one does.

use crate::acp::incoming::Id;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::sync::watch;

/// Those of one session.
#[derive(Default)]
pub(super) struct Commands(RefCell<Vec<Rc<Running>>>);

/// One of them.
pub(super) struct Running {
    /// Of the editor's request.
    id: Id,
    /// No turn ran when it began: one that runs now is its own.
    pub(super) alone: Cell<bool>,
    off: watch::Sender<bool>,
}

impl Commands {
    pub(super) fn begin(&self, id: Id) -> Rc<Running> {
        let running = Rc::new(Running {
            id,
            alone: Cell::new(false),
            off: watch::Sender::new(false),
        });
        self.0.borrow_mut().push(Rc::clone(&running));
        running
    }

    pub(super) fn end(&self, ended: &Rc<Running>) {
        let mut all = self.0.borrow_mut();
        all.retain(|running| !Rc::ptr_eq(running, ended));
    }

    /// Cancels those that fit. Says whether one of them may have begun the turn that runs.
    pub(super) fn cancel(&self, fits: impl Fn(&Running) -> bool) -> bool {
        let all = self.0.borrow();
        let mut own = false;
        for running in all.iter().filter(|running| fits(running)) {
            running.off.send_replace(true);
            own |= running.alone.get();
        }
        own
    }
}

impl Running {
    pub(super) fn is(&self, id: &Value) -> bool {
        self.id.is(id)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.off.borrow()
    }

    /// Resolves when it is cancelled.
    pub(super) async fn cancelled(&self) {
        // The sender lives as long as this does.
        let _ = self.off.subscribe().wait_for(|off| *off).await;
    }
}
