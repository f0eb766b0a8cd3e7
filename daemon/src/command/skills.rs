//! `/skills`: what the model can read up on here.

use super::registry::{Command, Invocation, Ran};
use super::table::table;

pub(super) fn command() -> Command {
    Command::new("skills", "list the skills that the model can read", run)
}

async fn run(invocation: Invocation) -> Ran {
    let skills = invocation.sessions.skills(&invocation.session).await?;
    if skills.is_empty() {
        return Ok(
            "no skills: they are .agents/skills/NAME/SKILL.md, here or in your home".to_owned(),
        );
    }
    let rows = skills.into_iter().map(|skill| {
        let place = skill.folder.display().to_string();
        [skill.name, skill.description, place]
    });
    Ok(table(&rows.collect::<Vec<_>>()))
}
