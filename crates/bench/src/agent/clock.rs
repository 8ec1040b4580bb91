//! The clocks that an agent reads.

use crate::workload::{Duration, Instant, Now};
use rustix::time::{ClockId, clock_gettime};

fn read_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Monotonic time since *go*, and the time of day if the workload reads it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    epoch_ns: u64,
    wall: bool,
    virtual_time: bool,
}

impl Clock {
    /// A clock that starts now.
    pub(super) fn start(wall: bool, virtual_time: bool) -> Self {
        Self { epoch_ns: read_ns(ClockId::Monotonic), wall, virtual_time }
    }

    /// Does CPU work of this length.
    pub(super) fn compute(self, work: Duration) {
        match (work, self.virtual_time) {
            (Duration::ZERO, _) => {}
            (_, true) => sleep(work),
            (_, false) => spin(work),
        }
    }

    /// What workloads are told.
    pub(super) fn now(self) -> Now {
        let wall_ns = if self.wall { read_ns(ClockId::Realtime) } else { 0 };
        Now { at: self.at(), wall_ns }
    }

    /// Monotonic time alone.
    pub(super) fn at(self) -> Instant {
        Instant::from_nanos(read_ns(ClockId::Monotonic).saturating_sub(self.epoch_ns))
    }
}

/// CPU time, user and system, that this process has used.
pub(super) fn cpu_ns() -> u64 {
    read_ns(ClockId::ProcessCPUTime)
}

/// Keeps the CPU busy until this thread has used `work` more CPU time. The thread's own clock
/// stands still while something else runs, so pre-emption makes the work take longer but never
/// makes it less.
fn spin(work: Duration) {
    let end_ns = read_ns(ClockId::ThreadCPUTime) + work.as_nanos();
    while read_ns(ClockId::ThreadCPUTime) < end_ns {
        std::hint::spin_loop();
    }
}

/// Lets `work` pass where computing takes no time. Unlike real work it does not keep the host from
/// receiving, and interrupts do not lengthen it.
fn sleep(work: Duration) {
    std::thread::sleep(std::time::Duration::from_nanos(work.as_nanos()));
}
