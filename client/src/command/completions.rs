//! `dwell completions`: what makes a shell complete this program's commands, from the same table as `--help`, and what
//! the daemon knows, when there is one. Must never make a shell start a daemon.

mod values;

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
    let mut command = without_prompt(&crate::cli::command());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "dwell", &mut script);
    let script = String::from_utf8_lossy(&script);
    out::raw(&match args.shell {
        Shell::Bash => values::in_bash(&script, &command),
        Shell::Zsh => values::in_zsh(&script),
        Shell::Fish => values::in_fish(&script, &command),
        _ => script.into_owned(),
    })
}

/// The table without the prompt that may stand in a command's place: it is no word to complete, and would hold that place.
fn without_prompt(all: &clap::Command) -> clap::Command {
    let options = all
        .get_arguments()
        .filter(|argument| !argument.is_positional());
    clap::Command::new("dwell")
        .version(protocol::version::RELEASE)
        .disable_version_flag(true)
        .args(options)
        .subcommands(all.get_subcommands())
}
