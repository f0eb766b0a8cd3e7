//! Ids for new sessions: short, readable, and unlikely to meet again. Must never be taken apart.

use protocol::id::SessionId;
use std::hash::{BuildHasher, RandomState};

const FIRST: [&str; 32] = [
    "amber", "brave", "brisk", "calm", "clear", "coral", "dusky", "eager", "early", "fair",
    "fleet", "fresh", "gentle", "glad", "golden", "green", "keen", "kind", "light", "lively",
    "lucid", "mellow", "merry", "misty", "noble", "quiet", "rapid", "silver", "still", "sunny",
    "vivid", "warm",
];
const SECOND: [&str; 32] = [
    "badger", "beacon", "birch", "brook", "cedar", "comet", "crane", "delta", "ember", "falcon",
    "fern", "finch", "fjord", "glade", "harbor", "heron", "island", "juniper", "lark", "lynx",
    "maple", "meadow", "otter", "pebble", "pine", "quartz", "raven", "reef", "robin", "spruce",
    "tarn", "willow",
];
/// Without the letters and digits that are taken for each other.
const TAIL: &[u8; 32] = b"23456789abcdefghjkmnpqrstuvwxyz0";

/// A new id, from the system's randomness.
pub fn fresh() -> SessionId {
    // Each `RandomState` has keys of its own, seeded by the system.
    let mut bits = RandomState::new().hash_one(std::process::id());
    let mut pick = || {
        let five = (bits & 31) as usize;
        bits >>= 5;
        five
    };
    let (first, second) = (FIRST[pick()], SECOND[pick()]);
    let tail: String = (0..6).map(|_| TAIL[pick()] as char).collect();
    format!("{first}-{second}-{tail}").into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn ids_differ() {
        let ids: std::collections::HashSet<_> = (0..1000).map(|_| super::fresh()).collect();
        assert_eq!(ids.len(), 1000);
    }
}
