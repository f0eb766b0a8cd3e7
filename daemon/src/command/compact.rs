//! `/compact`: the model sums up what was said, and goes on with that alone; the log keeps the original.

use super::registry::{Command, Failure, Invocation, Ran};
use crate::session::Prompt;
use crate::turn::compaction::{ASK, BY};
use protocol::event::TurnStatus;

pub(super) fn command() -> Command {
    let about = "let the model go on with a summary of the conversation";
    Command::new("compact", about, run)
}

/// A turn that does not end well changes nothing of the conversation.
async fn run(invocation: Invocation) -> Ran {
    let (sessions, session) = (&invocation.sessions, &invocation.session);
    // The first is the system prompt.
    if sessions.conversation(session).await?.len() <= 1 {
        return Err(Failure("there is nothing to sum up yet".to_owned()));
    }
    let prompt = Prompt {
        text: ASK.to_owned(),
        client: Some(BY.to_owned()),
        ..Prompt::default()
    };
    let started = sessions.start(session, prompt).await?;
    let turn = started
        .turn
        .ok_or_else(|| Failure("other prompts wait in front of it".to_owned()))?;
    let ended = sessions.wait(&turn).await?;
    let summary = ended.reply.trim();
    match ended.status {
        TurnStatus::Completed if !summary.is_empty() => {
            sessions.compact(session, summary.to_owned()).await?;
            Ok(String::new())
        }
        TurnStatus::Completed => Err(Failure("the model gave no summary".to_owned())),
        _ => Err(Failure(format!("there is no summary: {summary}"))),
    }
}
