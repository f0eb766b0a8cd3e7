//! The contract between `dwelld` and whoever speaks to it: types, JSON-RPC traits and framing.
//! Owns names and shapes; must never do IO, spawn tasks or know a runtime.

pub mod approval;
pub mod command;
pub mod daemon;
pub mod error;
pub mod event;
pub mod framing;
pub mod id;
pub mod plugin;
pub mod provider;
pub mod session;
pub mod tool;
pub mod turn;
pub mod version;
