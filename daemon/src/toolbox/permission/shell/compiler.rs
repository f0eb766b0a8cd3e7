//! Compilers and linkers: options that run programs or load code of the caller's choice.
//! Must never judge what is compiled: who allows a compiler allows its input and output.

use super::lex::Word;
use super::options::{Found, may_be_option};

const NAMES: &[&str] = &[
    "gcc", "g++", "cc", "c++", "clang", "clang++", "cpp", "gfortran", "gnat", "gdc", "ld", "gold",
    "lld", "rustc", "rustdoc", "ar", "nvcc", "tcc",
];

/// What an option begins with that brings in a program, a plugin, or more options from a file.
const RUN: &[&str] = &[
    "-wrapper",
    "--wrapper",
    "-fplugin",
    "-fpass-plugin",
    "-plugin",
    "--plugin",
    "-specs",
    "--specs",
    "-B",
    "-Xclang",
    "-load",
    "-fuse-ld",
    "--ld-path",
    "--config",
    "-no-canonical-prefixes",
    "-ccbin",
    "--compiler-bindir",
    "-Wl,-plugin",
    "-Wl,--plugin",
    "-Xlinker",
    "-Clinker",
    "-Zcodegen-backend",
    "-Ccodegen-backend",
    "--codegen",
    "--runtool",
    "--test-runtool",
    "@",
];

/// A setting behind `-C` or `-Z` in a word of its own.
const SETTINGS: &[&str] = &["linker=", "codegen-backend=", "llvm-args=", "link-arg"];

/// `gcc`, `gcc-13` and `x86_64-linux-gnu-gcc-13` are all one.
pub(super) fn is_one(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let last = |known: &&str| {
        bare.strip_suffix(*known)
            .is_some_and(|before| before.is_empty() || before.ends_with('-'))
    };
    NAMES.iter().any(last)
}

pub(super) fn look(words: &[Word]) -> Found {
    let runs = |word: &Word| {
        let begins = |option: &&str| word.plain.starts_with(*option);
        may_be_option(word) || RUN.iter().any(&begins) || SETTINGS.iter().any(&begins)
    };
    Found {
        runs: words.iter().any(runs),
        changes: Vec::new(),
    }
}
