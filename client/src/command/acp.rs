//! `dwell acp`: an agent for editors that speak the Agent Client Protocol.

use crate::acp::{self, Wishes};
use crate::agent;
use crate::error::Failure;
use crate::open::Model;
use crate::place::Place;

/// Speaks the Agent Client Protocol on standard input and output, for an editor that starts it.
///
/// Sessions live in the daemon: they go on when the editor ends, and `dwell attach` shows them at the same time.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    agent: agent::Asked,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let wishes = Wishes {
        model: args.model,
        agent: args.agent,
    };
    acp::serve(super::link(place).await?, wishes).await
}
