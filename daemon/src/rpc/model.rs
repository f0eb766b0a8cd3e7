//! `model/*`: what there is, and fetching it while whoever asked is told how far it is. Must never fetch anything itself.

use super::{Rpc, caller};
use crate::model::ModelError;
use jsonrpsee::Extensions;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::provider::{LocalModel, ModelRpcServer};
use protocol::session::Empty;
use std::sync::Arc;

#[async_trait]
impl ModelRpcServer for Rpc {
    async fn model_list(&self) -> Result<Vec<LocalModel>, ErrorObjectOwned> {
        self.0.parts.models.list().await.map_err(fail)
    }

    async fn model_pull(
        &self,
        extensions: &Extensions,
        name: String,
    ) -> Result<LocalModel, ErrorObjectOwned> {
        let context = Arc::clone(caller(extensions)?);
        let mut pull = self.0.parts.models.pull(&name).map_err(fail)?;
        while let Some(progress) = pull.progress().await {
            context.notify(progress).await;
        }
        pull.end().map_err(fail)
    }

    async fn model_remove(&self, name: String) -> Result<Empty, ErrorObjectOwned> {
        let removed = self.0.parts.models.remove(&name).await;
        removed.map(|()| Empty {}).map_err(fail)
    }
}

fn fail(error: ModelError) -> ErrorObjectOwned {
    let message = error.to_string();
    match error {
        ModelError::Unknown { name, .. } => RpcError::new(ErrorKind::NotFound, message)
            .with("what", "model")
            .with("id", name),
        ModelError::Busy { .. } => RpcError::new(ErrorKind::Busy, message),
        ModelError::Disk { path, .. } => {
            RpcError::new(ErrorKind::Storage, message).with("path", path)
        }
        ModelError::Fetch { .. } => RpcError::new(ErrorKind::Provider, message),
    }
    .into()
}
