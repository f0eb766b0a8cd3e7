//! Framing of JSON-RPC messages on a byte stream, sans IO.
