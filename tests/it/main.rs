//! What a user sees, feature by feature. One binary: each file beside this one has its line here.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise and spawn what they test"
)]

mod acp;
mod acp_order;
mod acp_trouble;
mod approval;
mod ask;
mod attach;
mod cli;
mod client_tools;
mod clients;
mod code_mode;
mod command;
mod compaction;
mod crash;
mod harness_works;
mod lifecycle;
mod mcp;
mod mcp_real;
mod mcp_server;

mod listing;
mod local;
mod model;
mod openrpc;
mod own_commands;
mod package;
mod plugin;
mod presentation;
mod provider;
mod remote;
mod remote_gone;
mod screen;
mod script_tools;
mod scripting;
mod servers;
mod service;
mod service_manager;
mod session;
mod shell;
mod skills;
mod store;
mod task;
mod terminal;
mod terminal_odd;
mod terminal_plain;
mod terminal_shows;
mod terminal_sizes;
mod terminal_states;
mod tidy;
mod tools;
mod transport;
mod turn;
mod unattended;
mod vendor;
