//! `/rename TITLE`: another title for this session.

use super::registry::{Command, Failure, Invocation, Ran};

pub(super) fn command() -> Command {
    Command::new("rename", "give this session another title", run)
}

async fn run(invocation: Invocation) -> Ran {
    let title = invocation.argument();
    let title = title.ok_or_else(|| Failure("no title given: /rename TITLE".to_owned()))?;
    let title = title.to_owned();
    invocation
        .sessions
        .rename(&invocation.session, title)
        .await?;
    Ok(String::new())
}
