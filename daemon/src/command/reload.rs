//! `/reload`: the plugins of the directory start anew, with their files as they are now.

use super::registry::{Command, Invocation, Ran};

pub(super) fn command() -> Command {
    let about = "start this directory's plugins anew and read its tools";
    Command::new("reload", about, run)
}

/// A plugin that cannot start takes none of the others along.
async fn run(invocation: Invocation) -> Ran {
    let problems = invocation.sessions.reload(&invocation.session).await?;
    Ok(match problems.is_empty() {
        true => "reloaded".to_owned(),
        false => format!("reloaded, but for:\n{}", problems.join("\n")),
    })
}
