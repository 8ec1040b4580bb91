//! Processors for those who take turns.
//!
//! In virtual time only one of the guests and the NIC runs at any moment. On one processor they
//! hand over to each other at once; on several, each turn begins with waking an idle one.

use std::io;

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// The processor that everything which this process runs in turns shares; another process probably
/// has another one. None if the system does not say which there are.
#[must_use]
pub fn of_this_process() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let all: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    all.get(std::process::id() as usize % all.len().max(1)).copied()
}

/// Keeps process `pid`, or the calling thread, and what it starts, on `cpu`.
///
/// # Errors
/// If the process is gone, or the processor may not be used.
pub fn pin(pid: Option<Pid>, cpu: usize) -> io::Result<()> {
    let mut only = CpuSet::new();
    only.set(cpu);
    Ok(sched_setaffinity(pid, &only)?)
}
