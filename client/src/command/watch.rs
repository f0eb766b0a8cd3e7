//! `dwell watch`: all sessions at once, a line for each change. Must never answer or start anything.

use crate::error::{Exit, Failure};
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use crate::render::first_line;
use protocol::daemon::{Change, DaemonRpcClient};
use protocol::session::{Session, SessionRpcClient, SessionState};
use std::collections::{HashMap, HashSet};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Each change as one JSON object a line
    #[arg(long)]
    json: bool,
}

/// How many sessions are looked at after a gap: those that changed last.
const LOOKED_AT: u32 = 200;

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let mut watch = Watch {
        json: args.json,
        paint: Paint::of(&std::io::stdout()),
        known: None,
    };
    loop {
        let (connection, generation) = link.connection();
        match DaemonRpcClient::watch(&connection.client).await {
            Ok(mut changes) => {
                // After the subscription, so that nothing falls between the two.
                watch.catch_up(&link).await?;
                while let Some(change) = changes.next().await {
                    let change = change.map_err(|error| {
                        Failure::new(format!("a change does not fit this client: {error}"))
                    })?;
                    watch.tell(&change)?;
                }
            }
            Err(error) => {
                let failure = Failure::from(error);
                if !failure.is_disconnect() {
                    return Err(failure);
                }
            }
        }
        mend(&link, generation).await?;
    }
}

/// Whoever watches waits for the daemon to come back, and starts none.
async fn mend(link: &Link, generation: u64) -> Result<(), Failure> {
    link.mend(generation)
        .await
        .map_err(|failure| failure.exit(Exit::Unreachable))
}

/// How a session was when it was last seen: its state, and its newest event.
type Seen = (SessionState, u64);

struct Watch {
    json: bool,
    paint: Paint,
    /// None before the first look.
    known: Option<HashMap<String, Seen>>,
}

impl Watch {
    /// Tells what has changed while nothing was heard. The first look is at what is there already, and tells nothing.
    async fn catch_up(&mut self, link: &Link) -> Result<(), Failure> {
        let list = link
            .call(async |client| {
                SessionRpcClient::list(client, None, None, None, Some(LOOKED_AT), None).await
            })
            .await?;
        let Some(known) = &self.known else {
            self.known = Some(list.sessions.iter().map(seen).collect());
            return Ok(());
        };
        let changes = missed(known, list.sessions, list.cursor.is_none());
        self.suppose(&changes);
        changes.iter().try_for_each(|change| self.tell(change))
    }

    /// What has gone on in a session and is over now, has run.
    fn suppose(&mut self, changes: &[Change]) {
        let Some(known) = &mut self.known else { return };
        for change in changes {
            if let Change::Session { session } = change
                && let Some((state, _)) = known.get_mut(session.id.as_str())
                && session.state == SessionState::Idle
            {
                *state = SessionState::Running;
            }
        }
    }

    fn tell(&mut self, change: &Change) -> Result<(), Failure> {
        let known = self.known.get_or_insert_default();
        let before = match change {
            Change::Session { session } => {
                let (id, seen) = seen(session);
                known.insert(id, seen)
            }
            Change::Deleted { session } => known.remove(session.as_str()),
            Change::Unknown => None,
        };
        if self.json {
            return out::json(change);
        }
        let before = before.map(|(state, _)| state);
        match change {
            Change::Session { session } if before == Some(session.state) => Ok(()),
            Change::Session { session } => out::line(&line(session, before, self.paint)),
            Change::Deleted { session } => out::line(&format!("{session}  deleted")),
            Change::Unknown => Ok(()),
        }
    }
}

fn seen(session: &Session) -> (String, Seen) {
    (session.id.to_string(), (session.state, session.seq))
}

/// The changes between what was known and a list, the oldest first; of a list that is whole, also what is gone.
fn missed(known: &HashMap<String, Seen>, list: Vec<Session>, whole: bool) -> Vec<Change> {
    let listed: HashSet<String> = list.iter().map(|one| one.id.to_string()).collect();
    let gone = known.keys().filter(|id| whole && !listed.contains(*id));
    let mut changes: Vec<Change> = gone
        .map(|id| Change::Deleted {
            session: id.as_str().into(),
        })
        .collect();
    let mut changed: Vec<Session> = list
        .into_iter()
        .filter(|session| {
            let (id, now) = seen(session);
            known.get(&id) != Some(&now)
        })
        .collect();
    changed.sort_by_key(|session| session.updated_at);
    changes.extend(changed.into_iter().map(|session| Change::Session {
        session: Box::new(session),
    }));
    changes
}

fn line(session: &Session, before: Option<SessionState>, paint: Paint) -> String {
    let ran = matches!(before, Some(SessionState::Running | SessionState::Waiting));
    let (part, word) = match session.state {
        SessionState::Idle if ran => (Part::Good, "done"),
        SessionState::Idle => (Part::Quiet, "idle"),
        SessionState::Running => (Part::Tool, "running"),
        SessionState::Waiting => (Part::Ask, "waiting"),
        SessionState::Failed => (Part::Bad, "failed"),
    };
    let word = format!("{}{}", paint.dress(part, word), " ".repeat(8 - word.len()));
    let what = session.reason.as_deref().unwrap_or(&session.title);
    format!("{}  {word} {}", session.id, first_line(what))
        .trim_end()
        .into()
}
