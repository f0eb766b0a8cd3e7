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
    wanted: Wanted,

    /// Only make it, and print its id
    #[arg(short, long)]
    detached: bool,

    /// The directory it works in [default: this one]
    directory: Option<PathBuf>,

    /// What is said first.
    #[arg(skip)]
    opening: Option<String>,
}

/// What a new session is to be.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Wanted {
    #[command(flatten)]
    model: Model,

    #[command(flatten)]
    agent: agent::Asked,

    /// Its title [default: the first line of the first turn]
    #[arg(short, long)]
    title: Option<String>,
}

impl Wanted {
    /// Whether anything was said of it.
    pub(crate) fn is_anything(&self) -> bool {
        self.model.is_given() || self.agent.is_given() || self.title.is_some()
    }
}

impl Args {
    /// A session for this directory that begins with a prompt, where there is one.
    pub(crate) fn here(wanted: Wanted, opening: Option<String>) -> Self {
        Self {
            wanted,
            detached: false,
            directory: None,
            opening,
        }
    }
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let Wanted {
        model,
        agent,
        title,
    } = args.wanted;
    let cwd = match &args.directory {
        Some(path) => place.directory(path)?,
        None => place.here()?,
    };
    let link = super::link(place).await?;
    let agent = agent::settle(&link, &cwd, &agent, repl::tty()).await?;
    let session = open::create_as(&link, &cwd, &model, title, agent).await?;
    // Whoever takes the id from a pipe may have lines on stdin that are not for this.
    if args.detached || !std::io::stdout().is_terminal() {
        return out::line(session.id.as_str());
    }
    let session = local::offer(&link, session, &model, repl::tty().as_mut()).await?;
    repl::run(link, session, args.opening).await
}
