//! Who gets a processor, and which: threads that take turns, and one that must not wait.
//!
//! In virtual time only one of the guests and the NIC runs at any moment. On one processor they
//! hand over to each other at once; on several, each turn begins with waking an idle one.

use std::io;

use rustix::process::{Pid, getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processor that everything which this process runs in turns shares; another process probably
/// has another one. None if the system does not say which there are.
pub fn of_this_process() -> Option<usize> {
    let all = allowed();
    all.get(std::process::id() as usize % all.len().max(1)).copied()
}

/// The processors that the calling thread may run on; none if the system does not say.
pub fn allowed() -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Keeps process `pid`, or the calling thread, and what it starts, on `cpu`.
pub fn pin(pid: Option<Pid>, cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(pid, &only)?)
}

/// The nice value of what runs before all else.
const FIRST: i32 = -20;

/// Lets the calling thread run before all others that are not real-time threads, if the system
/// permits; the nice value that it then has.
///
/// A NIC is hardware, and does not queue for a processor behind those whose packets it has. With
/// the usual priority, a thread that plays one was woken on the processor of a sender that was
/// busy, and ran up to 200 us late, when that one slept. A real-time priority would starve hosts on
/// a machine with few processors.
pub fn come_first() -> i32 {
    // Linux has a nice value for each thread; without an id it is that of the caller.
    let _ = setpriority_process(None, FIRST);
    getpriority_process(None).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coming_first_is_the_threads_alone() {
        let before = getpriority_process(None).unwrap();
        let nice = std::thread::spawn(come_first).join().unwrap();
        // Without the right to, it stays as it was.
        assert!(nice == FIRST || nice == before, "{nice}");
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
