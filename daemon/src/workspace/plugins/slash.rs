//! A plugin's slash commands, as whoever keeps all commands takes them. Must never read a command's argument.

use super::ask::Silence;
use super::plugin::Plugin;
use crate::stdio_rpc::raw;
use protocol::id::SessionId;
use protocol::plugin::{CommandOutput, CommandParams, CompleteParams};
use std::sync::Arc;
use std::time::Duration;

/// How long somebody who types waits for words.
const COMPLETE: Duration = Duration::from_secs(2);

/// One command of a plugin; a cheap handle.
#[derive(Clone)]
pub struct Slash {
    /// Without its slash.
    pub name: String,
    /// One line.
    pub description: String,
    /// Fixed words for its argument; where there are none the plugin is asked.
    pub completions: Option<Vec<String>>,
    plugin: Arc<Plugin>,
}

pub(super) fn of(plugin: &Arc<Plugin>) -> Vec<Slash> {
    let setup = plugin.setup();
    let commands = setup.commands.iter().map(|command| Slash {
        name: command.name.trim_start_matches('/').to_owned(),
        description: command.description.clone(),
        completions: command.completions.clone(),
        plugin: Arc::clone(plugin),
    });
    commands.collect()
}

impl Slash {
    /// Runs it; returns what it prints for its caller alone. `arguments` is everything after the first space, or none.
    pub async fn run(
        &self,
        session: SessionId,
        arguments: Option<String>,
    ) -> Result<String, String> {
        let params = raw(&CommandParams {
            session,
            name: self.name.clone(),
            arguments,
        });
        let result = self.plugin.ask("plugin/command", &params).await?;
        // Whatever else it gives is no text for people.
        let output: Option<CommandOutput> = serde_json::from_str(result.get()).unwrap_or_default();
        Ok(output.and_then(|output| output.output).unwrap_or_default())
    }

    /// Words that may stand as its argument; none when the plugin knows none, or does not answer.
    pub async fn complete(&self, session: SessionId, partial: String) -> Vec<String> {
        let params = raw(&CompleteParams {
            session,
            name: self.name.clone(),
            partial,
        });
        let asked = self
            .plugin
            .ask_within(COMPLETE, Silence::Passes, "plugin/complete", &params);
        match asked.await {
            Ok(words) => serde_json::from_str(words.get()).unwrap_or_default(),
            Err(why) => {
                tracing::debug!(plugin = self.plugin.name, why, "no completions");
                Vec::new()
            }
        }
    }
}
