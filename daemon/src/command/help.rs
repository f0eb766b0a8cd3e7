//! `/help [NAME]`: what commands there are.

use super::registry::{Candidates, Command, Failure, Invocation, Ran, Registry};
use super::table::table;

pub(super) fn command() -> Command {
    Command::new("help", "list the commands, or describe one", run)
        .completing(Candidates::asked(names))
}

async fn run(invocation: Invocation) -> Ran {
    let registry = invocation.commands.of(&invocation.session).await?;
    match invocation.argument() {
        None => Ok(all(&registry)),
        Some(name) => one(&registry, name.trim_start_matches('/')),
    }
}

async fn names(invocation: Invocation) -> Vec<String> {
    let registry = invocation.commands.of(&invocation.session).await;
    let names = registry
        .map(|registry| registry.names())
        .unwrap_or_default();
    names.iter().map(|name| name[1..].to_owned()).collect()
}

fn all(registry: &Registry) -> String {
    let rows = registry.each();
    let rows: Vec<_> = rows.map(|(name, about)| [name, about.to_owned()]).collect();
    table(&rows)
}

fn one(registry: &Registry, name: &str) -> Ran {
    let found = registry.find(name);
    let line = found.map(|command| format!("/{}  {}", command.name, command.description));
    line.ok_or_else(|| Failure(registry.unknown(name)))
}
