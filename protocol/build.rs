//! Compresses `openrpc.json` for `document`: what ships holds a few kilobytes of it. Must never change what it says.

use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=openrpc.json");
    println!("cargo::rerun-if-changed=build.rs");
    let pretty = fs::read("openrpc.json")?;
    let dense = miniz_oxide::deflate::compress_to_vec(&without_space(&pretty), 10);
    let folder = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("no OUT_DIR"))?;
    fs::write(Path::new(&folder).join("openrpc.deflated"), dense)
}

/// The same JSON without the white space between its tokens.
fn without_space(json: &[u8]) -> Vec<u8> {
    let (mut quoted, mut escaped) = (false, false);
    let mut kept = Vec::with_capacity(json.len());
    for &byte in json {
        if quoted || !byte.is_ascii_whitespace() {
            kept.push(byte);
        }
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
    }
    kept
}
