//! `dwell-local`: models that run on this machine, in a process whose end costs the daemon nothing.
//! It speaks the wire of plugins over stdio; must never touch a session, the network, or stdout by any other way.

mod calls;
mod chat;
mod engine;
mod files;
mod model;
mod provider;
mod requantise;
mod sample;
mod serve;
mod template;
mod tokenizer;
mod wire;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "\
usage: dwell-local
       dwell-local requantise FROM.gguf TO.gguf

Runs the providers candle, llama, ggml and llama2 for dwelld, over standard input and output. `requantise` writes a copy of
a model whose tensors are all of kinds that are computed fast.

environment: DWELL_LOCAL_THREADS (default: one less than there are cores), CANDLE_MODEL, GGML_MODEL, LLAMA2_MODEL,
             LLAMA2_TOKENIZER, DWELL_DATA_DIR (pulled models are in models/ there)";

fn main() -> ExitCode {
    set_engine();
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let texts: Vec<_> = args.iter().map(|arg| arg.to_str().unwrap_or("")).collect();
    match texts[..] {
        [] => {
            serve::serve();
            ExitCode::SUCCESS
        }
        ["requantise", from, to] => ended(requantise::requantise(Path::new(from), Path::new(to))),
        ["--version" | "-V"] => say(concat!("dwell-local ", env!("CARGO_PKG_VERSION"))),
        ["--help" | "-h"] => say(USAGE),
        _ => {
            complain(USAGE);
            ExitCode::from(2)
        }
    }
}

/// One less than there are cores: the engine's threads wait for each other by spinning, and with all cores taken one
/// busy process beside them makes them fifty times slower.
#[allow(
    clippy::disallowed_methods,
    reason = "the engine reads its settings from the environment, once"
)]
fn set_engine() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let usual = || cores.saturating_sub(1).max(1).to_string();
    let asked = std::env::var("DWELL_LOCAL_THREADS").ok();
    let threads = asked.filter(|text| text.parse().is_ok_and(|count: usize| count > 0));
    // An error of the engine would carry a backtrace behind its one line, and take the time to make it.
    // SAFETY: this is the first thing that the process does; there is no other thread that could read it meanwhile.
    unsafe {
        std::env::set_var("RUST_LIB_BACKTRACE", "0");
        std::env::set_var("CANDLE_NUM_THREADS", threads.unwrap_or_else(usual));
    }
}

fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            complain(&format!("dwell-local: {why}"));
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::print_stdout)]
fn say(text: &str) -> ExitCode {
    println!("{text}");
    ExitCode::SUCCESS
}

/// stderr is the daemon's log, or a person's terminal.
#[allow(clippy::print_stderr)]
fn complain(text: &str) {
    eprintln!("{text}");
}
