//! The command line: options that every command has, and how a command's end becomes an exit code.

use crate::command::Command;
use crate::command::new::Wanted;
use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::out;
use crate::paint::{Paint, Part};
use crate::place::Place;
use clap::Parser;
use protocol::daemon::DaemonRpcClient;
use protocol::version::{PROTOCOL, RELEASE};
use std::io::IsTerminal;
use std::path::PathBuf;

/// Agent sessions that stay: a terminal for dwelld.
///
/// Without a command: goes on with this directory's newest session, or begins one, and says the prompt there. With
/// options of a new session: begins one.
#[derive(Debug, Parser)]
#[command(name = "dwell", disable_version_flag = true, after_help = AFTER)]
#[command(override_usage = "dwell [OPTIONS] [PROMPT]\n       dwell [OPTIONS] COMMAND")]
struct Cli {
    /// The daemon's socket [default: dwell.sock in the runtime directory] [env: DWELL_SOCKET]
    #[arg(long, global = true, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// The releases of both sides
    #[arg(short = 'V', long)]
    version: bool,

    /// The daemon of another machine, reached with `ssh HOST dwell proxy`; `:/DIR` behind it is the directory there [env: DWELL_HOST]
    #[arg(long, global = true, value_name = "HOST", conflicts_with = "socket")]
    host: Option<String>,

    #[command(flatten, next_help_heading = "Options of a new session")]
    wanted: Wanted,

    /// What to say at once
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,

    #[command(subcommand)]
    command: Option<Command>,
}

impl Cli {
    /// What is to be done.
    fn command(self) -> Result<Command, Failure> {
        let wanted = self.wanted.is_anything();
        match (self.command, self.prompt) {
            (Some(_), _) if wanted => Err(Failure::usage(
                "what is said of a new session goes behind the command: `dwell new -p NAME`",
            )),
            (Some(command), _) => Ok(command),
            (None, Some(word)) if !word.contains(char::is_whitespace) => {
                Err(no_command(&word, &[]))
            }
            (None, Some(_)) if !std::io::stdout().is_terminal() => Err(Failure::usage(
                "`dwell PROMPT` needs a terminal: `dwell ask` answers anywhere",
            )),
            (None, prompt) => Ok(Command::unnamed(self.wanted, prompt)),
        }
    }
}

/// What was meant, where the first word was taken for a prompt and what stands behind it makes no sense for one.
fn mistaken(error: &clap::Error) -> Option<Failure> {
    let odd = matches!(
        error.kind(),
        clap::error::ErrorKind::UnknownArgument | clap::error::ErrorKind::InvalidSubcommand
    );
    let words: Vec<String> = std::env::args().skip(1).collect();
    let first = words.first().filter(|word| odd && !word.starts_with('-'))?;
    if command().find_subcommand(first).is_some() {
        return None;
    }
    let prompt = words.iter().take_while(|word| !word.starts_with('-'));
    let prompt: Vec<&str> = prompt.map(String::as_str).collect();
    Some(match first.contains(char::is_whitespace) {
        true => Failure::usage("a prompt is one argument").hint("put all of it in quotes"),
        false => no_command(first, &prompt),
    })
}

/// A word alone is more likely a command's name than a prompt; of several, all may be the prompt.
fn no_command(word: &str, prompt: &[&str]) -> Failure {
    let names = command();
    let shown = names.get_subcommands().filter(|one| !one.is_hide_set());
    let names = shown.flat_map(|command| {
        std::iter::once(command.get_name()).chain(command.get_visible_aliases())
    });
    let near = names
        .map(|name| (strsim::jaro(word, name), name))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness > 0.7);
    let failure = Failure::usage(format!("no command is called \"{word}\""));
    let as_prompt = match prompt.len() {
        0 | 1 => "a prompt of one word: `dwell ask`".to_owned(),
        _ => format!("a prompt goes in quotes: `dwell \"{}\"`", prompt.join(" ")),
    };
    failure.hint(match near {
        Some((_, name)) => format!("is `dwell {name}` meant? ({as_prompt})"),
        None => format!("`dwell --help` lists them ({as_prompt})"),
    })
}

const AFTER: &str = "\
A SESSION is an id, the beginning of one that fits no other, or `last`: this directory's newest.

Environment:
  DWELL_SOCKET    the daemon's socket
  DWELL_HOST      as --host
  DWELL_SSH       what is run for --host [default: ssh]
  DWELL_REMOTE    dwell on that machine [default: dwell]
  DWELL_PROVIDER  the provider of new sessions
  DWELL_ENV       names of further variables that tools may see, separated by commas
  DWELL_KEYS      vi: vi's keys while typing
  DWELL_PAST      how many exchanges are shown of a session that one comes back to, or off [default: 3]
  DWELL_RESULTS   how many lines are shown of what calls print, or off; `2,execute=20` says it by tools [default: 5]
  DWELL_NOTIFY    off: no bell and no message of the desktop; unfocused: only while another window
                  has the focus; a number: the end of a turn that took so many seconds [default: 10]
  NO_COLOR        no colours
  CLICOLOR_FORCE  colours also where output is no terminal

Exit codes:
  0    done
  1    the turn failed, its reply is blank or fits no schema, or the daemon said no
  2    the command line makes no sense
  3    no daemon can be reached, or it speaks another protocol
  4    no such session, turn, tool or method
  124  it took longer than --timeout
  130  cancelled
  141  whoever read the output went away, as `head` does

A terminal that shows nothing of what is typed, after dwell was killed in it with kill -9: type `stty sane` and Enter.
What is killed like that cannot put its terminal back; the session goes on, and `dwell` shows it again.";

/// Parses, runs, reports, and gives the exit code.
pub(crate) fn main() -> i32 {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(failure) = mistaken(&error) {
                report(&failure);
                return failure.exit as i32;
            }
            let _ = error.print();
            return error.exit_code();
        }
    };
    match run(cli) {
        Ok(()) => 0,
        Err(failure) => {
            report(&failure);
            failure.exit as i32
        }
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let named = || std::env::var("DWELL_HOST").ok();
    let host = cli
        .host
        .clone()
        .or_else(|| named().filter(|_| cli.socket.is_none()));
    let host = host.filter(|host| !host.is_empty());
    let place = Place::find(cli.socket.clone(), host.as_deref());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let result = match cli.version {
        true => runtime.block_on(tell_versions(place?)),
        false => {
            let command = cli.command()?;
            match place {
                Ok(place) => runtime.block_on(command.run(place)),
                Err(failure) => runtime.block_on(command.nowhere(failure)),
            }
        }
    };
    // A thread that waits for the terminal must not hold up the end.
    runtime.shutdown_background();
    result
}

/// The command line as a table, for shells and the manual.
pub(crate) fn command() -> clap::Command {
    <Cli as clap::CommandFactory>::command().version(RELEASE)
}

/// The daemon is told of where one runs; none is started for that.
async fn tell_versions(place: Place) -> Result<(), Failure> {
    out::line(&format!("dwell {RELEASE} (protocol {PROTOCOL})"))?;
    let Ok(link) = Link::open(place, Start::Never, Speak::Any).await else {
        return out::line("dwelld does not run");
    };
    let status = link
        .call(async |client| DaemonRpcClient::status(client).await)
        .await;
    match (status, link.daemon()) {
        (Ok(status), _) => {
            let (version, pid) = (&status.daemon.version, status.daemon.pid);
            out::line(&format!(
                "dwelld {version} (protocol {}), pid {pid}",
                status.protocol
            ))?;
            match *version == RELEASE && status.protocol == PROTOCOL {
                true => Ok(()),
                false => out::note(
                    "`dwell daemon restart` brings both to one release; sessions are kept",
                ),
            }
        }
        (Err(_), Some(daemon)) => {
            out::line(&format!("dwelld {}, pid {}", daemon.version, daemon.pid))
        }
        (Err(failure), None) => Err(failure),
    }
}

fn report(failure: &Failure) {
    if failure.message.is_empty() {
        return;
    }
    let paint = Paint::of(&std::io::stderr());
    let mut text = format!("{} {}", paint.dress(Part::Bad, "error:"), failure.message);
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("\n{} {hint}", paint.dress(Part::Quiet, "hint:")));
    }
    // Nobody is left to tell when stderr is gone.
    let _ = out::note(&text);
}
