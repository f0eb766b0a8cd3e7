//! Prompts of servers, as whoever keeps all commands takes them. Must never start a server to learn which there are.

use super::Own;
use super::own::before;
use super::server::Server;
use crate::toolbox::source::mcp::{self, Prompt, arguments};
use crate::workspace::Workspace;
use std::sync::Arc;

/// One prompt of a server; a cheap handle.
#[derive(Clone)]
pub struct ServerPrompt {
    /// Without its slash: `SERVER:PROMPT`.
    pub name: String,
    /// One line.
    pub description: String,
    prompt: Prompt,
    server: Arc<Server>,
}

impl Workspace {
    /// The prompts of the servers that have run.
    pub fn prompts(&self, own: Option<&Own>) -> Vec<ServerPrompt> {
        let servers = before(own, self.servers.all());
        let of = |server: &Arc<Server>| {
            let server = Arc::clone(server);
            let prompts = server.info().prompts.into_iter();
            prompts.map(move |prompt| ServerPrompt {
                name: format!("{}:{}", server.config.name, prompt.name),
                description: described(&prompt),
                prompt,
                server: Arc::clone(&server),
            })
        };
        servers.iter().flat_map(of).collect()
    }
}

fn described(prompt: &Prompt) -> String {
    let about = prompt.description.lines().next().unwrap_or_default();
    match prompt.usage() {
        usage if usage.is_empty() => about.to_owned(),
        usage => format!("{usage}: {about}")
            .trim_end_matches([' ', ':'])
            .to_owned(),
    }
}

impl ServerPrompt {
    /// The text of a turn. `line` is everything behind the command's name.
    pub async fn text(&self, line: &str) -> Result<String, String> {
        let given = arguments(&self.prompt, line)
            .map_err(|why| format!("{why}: /{} {}", self.name, self.prompt.usage()))?;
        let live = mcp::Server::live(&*self.server).await?;
        live.prompt(&self.prompt.name, given).await
    }
}
