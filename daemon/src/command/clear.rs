//! `/clear`: the model forgets what came before; the log keeps it.

use super::registry::{Command, Invocation, Ran};

pub(super) fn command() -> Command {
    Command::new(
        "clear",
        "start the conversation anew; the log keeps the old one",
        run,
    )
}

async fn run(invocation: Invocation) -> Ran {
    invocation.sessions.clear(&invocation.session).await?;
    Ok(String::new())
}
