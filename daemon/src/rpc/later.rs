//! Methods and parameters of the protocol that this build does not have: a clear answer instead of silence.
//! Must never claim a method that another file implements.

use jsonrpsee::core::RegisterMethodError;
use jsonrpsee::core::server::RpcModule;
use jsonrpsee::types::ErrorObjectOwned;
use protocol::error::{ErrorKind, RpcError};
use protocol::version::RELEASE;

/// Methods that a client may call and this build answers with -32601, for `initialize`'s capabilities.
pub(super) const ABSENT: &[&str] = &["rpc.discover"];

/// The one method that belongs to no trait.
pub(super) fn module() -> Result<RpcModule<()>, RegisterMethodError> {
    let mut module = RpcModule::new(());
    module.register_method("rpc.discover", |_, (), _| {
        Err::<(), _>(absent("rpc.discover"))
    })?;
    Ok(module)
}

/// The answer of a method that this build does not have.
pub(super) fn absent(method: &str) -> ErrorObjectOwned {
    let why = format!("{method} is not in this build (dwelld {RELEASE})");
    RpcError::new(ErrorKind::MethodNotFound, why)
        .with("method", method)
        .into()
}
