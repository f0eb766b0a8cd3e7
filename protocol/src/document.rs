//! The document of the wire in the OpenRPC form, as it was written to `openrpc.json`. Must never be made at run time: `schema`
//! makes it, and the build compresses it.

/// The method that gives it, named by that specification.
pub const METHOD: &str = "rpc.discover";

/// Deflated, without the white space between its tokens.
const COMPRESSED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openrpc.deflated"));

/// The document on one line.
#[must_use]
pub fn text() -> String {
    let bytes = miniz_oxide::inflate::decompress_to_vec(COMPRESSED).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    #[test]
    fn what_is_embedded_is_the_file() {
        let file: Value = serde_json::from_str(include_str!("../openrpc.json")).expect("JSON");
        assert_eq!(super::text(), file.to_string());
    }
}
