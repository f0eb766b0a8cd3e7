//! Slash commands that are prompts of MCP servers, as the registry keeps them. Must never know which there are.

use super::registry::{Candidates, Command};
use crate::session::Prompt;
use crate::workspace::servers::ServerPrompt;
use std::sync::Arc;

/// The turn is everybody's to see, and is not waited for.
pub(super) fn command(prompt: ServerPrompt) -> Command {
    Command {
        name: prompt.name.clone(),
        description: prompt.description.clone(),
        completions: Candidates::None,
        run: Arc::new(move |invocation| {
            let prompt = prompt.clone();
            Box::pin(async move {
                let line = invocation.args.unwrap_or_default();
                let prompt = Prompt {
                    text: prompt.text(&line).await?,
                    client: Some(format!("/{}", prompt.name)),
                    ..Prompt::default()
                };
                let sessions = invocation.sessions;
                sessions.start(&invocation.session, prompt).await?;
                Ok(String::new())
            })
        }),
    }
}
