//! `dwell pick`: a session chosen from a list, and gone on with.

use crate::error::Failure;
use crate::place::Place;
use crate::repl;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

pub(super) async fn run(_args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    match repl::pick(&link).await? {
        Some(session) => repl::run(link, session, None).await,
        None => Ok(()),
    }
}
