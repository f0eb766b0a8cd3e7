//! `dwell new`: a fresh session, opened at once on a terminal.

use crate::error::Failure;
use crate::open::{self, Model};
use crate::place::Place;
use crate::{agent, local, out, repl};
use std::io::IsTerminal;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    agent: agent::Asked,

    /// Its title [default: the first line of the first turn]
    #[arg(short, long)]
    title: Option<String>,

    /// Only make it, and print its id
    #[arg(short, long)]
    detached: bool,

    /// The directory it works in [default: this one]
    directory: Option<PathBuf>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let cwd = match &args.directory {
        Some(path) => place.directory(path)?,
        None => place.here()?,
    };
    let link = super::link(place).await?;
    let agent = agent::settle(&link, &cwd, &args.agent, repl::tty()).await?;
    let session = open::create_as(&link, &cwd, &args.model, args.title, agent).await?;
    // Whoever takes the id from a pipe may have lines on stdin that are not for this.
    if args.detached || !std::io::stdout().is_terminal() {
        return out::line(session.id.as_str());
    }
    let session = local::offer(&link, session, &args.model, repl::tty().as_mut()).await?;
    repl::run(link, session).await
}
