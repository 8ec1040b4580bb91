//! Numbers that no other process has.

use crate::clock;

/// A number that no other caller gets, in this process or another.
pub fn seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library's way to randomness of the system.
    std::hash::RandomState::new().build_hasher().finish() ^ clock::wall_clock_nanos()
}
