//! The table of subcommands: one line here, one file below. Must never hold what a command does.

mod acp;
mod answer;
mod approvals;
mod ask;
mod attach;
mod cancel;
mod commands;
mod complete;
mod completions;
mod daemon;
mod doctor;
mod export;
mod fork;
mod log;
mod ls;
mod man;
mod mcp;
mod model;
pub(crate) mod new;
mod pick;
mod providers;
mod proxy;
mod queue;
mod rename;
mod rm;
mod rpc;
mod run;
mod schema;
mod search;
mod send;
mod tools;
mod trust;
mod wait;
mod watch;

use crate::connect::{Speak, Start};
use crate::error::Failure;
use crate::link::Link;
use crate::place::Place;
use clap::Subcommand;
use protocol::error::ErrorKind;
use std::rc::Rc;

macro_rules! commands {
    ($($(#[$meta:meta])* $variant:ident => $module:ident,)*) => {
        /// What `dwell` can do.
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$meta])* $variant($module::Args),)*
        }

        impl Command {
            /// Does it.
            pub(crate) async fn run(self, place: Place) -> Result<(), Failure> {
                match self {
                    $(Self::$variant(args) => $module::run(args, place).await,)*
                }
            }
        }
    };
}

commands! {
    /// Ask once: one turn, its reply on stdout
    Ask => ask,
    /// Begin a session
    New => new,
    /// Go on with a session
    Attach => attach,
    /// Choose a session from a list, with a search and a preview, and go on with it
    Pick => pick,
    /// List sessions, newest first
    #[command(visible_alias = "list")]
    Ls => ls,
    /// Show what happened in a session
    Log => log,
    /// Write a session as one document
    Export => export,
    /// Search all sessions
    Search => search,
    /// Give a session another title
    Rename => rename,
    /// Begin a session with the events of another
    Fork => fork,
    /// Delete sessions with all that happened in them
    Rm => rm,
    /// Send a prompt to a session and wait for nothing: `dwell wait` does
    Send => send,
    /// Wait until turns of sessions have ended, and show their replies
    Wait => wait,
    /// Follow all sessions: what runs and waits, and how it ends
    Watch => watch,
    /// Show what waits for an approval
    Approvals => approvals,
    /// Answer what waits for an approval: yes, no, ...
    Answer => answer,
    /// Stop a session's running turn
    Cancel => cancel,
    /// Show what waits behind a session's running turn, or take it out
    Queue => queue,
    /// List the tools that the model is shown
    Tools => tools,
    /// Run a tool by hand, as a model's call would
    Run => run,
    /// List slash commands
    Commands => commands,
    /// List providers
    Providers => providers,
    /// Fetch and remove models that run on this machine
    Model => model,
    /// Offer a session's tools to a program that speaks MCP, over stdin and stdout
    Mcp => mcp,
    /// Decide whether a directory's own .agents/ files count
    Trust => trust,
    /// See after the daemon
    Daemon => daemon,
    /// Be an agent for an editor that speaks the Agent Client Protocol
    Acp => acp,
    /// Find what is wrong here, and how to mend it
    Doctor => doctor,
    /// Write what makes a shell complete commands
    Completions => completions,
    /// List words for a shell that completes one
    #[command(hide = true)]
    Complete => complete,
    /// Write the manual's pages
    Man => man,
    /// Pass standard input and output on to the daemon, as `--host` has it done on another machine
    Proxy => proxy,
    /// Call a method of the daemon
    Rpc => rpc,
    /// Write the document of the daemon's methods, for whoever makes a client
    Schema => schema,
}

impl Command {
    /// What is done where no command is named: what is said of a new session makes one; else the newest goes on.
    pub(crate) fn unnamed(wanted: new::Wanted, opening: Option<String>) -> Self {
        match wanted.is_anything() {
            true => Self::New(new::Args::here(wanted, opening)),
            false => Self::Attach(attach::Args::here(opening)),
        }
    }
}

impl Command {
    /// What is done where not even a place for a daemon can be found.
    pub(crate) async fn nowhere(self, failure: Failure) -> Result<(), Failure> {
        match self {
            Self::Acp(_) => crate::acp::refuse(failure).await,
            Self::Mcp(_) => crate::mcp::refuse(failure).await,
            _ => Err(failure),
        }
    }
}

/// Another restart would bring the same.
fn still_other(place: &Place, failure: Failure) -> Failure {
    if failure.kind != Some(ErrorKind::Version) {
        return failure;
    }
    let there = match &place.remote {
        Some(remote) => format!(" on {} and here", remote.host()),
        None => String::new(),
    };
    failure.hint(format!(
        "it was restarted, and is of another release still: install dwell and dwelld of one release{there}"
    ))
}

/// A connection for a command: to a daemon that speaks our protocol, started if need be.
async fn link(place: Place) -> Result<Rc<Link>, Failure> {
    let open = || Link::open(place.clone(), Start::IfNeeded, Speak::Ours);
    let failure = match open().await {
        Ok(link) => return Ok(Rc::new(link)),
        Err(failure) => failure,
    };
    let other_version = failure.kind == Some(ErrorKind::Version);
    match other_version && daemon::offer_restart(&place, &failure).await? {
        true => Ok(Rc::new(
            open()
                .await
                .map_err(|failure| still_other(&place, failure))?,
        )),
        false => Err(failure),
    }
}

/// The same for what other programs start: nobody is asked anything.
async fn link_unasked(place: Place) -> Result<Rc<Link>, Failure> {
    let link = Link::open(place, Start::IfNeeded, Speak::Ours).await?;
    Ok(Rc::new(link))
}
