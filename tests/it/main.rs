//! What a user sees, feature by feature. One binary: each file beside this one has its line here.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests stop at the first surprise and spawn what they test"
)]

mod harness_works;
mod tidy;
