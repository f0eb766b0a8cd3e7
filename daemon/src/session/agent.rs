//! Who a session is: the agent that it was made with, its tools and what it is told.
//! Must never let an agent that cannot be read keep a session from going on.

use super::actor::Shared;
use super::live::{Live, Piece};
use crate::toolbox::Toolbox;
use crate::toolbox::source::script::run::Around;
use crate::turn::prompt;
use crate::workspace::servers::Own;
use protocol::event::Level;
use protocol::id::TurnId;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

impl Shared {
    /// The session's tools as the files are now.
    pub async fn tools(&self) -> Arc<Toolbox> {
        let own = self.own_servers();
        let starting = async {
            if let Some(own) = &own {
                own.settle().await;
            }
        };
        let reading = self.workspace.tools_for(self.agent.as_ref());
        let (tools, ()) = futures_util::future::join(reading, starting).await;
        let tools = match &own {
            Some(own) => own.over(tools),
            None => tools,
        };
        self.services.provided.over(&self.id, tools)
    }

    /// The MCP servers that a client named for it.
    pub fn own_servers(&self) -> Option<Arc<Own>> {
        let own = self.own_servers.lock();
        own.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts these in the place of those that were named for it before.
    pub fn name_servers(&self, servers: &Map<String, Value>) -> Result<(), String> {
        if let Some(own) = self.own_servers() {
            return own.name(&self.workspace, servers);
        }
        let own = self.workspace.own_servers(servers, &self.env)?;
        let mut place = self
            .own_servers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *place = (!servers.is_empty()).then(|| Arc::new(own));
        Ok(())
    }

    /// The system prompt of a round trip of this turn, whose people see what is wrong with it.
    pub async fn system(&self, turn: Option<(&TurnId, &Live)>, spill_dir: PathBuf) -> String {
        let guidance = self.workspace.guidance().await;
        let told = self.told(turn, spill_dir).await;
        prompt::system(told.as_deref(), guidance.as_deref())
    }

    /// What its agent is told: asked once a turn, as it may have to be run to say it.
    async fn told(&self, turn: Option<(&TurnId, &Live)>, spill_dir: PathBuf) -> Option<String> {
        let choice = self.agent.as_ref()?;
        let mut told = self.told.lock().await;
        if let (Some((turn, _)), Some((of, text))) = (turn, told.as_ref())
            && turn == of
        {
            return Some(text.clone());
        }
        let around = Around {
            cwd: self.cwd.clone(),
            env: Arc::clone(&self.env),
            spill_dir,
            id: "agent".to_owned(),
        };
        let text = match self.workspace.agent_prompt(choice, around).await {
            Ok(text) => text,
            Err(why) => {
                tracing::warn!(agent = %choice.name, %why, "an agent's instructions cannot be had");
                let text = format!(
                    "The instructions of the agent {} cannot be had: {why}",
                    choice.name
                );
                if let Some((_, live)) = turn {
                    live.push(Piece::Notice {
                        level: Level::Warning,
                        text: text.clone(),
                    });
                }
                format!("[{text}]")
            }
        };
        if let Some((turn, _)) = turn {
            *told = Some((turn.clone(), text.clone()));
        }
        Some(text)
    }
}
