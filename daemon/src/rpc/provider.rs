//! `provider/*` and `agent/*`. Must never talk to a provider.

use super::Rpc;
use super::attachments::Concerns;
use super::error::fail;
use super::session::recorded;
use crate::toolbox::source::script::agent::{Definition, Variable};
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::id::SessionId;
use protocol::provider::{
    AgentInfo, AgentList, AgentRpcServer, AgentVariable, ModelInfo, ProviderInfo, ProviderInstance,
    ProviderRpcServer,
};
use protocol::session::Recorded;

#[async_trait]
impl ProviderRpcServer for Rpc {
    async fn list(&self, cwd: Option<String>) -> Result<Vec<ProviderInfo>, ErrorObjectOwned> {
        let listed = self.sessions().providers(cwd.as_deref()).await;
        listed.map_err(fail)
    }

    async fn switch(
        &self,
        extensions: &Extensions,
        session: SessionId,
        name: String,
        model: Option<String>,
    ) -> Result<Recorded, ErrorObjectOwned> {
        let about = Concerns::Session(&session);
        self.check_controls(extensions, about, "switch the provider")?;
        recorded(
            self.sessions()
                .switch_provider(&session, &name, model)
                .await,
        )
    }

    async fn models(
        &self,
        name: String,
        cwd: Option<String>,
    ) -> Result<Vec<ModelInfo>, ErrorObjectOwned> {
        let models = self.sessions().models(&name, cwd.as_deref()).await;
        models.map_err(fail)
    }

    async fn instances(&self) -> Result<Vec<ProviderInstance>, ErrorObjectOwned> {
        Ok(self.sessions().instances().await)
    }
}

#[async_trait]
impl AgentRpcServer for Rpc {
    async fn agent_list(&self, cwd: Option<String>) -> Result<AgentList, ErrorObjectOwned> {
        let cwd = cwd.unwrap_or_else(|| "/".to_owned());
        let (agents, problems) = self.sessions().agents(&cwd).await.map_err(fail)?;
        Ok(AgentList {
            agents: agents.into_iter().map(shown).collect(),
            problems,
        })
    }
}

fn shown(agent: Definition) -> AgentInfo {
    let index = agent.index;
    let variable = |variable: Variable| AgentVariable {
        name: variable.name,
        description: variable.description,
        default: variable.default,
    };
    AgentInfo {
        name: agent.name,
        description: index.description,
        version: index.version,
        variables: index.variables.into_iter().map(variable).collect(),
        conversation_starters: index.conversation_starters,
        documents: index.documents,
        dir: agent.dir.display().to_string(),
    }
}
