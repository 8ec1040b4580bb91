//! The progress thread, which drives an endpoint while no thread of the application does.

use std::num::NonZeroU64;

use super::error::MxError;
use super::leadership::look_at;
use super::shared::Shared;
use super::sources::Role;
use mx::buffers::{Sink, Source};
use sys::clock;

/// Runs until the endpoint is closed, or its port is broken, which every request then says.
pub(super) fn run<S: Source, R: Sink>(shared: &Shared<S, R>) {
    // Without it, a deadline is met 50 us late. It is only a matter of punctuality.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
    loop {
        match drive(shared).and_then(|goes_on| stand_by(shared).map(|()| goes_on)) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return shared.lock().fails(&error),
        }
    }
}

/// Drives the endpoint until the application does. False when it is closed.
fn drive<S: Source, R: Sink>(shared: &Shared<S, R>) -> Result<bool, MxError> {
    let mut core = shared.lock();
    loop {
        core.check()?;
        if core.stopping {
            return Ok(false);
        }
        // A thread that has slept on the port looks into it, since it may have taken the signal
        // that was meant for a leader.
        if core.advance()? {
            continue;
        }
        // One who looks again and again drives, too; every frame would wake this thread besides.
        if !core.leadership.is_over(core.now()) {
            return Ok(true);
        }
        core = shared.sleep_on_port(core, None, Role::Progress)?;
    }
}

fn stand_by<S: Source, R: Sink>(shared: &Shared<S, R>) -> Result<(), MxError> {
    let begun = clock::now();
    let (mut led, mut is_led) = (begun, true);
    loop {
        let now = clock::now();
        // The thread that has the lock drives, and should not have to wait for this thread.
        let due = if let Some(mut core) = shared.try_lock() {
            core.check()?;
            if core.stopping || core.leadership.is_over(now) {
                core.leadership.take_over();
                return Ok(());
            }
            if !core.leadership.has_leader() {
                led = now;
            }
            // A leader that sleeps leaves timers to this thread.
            if core.engine.deadline().is_some_and(|due| due <= now) {
                core.advance()?;
            }
            is_led = core.leadership.was_led();
            let until = core.leadership.stand_by(now, look_at(now, begun, is_led), led);
            core.hand_over_timer();
            until
        } else {
            led = now;
            Some(look_at(now, begun, is_led))
        };
        let slept = shared.sources.wait_for_bell(Role::Progress, due);
        slept.map_err(|error| MxError::System(error.into()))?;
    }
}
