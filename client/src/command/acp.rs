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
    match super::link_unasked(place).await {
        Ok(link) => acp::serve(link, wishes).await,
        // An editor shows what its requests are answered, and hardly how the process ended.
        Err(failure) => acp::refuse(failure).await,
    }
}
