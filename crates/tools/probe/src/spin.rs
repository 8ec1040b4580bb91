//! Passing time on a processor, in every world.

use std::thread::sleep;
use std::time::Instant;

/// A clock that shows the same time so often stands still.
const STILL: u32 = 1_000;

/// Spins for a moment. In virtual time, computing takes none: there timers are exact, and only who
/// sleeps gets any further, so it sleeps until `due`.
pub(super) fn pass_time(due: Instant) {
    let before = Instant::now();
    for _ in 0..STILL {
        std::hint::spin_loop();
        if Instant::now() > before {
            return;
        }
    }
    sleep(due.saturating_duration_since(before));
}
