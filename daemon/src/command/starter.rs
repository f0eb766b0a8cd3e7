//! `/starter [N]`: prompts that the session's agent proposes, or a turn with one of them.

use super::registry::{Command, Failure, Invocation, Ran};
use crate::session::{Prompt, WhenBusy};

pub(super) fn command() -> Command {
    Command::new(
        "starter",
        "list the agent's prompts to begin with, or send one",
        run,
    )
}

async fn run(invocation: Invocation) -> Ran {
    let sessions = &invocation.sessions;
    let agent = sessions.agent_of(&invocation.session).await?;
    let starters = agent.map(|(_, agent)| agent.index.conversation_starters);
    let starters = starters.unwrap_or_default();
    if starters.is_empty() {
        return Err(Failure(
            "this session has no agent that proposes a beginning".to_owned(),
        ));
    }
    let Some(number) = invocation.argument() else {
        let lines = starters.iter().enumerate();
        let lines = lines.map(|(at, text)| format!("{}. {text}", at + 1));
        return Ok(lines.collect::<Vec<_>>().join("\n"));
    };
    let chosen = number
        .parse::<usize>()
        .ok()
        .and_then(|number| starters.get(number.checked_sub(1)?));
    let text = chosen.ok_or_else(|| {
        Failure(format!(
            "no beginning {number}: there are 1 to {}",
            starters.len()
        ))
    })?;
    let prompt = Prompt {
        text: text.clone(),
        when_busy: WhenBusy::Queue,
        ..Prompt::default()
    };
    sessions.start(&invocation.session, prompt).await?;
    Ok(String::new())
}
