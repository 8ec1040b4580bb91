//! The clocks that the live world runs on.
//!
//! They are read through the C library. rustix finds the kernel's vDSO by itself and reads clocks
//! there, which costs the same; but valgrind takes the vDSO away from programs, and then rustix
//! looks where nothing is.

use base::time::{Duration, Instant};
use rustix::time::Timespec;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

fn read(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a variable for the result. The kernel has these clocks, so there is one.
    // JUSTIFICATION: rustix does not get this from the C library.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec.unsigned_abs() * NANOS_PER_SECOND + time.tv_nsec.unsigned_abs()
}

/// The time of the live world: `CLOCK_MONOTONIC`.
pub fn now() -> Instant {
    Instant::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// Nanoseconds since 1970.
pub fn wall_clock_nanos() -> u64 {
    read(libc::CLOCK_REALTIME)
}

/// CPU time that the calling thread has used, in user space and in the kernel.
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_THREAD_CPUTIME_ID))
}

/// CPU time that this process has used, in user space and in the kernel.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(read(libc::CLOCK_PROCESS_CPUTIME_ID))
}

/// A span of the standard library's as the cores count it: the longest that they know, if it is
/// longer than that.
pub fn span(span: std::time::Duration) -> Duration {
    Duration::from_nanos(span.as_nanos().try_into().unwrap_or(u64::MAX))
}

/// A span as the kernel takes it.
pub fn timespec(span: Duration) -> Timespec {
    let nanos = span.as_nanos();
    Timespec {
        tv_sec: (nanos / NANOS_PER_SECOND).try_into().unwrap_or(i64::MAX),
        tv_nsec: (nanos % NANOS_PER_SECOND) as i64,
    }
}
