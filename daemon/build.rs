//! Lets the linker keep one copy of functions that have the same body, where it can: the daemon is smaller, and so is what
//! it weighs in memory. Must never fail a build.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "it speaks to cargo, before there is a daemon"
)]

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if release && links() == Some(true) {
        println!("cargo:rustc-link-arg-bins={FOLD}");
    }
}

/// Whether the compiler's linker knows the flag: that of the toolchain does on most Linux machines, that of a system need not.
fn links() -> Option<bool> {
    let folder = PathBuf::from(env::var_os("OUT_DIR")?);
    let (source, out) = (folder.join("probe.rs"), folder.join("probe"));
    fs::write(&source, "fn main() {}").ok()?;
    let mut probe = Command::new(env::var_os("RUSTC")?);
    probe.arg(source).arg("-o").arg(out);
    probe.arg("--target").arg(env::var_os("TARGET")?);
    probe.arg(format!("-Clink-arg={FOLD}"));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        probe.arg(format!("-Clinker={linker}"));
    }
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    probe.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    Some(probe.output().ok()?.status.success())
}
