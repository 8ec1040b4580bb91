//! Linux's own adaptive moderation against ours, on the same traffic in virtual time.
//!
//! Port b0 is moderated once by our `adaptive`, and once by the driver of guest b: `ethtool -C b0
//! adaptive-rx on` starts Linux's DIM there, and what it decides comes back to the NIC as commands
//! of the control queue. What is in force is read every 50 us, and its changes are kept.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::dataplane::DataPlane;
use lab::guest::protocol::{GuestEvent, Order, Spawn, TimedCommand};
use lab::names;
use nic::moderation::{Moderation, Profile};
use serde::{Deserialize, Serialize};

use super::script::{self, GO_AT, environment, order_at};
use super::virtual_run::{VirtualRun, instant, with_usual_cable};
use crate::experiment::{A, B, Plan};
use crate::options::{NicOptions, Ports};

/// How often it is looked what is in force.
pub(super) const STEP: Duration = Duration::from_micros(50);

/// When the NIC, or the guest's driver, starts to adapt.
const ADAPT_AT: Duration = Duration::from_millis(800);

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decider {
    /// Our `adaptive`, in the NIC.
    Nic,
    /// The DIM of the guest's driver.
    Linux,
}

/// A profile, and since when it was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Microseconds since the start of the traffic.
    pub at_us: u64,
    /// How many interrupts the port had raised since then.
    pub interrupts: u64,
    /// The delay.
    pub rx_usecs: u32,
    /// The frame count.
    pub rx_frames: u32,
}

/// What was in force on port b0 while `plan` was played, and under whose direction; `late` are
/// players, by their place in the plan, that go when half of the time has passed.
pub fn changes(plan: &Plan, late: &[usize], decider: Decider) -> Result<Vec<Change>> {
    let mut scripts = script::of(plan, &NicOptions::default())?;
    let half = GO_AT + Duration::from_secs_f64((plan.warmup_s + plan.duration_s) / 2.0);
    delay(plan, late, &mut scripts, half);
    if decider == Decider::Linux {
        scripts[B].push(order_at(ADAPT_AT, ETHTOOL, Order::Spawn(ethtool())));
    }
    // Where `adaptive` begins.
    let setting: Moderation = "delay:8+frames:256".parse()?;
    let options = NicOptions { ports: Some(Ports::B), ..NicOptions::default() };
    let options = with_usual_cable(&options);
    let scripts = (scripts, vec![A, B]);
    let mut run = VirtualRun::prepare(&names(2), &options, setting, scripts, plan.seed)?;
    if decider == Decider::Nic {
        // At the same moment: what either counts before it has an effect on what it does later.
        run.set(instant(ADAPT_AT), "adaptive".parse()?)?;
    }
    let seen = Arc::new(Mutex::new(Vec::new()));
    let mut since_go = Duration::ZERO;
    while since_go.as_secs_f64() < plan.warmup_s + plan.duration_s {
        observe(&run, since_go, &seen)?;
        since_go += STEP;
    }
    let mut refused = None;
    run.play(&mut |_, program, event| match event {
        GuestEvent::Exited(status) if program == ETHTOOL && status.code() != 0 => {
            refused = Some(format!("ended with status {}", status.code()));
        }
        GuestEvent::Failed(errno) if program == ETHTOOL => {
            let error = std::io::Error::from_raw_os_error(errno);
            refused = Some(format!("could not be started: {error}; apt-get install ethtool"));
        }
        _ => {}
    })?;
    ensure!(refused.is_none(), "ethtool in guest b {}", refused.unwrap_or_default());
    let seen = std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    only_changes(seen).context("virtual time ended before the traffic began")
}

/// The number of a program that no plan has so many programs for.
const ETHTOOL: u32 = 1_000;

fn ethtool() -> Spawn {
    Spawn {
        words: ["ethtool", "-C", "b0", "adaptive-rx", "on"].map(Into::into).into(),
        environment: environment(),
        ..Spawn::default()
    }
}

/// Lets the players that are `late` go `at` a later moment.
pub(super) fn delay(plan: &Plan, late: &[usize], scripts: &mut [Vec<TimedCommand>], at: Duration) {
    for (place, part) in script::parts(plan).enumerate() {
        let of_the_part = |cue: &&mut TimedCommand| cue.program == part.program;
        for cue in scripts[part.host].iter_mut().filter(of_the_part) {
            if late.contains(&place) && matches!(cue.order, Order::Input(_)) {
                cue.at_us = at.as_micros() as u64;
            }
        }
    }
}

/// Will look what is in force on b0 then.
fn observe(run: &VirtualRun, since_go: Duration, seen: &Arc<Mutex<Vec<Change>>>) -> Result<()> {
    let seen = Arc::clone(seen);
    run.at(instant(GO_AT + since_go), move |plane: &mut DataPlane| {
        let Some(queue) = plane.plane().port_mut(B).queues().first() else { return };
        let Profile { rx_usecs, rx_frames } = queue.in_force();
        let (at_us, interrupts) =
            (since_go.as_micros() as u64, queue.counters().interrupts_total());
        let change = Change { at_us, interrupts, rx_usecs, rx_frames };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(change);
    })
}

/// Interrupts counted from the first reading, and no profile twice in a row.
fn only_changes(seen: Vec<Change>) -> Option<Vec<Change>> {
    let before = seen.first()?.interrupts;
    let mut changes: Vec<Change> = Vec::new();
    for change in seen {
        let in_force = |change: &Change| (change.rx_usecs, change.rx_frames);
        if changes.last().map(in_force) != Some(in_force(&change)) {
            changes.push(Change { interrupts: change.interrupts - before, ..change });
        }
    }
    Some(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_that_stays_is_told_once() {
        let seen =
            |at_us, interrupts, rx_usecs| Change { at_us, interrupts, rx_usecs, rx_frames: 256 };
        let all = vec![seen(0, 7, 8), seen(50, 9, 8), seen(100, 71, 64), seen(150, 72, 8)];
        let kept = vec![seen(0, 0, 8), seen(100, 64, 64), seen(150, 65, 8)];
        assert_eq!(only_changes(all), Some(kept));
        assert_eq!(only_changes(Vec::new()), None);
    }
}
