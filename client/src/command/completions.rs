//! `dwell completions`: what makes a shell complete this program's commands. From the same table as `--help`.

use crate::error::Failure;
use crate::out;
use crate::place::Place;
use clap_complete::Shell;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// For which shell
    shell: Shell,
}

#[expect(clippy::unused_async, reason = "commands are called alike")]
pub(super) async fn run(args: Args, _place: Place) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::cli::command(), "dwell", &mut script);
    out::raw(&String::from_utf8_lossy(&script))
}
