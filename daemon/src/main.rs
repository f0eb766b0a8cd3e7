//! The binary. Must contain nothing but its first steps.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A supervisor of children is this same binary: it must be up before anything else is.
    daemon::process::supervisor::main_if_asked();
    daemon::daemon::main()
}
