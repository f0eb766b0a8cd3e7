//! `dwell man`: the manual's pages, from the same table as `--help`.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use crate::timestamp::timestamp;
use clap::Command;
use clap_mangen::Man;
use protocol::version::RELEASE;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// How much of a time is its day.
const DAY: usize = 10;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Write all pages into this folder [default: the first one, to stdout]
    #[arg(value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

#[expect(clippy::unused_async, reason = "commands are called alike")]
pub(super) async fn run(args: Args, _place: Place) -> Result<(), Failure> {
    let mut command = crate::cli::command().disable_help_subcommand(true);
    command.build();
    match args.folder {
        Some(folder) => write_all(&folder, &command),
        None => out::raw(&page(&command)?),
    }
}

/// A page for each command, below the folder.
fn write_all(folder: &Path, command: &Command) -> Result<(), Failure> {
    let cannot = |error| {
        Failure::new(format!(
            "cannot write pages into {}: {error}",
            folder.display()
        ))
    };
    std::fs::create_dir_all(folder).map_err(cannot)?;
    let file = Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(file), page(command)?).map_err(cannot)?;
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    shown.into_iter().try_for_each(|one| write_all(folder, one))
}

/// A page as formatters want it: each macro with all its arguments, and no break where there is one already.
fn page(command: &Command) -> Result<String, Failure> {
    let mut page = Vec::new();
    Man::new(command.clone())
        .date(&timestamp(made_at())[..DAY])
        .source(format!("dwell {RELEASE}"))
        .manual("dwell's manual")
        .render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    let mut lines: Vec<&str> = Vec::new();
    for line in page.lines() {
        let breaks =
            |line: &str| matches!(line, "" | ".br" | ".sp" | ".PP") || line.starts_with(".SH");
        match lines.last().copied() {
            Some(last) if breaks(last) && line == ".br" => {}
            Some(".br") if breaks(line) => {
                lines.pop();
                lines.push(line);
            }
            _ => lines.push(line.trim_end()),
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// When this program was made, or what is said of it where it is packaged; in milliseconds since the Unix epoch.
fn made_at() -> u64 {
    let said = std::env::var("SOURCE_DATE_EPOCH").ok();
    let said = said.and_then(|seconds| seconds.parse::<u64>().ok()?.checked_mul(1000));
    let file = || {
        std::env::current_exe()
            .ok()?
            .metadata()
            .ok()?
            .modified()
            .ok()
    };
    let since = || Some(file()?.duration_since(UNIX_EPOCH).ok()?.as_millis() as u64);
    said.or_else(since).unwrap_or_default()
}
