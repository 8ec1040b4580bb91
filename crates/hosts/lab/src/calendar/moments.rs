//! The ends of virtual time.

use base::time::Instant;

/// Midnight, 1 January 2026, UTC, in nanoseconds since 1970: when the world of virtual time begins.
pub const BEGINNING_OF_TIME: u64 = 1_767_225_600 * 1_000_000_000;

/// A guest asks for this time when it has nothing to do; beyond it, clocks turn negative.
pub(super) const NEVER: Instant = Instant::from_nanos(i64::MAX as u64);
