//! Agents of a workspace: which there are, and what one of them is offered and told.
//! Must never run a function of an agent that lies in a directory that is not trusted.

use super::Workspace;
use super::tools::own;
use crate::toolbox::Toolbox;
use crate::toolbox::source::script::agent::{Choice, Definition};
use crate::toolbox::source::script::load::{AgentFiles, Own};
use crate::toolbox::source::script::run::Around;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Workspace {
    /// Those that can be read, and why others cannot.
    pub async fn agents(&self) -> (Vec<Definition>, Vec<String>) {
        let found = self.blocking(|shared, cwd| shared.scripts.agents(cwd, own(shared, cwd)));
        found.await.unwrap_or_else(|why| (Vec::new(), vec![why]))
    }

    /// One of that name, and the files of its tools.
    pub async fn agent(&self, name: &str) -> Result<(Definition, AgentFiles), String> {
        let name = name.to_owned();
        let found = self.blocking(move |shared, cwd| {
            let own: Own = own(shared, cwd);
            shared.scripts.agent(cwd, own, &name)
        });
        found.await?
    }

    /// Who a session is, with the defaults of variables that were not given.
    pub async fn choose(
        &self,
        name: &str,
        variables: &BTreeMap<String, String>,
    ) -> Result<Choice, String> {
        let (agent, files) = self.agent(name).await?;
        match files.outdated {
            // Who begins now is not to begin with what it was.
            Some(why) => Err(why),
            None => agent.choose(variables),
        }
    }

    /// The tools of a session as the files are now: the workspace's, and its agent's beside them.
    pub async fn tools_for(self: &Arc<Self>, choice: Option<&Choice>) -> Arc<Toolbox> {
        let shared = self.current().await;
        let Some(choice) = choice else {
            return shared;
        };
        let (agent, files) = match self.agent(&choice.name).await {
            Ok(found) => found,
            Err(why) => {
                let mut toolbox = Toolbox::clone(&shared);
                // Which of the scripts it chose nobody knows: never more than those.
                toolbox.retain(|tool| tool.origin() != "script");
                toolbox.problem(why);
                return Arc::new(toolbox);
            }
        };
        let agent = Arc::new(agent.with(choice));
        let chosen = files.chosen.is_some();
        let loaded =
            self.blocking(move |shared, _| shared.scripts.load(files.listing(), Some(&agent)));
        let mut toolbox = Toolbox::clone(&shared);
        if chosen {
            // It says itself which of the scripts it wants.
            toolbox.retain(|tool| tool.origin() != "script");
        }
        match loaded.await {
            Ok(loaded) => {
                self.knows_agent(&choice.name, &loaded.problems);
                for tool in loaded.tools {
                    toolbox.add(tool);
                }
                for problem in loaded.problems {
                    toolbox.problem(problem);
                }
            }
            Err(why) => toolbox.problem(why),
        }
        Arc::new(toolbox)
    }

    /// What the model is told of who it is; an error is for people.
    pub async fn agent_prompt(
        self: &Arc<Self>,
        choice: &Choice,
        around: Around,
    ) -> Result<String, String> {
        let (agent, files) = self.agent(&choice.name).await?;
        let with = Arc::new(agent.with(choice));
        let script = self
            .blocking(move |shared, _| shared.scripts.agent_script(&files, &with))
            .await?;
        let toolbox = self.tools_for(Some(choice)).await;
        let tools: Vec<_> = toolbox
            .tools()
            .iter()
            .map(|tool| (tool.name().to_owned(), tool.description().to_owned()))
            .collect();
        agent.prompt(choice, script.as_ref(), around, &tools).await
    }
}
