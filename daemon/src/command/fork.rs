//! `/fork [SEQ]`: a new session with this one's events, all or up to one.

use super::registry::{Command, Failure, Invocation, Ran};

pub(super) fn command() -> Command {
    let about = "make a new session from this one, from all of it or up to event SEQ";
    Command::new("fork", about, run)
}

async fn run(invocation: Invocation) -> Ran {
    let at = invocation.argument().map(number).transpose()?;
    let fork = invocation.sessions.fork(&invocation.session, at).await?;
    Ok(format!("forked as {id}: dwell attach {id}", id = fork.id))
}

fn number(text: &str) -> Result<u64, Failure> {
    let wrong = |_| Failure(format!("no event {text:?}: /fork takes an event's number"));
    text.parse().map_err(wrong)
}
