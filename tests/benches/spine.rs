//! What the main job costs, measured with the release binaries and printed beside its target. Run by hand.

fn main() {}
