//! The events of one session, each new part exactly once, over slow readers, lost connections and restarts of the
//! daemon. Must never skip one.

use crate::attach::View;
use crate::error::{Exit, Failure};
use crate::link::Link;
use jsonrpsee::core::client::{Subscription, SubscriptionClientT, SubscriptionCloseReason};
use protocol::daemon::{Clients, Trouble};
use protocol::error::ErrorKind;
use protocol::event::{Event, EventKind, Level};
use protocol::id::SessionId;
use protocol::session::SessionRpcClient;
use serde::de::DeserializeOwned;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

/// A session's events from a cursor on.
pub(crate) struct Follow {
    link: Rc<Link>,
    session: SessionId,
    view: View,
    live: Option<Live>,
    /// The attach under way. It is kept here, so that whoever stops waiting for it does not begin it anew: connecting
    /// may take seconds, and may start a daemon.
    attaching: Option<Attaching>,
}

type Attaching = Pin<Box<dyn Future<Output = Result<Live, Failure>>>>;

/// What is new of a session.
#[derive(Debug)]
pub(crate) enum News {
    Event(Box<Event>),
    /// So many clients are attached now.
    Clients(u32),
}

/// A subscription and the connection it came over.
#[derive(Debug)]
struct Live {
    events: Subscription<Event>,
    /// What the store cannot record; none where another follower of the connection has it.
    troubles: Option<Subscription<Trouble>>,
    /// Who else is here; none where another follower has it.
    clients: Option<Subscription<Clients>>,
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
            attaching: None,
        }
    }

    /// Whose events these are.
    pub(crate) fn session(&self) -> &SessionId {
        &self.session
    }

    /// The newest event that was given.
    pub(crate) fn cursor(&self) -> u64 {
        self.view.cursor()
    }

    /// Subscribes, if there is no subscription. Dropping the future loses nothing.
    pub(crate) async fn attach(&mut self) -> Result<(), Failure> {
        if self.live.is_none() {
            let attaching = match &mut self.attaching {
                Some(attaching) => attaching,
                None => self.attaching.insert(Box::pin(attach(
                    Rc::clone(&self.link),
                    self.session.clone(),
                    self.view.cursor(),
                ))),
            };
            let attached = attaching.await;
            self.attaching = None;
            self.live = Some(attached?);
        }
        Ok(())
    }

    /// The next event. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Result<Event, Failure> {
        loop {
            if let News::Event(event) = self.news().await? {
                return Ok(*event);
            }
        }
    }

    /// What is new. Dropping the future loses nothing.
    pub(crate) async fn news(&mut self) -> Result<News, Failure> {
        loop {
            self.attach().await?;
            let Some(live) = &mut self.live else { continue };
            let next = tokio::select! {
                biased;
                next = live.events.next() => next,
                trouble = told(&mut live.troubles) => {
                    if trouble.session == self.session {
                        return Ok(News::Event(Box::new(self.as_notice(trouble))));
                    }
                    continue;
                }
                told = told(&mut live.clients) => {
                    if told.session == self.session {
                        return Ok(News::Clients(told.clients));
                    }
                    continue;
                }
            };
            match next {
                Some(Ok(event)) => {
                    if let Some(fresh) = self.view.take(event) {
                        return Ok(News::Event(Box::new(fresh)));
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
                    let (link, session) = (Rc::clone(&self.link), self.session.clone());
                    let cursor = self.view.cursor();
                    self.attaching = Some(Box::pin(async move {
                        // Falling behind ends a subscription, not the connection: the cursor is enough to go on.
                        if !behind {
                            link.mend(generation).await?;
                        }
                        attach(link, session, cursor).await
                    }));
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

async fn attach(link: Rc<Link>, session: SessionId, cursor: u64) -> Result<Live, Failure> {
    loop {
        let (connection, generation) = link.connection();
        let client = &connection.client;
        let asked = SessionRpcClient::attach(client, session.clone(), Some(cursor), None).await;
        match asked.map_err(Failure::from) {
            Ok(events) => {
                let troubles = client.subscribe_to_method("session/trouble").await.ok();
                let clients = client.subscribe_to_method("session/clients").await.ok();
                return Ok(Live {
                    events,
                    troubles,
                    clients,
                    generation,
                });
            }
            Err(failure) if failure.is_disconnect() => link.mend(generation).await?,
            Err(failure) => return Err(explain(failure)),
        }
    }
}

/// The next of what is told beside the log; waits for ever where nothing will come.
async fn told<T: DeserializeOwned>(notifications: &mut Option<Subscription<T>>) -> T {
    if let Some(notifications) = notifications {
        while let Some(next) = notifications.next().await {
            if let Ok(told) = next {
                return told;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{Speak, Start};
    use crate::testing::{Act, ScriptedDaemon, event_json, run};
    use serde_json::{Value, json};

    async fn follow(daemon: &ScriptedDaemon) -> Follow {
        let link = Link::open(daemon.place.clone(), Start::Never, Speak::Ours)
            .await
            .unwrap();
        Follow::new(Rc::new(link), "s".into(), 0)
    }

    fn saying(seq: u64, offset: u64, text: &str) -> Act {
        let kind = json!({"type": "saying", "message": "m1", "offset": offset, "text": text});
        Act::Send(event_json(seq, kind))
    }

    fn ended(seq: u64) -> Act {
        let kind = json!({"type": "turn_ended", "status": "completed", "reply": ""});
        Act::Send(event_json(seq, kind))
    }

    /// Everything said until the turn ends.
    async fn said(follow: &mut Follow) -> String {
        let mut all = String::new();
        loop {
            match follow.next().await.unwrap().kind {
                EventKind::Saying { text, .. } => all.push_str(&text),
                EventKind::TurnEnded { .. } => return all,
                _ => {}
            }
        }
    }

    #[test]
    fn a_lost_connection_is_made_again_and_each_text_comes_once() {
        run(async {
            let daemon = ScriptedDaemon::start("lost", |connection, method, params| {
                if method != "session/attach" {
                    return vec![];
                }
                let sub = Act::Answer(json!("sub"));
                match connection {
                    0 => vec![sub, saying(1, 0, "grü"), saying(2, 3, "ne "), Act::Close],
                    _ => {
                        assert_eq!(params["after"], 2);
                        // The store has folded the message in the meantime.
                        let folded = json!({"type": "saying", "message": "m1", "offset": 0,
                                            "first_seq": 1, "text": "grüne 😀 Au"});
                        vec![sub, Act::Send(event_json(5, folded)), ended(6)]
                    }
                }
            });
            let mut follow = follow(&daemon).await;
            assert_eq!(said(&mut follow).await, "grüne 😀 Au");
        });
    }

    #[test]
    fn falling_behind_costs_nothing_but_another_attach() {
        run(async {
            const EVENTS: u64 = 5_000;
            let daemon = ScriptedDaemon::start("behind", |_, method, params| {
                if method == "session/detach" {
                    return vec![Act::Answer(json!(true))];
                }
                if method != "session/attach" {
                    return vec![];
                }
                let after = params["after"].as_u64().unwrap();
                let mut acts = vec![Act::Answer(json!("sub"))];
                acts.extend((after + 1..=EVENTS).map(|seq| saying(seq, seq - 1, "x")));
                acts.push(ended(EVENTS + 1));
                acts
            });
            let mut follow = follow(&daemon).await;
            follow.attach().await.unwrap();
            // Nobody reads for so long that jsonrpsee drops the subscription.
            let behind = |follow: &Follow| {
                let live = follow.live.as_ref().unwrap();
                live.events.close_reason().is_some()
            };
            while !behind(&follow) {
                tokio::task::yield_now().await;
            }
            assert_eq!(said(&mut follow).await, "x".repeat(EVENTS as usize));
        });
    }

    #[test]
    fn a_cursor_beyond_the_log_is_an_error_and_not_silence() {
        run(async {
            let daemon = ScriptedDaemon::start("beyond", |_, method, _| match method {
                "session/attach" => vec![Act::Refuse(json!({
                    "code": -32006, "message": "beyond", "data": {"kind": "cursor_beyond"}
                }))],
                _ => vec![],
            });
            let failure = follow(&daemon).await.next().await.unwrap_err();
            assert_eq!(failure.hint.as_deref(), Some("attach again"));
        });
    }

    #[test]
    fn trouble_of_the_store_is_told_as_a_notice() {
        run(async {
            let daemon = ScriptedDaemon::start("trouble", |_, _, _: &Value| vec![]);
            let follow = follow(&daemon).await;
            let trouble = Trouble {
                session: "s".into(),
                message: "disk full".into(),
            };
            let EventKind::Notice { level, text } = follow.as_notice(trouble).kind else {
                panic!("a trouble is a notice");
            };
            assert_eq!((level, text.as_str()), (Level::Error, "disk full"));
        });
    }
}
