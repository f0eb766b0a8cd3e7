//! The harness: the real binaries in a sandbox of their own, a raw client, and a model server on loopback.
//! Every wait has a deadline and says what it waited for; every child is reaped; nothing here mends what it tests.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a harness stops at the first surprise, talks to whoever runs it, and spawns what it tests"
)]

pub mod binaries;
pub mod client;
pub mod clients;
pub mod daemon;
pub mod dwell;
pub mod editor;
pub mod events;
pub mod files;
pub mod gguf;
pub mod http;
pub mod local;
pub mod manager;
pub mod mcp;
pub mod model;
pub mod procfs;
pub mod pty;
pub mod sandbox;
pub mod servers;
pub mod site;
pub mod ssh;
pub mod tmux;
pub mod wait;
pub mod wire;
