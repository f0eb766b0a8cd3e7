//! `dwell schema`: the document of the wire. Must never need a daemon.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use protocol::document;
use serde_json::Value;

/// Writes an OpenRPC document: all methods, notifications and types of this release, with examples.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

#[expect(clippy::unused_async, reason = "commands are called alike")]
pub(super) async fn run(_args: Args, _place: Place) -> Result<(), Failure> {
    let document: Value = serde_json::from_str(&document::text())
        .map_err(|error| Failure::new(format!("the document is damaged: {error}")))?;
    out::line(&format!("{document:#}"))
}
