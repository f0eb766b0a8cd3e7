//! Judging values by a JSON Schema, for clients that have no judge of their own.

#[cfg(any(feature = "server", feature = "client"))]
use jsonrpsee::proc_macros::rpc;
#[cfg(feature = "server")]
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `schema/check`'s result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Judged {
    /// For each value, in their order, what is wrong with it: nothing of one that fits.
    pub faults: Vec<Vec<String>>,
}

resource! {
    /// JSON Schemas.
    #[cfg(any(feature = "server", feature = "client"))]
    #[cfg_attr(
        all(feature = "server", feature = "client"),
        rpc(server, client, namespace = "schema", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "server", not(feature = "client")),
        rpc(server, namespace = "schema", namespace_separator = "/")
    )]
    #[cfg_attr(
        all(feature = "client", not(feature = "server")),
        rpc(client, namespace = "schema", namespace_separator = "/")
    )]
    pub trait ValidationRpc {
        /// Judges values by a JSON Schema (draft 2020-12, unless its `$schema` names another; formats count; nothing is fetched). A
        /// schema that is none, or refers to what it does not hold, is refused (-32602), also without any value.
        #[method(name = "check", param_kind = map)]
        async fn check(&self, schema: Value, values: Option<Vec<Value>>) -> Result<Judged, ErrorObjectOwned>;
    }
}
