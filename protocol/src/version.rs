//! The protocol's version and how two sides compare theirs. Must never know a transport.

/// The protocol spoken by this build. Raised only when an old peer would misunderstand a new one; additions do not
/// raise it, because unknown members, methods and event types are tolerated on both sides.
pub const PROTOCOL: u32 = 1;

/// The release of this build, as both binaries report it.
pub const RELEASE: &str = env!("CARGO_PKG_VERSION");

/// Whether a peer that speaks `theirs` and this build understand each other.
pub fn compatible(theirs: u32) -> bool {
    theirs == PROTOCOL
}
