//! Writes `protocol/openrpc.json` from the types: `cargo run -p dwell-protocol --features schema --example openrpc`.

fn main() -> std::io::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openrpc.json");
    std::fs::write(path, protocol::schema::text())
}
