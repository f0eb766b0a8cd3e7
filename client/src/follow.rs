//! The events of one session, each new part exactly once, over slow readers, lost connections and restarts of the
//! daemon. Must never skip one.

use crate::attach::View;
use crate::error::{Exit, Failure};
use crate::link::Link;
use jsonrpsee::core::client::{Subscription, SubscriptionClientT, SubscriptionCloseReason};
use protocol::daemon::Trouble;
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind, Level};
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use std::rc::Rc;

/// A session's events from a cursor on.
#[derive(Debug)]
pub(crate) struct Follow {
    link: Rc<Link>,
    session: SessionId,
    view: View,
    live: Option<Live>,
}

/// A subscription and the connection it came over.
#[derive(Debug)]
struct Live {
    events: Subscription<Event>,
    /// What the store cannot record; none where another follower of the connection has it.
    troubles: Option<Subscription<Trouble>>,
    generation: u64,
}

impl Follow {
    /// Everything after `cursor`. Nothing is sent before [`Follow::attach`] or [`Follow::next`].
    pub(crate) fn new(link: Rc<Link>, session: SessionId, cursor: u64) -> Self {
        Self::with_view(link, session, View::after(cursor))
    }

    /// Everything that a view has not shown.
    pub(crate) fn with_view(link: Rc<Link>, session: SessionId, view: View) -> Self {
        Self {
            link,
            session,
            view,
            live: None,
        }
    }

    /// Whose events these are.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// Subscribes, if there is no subscription.
    pub(crate) async fn attach(&mut self) -> Result<(), Failure> {
        while self.live.is_none() {
            let (connection, generation) = self.link.connection();
            let after = Some(self.view.cursor());
            let client = &connection.client;
            let asked = SessionRpcClient::attach(client, self.session.clone(), after, None);
            match asked.await.map_err(Failure::from) {
                Ok(events) => {
                    let troubles = client.subscribe_to_method("session/trouble").await.ok();
                    self.live = Some(Live {
                        events,
                        troubles,
                        generation,
                    });
                }
                Err(failure) if failure.is_disconnect() => self.link.mend(generation).await?,
                Err(failure) => return Err(explain(failure)),
            }
        }
        Ok(())
    }

    /// What is new. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            self.attach().await?;
            let Some(live) = &mut self.live else { continue };
            let next = tokio::select! {
                biased;
                next = live.events.next() => next,
                trouble = trouble(&mut live.troubles) => {
                    if trouble.session == self.session {
                        return Ok(self.as_notice(trouble));
                    }
                    continue;
                }
            };
            match next {
                Some(Ok(event)) => {
                    if let Some(fresh) = self.view.take(event) {
                        return Ok(fresh);
                    }
                }
                Some(Err(error)) => {
                    return Err(Failure::new(format!(
                        "the daemon sent an event that does not fit this client: {error}"
                    )));
                }
                None => {
                    let behind = matches!(
                        live.events.close_reason(),
                        Some(SubscriptionCloseReason::Lagged)
                    );
                    let generation = live.generation;
                    self.live = None;
                    // Falling behind ends a subscription, not the connection: the cursor is enough to go on.
                    if !behind {
                        self.link.mend(generation).await?;
                    }
                }
            }
        }
    }

    /// A trouble as the event that the store could not take. It has no number of its own.
    fn as_notice(&self, trouble: Trouble) -> Event {
        Event {
            session: trouble.session,
            seq: self.view.cursor(),
            first_seq: None,
            at: 0,
            turn: None,
            kind: EventKind::Notice {
                level: Level::Error,
                text: trouble.message,
            },
        }
    }
}

/// The next trouble; waits for ever where none will come.
async fn trouble(troubles: &mut Option<Subscription<Trouble>>) -> Trouble {
    if let Some(troubles) = troubles {
        while let Some(next) = troubles.next().await {
            if let Ok(trouble) = next {
                return trouble;
            }
        }
    }
    std::future::pending().await
}

fn explain(failure: Failure) -> Failure {
    match failure.kind {
        Some(ErrorKind::CursorBeyond) => Failure::new(
            "the session's log is shorter than what was shown here: its store was replaced",
        )
        .hint("attach again")
        .exit(Exit::Failed),
        _ => failure,
    }
}
