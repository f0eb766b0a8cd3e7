//! `/agent`: who this session is, or which agents there are.

use super::registry::{Command, Invocation, Ran};
use super::table::{first_line, table};
use crate::toolbox::source::script::agent::{Choice, Definition};

pub(super) fn command() -> Command {
    Command::new(
        "agent",
        "show this session's agent and those there are",
        run,
    )
}

async fn run(invocation: Invocation) -> Ran {
    let sessions = &invocation.sessions;
    if let Some((choice, agent)) = sessions.agent_of(&invocation.session).await? {
        return Ok(about(&choice, &agent));
    }
    let session = sessions.get(&invocation.session).await?;
    let (agents, problems) = sessions.agents(&session.cwd).await?;
    let row = |agent: &Definition| [agent.name.clone(), first_line(&agent.index.description, 80)];
    let rows: Vec<_> = agents.iter().map(row).collect();
    let mut lines =
        vec!["this session is no agent's; `dwell new --agent NAME` begins one".to_owned()];
    lines.extend((!rows.is_empty()).then(|| table(&rows)));
    lines.extend(problems.iter().map(|problem| format!("problem: {problem}")));
    Ok(lines.join("\n"))
}

fn about(choice: &Choice, agent: &Definition) -> String {
    let index = &agent.index;
    let mut lines = vec![
        format!("{} {}", agent.name, index.version)
            .trim_end()
            .to_owned(),
    ];
    lines.extend((!index.description.is_empty()).then(|| index.description.clone()));
    lines.push(agent.dir.display().to_string());
    for (name, value) in &choice.variables {
        lines.push(format!("{name} = {value}"));
    }
    if !index.conversation_starters.is_empty() {
        lines.push("`/starter` shows how to begin".to_owned());
    }
    lines.join("\n")
}
