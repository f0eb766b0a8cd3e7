//! `dwell rpc`: any method of the daemon, by its name.

use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::place::Place;
use jsonrpsee::core::client::ClientT;
use jsonrpsee::core::traits::ToRpcParams;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Such as session/list or daemon/status
    method: String,

    /// The parameters, a JSON object or array
    #[arg(value_name = "JSON")]
    params: Option<String>,
}

/// Parameters that are JSON already.
struct Raw(Option<Box<RawValue>>);

impl ToRpcParams for Raw {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        Ok(self.0)
    }
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let params = args.params.map(RawValue::from_string).transpose();
    let params = params.map_err(|error| {
        Failure::usage(format!("the parameters are no JSON: {error}"))
            .hint("such as '{\"session\": \"calm-otter-7f3k\"}'")
    })?;
    let link = Link::open(place, Start::IfNeeded, Speak::Any).await?;
    let result: Value = link
        .call_once(async |client| client.request(&args.method, Raw(params.clone())).await)
        .await?;
    out::json(&result)
}
