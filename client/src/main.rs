//! The `dwell` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    client::main()
}
