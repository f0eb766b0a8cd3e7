//! `dwell trust`: whether a directory's own `.agents/` files count.

use crate::error::Failure;
use crate::paint::one_line;
use crate::place::Place;
use crate::{out, trust};
use clap::Subcommand;
use protocol::approval::{Trust, TrustRpcClient, TrustState};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show every directory that was decided on or waits
    List {
        /// One JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// The files, as they are now, count
    Yes {
        /// [default: this one]
        directory: Option<PathBuf>,
    },
    /// The files do not count until they change
    No {
        /// [default: this one]
        directory: Option<PathBuf>,
    },
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let link = super::link(place).await?;
    let list = async |cwd: Option<String>| {
        link.call(async |client| TrustRpcClient::trust_list(client, cwd.clone()).await)
            .await
    };
    match args.action {
        None => {
            let here = link.place().here()?;
            match list(Some(here.clone())).await?.first() {
                Some(trust) => out::line(&shown(trust)),
                None => out::line(&format!("nothing   {}", one_line(&here))),
            }
        }
        Some(Action::List { json }) => list(None).await?.iter().try_for_each(|trust| match json {
            true => out::json(trust),
            false => out::line(&shown(trust)),
        }),
        Some(Action::Yes { directory }) => {
            let cwd = named(link.place(), directory)?;
            out::line(&shown(&trust::answer(&link, &cwd, true, None).await?))
        }
        Some(Action::No { directory }) => {
            let cwd = named(link.place(), directory)?;
            out::line(&shown(&trust::answer(&link, &cwd, false, None).await?))
        }
    }
}

fn named(place: &Place, directory: Option<PathBuf>) -> Result<String, Failure> {
    match directory {
        Some(path) => place.directory(&path),
        None => place.here(),
    }
}

fn shown(one: &Trust) -> String {
    let state = match one.state {
        TrustState::Nothing => "nothing",
        TrustState::Undecided => "undecided",
        TrustState::Trusted => "trusted",
        TrustState::Refused => "refused",
        TrustState::Changed => "changed",
    };
    let head = format!("{state:9} {}", one_line(&one.cwd));
    match one.files.is_empty() {
        true => head,
        false => format!("{head}\n{}", trust::files(one)),
    }
}
