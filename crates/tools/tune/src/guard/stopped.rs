//! Whether a process is stopped: by a signal, as Ctrl-Z sends one, or by a debugger.

use std::fs;

use rustix::process::Pid;

/// So many looks that find a process as the one before did make a standstill. A user who presses
/// Ctrl-Z and types `bg` is quicker.
const LOOKS: u32 = 5;

/// How often a process has given its processor away so far, if it is stopped now.
pub(super) fn switches_if_stopped(process: Pid) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    // `T` by a signal, `t` by a debugger; proc_pid_status(5).
    let is_stopped = field("State:")?.starts_with(['T', 't']);
    is_stopped.then(|| field("voluntary_ctxt_switches:")?.parse().ok()).flatten()
}

/// What looks at a process have found so far.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    last: Option<u64>,
    same: u32,
}

impl Standstill {
    /// Takes in what [`switches_if_stopped`] says; whether the process has stood still for
    /// [`LOOKS`] looks. A process that was stopped, went on and was stopped again has another
    /// number of switches.
    pub(super) fn look(&mut self, now: Option<u64>) -> bool {
        self.same = if now.is_some() && now == self.last { self.same + 1 } else { 0 };
        self.last = now;
        let is_still = self.same == LOOKS;
        if is_still {
            self.same = 0;
        }
        is_still
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::{Signal, WaitOptions, kill_process, waitpid};

    use super::*;

    #[test]
    fn a_process_that_is_stopped_throughout_stands_still_and_a_slow_one_does_not() {
        let mut standstill = Standstill::default();
        let mut look = |now| standstill.look(now);
        // Slow, but never stopped; stopped for a moment; stopped again and again, as by strace.
        assert!((0..100).all(|_| !look(None)));
        assert!([Some(7), Some(7), Some(7), None].iter().all(|now| !look(*now)));
        assert!((0..100).all(|switches| !look(Some(switches))));
        // Stopped for good: seen after a while, and again as long as it lasts.
        let seen: Vec<bool> = (0..=2 * LOOKS).map(|_| look(Some(500))).collect();
        assert_eq!(seen.iter().filter(|seen| **seen).count(), 2, "{seen:?}");
        assert!(seen[LOOKS as usize] && seen[2 * LOOKS as usize], "{seen:?}");
    }

    #[test]
    fn the_kernel_says_who_is_stopped() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = Pid::from_child(&child);
        assert_eq!(switches_if_stopped(pid), None);
        kill_process(pid, Signal::STOP).unwrap();
        waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        let switches = switches_if_stopped(pid);
        assert!(switches.is_some() && switches == switches_if_stopped(pid));
        kill_process(pid, Signal::CONT).unwrap();
        waitpid(Some(pid), WaitOptions::CONTINUED).unwrap();
        assert_eq!(switches_if_stopped(pid), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
