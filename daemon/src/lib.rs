//! The daemon as a library, so that its binary stays one line and tests can name its types.

pub mod command;
pub mod config;
pub mod daemon;
pub mod log;
pub mod memory;
pub mod model;
pub mod own_dir;
pub mod presentation;
pub mod process;
pub mod provider;
pub mod rpc;
pub mod session;
pub mod shutdown;
pub mod stdio_rpc;
pub mod store;
pub mod toolbox;
pub mod transport;
pub mod turn;
pub mod workspace;
