//! `schema/*`. Must never fetch what a schema refers to.

use super::Rpc;
use crate::toolbox::schema;
use jsonrpsee::core::async_trait;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::validation::{Judged, ValidationRpcServer};
use serde_json::Value;

#[async_trait]
impl ValidationRpcServer for Rpc {
    async fn check(
        &self,
        schema: Value,
        values: Option<Vec<Value>>,
    ) -> Result<Judged, ErrorObjectOwned> {
        let values = values.unwrap_or_default();
        // A pattern may take its time.
        let judged = tokio::task::spawn_blocking(move || schema::judge(&schema, &values));
        let judged = judged.await.map_err(|error| {
            RpcError::new(ErrorKind::Internal, format!("cannot judge: {error}"))
        })?;
        let faults = judged.map_err(|why| {
            let message = format!("cannot use the schema: {why}");
            RpcError::new(ErrorKind::InvalidParams, message)
        })?;
        Ok(Judged { faults })
    }
}
