//! Signals to the programs of a guest.

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal to a process or its group; one that is gone does not mind.
pub(super) fn send_signal(pid: Pid, number: i32, group: bool) {
    let Some(signal) = Signal::from_named_raw(number) else { return };
    let _ = if group {
        rustix::process::kill_process_group(pid, signal)
    } else {
        kill_process(pid, signal)
    };
}
