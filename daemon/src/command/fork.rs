//! `/fork [SEQ]`: a new session with this one's events, all or up to one.

use super::registry::{Candidates, Command, Failure, Invocation, Ran};
use protocol::command::Candidate;
use protocol::event::{Event, EventKind};

/// How many prompts are offered to fork before.
const OFFERED: usize = 20;

/// How many pages of events are looked through for them.
const PAGES: usize = 10;

pub(super) fn command() -> Command {
    let about = "make a new session from this one, all of it or before a prompt (Tab lists them)";
    Command::new("fork", about, run).completing(Candidates::told(prompts))
}

async fn run(invocation: Invocation) -> Ran {
    let at = invocation.argument().map(number).transpose()?;
    let fork = invocation.sessions.fork(&invocation.session, at).await?;
    Ok(format!(
        "forked as {id}: /attach {id} goes there",
        id = fork.id
    ))
}

fn number(text: &str) -> Result<u64, Failure> {
    let wrong = |_| Failure(format!("no event {text:?}: /fork takes an event's number"));
    text.parse().map_err(wrong)
}

/// The events before the newest prompts, each with the prompt that would be the first to be missing.
async fn prompts(invocation: Invocation) -> Vec<Candidate> {
    let mut found = Vec::new();
    let session = invocation.sessions.get(&invocation.session).await;
    let mut asked = session.map_or(1, |session| session.seq + 1);
    for _ in 0..PAGES {
        let page = invocation
            .sessions
            .history(&invocation.session, None, Some(asked), None)
            .await;
        let events = page.map(|page| page.events).unwrap_or_default();
        found.extend(events.iter().rev().filter_map(before_prompt));
        let oldest = events.first().map(Event::first);
        match oldest.filter(|oldest| *oldest > 1 && *oldest < asked && found.len() < OFFERED) {
            Some(oldest) => asked = oldest,
            None => break,
        }
    }
    found.truncate(OFFERED);
    found
}

fn before_prompt(event: &Event) -> Option<Candidate> {
    let EventKind::TurnStarted { text, .. } = &event.kind else {
        return None;
    };
    // Before the first there is nothing to go on with.
    let at = event.first().checked_sub(1).filter(|at| *at > 0)?;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    Some(Candidate {
        text: at.to_string(),
        description: Some(format!("before: {}", line.unwrap_or_default())),
    })
}
