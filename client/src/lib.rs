//! A thin terminal client for `dwelld`. It holds nothing but view state and may be killed at any time: sessions, turns
//! and questions live in the daemon.

mod acp;
mod agent;
mod approval;
mod ask_tty;
mod attach;
mod cli;
mod command;
mod connect;
mod consent;
mod environment;
mod error;
mod follow;
mod link;
mod listing;
mod local;
mod lost;
mod mcp;
mod open;
mod out;
mod paint;
mod place;
mod render;
mod repl;
mod screen;
mod select;
#[cfg(test)]
mod testing;
mod timestamp;
mod toolbox;
mod transport;
mod trust;

use std::process::ExitCode;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let code = cli::main();
    // The runtime's threads and the connection end with the process: there is nothing to wait for.
    std::process::exit(code)
}
