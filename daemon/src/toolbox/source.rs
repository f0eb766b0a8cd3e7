//! Where tools come from beside those that are built in: one file a source.
//! Must never decide what may run; a source makes tools, and the gate runs them.

pub mod client;
pub mod mcp;
pub mod script;
