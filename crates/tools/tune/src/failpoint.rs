//! Steps between which a process may be killed, and a way to be killed there.
//!
//! Whatever happens to Earmark, a device must be found as it was. That is only believed of what is
//! tried: with `EARMARK_KILL_AT=N` in its environment, a process kills itself with SIGKILL at its
//! N-th step, as the tests do for each N (`crates/earmark/tests/namespaces/apply.rs`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// The step at which to be killed.
pub(crate) const KILL_AT: &str = "EARMARK_KILL_AT";

/// The same for the guard that this process starts.
pub(crate) const KILL_GUARD_AT: &str = "EARMARK_KILL_GUARD_AT";

/// The guard is to die with this process, before it.
pub(crate) const KILL_GUARD_TOO: &str = "EARMARK_KILL_GUARD_TOO";

/// The guard, once there is one.
static GUARD: AtomicU32 = AtomicU32::new(0);

pub(crate) fn guarded_by(process: u32) {
    GUARD.store(process, Ordering::Relaxed);
}

/// A moment at which a process may be killed, in words.
pub(crate) fn failpoint(_what: &str) {
    static LAST: OnceLock<Option<u32>> = OnceLock::new();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = || std::env::var(KILL_AT).ok()?.parse().ok();
    let Some(last) = LAST.get_or_init(number) else { return };
    if COUNT.fetch_add(1, Ordering::Relaxed) + 1 == *last {
        die();
    }
}

fn die() {
    let guard = i32::try_from(GUARD.load(Ordering::Relaxed)).ok().and_then(Pid::from_raw);
    let guard = guard.filter(|_| std::env::var_os(KILL_GUARD_TOO).is_some());
    guard.map(|guard| kill_process(guard, Signal::KILL));
    let _ = kill_process(getpid(), Signal::KILL);
    // It takes a moment until a signal to oneself arrives.
    loop {
        std::thread::park();
    }
}
