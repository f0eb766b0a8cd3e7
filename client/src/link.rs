//! The connection as commands use it: one that comes back. Must never repeat a call that would do something twice.

use crate::connect::{Connection, Speak, Start, again, connect, stopped, was_stopped};
use crate::error::{Exit, Failure, Settled};
use crate::place::Place;
use futures_util::FutureExt as _;
use futures_util::future::{LocalBoxFuture, Shared};
use jsonrpsee::core::client::Error as CallError;
use jsonrpsee::core::client::async_client::Client;
use protocol::daemon::DaemonInfo;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::watch;

/// How often a lost connection is tried again, with growing pauses, before it is given up.
const ATTEMPTS: u32 = 7;

/// The same for another machine: a network comes back after minutes.
const FAR_ATTEMPTS: u32 = 40;

/// The longest pause between two of them.
const PAUSE: Duration = Duration::from_secs(1);
const FAR_PAUSE: Duration = Duration::from_secs(5);

/// How long a daemon that takes nothing any more may take to its end.
const ENDING: Duration = Duration::from_secs(60);

/// What is said of a call whose answer did not come.
const UNKNOWN: &str = "what was asked may have been done all the same: look before you ask again";

/// How many of these only wait for a daemon, and start none.
const WAITING: u32 = 3;

/// A connection to the daemon that is made anew when it breaks.
#[derive(Debug)]
pub(crate) struct Link {
    line: Rc<Line>,
    mending: RefCell<Option<Mending>>,
}

/// What is made anew.
#[derive(Debug)]
struct Line {
    place: Place,
    start: Start,
    current: RefCell<Rc<Connection>>,
    /// Counts the connections, so that of several users who see one break only the first makes a new one.
    generation: Cell<u64>,
    /// Whether the other machine's `dwell` cannot bring a daemon back.
    old: Cell<bool>,
    /// Why there is no connection, while it is tried again.
    down: watch::Sender<Option<String>>,
}

/// A new connection in the making, in place of the one with this number. Whoever waits for it drives it: a user who stops
/// waiting, and does something else over the same link, must not leave the others with one that nobody makes.
struct Mending {
    broken: u64,
    made: Shared<LocalBoxFuture<'static, Result<(), Failure>>>,
}

impl fmt::Debug for Mending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mending")
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

impl Link {
    /// The first connection.
    pub(crate) async fn open(place: Place, start: Start, speak: Speak) -> Result<Self, Failure> {
        let connection = connect(&place, start, speak).await?;
        let line = Line {
            place,
            start,
            current: RefCell::new(Rc::new(connection)),
            generation: Cell::new(0),
            old: Cell::new(false),
            down: watch::Sender::new(None),
        };
        Ok(Self {
            line: Rc::new(line),
            mending: RefCell::new(None),
        })
    }

    /// Where the daemon is.
    pub(crate) fn place(&self) -> &Place {
        &self.line.place
    }

    /// Tells when the connection is gone, with what the last attempt to make it anew came to (nothing before the first
    /// has ended), and when it is back.
    pub(crate) fn down(&self) -> watch::Receiver<Option<String>> {
        self.line.down.subscribe()
    }

    /// The daemon at the other end, if it told.
    pub(crate) fn daemon(&self) -> Option<DaemonInfo> {
        self.line.current.borrow().daemon.clone()
    }

    /// The connection as it is now, and its number for [`Link::mend`].
    pub(crate) fn connection(&self) -> (Rc<Connection>, u64) {
        (
            Rc::clone(&self.line.current.borrow()),
            self.line.generation.get(),
        )
    }

    /// Calls a method that may safely be called again when the connection breaks before its answer.
    pub(crate) async fn call<T>(
        &self,
        method: impl AsyncFn(&Client) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        loop {
            let (connection, generation) = self.connection();
            let error = match method(&connection.client).await {
                Ok(result) => return Ok(result),
                Err(error) => error,
            };
            let gone = is_stopping(&error) && is_gone(&connection).await;
            let failure = Failure::from(error);
            if !gone && !failure.is_disconnect() {
                return Err(failure);
            }
            self.mend(generation).await?;
        }
    }

    /// Calls a method that would do its work twice. A connection that is known to be gone is mended first.
    pub(crate) async fn call_once<T>(
        &self,
        method: impl AsyncFn(&Client) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let (mut connection, mut generation) = self.connection();
        if !connection.client.is_connected() {
            self.mend(generation).await?;
            (connection, generation) = self.connection();
        }
        let mut asked = method(&connection.client).await;
        // What a daemon on its way out has refused was not done.
        if let Err(error) = &asked
            && is_stopping(error)
            && is_gone(&connection).await
        {
            self.mend(generation).await?;
            asked = method(&self.connection().0.client).await;
        }
        asked.map_err(|error| {
            let failure = Failure::from(error);
            match failure.is_disconnect() {
                true => failure.hint(UNKNOWN),
                false => failure,
            }
        })
    }

    /// Replaces the connection with this number, unless somebody has done so.
    pub(crate) async fn mend(&self, broken: u64) -> Result<(), Failure> {
        if self.line.generation.get() != broken {
            return Ok(());
        }
        let made = self.under_way(broken);
        made.await
    }

    /// The making of a new connection, which begins unless it is under way.
    fn under_way(&self, broken: u64) -> Shared<LocalBoxFuture<'static, Result<(), Failure>>> {
        let mut mending = self.mending.borrow_mut();
        if let Some(under_way) = mending.as_ref()
            && under_way.broken == broken
            && under_way.made.peek().is_none()
        {
            return under_way.made.clone();
        }
        let line = Rc::clone(&self.line);
        let made = async move {
            let mended = line.try_again(broken).await;
            line.down.send_replace(None);
            mended
        };
        let made = made.boxed_local().shared();
        *mending = Some(Mending {
            broken,
            made: made.clone(),
        });
        made
    }
}

impl Line {
    async fn try_again(&self, broken: u64) -> Result<(), Failure> {
        self.down.send_replace(Some(String::new()));
        let (attempts, longest) = match self.place.remote {
            Some(_) => (FAR_ATTEMPTS, FAR_PAUSE),
            None => (ATTEMPTS, PAUSE),
        };
        let mut pause = Duration::from_millis(50);
        for attempt in 1.. {
            match again(&self.place, self.start_of(attempt)).await {
                Ok(connection) => {
                    *self.current.borrow_mut() = Rc::new(connection);
                    self.generation.set(broken + 1);
                    return Ok(());
                }
                Err(_) if attempt >= attempts && self.was_stopped_here() => return Err(stopped()),
                Err(failure) if failure.settled == Some(Settled::Unknown) && !self.old.get() => {
                    self.old.set(true);
                    continue;
                }
                Err(failure) if failure.settled.is_some() => return Err(failure),
                Err(failure) if attempt >= attempts || !may_pass(&failure) => {
                    return Err(failure.context("the connection to the daemon was lost"));
                }
                Err(failure) => {
                    self.down.send_replace(Some(failure.message));
                    tokio::time::sleep(pause).await;
                }
            }
            pause = (pause * 2).min(longest);
        }
        Ok(())
    }

    /// What an attempt does where no daemon answers.
    fn start_of(&self, attempt: u32) -> Start {
        match &self.place.remote {
            // The other machine sees to all of this by itself.
            Some(_) if self.start == Start::Never || self.old.get() => Start::Never,
            Some(_) => Start::IfDied,
            // Whoever looks after the daemon may bring it back by himself.
            None if attempt <= WAITING || was_stopped(&self.place) => Start::Never,
            None => self.start,
        }
    }

    fn was_stopped_here(&self) -> bool {
        self.place.remote.is_none() && was_stopped(&self.place)
    }
}

/// Whether the daemon takes nothing any more, and there may be another one soon.
fn is_stopping(error: &CallError) -> bool {
    let CallError::Call(error) = error else {
        return false;
    };
    let data = error.data().map(|data| data.get()).unwrap_or_default();
    serde_json::from_str::<Value>(data).is_ok_and(|data| data["stopping"] == true)
}

/// Waits for such a daemon's end.
async fn is_gone(connection: &Connection) -> bool {
    let end = connection.client.on_disconnect();
    tokio::time::timeout(ENDING, end).await.is_ok()
}

/// Whether trying again may help: a daemon on its way out may accept once more and hang up.
fn may_pass(failure: &Failure) -> bool {
    failure.kind.is_none() && failure.exit == Exit::Unreachable
}
