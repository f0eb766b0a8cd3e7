//! `dwell attach`, and `dwell` alone: the REPL on a session that may have a past.

use crate::error::Failure;
use crate::open::{self, Model};
use crate::place::Place;
use crate::{local, repl, select};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Which session [default: this directory's newest, or a new one]
    session: Option<String>,

    /// What is said first.
    #[arg(skip)]
    opening: Option<String>,
}

impl Args {
    /// This directory's newest session, which goes on with a prompt, where there is one.
    pub(crate) fn here(opening: Option<String>) -> Self {
        Self {
            session: None,
            opening,
        }
    }
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let session = match args.session {
        Some(word) => select::session(&link, &word).await?,
        None => match select::last(&link).await? {
            Some(session) => session,
            None => {
                let model = Model::default();
                let made = open::create(&link, &link.place().here()?, &model, None).await?;
                local::offer(&link, made, &model, repl::tty().as_mut()).await?
            }
        },
    };
    repl::run(link, session, args.opening).await
}
