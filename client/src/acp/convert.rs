//! Between the daemon's words and the Agent Client Protocol's. Pure; must never call anybody.

pub(super) mod call;
pub(super) mod error;
pub(super) mod listing;
pub(super) mod plan;
pub(super) mod prompt;
pub(super) mod servers;
pub(super) mod update;
