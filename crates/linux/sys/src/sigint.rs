//! SIGINT, and whether the programs of the hosts have it as well.
//!
//! A terminal sends Ctrl-C to its whole foreground group, and the programs are in it. A script that
//! sends SIGINT to one process reaches that one alone. The kernel reports which it was: `si_code`
//! is `SI_KERNEL` for a terminal.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;

use crate::signals::{is_ignored, register};

/// `si_code` of a signal that the kernel sends, as for Ctrl-C; siginfo.h.
const SI_KERNEL: i32 = 0x80;

/// Programs that have the signal by themselves get this time to end, so that few have it twice: one
/// that is sent to a process group by hand looks like one that is sent to this process alone.
const GRACE: Duration = Duration::from_millis(100);

/// Lets this process outlive the first SIGINT and passes it on to the programs of its hosts if they
/// do not have it; a second one ends this process with `status`. The flag is set by the first.
///
/// Programs have it if they are in the process group of this process, as after Ctrl-C. A SIGINT
/// that is ignored stays so ([`signals`](crate::signals)).
pub fn outlive(status: i32) -> io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    if is_ignored(SIGINT) {
        return Ok(interrupted);
    }
    let mut signals = register([SIGINT], |signals| {
        flag::register_conditional_shutdown(SIGINT, status, Arc::clone(&interrupted))?;
        flag::register(SIGINT, Arc::clone(&interrupted))?;
        SignalsInfo::<WithRawSiginfo>::new(signals)
    })?;
    let pass_on = move || {
        for _ in signals.forever().filter(|info| info.si_code != SI_KERNEL) {
            thread::sleep(GRACE);
            pass_on();
        }
    };
    thread::Builder::new().name("sigint".into()).spawn(pass_on)?;
    Ok(interrupted)
}

/// Sends SIGINT to the programs that this process has started, and to what they have started, as
/// far as these are in its process group.
fn pass_on() {
    let (me, group) = (std::process::id(), getpgrp().as_raw_nonzero().get().unsigned_abs());
    let processes = processes();
    let parent =
        |pid| processes.iter().find(|process| process.pid == pid).map(|found| found.parent);
    for process in processes.iter().filter(|process| process.group == group) {
        // No process has that many ancestors; parents may change while this looks.
        let mut ancestors = std::iter::successors(Some(process.parent), |pid| parent(*pid));
        if ancestors.by_ref().take(1000).any(|pid| pid == me)
            && let Some(pid) = Pid::from_raw(process.pid.cast_signed())
        {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::INT);
        }
    }
}

struct Process {
    pid: u32,
    parent: u32,
    group: u32,
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // PID (NAME) STATE PPID PGRP; a name may have blanks and brackets.
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(Process { pid, parent, group: fields.next()?.parse().ok()? })
    })
    .collect()
}
