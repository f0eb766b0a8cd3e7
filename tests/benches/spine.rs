//! What the main job costs: the release binaries against the harness's own raw client and model server, each figure
//! beside its target. Run by hand with `cargo bench -p dwell-tests`; must never be part of the gate.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for whoever runs it"
)]

#[path = "spine/figure.rs"]
mod figure;
#[path = "spine/idle.rs"]
mod idle;
#[path = "spine/programs.rs"]
mod programs;
#[path = "spine/scripts.rs"]
mod scripts;
#[path = "spine/start.rs"]
mod start;
#[path = "spine/terminal.rs"]
mod terminal;
#[path = "spine/turns.rs"]
mod turns;

use figure::Report;
use harness::binaries::{Binaries, release};

type Measure = fn(&Binaries, &mut Report);

/// What can be measured, by the name that selects it.
const MEASURES: &[(&str, Measure)] = &[
    ("disk-sync", turns::disk_sync),
    ("overhead-one-token", turns::one_token),
    ("overhead-tool-call", turns::tool_call),
    ("script-tools-load", scripts::two_hundred_files),
    ("script-tools-call", scripts::calls),
    ("stream-5000-tokens", turns::five_thousand_tokens),
    ("programs", programs::programs),
    ("daemon-start", start::daemon_start),
    ("ask-warm", start::ask_warm),
    ("key-to-echo", terminal::key_to_echo),
    ("attach-long", terminal::attach_long),
    ("idle-daemon", idle::fifty_sessions),
    ("idle-attached", idle::thousand_attached),
    ("stored-sessions", idle::ten_thousand_stored),
    ("binary-size", start::binary_size),
];

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let fits =
        |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let binaries = release();
    println!("{:44} {:>14} {:>14}", "measured", "value", "target");
    let mut report = Report::default();
    for (name, measure) in MEASURES.iter().filter(|(name, _)| fits(name)) {
        report.about(name);
        measure(&binaries, &mut report);
    }
    report.end();
}
