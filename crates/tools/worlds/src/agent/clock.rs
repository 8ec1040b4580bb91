//! The clocks that an agent reads.

use base::time::Instant;
use rustix::time::{ClockId, clock_gettime};
use workload::Now;

pub(super) fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Monotonic time since *go*, and the time of day if the workload reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch_ns: u64,
    wall: bool,
}

impl Clock {
    pub(super) fn start(wall: bool) -> Self {
        Self { epoch_ns: read_ns(ClockId::Monotonic), wall }
    }

    pub(super) fn now(self) -> Now {
        let wall_ns = if self.wall { read_ns(ClockId::Realtime) } else { 0 };
        Now { at: self.at(), wall_ns }
    }

    pub(super) fn at(self) -> Instant {
        Instant::from_nanos(read_ns(ClockId::Monotonic).saturating_sub(self.epoch_ns))
    }
}

/// CPU time, user and system, that this process has used.
pub(super) fn cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// Packets that came in by busy polling on this host, since it booted; 0 where that is not counted.
pub(super) fn busy_polled() -> u64 {
    sys::busy_poll::packets(std::process::id()).unwrap_or(0)
}
