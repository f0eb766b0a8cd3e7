//! `dwell man`: the manual's pages, from the same table as `--help`.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use std::path::{Path, PathBuf};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write all pages into this folder [default: the first one, to stdout]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[expect(clippy::unused_async, reason = "commands are called alike")]
pub(super) async fn run(args: Args, _place: Place) -> Result<(), Failure> {
    let command = crate::cli::command().disable_help_subcommand(true);
    match args.folder {
        Some(folder) => write(&folder, command),
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            out::raw(&String::from_utf8_lossy(&page))
        }
    }
}

fn write(folder: &Path, command: clap::Command) -> Result<(), Failure> {
    let cannot = |error| {
        Failure::new(format!(
            "cannot write pages into {}: {error}",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    clap_mangen::generate_to(command, folder).map_err(cannot)
}
