//! Who a session is: the agent that it was made with, its tools and what it is told.
//! Must never let an agent that cannot be read keep a session from going on.

use super::actor::Shared;
use super::live::{Live, Piece};
use crate::toolbox::Toolbox;
use crate::toolbox::source::script::run::Around;
use crate::turn::prompt;
use protocol::event::Level;
use protocol::id::TurnId;
use std::path::PathBuf;
use std::sync::Arc;

impl Shared {
    /// The session's tools as the files are now.
    pub async fn tools(&self) -> Arc<Toolbox> {
        let tools = self.workspace.tools_for(self.agent.as_ref()).await;
        self.services.provided.over(&self.id, tools)
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
