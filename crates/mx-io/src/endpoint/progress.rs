//! The thread that makes progress while nobody waits.

use std::num::NonZeroU64;

use super::error::MxError;
use super::roles::{LEASE, PROGRESS};
use super::shared::Shared;
use mx::buffers::{Sink, Source};
use sys::clock;

/// A driver that has been there for so many leases stays for a while: it is asked to say when it
/// leaves.
const LONG: u64 = 5;

/// Runs until the endpoint is closed, or its port is broken, which every request then says.
pub(super) fn run<S: Source, R: Sink>(shared: &Shared<S, R>) {
    // Without it, a deadline is met 50 us late. It is only a matter of punctuality.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    loop {
        match watch(shared).and_then(|goes_on| stand_by(shared).map(|()| goes_on)) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return shared.lock().fails(&error),
        }
    }
}

/// Drives the endpoint until the application does. False when it is closed.
fn watch<S: Source, R: Sink>(shared: &Shared<S, R>) -> Result<bool, MxError> {
    let mut core = shared.lock();
    loop {
        core.check()?;
        if core.stopping {
            return Ok(false);
        }
        // Whoever has slept on the port looks into it, since it may have taken the signal that was
        // meant for a driver.
        if core.advance()? {
            continue;
        }
        // One who looks again and again drives, too; every frame would wake this thread besides.
        let looks = core.now().since(core.driven_at) < clock::span(LEASE);
        if core.drivers > 0 || looks {
            return Ok(true);
        }
        core = shared.sleep_on_port(core, None, PROGRESS)?;
    }
}

/// Sleeps as long as the application drives the endpoint.
fn stand_by<S: Source, R: Sink>(shared: &Shared<S, R>) -> Result<(), MxError> {
    let lease = clock::span(LEASE);
    let mut since = clock::now();
    loop {
        let now = clock::now();
        // Whoever has the lock drives, and should not have to wait for this thread.
        let due = if let Some(mut core) = shared.try_lock() {
            core.check()?;
            if core.stopping || core.drivers == 0 && now.since(core.driven_at) >= lease {
                core.watched_at = None;
                return Ok(());
            }
            if core.drivers == 0 {
                since = now;
            }
            // A driver that sleeps leaves timers to this thread.
            if core.engine.deadline().is_some_and(|due| due <= now) {
                core.advance()?;
            }
            core.wants_bell = now.since(since) >= lease.times(LONG);
            core.watched_at = (!core.wants_bell).then(|| now + lease);
            core.hand_over_timers();
            core.watched_at
        } else {
            since = now;
            Some(now + lease)
        };
        let slept = shared.sources.wait_for_bell(PROGRESS, due);
        slept.map_err(|error| MxError::System(error.into()))?;
    }
}
