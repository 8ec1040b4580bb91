//! The clocks that the live world runs on.

use nic::time::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

const NANOS_PER_SECOND: u64 = 1_000_000_000;

fn nanos(time: Timespec) -> u64 {
    time.tv_sec.unsigned_abs() * NANOS_PER_SECOND + time.tv_nsec.unsigned_abs()
}

/// The time of the live world: `CLOCK_MONOTONIC`.
#[must_use]
pub fn now() -> Instant {
    Instant::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Nanoseconds since 1970.
#[must_use]
pub fn wall_clock_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// CPU time that the calling thread has used, in user space and in the kernel.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

/// A span of the standard library's as the cores count it: the longest that they know, if it is
/// longer than that.
#[must_use]
pub(crate) fn span(span: std::time::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// A span as the kernel takes it.
#[must_use]
pub(crate) fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: (nanos / NANOS_PER_SECOND).try_into().unwrap_or(i64::MAX),
        tv_nsec: (nanos % NANOS_PER_SECOND) as i64,
    }
}
