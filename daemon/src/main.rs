//! The binary. Must contain nothing but its first steps.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A supervisor of children, the reader of pages and the runner of programs are this same binary: they must be up before anything else is.
    // And what scripts know as argc: it is asked by its name, before any argument counts.
    daemon::toolbox::source::script::standin::main_if_asked();
    daemon::process::nursery::main_if_asked();
    daemon::toolbox::builtin::readable::main_if_asked();
    daemon::presentation::code_mode::runner::main_if_asked();
    daemon::daemon::main()
}
