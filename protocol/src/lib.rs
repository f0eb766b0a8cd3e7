//! The contract between `dwelld` and whoever speaks to it: types, JSON-RPC traits and framing.
//! Owns names and shapes; must never do IO, spawn tasks or know a runtime.

#![cfg_attr(
    not(any(feature = "server", feature = "client")),
    allow(
        unused_imports,
        reason = "some names occur in the methods' signatures only"
    )
)]

#[macro_use]
mod resource;

pub mod approval;
pub mod command;
pub mod daemon;
#[cfg(feature = "document")]
pub mod document;
pub mod error;
pub mod event;
pub mod expression;
pub mod framing;
pub mod head;
pub mod id;
pub mod notification;
pub mod plugin;
pub mod provider;
#[cfg(feature = "schema")]
pub mod schema;
pub mod session;
pub mod surrogate;
pub mod table;
pub mod tool;
pub mod turn;
pub mod unseen;
pub mod validation;
pub mod version;
pub mod withdrawal;
