//! `dwell tools check`: everything that is wrong with the scripts of a directory. Nothing of them is run.

use crate::error::{Exit, Failure};
use crate::out;
use crate::place::Place;
use protocol::tool::ToolRpcClient;
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// One JSON object with all of it
    #[arg(long)]
    json: bool,

    /// Whose scripts [default: this one's]
    directory: Option<PathBuf>,
}

pub(super) async fn run(args: Args, place: Place) -> Result<(), Failure> {
    let cwd = match &args.directory {
        Some(path) => place.directory(path)?,
        None => place.here()?,
    };
    let env = place.environment();
    let link = super::super::link(place).await?;
    let found = link
        .call(async |client| ToolRpcClient::check(client, cwd.clone(), env.clone()).await)
        .await?;
    if args.json {
        out::json(&found)?;
    } else {
        found
            .problems
            .iter()
            .try_for_each(|problem| out::line(problem))?;
        found
            .warnings
            .iter()
            .try_for_each(|warning| out::note(&format!("warning: {warning}")))?;
        let counted = |count: usize, what: &str| match count {
            1 => format!("1 {what}"),
            count => format!("{count} {what}s"),
        };
        out::note(&format!(
            "{}, {}, {}",
            counted(found.files, "file"),
            counted(found.tools.len(), "tool"),
            counted(found.problems.len(), "problem")
        ))?;
    }
    match found.problems.is_empty() {
        true => Ok(()),
        false => Err(Failure::shown(Exit::Failed)),
    }
}
