//! `rpc.discover`: the document of the wire. Must never keep it in memory.

use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::document;
use protocol::error::{ErrorKind, RpcError};
use serde_json::value::RawValue;

/// The one method that belongs to no trait.
pub(super) fn module() -> Result<RpcModule<()>, RegisterMethodError> {
    let mut module = RpcModule::new(());
    module.register_method(document::METHOD, |_, (), _| {
        RawValue::from_string(document::text()).map_err(|error| {
            let why = format!("the document is damaged: {error}");
            ErrorObjectOwned::from(RpcError::new(ErrorKind::Internal, why))
        })
    })?;
    Ok(module)
}
