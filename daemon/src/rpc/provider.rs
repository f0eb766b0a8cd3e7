//! `provider/*`, and `agent/*` of a later build. Must never talk to a provider.

use super::Rpc;
use super::attachments::Concerns;
use super::error::fail;
use super::later::absent;
use super::session::recorded;
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::id::SessionId;
use protocol::provider::{
    AgentRpcServer, ModelInfo, ProviderInfo, ProviderInstance, ProviderRpcServer,
};
use protocol::session::Recorded;
use serde_json::Value;

#[async_trait]
impl ProviderRpcServer for Rpc {
    async fn list(&self) -> Result<Vec<ProviderInfo>, ErrorObjectOwned> {
        Ok(self.sessions().providers())
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

    async fn models(&self, name: String) -> Result<Vec<ModelInfo>, ErrorObjectOwned> {
        self.sessions().models(&name).await.map_err(fail)
    }

    async fn instances(&self) -> Result<Vec<ProviderInstance>, ErrorObjectOwned> {
        Ok(self.sessions().instances().await)
    }
}

#[async_trait]
impl AgentRpcServer for Rpc {
    async fn agent_list(&self, _cwd: Option<String>) -> Result<Vec<Value>, ErrorObjectOwned> {
        Err(absent("agent/list"))
    }
}
