//! `/permissions`: what the permissions say of each tool.

use super::registry::{Command, Invocation, Ran};
use super::table::table;
use super::tools::policy;

pub(super) fn command() -> Command {
    Command::new(
        "permissions",
        "show which tools run at once, ask, or never run",
        run,
    )
}

async fn run(invocation: Invocation) -> Ran {
    let list = invocation.sessions.all_tools(&invocation.session).await?;
    let rows = list.tools.iter().map(|tool| {
        let name = tool.definition.function.name.clone();
        [name, policy(tool.approval).to_owned()]
    });
    let text = table(&rows.collect::<Vec<_>>());
    Ok(format!(
        "{text}\nrules for arguments may say otherwise: see permissions.json"
    ))
}
